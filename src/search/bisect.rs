//! The first bad commit of a graph, outcomes taken at their word.
//!
//! Bad is inherited by descendants: a bad trial of `t` leaves the suspects that `t` contains, a
//! good one those that it does not, a skip says nothing and the point is not asked about again.
//! The ends are tested first (the bad end up to [`BAD_END_TRIALS`] times, since a flaky repro may
//! pass there), the culprit and its parents once more at the close. [`super::narrow`] says what
//! is asked in between.
//!
//! A wrong outcome can only be noticed here, not weighed: where trials disagree, the search ends
//! with [`Conclusion::Contradictory`] and names no culprit.

mod closing;
mod forecast;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use self::closing::Confirmation;
use super::bits::Bits;
use super::graph::{Graph, Node};
use super::narrow::Choice;
use super::record::Record;
use super::{Observation, Outcome, Progress, Purpose, Query, Running, Search, SlotState, Step};

/// Trials of a bad end that passes, before the search gives up on it.
pub const BAD_END_TRIALS: u32 = 3;

/// The largest number of suspects that [`Search::progress`] names.
const LEADING: usize = 8;

/// What is known before the search begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ends {
    /// The end that should fail.
    pub bad: Node,
    /// The ends that should pass.
    pub goods: Vec<Node>,
    /// Where the bad end's history parts from a good end's, when that is not the good end itself.
    pub merge_bases: Vec<Node>,
}

/// How far outcomes are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// The repro never flakes: the bad end has one trial, and nothing is tested again at the close.
    pub deterministic: bool,
}

/// What a search over a commit graph ends with. Nodes are in history order unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conclusion {
    /// The first bad commit.
    Culprit {
        /// It.
        point: Node,
        /// Of the culprit and its parents, those that could not be tested at the close.
        unconfirmed: Vec<Node>,
        /// Merge bases that could not be tested.
        untested_merge_bases: Vec<Node>,
        /// The bad end passed before it failed.
        flaky_ends: bool,
    },
    /// Untestable commits hide the first bad one: it is one of these, at least two.
    Suspects {
        /// The smallest set that the outcomes allow.
        points: Vec<Node>,
        /// Always empty: nothing is confirmed where there is no culprit.
        unconfirmed: Vec<Node>,
        /// Merge bases that could not be tested.
        untested_merge_bases: Vec<Node>,
        /// The bad end passed before it failed.
        flaky_ends: bool,
    },
    /// The outcomes fit no first bad commit.
    Contradictory {
        /// The commit that was to be named, when it or a parent of it disagreed at the close.
        suspect: Option<Node>,
        /// What disagrees, as (passed, failed). Without a suspect: the one that failed is the one
        /// that passed or an ancestor of it. With one, the pair that its new trials spoiled: also a
        /// bad commit that no candidate explains, above the suspect that passed, or a good commit
        /// next to a parent that failed.
        conflicts: Vec<(Node, Node)>,
        /// When `conflicts` is empty: the earliest bad commits, which no single candidate explains.
        unexplained: Vec<Node>,
    },
    /// The bad end does not fail here.
    BadEndPassed {
        /// Times it passed.
        trials: u32,
    },
    /// A good end fails as the bad end does.
    GoodEndFailed {
        /// Which.
        point: Node,
    },
    /// A merge base is bad: the good end was fixed rather than never broken.
    MergeBaseBad {
        /// Which.
        point: Node,
    },
    /// An end could not be tested.
    EndUntestable {
        /// Which.
        point: Node,
    },
}

/// The search for the first bad commit.
#[derive(Debug, Clone)]
pub struct Bisect {
    graph: Graph,
    ends: Ends,
    policy: Policy,
    /// The bad end and its ancestors: what may be asked about.
    range: Bits,
    suspects: Bits,
    record: Record,
}

impl Bisect {
    /// A search of `graph` for the first bad one of the candidates that `ends.bad` contains. The
    /// caller has left out, or marked as no candidates, the ancestors of the good ends.
    ///
    /// # Panics
    /// When an end is not a node of the graph.
    pub fn new(graph: Graph, ends: Ends, policy: Policy) -> Self {
        let Ends {
            bad,
            mut goods,
            mut merge_bases,
        } = ends;
        drop_repeats(&mut goods);
        drop_repeats(&mut merge_bases);
        // A good end that is its own merge base is tested as what it is.
        merge_bases.retain(|base| !goods.contains(base));
        Self {
            range: graph.ancestors(bad),
            suspects: graph.candidates_up_to(bad),
            ends: Ends {
                bad,
                goods,
                merge_bases,
            },
            graph,
            policy,
            record: Record::default(),
        }
    }

    /// The graph that is searched.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The ends, in the order in which they are asked.
    fn ends(&self) -> impl Iterator<Item = (Node, Purpose)> + '_ {
        let goods = self.ends.goods.iter().map(|&p| (p, Purpose::GoodEnd));
        let bases = self.ends.merge_bases.iter();
        std::iter::once((self.ends.bad, Purpose::BadEnd))
            .chain(goods)
            .chain(bases.map(|&p| (p, Purpose::MergeBase)))
    }

    /// Whether nothing more is to be asked about this end.
    fn settled(&self, (point, purpose): (Node, Purpose)) -> bool {
        let mut outcomes = self.record.outcomes(point, purpose);
        match purpose {
            Purpose::BadEnd => outcomes.any(|o| o == Outcome::Bad),
            _ => outcomes.next().is_some(),
        }
    }

    /// The end of the search that an end's outcome brings, if one does.
    fn spoiled_end(&self) -> Option<Conclusion> {
        self.ends().find_map(|(point, purpose)| {
            let has = |outcome| self.record.outcomes(point, purpose).any(|o| o == outcome);
            let untestable = has(Outcome::Skip).then_some(Conclusion::EndUntestable { point });
            match purpose {
                Purpose::BadEnd => {
                    let trials = self.record.outcomes(point, purpose).count() as u32;
                    let passed = trials >= self.bad_end_trials();
                    let passed = passed.then_some(Conclusion::BadEndPassed { trials });
                    untestable.or(passed).filter(|_| !has(Outcome::Bad))
                }
                Purpose::GoodEnd => has(Outcome::Bad)
                    .then_some(Conclusion::GoodEndFailed { point })
                    .or(untestable),
                Purpose::MergeBase | Purpose::Narrow | Purpose::Confirm => {
                    has(Outcome::Bad).then_some(Conclusion::MergeBaseBad { point })
                }
            }
        })
    }

    fn bad_end_trials(&self) -> u32 {
        if self.policy.deterministic {
            1
        } else {
            BAD_END_TRIALS
        }
    }

    fn flaky_ends(&self) -> bool {
        let mut outcomes = self.record.outcomes(self.ends.bad, Purpose::BadEnd);
        outcomes.any(|o| o == Outcome::Good)
    }

    fn untested_merge_bases(&self) -> Vec<Node> {
        let untested = |&&p: &&Node| {
            let mut outcomes = self.record.outcomes(p, Purpose::MergeBase);
            outcomes.any(|o| o == Outcome::Skip)
        };
        self.ends
            .merge_bases
            .iter()
            .filter(untested)
            .copied()
            .collect()
    }

    fn query(&self, point: Node, purpose: Purpose, running: &[Running<Node>]) -> Query<Node> {
        let started = running.iter().filter(|r| r.query.point == point).count() as u32;
        Query {
            point,
            index: self.record.trials_of(point) + started,
            purpose,
        }
    }

    /// Points that divide the suspects, beside those that run.
    fn narrowing(&self, running: &[Running<Node>], slots: usize) -> Vec<Node> {
        let mut testable = self.range.clone();
        let running_points = running.iter().map(|r| r.query.point);
        let ends = self.ends().map(|(point, _)| point);
        for point in self.record.tried().chain(ends).chain(running_points) {
            testable.remove(point);
        }
        let skipped = self.record.points(Outcome::Skip);
        let choice = Choice {
            graph: &self.graph,
            suspects: &self.suspects,
            testable: &testable,
            skipped: &skipped,
        };
        choice.points(&narrowing_points(running), slots)
    }

    /// Whether a running trial will divide the suspects.
    fn will_divide(&self, running: &[Running<Node>]) -> bool {
        let all = self.suspects.count();
        narrowing_points(running).into_iter().any(|point| {
            let inside = self.suspects.and(&self.graph.ancestors(point)).count();
            inside > 0 && inside < all
        })
    }
}

/// Leaves the first of equal nodes, in their order.
fn drop_repeats(nodes: &mut Vec<Node>) {
    let mut seen = BTreeSet::new();
    nodes.retain(|&node| seen.insert(node));
}

/// The points of the running trials that were started to divide the suspects.
fn narrowing_points(running: &[Running<Node>]) -> Vec<Node> {
    let narrow = running
        .iter()
        .filter(|r| r.query.purpose == Purpose::Narrow);
    narrow.map(|r| r.query.point).collect()
}

impl Search for Bisect {
    type Point = Node;
    type Conclusion = Conclusion;

    fn ask(&self, running: &[Running<Node>], slots: &[SlotState<Node>]) -> Step<Node, Conclusion> {
        if let Some(conclusion) = self.spoiled_end() {
            return Step::Done(conclusion);
        }
        let free = slots.iter().filter(|s| s.free).count();
        let runs = |(point, purpose): (Node, Purpose)| {
            let same = |r: &Running<Node>| r.query.point == point && r.query.purpose == purpose;
            running.iter().any(same)
        };
        let open: Vec<_> = self.ends().filter(|&end| !self.settled(end)).collect();
        let mut wanted: Vec<_> = open.iter().copied().filter(|&end| !runs(end)).collect();
        let ends_known = open.is_empty();
        let mut suspects = self.suspects.iter();
        match (suspects.next(), suspects.next()) {
            (None, _) if ends_known => return Step::Done(self.contradiction()),
            (Some(culprit), None) if ends_known => match self.confirmation(culprit, running) {
                Confirmation::Done(conclusion) => return Step::Done(conclusion),
                Confirmation::Ask(points) => {
                    wanted.extend(points.into_iter().map(|p| (p, Purpose::Confirm)));
                }
                Confirmation::Running => {}
            },
            (Some(_), Some(_)) => {
                let left = free.saturating_sub(wanted.len());
                // One at least while the end is near, to see whether there is anything to ask.
                let points = self.narrowing(running, left.max(usize::from(ends_known)));
                if points.is_empty() && ends_known && !self.will_divide(running) {
                    return Step::Done(Conclusion::Suspects {
                        points: self.suspects(),
                        unconfirmed: Vec::new(),
                        untested_merge_bases: self.untested_merge_bases(),
                        flaky_ends: self.flaky_ends(),
                    });
                }
                wanted.extend(points.into_iter().map(|p| (p, Purpose::Narrow)));
            }
            (None, _) | (Some(_), None) => {}
        }
        wanted.truncate(free);
        if wanted.is_empty() {
            return Step::Wait;
        }
        let queries = wanted.into_iter();
        Step::Try(
            queries
                .map(|(point, purpose)| self.query(point, purpose, running))
                .collect(),
        )
    }

    fn tell(&mut self, query: &Query<Node>, seen: &Observation) {
        let (point, purpose, outcome) = (query.point, query.purpose, seen.outcome);
        self.record.add(point, purpose, outcome);
        match (purpose, outcome) {
            (Purpose::Narrow, Outcome::Bad) => {
                self.suspects = self.suspects.and(&self.graph.ancestors(point));
            }
            (Purpose::Narrow | Purpose::GoodEnd | Purpose::MergeBase, Outcome::Good) => {
                self.suspects = self.suspects.minus(&self.graph.ancestors(point));
            }
            // A bad end contains every suspect as it is; what spoils an end or a confirmation ends
            // the search by itself.
            (Purpose::BadEnd | Purpose::Confirm, _)
            | (Purpose::GoodEnd | Purpose::MergeBase, Outcome::Bad)
            | (_, Outcome::Skip) => {}
        }
    }

    /// The trials left are those of a history that can be halved every time.
    fn progress(&self) -> Progress<Node> {
        let suspects = self.suspects();
        let step = suspects.len().div_ceil(LEADING).max(1);
        Progress {
            suspects: suspects.len(),
            trials_left: self.trials_left(&suspects),
            leading: suspects.into_iter().step_by(step).collect(),
        }
    }

    fn suspects(&self) -> Vec<Node> {
        self.suspects.iter().collect()
    }
}
