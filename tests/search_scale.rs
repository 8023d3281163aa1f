//! The search for the first bad commit on long histories: rounds, size and time.

use fbisect::search::bisect::{Bisect, Conclusion, Ends, Policy};
use fbisect::search::graph::{Graph, Node};
use fbisect::search::{Observation, Outcome, Purpose, Query, Search, SlotState, Step};

/// What the search is told of a trial.
fn observed(outcome: Outcome) -> Observation {
    Observation {
        outcome,
        metric: None,
        prepare_seconds: 0.0,
        run_seconds: 1.0,
        slot: 0,
        order: 0,
    }
}

/// Rounds and trials of a search of `n` commits in a row, all slots ending together.
fn rounds(n: Node, culprit: Node, slots: usize) -> (u32, usize) {
    let parents = (0..=n).map(|c| c.checked_sub(1).into_iter().collect());
    let marks = (0..=n).map(|c| c > 0).collect();
    let graph = Graph::new(parents.collect(), marks).expect("sorted");
    let ends = Ends {
        bad: n,
        goods: vec![0],
        merge_bases: vec![],
    };
    let mut search = Bisect::new(graph, ends, Policy::default());
    let free = vec![
        SlotState {
            built: None,
            free: true
        };
        slots
    ];
    let (mut rounds, mut trials) = (0, 0);
    while let Step::Try(queries) = search.ask(&[], &free) {
        rounds += 1;
        for query in queries {
            trials += 1;
            let bad = query.point >= culprit;
            let seen = observed(if bad { Outcome::Bad } else { Outcome::Good });
            search.tell(&query, &seen);
        }
    }
    let done = search.ask(&[], &free);
    let found = matches!(done, Step::Done(Conclusion::Culprit { point, .. }) if point == culprit);
    assert!(found, "{done:?}");
    (rounds, trials)
}

#[test]
fn slots_cut_the_rounds_of_a_chain() {
    for (slots, narrowing) in [(1, 10), (2, 7), (3, 5), (4, 5), (7, 4)] {
        for culprit in [1, 2, 100, 512, 900, 1024] {
            let (rounds, trials) = rounds(1024, culprit, slots);
            let others = if slots == 1 { 4 } else { 2 };
            assert!(
                rounds <= narrowing + others,
                "{slots} slots: {rounds} rounds"
            );
            assert!(trials <= slots * narrowing as usize + 4, "{trials} trials");
        }
    }
}

/// A history of `n` commits above a good end: a third of them merges, branches of up to 30 commits
/// side by side.
fn busy_history(n: Node) -> Bisect {
    let mut state = 1_u32;
    let mut next = move |bound: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % bound
    };
    let mut heads = vec![0; 130];
    let mut parents: Vec<Vec<Node>> = vec![vec![]];
    for node in 1..n {
        let branch = 1 + next(129) as usize;
        let (main, head) = (heads[0], heads[branch]);
        match next(3) {
            0 if head != main => {
                parents.push(vec![main, head]);
                heads[0] = node;
                heads[branch] = node;
            }
            // A branch left behind starts anew from the main line.
            _ if node - head > 4000 => {
                parents.push(vec![main]);
                heads[branch] = node;
            }
            _ => {
                parents.push(vec![head]);
                heads[branch] = node;
            }
        }
    }
    heads.sort_unstable();
    heads.dedup();
    parents.push(heads);
    let marks = (0..=n).map(|c| c > 0).collect();
    let ends = Ends {
        bad: n,
        goods: vec![0],
        merge_bases: vec![],
    };
    let graph = Graph::new(parents, marks).expect("sorted");
    Bisect::new(graph, ends, Policy::default())
}

/// The questions of the first round of a search of 50,000 commits, and the seconds they took.
fn first_round(slots: usize) -> (Vec<Query<Node>>, f64) {
    let mut search = busy_history(50_000);
    for (point, purpose, outcome) in [
        (50_000, Purpose::BadEnd, Outcome::Bad),
        (0, Purpose::GoodEnd, Outcome::Good),
    ] {
        let query = Query {
            point,
            index: 0,
            purpose,
        };
        search.tell(&query, &observed(outcome));
    }
    let free = SlotState {
        built: None,
        free: true,
    };
    let begin = std::time::Instant::now();
    let step = search.ask(&[], &vec![free; slots]);
    let seconds = begin.elapsed().as_secs_f64();
    match step {
        Step::Try(queries) => (queries, seconds),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_long_history_with_merges_is_halved() {
    let search = busy_history(50_000);
    let (queries, _) = first_round(1);
    let inside = search.graph().ancestors(queries[0].point).count();
    assert!((24_500..=25_500).contains(&inside), "{inside} of 50001");
}

#[test]
#[ignore = "measures time: run with --release"]
fn the_next_question_of_a_long_history_takes_milliseconds() {
    let fastest = |slots| (0..5).map(|_| first_round(slots).1).fold(1.0, f64::min);
    assert!(fastest(1) < 0.05, "{} s", fastest(1));
    assert!(fastest(8) < 0.3, "{} s", fastest(8));
}
