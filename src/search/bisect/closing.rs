//! How a search over a commit graph closes: the culprit and its parents are tested once more, and
//! what disagrees is gathered. It decides nothing about what is asked before.

use super::{Bisect, Conclusion, Node, drop_repeats};
use crate::search::{Outcome, Purpose, Query, Running};

/// What remains to be tested of a culprit and its parents.
pub(super) enum Confirmation {
    /// These, not running yet.
    Ask(Vec<Node>),
    /// Nothing that is not running.
    Running,
    /// Nothing: this is the end.
    Done(Conclusion),
}

impl Bisect {
    /// What no suspect explains, once none is left.
    pub(super) fn contradiction(&self) -> Conclusion {
        let conflicts = self.record.conflicts(&self.graph);
        let unexplained = if conflicts.is_empty() {
            self.record.first_bads(&self.graph)
        } else {
            Vec::new()
        };
        Conclusion::Contradictory {
            suspect: None,
            conflicts,
            unexplained,
        }
    }

    /// The culprit, then each of its parents once.
    fn to_confirm(&self, culprit: Node) -> Vec<Node> {
        let mut points = vec![culprit];
        points.extend(self.graph.parents(culprit));
        drop_repeats(&mut points);
        points
    }

    /// Of the culprit and its parents, those that still need a trial, running ones included.
    pub(super) fn unconfirmed(&self, culprit: Node) -> Vec<Node> {
        let mut points = self.to_confirm(culprit);
        points.retain(|&p| {
            let told = self.record.outcomes(p, Purpose::Confirm).next().is_some();
            // What was untestable once is not asked again.
            !told && !self.record.has(p, Outcome::Skip)
        });
        points
    }

    /// How far the tests of `culprit` and its parents at the close are.
    pub(super) fn confirmation(&self, culprit: Node, running: &[Running<Node>]) -> Confirmation {
        let mut unconfirmed = Vec::new();
        if !self.policy.deterministic {
            let conflicts = self.disagreements(culprit);
            if !conflicts.is_empty() {
                return Confirmation::Done(Conclusion::Contradictory {
                    suspect: Some(culprit),
                    conflicts,
                    unexplained: Vec::new(),
                });
            }
            let mut waiting = self.unconfirmed(culprit);
            if !waiting.is_empty() {
                let runs = |p: Node| {
                    let same = |q: &Query<Node>| q.point == p && q.purpose == Purpose::Confirm;
                    running.iter().any(|r| same(&r.query))
                };
                waiting.retain(|&p| !runs(p));
                return if waiting.is_empty() {
                    Confirmation::Running
                } else {
                    Confirmation::Ask(waiting)
                };
            }
            unconfirmed = self.to_confirm(culprit);
            unconfirmed.retain(|&p| {
                let mut outcomes = self.record.outcomes(p, Purpose::Confirm);
                outcomes.all(|o| o == Outcome::Skip)
            });
            unconfirmed.sort_unstable();
        }
        Confirmation::Done(Conclusion::Culprit {
            point: culprit,
            unconfirmed,
            untested_merge_bases: self.untested_merge_bases(),
            flaky_ends: self.flaky_ends(),
        })
    }

    /// What the trials at the close contradict, as (passed, failed).
    fn disagreements(&self, culprit: Node) -> Vec<(Node, Node)> {
        let confirmed = |p, outcome| {
            let mut outcomes = self.record.outcomes(p, Purpose::Confirm);
            outcomes.any(|o| o == outcome)
        };
        let mut pairs = Vec::new();
        if confirmed(culprit, Outcome::Good) {
            let bad = self.record.points(Outcome::Bad);
            let itself = bad.contains(&culprit).then_some(culprit);
            // Every bad point contains the culprit; the lowest is nearest.
            let failed = itself.or(bad.first().copied()).unwrap_or(self.ends.bad);
            pairs.push((culprit, failed));
        }
        for parent in self.to_confirm(culprit).split_off(1) {
            if confirmed(parent, Outcome::Bad) {
                pairs.push((self.ground_for_good(parent), parent));
            }
        }
        pairs
    }

    /// The good point that says most directly that `node` should be good.
    fn ground_for_good(&self, node: Node) -> Node {
        let good = self.record.points(Outcome::Good);
        let ancestors = self.graph.ancestors(node);
        let itself = good.iter().find(|&&g| g == node);
        let above = || {
            good.iter()
                .find(|&&g| self.graph.ancestors(g).contains(node))
        };
        let below = || good.iter().rev().find(|&&g| ancestors.contains(g));
        let ground = itself.or_else(above).or_else(below);
        let end = || self.ends.goods.first();
        ground.or_else(end).copied().unwrap_or(node)
    }
}
