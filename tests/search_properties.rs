//! The search for the first bad commit against a brute-force oracle, on random histories.
//!
//! The oracle shares no code with the search: it tries every candidate and keeps those that every
//! testable commit of the range agrees with.

use fbisect::search::bisect::{Bisect, Conclusion, Ends, Policy};
use fbisect::search::graph::{Graph, Node};
use fbisect::search::{Observation, Outcome, Purpose, Query, Running, Search, SlotState, Step};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

/// A history with its ends, what of it can be tested, and who broke it.
#[derive(Debug, Clone)]
struct Case {
    /// The true history; the bad end is its last node.
    parents: Vec<Vec<Node>>,
    candidate: Vec<bool>,
    goods: Vec<Node>,
    merge_bases: Vec<Node>,
    untestable: Vec<bool>,
    planted: Node,
    /// Nodes below the good ends stand in the search's graph without their parents.
    cut: bool,
    slots: usize,
    /// Which of the running trials ends next.
    endings: Vec<Index>,
}

/// The raw choices a case is made of.
#[derive(Debug, Clone)]
struct Raw {
    parents: Vec<(Vec<Index>, bool)>,
    goods: Vec<Index>,
    off_path: Vec<bool>,
    untestable: Vec<bool>,
    planted: Index,
    cut: bool,
    slots: usize,
    endings: Vec<Index>,
}

/// `node` and all that it descends from, as marks.
fn up_to(parents: &[Vec<Node>], node: Node) -> Vec<bool> {
    let mut seen = vec![false; parents.len()];
    let mut stack = vec![node];
    while let Some(n) = stack.pop() {
        if !std::mem::replace(&mut seen[n as usize], true) {
            stack.extend(&parents[n as usize]);
        }
    }
    seen
}

fn raw() -> impl Strategy<Value = Raw> {
    (2..=40_usize).prop_flat_map(|n| {
        let rarely = move |odds| vec(prop::bool::weighted(odds), n);
        let skips = prop_oneof![Just(0.0), Just(0.1), Just(0.4)];
        let off_path = prop_oneof![Just(0.0), Just(0.3)];
        (
            vec((vec(any::<Index>(), 0..4), any::<bool>()), n),
            vec(any::<Index>(), 1..4),
            off_path.prop_flat_map(rarely),
            skips.prop_flat_map(rarely),
            any::<Index>(),
            any::<bool>(),
            1..=6_usize,
            vec(any::<Index>(), 1..60),
        )
            .prop_map(
                |(parents, goods, off_path, untestable, planted, cut, slots, endings)| Raw {
                    parents,
                    goods,
                    off_path,
                    untestable,
                    planted,
                    cut,
                    slots,
                    endings,
                },
            )
    })
}

/// Makes the raw choices consistent; `None` when they leave no candidate.
fn case(raw: Raw) -> Option<Case> {
    let n = raw.parents.len();
    let mut parents: Vec<Vec<Node>> = Vec::with_capacity(n);
    for (node, (picks, near)) in raw.parents.iter().enumerate() {
        // Near parents make long branches, far ones wide graphs; a root now and then.
        let reach = if *near { node.min(4) } else { node };
        let mut list = Vec::new();
        for pick in picks.iter().filter(|_| reach > 0) {
            let parent = (node - 1 - pick.index(reach)) as Node;
            if !list.contains(&parent) {
                list.push(parent);
            }
        }
        if list.is_empty() && node + 1 == n {
            list.push(node as Node - 1);
        }
        parents.push(list);
    }
    let bad = n - 1;
    let range = up_to(&parents, bad as Node);
    let goods: Vec<Node> = raw.goods.iter().map(|g| g.index(bad) as Node).collect();
    let below: Vec<Vec<bool>> = goods.iter().map(|&g| up_to(&parents, g)).collect();
    let sound = |i: usize| below.iter().any(|b| b[i]);
    let candidate: Vec<bool> = (0..n)
        .map(|i| range[i] && !sound(i) && !raw.off_path[i])
        .collect();
    let suspects: Vec<Node> = (0..n as Node).filter(|&i| candidate[i as usize]).collect();
    if suspects.is_empty() {
        return None;
    }
    let mut merge_bases = Vec::new();
    for (&good, ancestors) in goods.iter().zip(&below) {
        if !range[good as usize] {
            let common = |i: &usize| range[*i] && ancestors[*i];
            let best = (0..n).rev().find(common);
            merge_bases.extend(best.map(|i| i as Node));
        }
    }
    let mut untestable = raw.untestable;
    untestable[bad] = false;
    for &good in &goods {
        untestable[good as usize] = false;
    }
    Some(Case {
        planted: suspects[raw.planted.index(suspects.len())],
        parents,
        candidate,
        goods,
        merge_bases,
        untestable,
        cut: raw.cut,
        slots: raw.slots,
        endings: raw.endings,
    })
}

fn cases() -> impl Strategy<Value = Case> {
    raw().prop_filter_map("no candidate", case)
}

impl Case {
    fn bad(&self) -> Node {
        self.parents.len() as Node - 1
    }

    fn sound(&self, node: Node) -> bool {
        self.goods
            .iter()
            .any(|&g| up_to(&self.parents, g)[node as usize])
    }

    fn search(&self, deterministic: bool) -> Bisect {
        let mut parents = self.parents.clone();
        for node in 0..=self.bad() {
            if self.cut && self.sound(node) {
                parents[node as usize].clear();
            }
        }
        let graph = Graph::new(parents, self.candidate.clone()).expect("sorted");
        let ends = Ends {
            bad: self.bad(),
            goods: self.goods.clone(),
            merge_bases: self.merge_bases.clone(),
        };
        Bisect::new(graph, ends, Policy { deterministic })
    }

    /// How a reliable repro ends on `node`.
    fn truth(&self, node: Node) -> Outcome {
        if self.untestable[node as usize] {
            Outcome::Skip
        } else if up_to(&self.parents, node)[self.planted as usize] {
            Outcome::Bad
        } else {
            Outcome::Good
        }
    }

    /// Every candidate that could have been planted for all that can be seen.
    fn possible(&self) -> Vec<Node> {
        let nodes = 0..self.parents.len() as Node;
        let range = up_to(&self.parents, self.bad());
        let seen: Vec<(Vec<bool>, bool)> = nodes
            .clone()
            .filter(|&t| range[t as usize] && !self.untestable[t as usize])
            .map(|t| (up_to(&self.parents, t), self.truth(t) == Outcome::Bad))
            .collect();
        let fits = |c: Node| seen.iter().all(|(inside, bad)| inside[c as usize] == *bad);
        nodes
            .filter(|&c| self.candidate[c as usize] && fits(c))
            .collect()
    }

    /// Of the planted commit and its parents, those that cannot be tested.
    fn unconfirmed(&self) -> Vec<Node> {
        let mut points = self.parents[self.planted as usize].clone();
        points.push(self.planted);
        points.retain(|&p| self.untestable[p as usize]);
        points.sort_unstable();
        points
    }
}

/// What the search is told of a trial.
fn observed(outcome: Outcome, slot: usize, order: u64) -> Observation {
    Observation {
        outcome,
        metric: None,
        prepare_seconds: 0.0,
        run_seconds: 1.0,
        slot,
        order,
    }
}

/// Checks what holds of every answer, whatever the outcomes were.
fn check_queries(
    queries: &[Query<Node>],
    running: &[Running<Node>],
    told: &[(Query<Node>, Outcome)],
    free: usize,
    search: &Bisect,
) -> Result<(), TestCaseError> {
    prop_assert!(!queries.is_empty() && queries.len() <= free);
    for (i, query) in queries.iter().enumerate() {
        let point = query.point;
        prop_assert!(
            queries[..i].iter().all(|q| q.point != point),
            "{point} twice"
        );
        let skipped = |(q, o): &(Query<Node>, Outcome)| q.point == point && *o == Outcome::Skip;
        prop_assert!(!told.iter().any(skipped), "{point} was skipped");
        let same = |r: &&Running<Node>| r.query.point == point;
        let runs: Vec<_> = running.iter().filter(same).collect();
        let stale = |r: &&Running<Node>| r.query.purpose != query.purpose;
        prop_assert!(runs.iter().all(stale), "{point} is running");
        let trials = told.iter().filter(|(q, _)| q.point == point).count() + runs.len();
        prop_assert_eq!(query.index as usize, trials);
        match query.purpose {
            Purpose::Narrow => prop_assert!(trials == 0, "{point} is known"),
            Purpose::Confirm => prop_assert_eq!(search.suspects().len(), 1),
            Purpose::BadEnd | Purpose::GoodEnd | Purpose::MergeBase => {}
        }
    }
    Ok(())
}

/// A finished search: its conclusion and what it took.
struct Run {
    conclusion: Conclusion,
    told: Vec<(Query<Node>, Outcome)>,
}

/// Runs a search to its end, one trial ending at a time in the case's order.
fn run(
    case: &Case,
    mut search: Bisect,
    mut outcome: impl FnMut(&Query<Node>) -> Outcome,
) -> Result<Run, TestCaseError> {
    let mut running: Vec<Running<Node>> = Vec::new();
    let mut told = Vec::new();
    // Each node narrows once and confirms once; the bad end has three trials.
    let limit = 2 * case.parents.len() + 3 + case.goods.len() + case.merge_bases.len();
    loop {
        let slots: Vec<_> = (0..case.slots)
            .map(|slot| SlotState {
                built: None,
                free: running.iter().all(|r| r.slot != slot),
            })
            .collect();
        let step = search.ask(&running, &slots);
        prop_assert_eq!(&step, &search.ask(&running, &slots), "asked twice");
        match step {
            Step::Done(conclusion) => return Ok(Run { conclusion, told }),
            Step::Wait => prop_assert!(!running.is_empty(), "waits for nothing"),
            Step::Try(queries) => {
                let free: Vec<_> = (0..case.slots).filter(|&s| slots[s].free).collect();
                check_queries(&queries, &running, &told, free.len(), &search)?;
                let started = queries.into_iter().zip(free);
                running.extend(started.map(|(query, slot)| Running { query, slot }));
            }
        }
        prop_assert!(told.len() <= limit, "does not end");
        let pick = case.endings[told.len() % case.endings.len()];
        let ended = running.swap_remove(pick.index(running.len()));
        let seen = observed(outcome(&ended.query), ended.slot, told.len() as u64);
        search.tell(&ended.query, &seen);
        told.push((ended.query, seen.outcome));
        let progress = search.progress();
        prop_assert_eq!(progress.suspects, search.suspects().len());
        prop_assert!(progress.leading.len() <= 8);
        prop_assert!(progress.trials_left.0 <= progress.trials_left.1);
    }
}

/// A fixed sample; with `PROPTEST_CASES` set, that many cases from fresh seeds.
fn config() -> ProptestConfig {
    let given = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        return given;
    }
    ProptestConfig {
        cases: 1000,
        rng_seed: RngSeed::Fixed(1),
        ..given
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_planted_commit_is_found_or_the_smallest_set_that_holds_it(
        case in cases(),
        deterministic in any::<bool>(),
    ) {
        let end = run(&case, case.search(deterministic), |q| case.truth(q.point))?;
        let possible = case.possible();
        prop_assert!(possible.contains(&case.planted));
        match end.conclusion {
            Conclusion::Culprit { point, unconfirmed, untested_merge_bases, flaky_ends } => {
                prop_assert_eq!(&possible, &[point]);
                let expected = if deterministic { vec![] } else { case.unconfirmed() };
                prop_assert_eq!(unconfirmed, expected);
                let skip = |p: &Node| case.untestable[*p as usize];
                prop_assert!(untested_merge_bases.iter().all(skip));
                prop_assert!(!flaky_ends);
            }
            Conclusion::Suspects { points, .. } => {
                prop_assert!(points.len() > 1);
                prop_assert_eq!(points, possible);
                let confirm = |(q, _): &(Query<Node>, Outcome)| q.purpose == Purpose::Confirm;
                prop_assert!(!end.told.iter().any(confirm));
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn one_slot_asks_the_ends_in_order_before_all_else(mut case in cases()) {
        case.slots = 1;
        let end = run(&case, case.search(false), |q| case.truth(q.point))?;
        let stage = |purpose| match purpose {
            Purpose::BadEnd => 0,
            Purpose::GoodEnd => 1,
            Purpose::MergeBase => 2,
            Purpose::Narrow => 3,
            Purpose::Confirm => 4,
        };
        let stages: Vec<_> = end.told.iter().map(|(q, _)| stage(q.purpose)).collect();
        prop_assert!(stages.is_sorted(), "{:?}", stages);
    }

    #[test]
    fn any_outcomes_come_to_an_end_that_names_only_what_they_allow(
        case in cases(),
        noise in vec(prop_oneof![
            4 => Just(Outcome::Bad), 4 => Just(Outcome::Good), 1 => Just(Outcome::Skip)
        ], 1..80),
        honest_ends in any::<bool>(),
    ) {
        let mut at = 0;
        let end = run(&case, case.search(false), |q| {
            at += 1;
            let narrows = matches!(q.purpose, Purpose::Narrow | Purpose::Confirm);
            if narrows || !honest_ends { noise[at % noise.len()] } else { case.truth(q.point) }
        })?;
        let told_of = |point: Node, purpose, outcome| {
            end.told.iter().any(|(q, o)| (q.point, q.purpose, *o) == (point, purpose, outcome))
        };
        match end.conclusion {
            Conclusion::Culprit { point, .. } => {
                let agrees = |(q, o): &(Query<Node>, Outcome)| {
                    let contains = up_to(&case.parents, q.point)[point as usize];
                    match o {
                        Outcome::Bad => contains,
                        Outcome::Good => !contains || q.purpose == Purpose::BadEnd,
                        Outcome::Skip => true,
                    }
                };
                prop_assert!(end.told.iter().all(agrees));
            }
            Conclusion::Suspects { points, .. } => prop_assert!(points.len() > 1),
            Conclusion::Contradictory { suspect, conflicts, unexplained } => {
                prop_assert!(conflicts.is_empty() != unexplained.is_empty());
                let had = |p, outcome| end.told.iter().any(|(q, o)| q.point == p && *o == outcome);
                for (good, bad) in conflicts {
                    prop_assert!(had(bad, Outcome::Bad));
                    prop_assert!(had(good, Outcome::Good));
                    let below = up_to(&case.parents, good)[bad as usize];
                    prop_assert!(below || suspect.is_some());
                }
                prop_assert!(unexplained.iter().all(|&b| had(b, Outcome::Bad)));
            }
            Conclusion::BadEndPassed { trials } => prop_assert_eq!(trials, 3),
            Conclusion::GoodEndFailed { point } => {
                prop_assert!(told_of(point, Purpose::GoodEnd, Outcome::Bad));
            }
            Conclusion::MergeBaseBad { point } => {
                prop_assert!(told_of(point, Purpose::MergeBase, Outcome::Bad));
            }
            Conclusion::EndUntestable { point } => {
                let end_skip = |purpose| told_of(point, purpose, Outcome::Skip);
                prop_assert!(end_skip(Purpose::BadEnd) || end_skip(Purpose::GoodEnd));
            }
        }
    }
}
