//! Tables of expected questions and conclusions.

use super::*;

/// A search with trials in flight; each test says what ends and how.
struct Bench {
    search: Bisect,
    slots: usize,
    running: Vec<Running<Node>>,
    asked: Vec<(Node, u32, Purpose)>,
}

impl Bench {
    fn new(graph: Graph, ends: Ends, deterministic: bool, slots: usize) -> Self {
        Self {
            search: Bisect::new(graph, ends, Policy { deterministic }),
            slots,
            running: Vec::new(),
            asked: Vec::new(),
        }
    }

    fn states(&self) -> Vec<SlotState<Node>> {
        let state = |slot| SlotState {
            built: None,
            free: self.running.iter().all(|r| r.slot != slot),
        };
        (0..self.slots).map(state).collect()
    }

    /// Starts what is wanted now and says what that is.
    fn start(&mut self) -> Step<Node, Conclusion> {
        let slots = self.states();
        let step = self.search.ask(&self.running, &slots);
        if let Step::Try(queries) = &step {
            let free = (0..self.slots).filter(|&i| slots[i].free);
            for (&query, slot) in queries.iter().zip(free) {
                self.asked.push((query.point, query.index, query.purpose));
                self.running.push(Running { query, slot });
            }
        }
        step
    }

    /// Ends the trial that runs on `point`.
    fn end(&mut self, point: Node, outcome: Outcome) {
        let at = self.running.iter().position(|r| r.query.point == point);
        let run = self.running.remove(at.unwrap());
        let seen = Observation {
            outcome,
            metric: None,
            prepare_seconds: 0.0,
            run_seconds: 1.0,
            slot: run.slot,
            order: 0,
        };
        self.search.tell(&run.query, &seen);
    }

    /// Runs to the end, all running trials ending together; the conclusion and the rounds.
    fn finish(&mut self, truth: impl Fn(Node, u32) -> Outcome) -> (Conclusion, u32) {
        for round in 0..10_000 {
            if let Step::Done(conclusion) = self.start() {
                return (conclusion, round);
            }
            assert!(!self.running.is_empty(), "waits for nothing");
            for run in self.running.clone() {
                let Query { point, index, .. } = run.query;
                self.end(point, truth(point, index));
            }
        }
        panic!("does not end");
    }

    fn tries(&mut self) -> Vec<(Node, Purpose)> {
        match self.start() {
            Step::Try(queries) => queries.iter().map(|q| (q.point, q.purpose)).collect(),
            other => panic!("{other:?}"),
        }
    }
}

fn graph(parents: &[&[Node]], candidate: impl Fn(Node) -> bool) -> Graph {
    let lists = parents.iter().map(|p| p.to_vec()).collect();
    let marks = (0..parents.len() as Node).map(candidate).collect();
    Graph::new(lists, marks).unwrap()
}

/// The good end 0, then `n` candidates 1..=n in a row, the last of them the bad end.
fn chain(n: u32, deterministic: bool, slots: usize) -> Bench {
    let parents = (0..=n)
        .map(|c| c.checked_sub(1).into_iter().collect())
        .collect();
    let graph = Graph::new(parents, (0..=n).map(|c| c > 0).collect()).unwrap();
    let ends = Ends {
        bad: n,
        goods: vec![0],
        merge_bases: vec![],
    };
    Bench::new(graph, ends, deterministic, slots)
}

fn bad_from(culprit: Node) -> impl Fn(Node, u32) -> Outcome {
    move |node, _| {
        if node >= culprit {
            Outcome::Bad
        } else {
            Outcome::Good
        }
    }
}

fn culprit(point: Node) -> Conclusion {
    Conclusion::Culprit {
        point,
        unconfirmed: vec![],
        untested_merge_bases: vec![],
        flaky_ends: false,
    }
}

#[test]
fn a_chain_is_asked_ends_then_middles_then_culprit_and_parent() {
    let mut bench = chain(8, false, 1);
    let end = bench.finish(bad_from(6)).0;
    assert_eq!(end, culprit(6));
    let expected = [
        (8, 0, Purpose::BadEnd),
        (0, 0, Purpose::GoodEnd),
        (4, 0, Purpose::Narrow),
        (6, 0, Purpose::Narrow),
        (5, 0, Purpose::Narrow),
        (6, 1, Purpose::Confirm),
        (5, 1, Purpose::Confirm),
    ];
    assert_eq!(bench.asked, expected);
}

#[test]
fn a_single_candidate_is_confirmed_with_the_good_end_as_its_parent() {
    let mut bench = chain(1, false, 1);
    assert_eq!(bench.finish(bad_from(1)).0, culprit(1));
    let expected = [
        (1, 0, Purpose::BadEnd),
        (0, 0, Purpose::GoodEnd),
        (1, 1, Purpose::Confirm),
        (0, 1, Purpose::Confirm),
    ];
    assert_eq!(bench.asked, expected);
}

#[test]
fn a_chain_keeps_the_budget_wherever_the_culprit_is() {
    for (n, log, step) in [(64, 6, 1), (1024, 10, 37), (10_000, 14, 1999)] {
        for c in (1..=n).step_by(step).chain([2, n - 1, n]) {
            let mut exact = chain(n, true, 1);
            assert_eq!(exact.finish(bad_from(c)).0, culprit(c));
            assert!(
                exact.asked.len() <= log + 2,
                "{c} of {n}: {:?}",
                exact.asked
            );
            let mut default = chain(n, false, 1);
            assert_eq!(default.finish(bad_from(c)).0, culprit(c));
            assert!(
                default.asked.len() <= log + 4,
                "{c} of {n}: {:?}",
                default.asked
            );
        }
    }
}

#[test]
fn more_slots_cut_the_rounds_to_the_logarithm_of_their_base() {
    for slots in 1..=8_usize {
        for c in [1, 2, 333, 777, 1000] {
            let mut bench = chain(1000, false, slots);
            let (conclusion, rounds) = bench.finish(bad_from(c));
            assert_eq!(conclusion, culprit(c));
            let narrowing = (1000_f64.ln() / (slots as f64 + 1.0).ln()).ceil() as u32;
            let around = if slots == 1 { 4 } else { 2 };
            assert!(
                rounds <= narrowing + around,
                "{slots} slots: {rounds} rounds"
            );
        }
    }
}

#[test]
fn free_slots_beyond_the_ends_are_filled_with_quantiles() {
    let mut bench = chain(90, false, 4);
    let expected = [
        (90, Purpose::BadEnd),
        (0, Purpose::GoodEnd),
        (30, Purpose::Narrow),
        (60, Purpose::Narrow),
    ];
    assert_eq!(bench.tries(), expected);
    // What ends first is used at once, beside what still runs.
    bench.end(30, Outcome::Bad);
    assert_eq!(bench.tries(), [(15, Purpose::Narrow)]);
    bench.end(90, Outcome::Bad);
    assert_eq!(
        bench.tries(),
        [(7, Purpose::Narrow)],
        "1..=15 and 16..=30 tie"
    );
}

#[test]
fn nothing_is_confirmed_before_the_culprit_is_certain() {
    let mut bench = chain(2, false, 4);
    let narrow = (1, Purpose::Narrow);
    assert_eq!(
        bench.tries(),
        [(2, Purpose::BadEnd), (0, Purpose::GoodEnd), narrow]
    );
    bench.end(2, Outcome::Bad);
    assert_eq!(bench.start(), Step::Wait);
    bench.end(1, Outcome::Good);
    assert_eq!(bench.start(), Step::Wait, "the good end is not known yet");
    bench.end(0, Outcome::Good);
    assert_eq!(
        bench.tries(),
        [(2, Purpose::Confirm), (1, Purpose::Confirm)]
    );
    assert_eq!(bench.start(), Step::Wait);
}

#[test]
fn a_bad_end_that_passes_is_tried_three_times() {
    let mut bench = chain(8, false, 1);
    let never = bench.finish(|_, _| Outcome::Good).0;
    assert_eq!(never, Conclusion::BadEndPassed { trials: 3 });
    let indices = [0, 1, 2].map(|i| (8, i, Purpose::BadEnd));
    assert_eq!(bench.asked, indices);

    let mut exact = chain(8, true, 1);
    let never = exact.finish(|_, _| Outcome::Good).0;
    assert_eq!(never, Conclusion::BadEndPassed { trials: 1 });
}

#[test]
fn a_bad_end_that_fails_late_is_remembered_as_flaky() {
    let late = |node, index| match (node, index) {
        (8, 0 | 1) => Outcome::Good,
        _ => bad_from(6)(node, index),
    };
    let found = chain(8, false, 2).finish(late).0;
    let expected = Conclusion::Culprit {
        point: 6,
        unconfirmed: vec![],
        untested_merge_bases: vec![],
        flaky_ends: true,
    };
    assert_eq!(found, expected);
}

#[test]
fn ends_that_do_not_behave_end_the_search() {
    let good_fails = chain(8, false, 1).finish(|_, _| Outcome::Bad).0;
    assert_eq!(good_fails, Conclusion::GoodEndFailed { point: 0 });
    for untestable in [0, 8] {
        let skip = move |node, index| match node {
            n if n == untestable => Outcome::Skip,
            _ => bad_from(3)(node, index),
        };
        let end = chain(8, false, 1).finish(skip).0;
        assert_eq!(end, Conclusion::EndUntestable { point: untestable });
    }
}

/// 0 is the base, 1 the good end beside the bad line 2 - 3 - 4.
fn forked() -> Bench {
    let graph = graph(&[&[], &[0], &[0], &[2], &[3]], |n| n >= 2);
    let ends = Ends {
        bad: 4,
        goods: vec![1],
        merge_bases: vec![0],
    };
    Bench::new(graph, ends, false, 1)
}

#[test]
fn a_merge_base_is_tested_after_the_ends() {
    let mut bench = forked();
    let bad_base = |node, _| {
        if node == 1 {
            Outcome::Good
        } else {
            Outcome::Bad
        }
    };
    let end = bench.finish(bad_base).0;
    assert_eq!(end, Conclusion::MergeBaseBad { point: 0 });
    let order = [
        (4, 0, Purpose::BadEnd),
        (1, 0, Purpose::GoodEnd),
        (0, 0, Purpose::MergeBase),
    ];
    assert_eq!(bench.asked, order);
}

#[test]
fn an_untestable_merge_base_is_passed_over_and_named() {
    let skip = |node, index| match node {
        0 => Outcome::Skip,
        n => bad_from(2)(n, index),
    };
    let expected = Conclusion::Culprit {
        point: 2,
        unconfirmed: vec![0],
        untested_merge_bases: vec![0],
        flaky_ends: false,
    };
    assert_eq!(forked().finish(skip).0, expected);
}

#[test]
fn a_good_end_that_is_its_own_merge_base_is_tested_once() {
    let graph = graph(&[&[], &[0], &[1]], |n| n > 0);
    let ends = Ends {
        bad: 2,
        goods: vec![0, 0],
        merge_bases: vec![0, 0],
    };
    let mut bench = Bench::new(graph, ends, true, 1);
    assert_eq!(bench.finish(bad_from(1)).0, culprit(1));
    assert_eq!(bench.asked.len(), 3, "{:?}", bench.asked);
}

#[test]
fn untestable_commits_that_hide_the_answer_give_the_smallest_set() {
    let skip = |node, index| match node {
        4..=6 => Outcome::Skip,
        _ => bad_from(6)(node, index),
    };
    for slots in [1, 3] {
        let mut bench = chain(8, false, slots);
        let expected = Conclusion::Suspects {
            points: vec![4, 5, 6, 7],
            unconfirmed: vec![],
            untested_merge_bases: vec![],
            flaky_ends: false,
        };
        assert_eq!(bench.finish(skip).0, expected);
        let confirm = |&(_, _, p): &(_, _, Purpose)| p == Purpose::Confirm;
        assert!(!bench.asked.iter().any(confirm));
    }
}

#[test]
fn a_commit_that_is_no_candidate_can_tell_untestable_ones_apart() {
    // 1 and 3 are candidates; 1 cannot be tested, but 2, which is none and follows it, can.
    let graph = graph(&[&[], &[0], &[1], &[2]], |n| n % 2 == 1);
    let ends = Ends {
        bad: 3,
        goods: vec![0],
        merge_bases: vec![],
    };
    let skip = |node, index| match node {
        1 => Outcome::Skip,
        _ => bad_from(3)(node, index),
    };
    let mut bench = Bench::new(graph, ends, false, 1);
    assert_eq!(bench.finish(skip).0, culprit(3));
    assert_eq!(bench.asked[2..4], [1, 2].map(|n| (n, 0, Purpose::Narrow)));
}

#[test]
fn a_culprit_or_a_parent_that_changes_its_mind_is_a_contradiction() {
    let contradictory = |conflict| Conclusion::Contradictory {
        suspect: Some(6),
        conflicts: vec![conflict],
        unexplained: vec![],
    };
    let passes_later = |node, index| match (node, index) {
        (6, 1) => Outcome::Good,
        _ => bad_from(6)(node, index),
    };
    assert_eq!(
        chain(8, false, 1).finish(passes_later).0,
        contradictory((6, 6))
    );
    let fails_later = |node, index| match (node, index) {
        (5, 1) => Outcome::Bad,
        _ => bad_from(6)(node, index),
    };
    assert_eq!(
        chain(8, false, 1).finish(fails_later).0,
        contradictory((5, 5))
    );
}

#[test]
fn a_parent_inferred_to_be_good_is_still_tested() {
    // 3 merges 1 and 2; both are under the good end 4, beside it, and were never tested.
    let graph = graph(&[&[], &[0], &[0], &[1, 2], &[1, 2]], |n| n == 3);
    let ends = Ends {
        bad: 3,
        goods: vec![4],
        merge_bases: vec![],
    };
    let mut bench = Bench::new(graph.clone(), ends.clone(), false, 1);
    let end = bench.finish(|n, _| {
        if matches!(n, 2 | 3) {
            Outcome::Bad
        } else {
            Outcome::Good
        }
    });
    let expected = Conclusion::Contradictory {
        suspect: Some(3),
        conflicts: vec![(4, 2)],
        unexplained: vec![],
    };
    assert_eq!(end.0, expected);

    let mut bench = Bench::new(graph, ends, false, 1);
    let end = bench.finish(|n, _| match n {
        2 => Outcome::Skip,
        3 => Outcome::Bad,
        _ => Outcome::Good,
    });
    let expected = Conclusion::Culprit {
        point: 3,
        unconfirmed: vec![2],
        untested_merge_bases: vec![],
        flaky_ends: false,
    };
    assert_eq!(end.0, expected);
}

#[test]
fn good_above_bad_is_a_contradiction_with_the_pair() {
    let mut bench = chain(9, false, 4);
    assert_eq!(
        bench.tries()[2..],
        [(3, Purpose::Narrow), (6, Purpose::Narrow)]
    );
    bench.end(3, Outcome::Bad);
    bench.end(6, Outcome::Good);
    bench.end(9, Outcome::Bad);
    assert_eq!(bench.start(), Step::Wait, "the good end may explain it");
    bench.end(0, Outcome::Good);
    let expected = Conclusion::Contradictory {
        suspect: None,
        conflicts: vec![(6, 3)],
        unexplained: vec![],
    };
    assert_eq!(bench.start(), Step::Done(expected));
}

#[test]
fn two_breaks_on_separate_branches_are_named_as_unexplained() {
    // 1 - 2 and 3 - 4 leave 0 and meet in 5.
    let graph = graph(&[&[], &[0], &[1], &[0], &[3], &[2, 4]], |n| n > 0);
    let ends = Ends {
        bad: 5,
        goods: vec![0],
        merge_bases: vec![],
    };
    let mut bench = Bench::new(graph, ends, false, 4);
    assert_eq!(
        bench.tries()[2..],
        [(2, Purpose::Narrow), (3, Purpose::Narrow)]
    );
    for (point, outcome) in [(2, Outcome::Bad), (3, Outcome::Bad), (5, Outcome::Bad)] {
        bench.end(point, outcome);
    }
    bench.end(0, Outcome::Good);
    let expected = Conclusion::Contradictory {
        suspect: None,
        conflicts: vec![],
        unexplained: vec![2, 3],
    };
    assert_eq!(bench.start(), Step::Done(expected));
}

#[test]
fn progress_counts_what_is_left() {
    let mut bench = chain(64, false, 1);
    let start = bench.search.progress();
    assert_eq!((start.suspects, start.leading.len()), (64, 8));
    assert_eq!(start.trials_left, (2 + 6 + 2, 4 + 6 + 2));
    let mut left = Vec::new();
    while let Step::Try(queries) = bench.start() {
        left.push(bench.search.progress().trials_left.1);
        let outcome = bad_from(20)(queries[0].point, 0);
        bench.end(queries[0].point, outcome);
    }
    assert_eq!(left, [12, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    let end = bench.search.progress();
    assert_eq!(
        (end.suspects, end.leading, end.trials_left),
        (1, vec![20], (0, 0))
    );
    assert_eq!(chain(100, true, 1).search.progress().trials_left, (8, 9));
}
