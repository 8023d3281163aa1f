//! What was told so far, point by point, and where it contradicts itself.
//!
//! It keeps trials in the order in which they were told, and knows of a history only who descends
//! from whom. What follows from the trials is for the search to say.

use super::bits::Bits;
use super::graph::{Graph, Node};
use super::{Outcome, Purpose};

/// One trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    point: Node,
    purpose: Purpose,
    outcome: Outcome,
}

/// The trials of a search.
#[derive(Debug, Clone, Default)]
pub struct Record {
    trials: Vec<Told>,
}

impl Record {
    /// Adds a trial.
    pub fn add(&mut self, point: Node, purpose: Purpose, outcome: Outcome) {
        self.trials.push(Told {
            point,
            purpose,
            outcome,
        });
    }

    /// How many trials `point` had.
    pub fn trials_of(&self, point: Node) -> u32 {
        self.trials.iter().filter(|t| t.point == point).count() as u32
    }

    /// The outcomes of the trials that `point` had for this purpose, in the order told.
    pub fn outcomes(&self, point: Node, purpose: Purpose) -> impl Iterator<Item = Outcome> + '_ {
        let of_point = move |t: &&Told| t.point == point && t.purpose == purpose;
        self.trials.iter().filter(of_point).map(|t| t.outcome)
    }

    /// Whether some trial of `point` ended so.
    pub fn has(&self, point: Node, outcome: Outcome) -> bool {
        let same = |t: &Told| t.point == point && t.outcome == outcome;
        self.trials.iter().any(same)
    }

    /// The points that were tried, whatever came of it.
    pub fn tried(&self) -> impl Iterator<Item = Node> + '_ {
        self.trials.iter().map(|t| t.point)
    }

    /// The points with a trial that ended so, each once, in history order.
    pub fn points(&self, outcome: Outcome) -> Vec<Node> {
        let ended_so = self.trials.iter().filter(|t| t.outcome == outcome);
        let mut points: Vec<Node> = ended_so.map(|t| t.point).collect();
        points.sort_unstable();
        points.dedup();
        points
    }

    /// Every (good, bad) where the bad one is the good one or an ancestor of it, which cannot be
    /// where bad is inherited by descendants and no outcome is false. A pass of the bad end before
    /// it failed is left out: it is known to be flaky, not contradictory.
    pub fn conflicts(&self, graph: &Graph) -> Vec<(Node, Node)> {
        let bad = self.points(Outcome::Bad);
        let takes_part = |t: &&Told| t.outcome == Outcome::Good && t.purpose != Purpose::BadEnd;
        let mut good: Vec<Node> = self
            .trials
            .iter()
            .filter(takes_part)
            .map(|t| t.point)
            .collect();
        good.sort_unstable();
        good.dedup();
        let pairs = good.into_iter().flat_map(|g| {
            let ancestors = graph.ancestors(g);
            let below = bad.iter().filter(move |&&b| ancestors.contains(b));
            below.map(move |&b| (g, b)).collect::<Vec<_>>()
        });
        pairs.collect()
    }

    /// The bad points that have no bad ancestor, in history order.
    pub fn first_bads(&self, graph: &Graph) -> Vec<Node> {
        let bad = self.points(Outcome::Bad);
        let first = |&b: &Node| {
            let mut ancestors: Bits = graph.ancestors(b);
            ancestors.remove(b);
            bad.iter().all(|&other| !ancestors.contains(other))
        };
        bad.iter().copied().filter(first).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_and_first_bads_follow_the_graph() {
        // 0 - 1 - 3 and 0 - 2 - 3
        let lists = vec![vec![], vec![0], vec![0], vec![1, 2]];
        let graph = Graph::new(lists, vec![true; 4]).unwrap();
        let mut record = Record::default();
        record.add(3, Purpose::BadEnd, Outcome::Good);
        record.add(3, Purpose::BadEnd, Outcome::Bad);
        record.add(1, Purpose::Narrow, Outcome::Bad);
        record.add(2, Purpose::Narrow, Outcome::Bad);
        assert_eq!(record.conflicts(&graph), []);
        assert_eq!(record.first_bads(&graph), [1, 2]);
        record.add(3, Purpose::Confirm, Outcome::Good);
        assert_eq!(record.conflicts(&graph), [(3, 1), (3, 2), (3, 3)]);
        assert_eq!((record.trials_of(3), record.trials_of(0)), (3, 0));
    }
}
