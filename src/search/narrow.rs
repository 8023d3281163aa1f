//! Which points divide a set of suspects best, for one slot or for several at once.
//!
//! A trial of `t` tells the suspects that `t` contains (itself or ancestors of it) from the others.
//! So any untested node counts, suspect or not: a commit that cannot be the answer, such as a
//! merge that touches no path of interest, may divide the suspects better than each of them.
//!
//! **One slot.** The point with the largest min(w, n - w), where w of the n suspects are in it;
//! among equals a suspect, then the lowest number.
//!
//! **Several slots.** Trials that run already divide the suspects into parts: those that every
//! combination of their outcomes would leave. The free slots go to the parts, one after the other
//! to the one with the largest size / (slots + 1). A part with k slots gives up the share that is
//! nearest to 1 / (k + 1), by the point with the largest min(w, (n - w) / k), and the rest is
//! divided in the same way. On a chain these are the quantiles, and each point divides a part that
//! no earlier one divides, so that no trial is one whose answer the others imply.
//!
//! **Skipped points.** Untestable commits cluster. When a skipped point lies near the best one (its
//! own value is at least [`TOLERANCE`] of the best), the choice moves away: among the points
//! whose value is at least [`TOLERANCE`] of the best, it takes the one that is farthest from all
//! skipped ones, distance being the difference of their weights w. With j skipped points in
//! that window it is widened to [`TOLERANCE`] to the power of j, so that a long untestable stretch
//! is left after a few trials instead of being tried from end to end.

use super::bits::Bits;
use super::graph::{Graph, Node};

/// The share of the best division's value that a point farther from skipped ones must have.
pub const TOLERANCE: f64 = 0.8;

/// What a choice is made from.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// The history.
    pub graph: &'a Graph,
    /// The candidates that can still be the answer.
    pub suspects: &'a Bits,
    /// The nodes that may be tried: not tried yet, and not running.
    pub testable: &'a Bits,
    /// The nodes that were tried and found untestable.
    pub skipped: &'a [Node],
}

/// A possible trial within one part.
#[derive(Debug, Clone, Copy)]
struct Split {
    node: Node,
    /// Suspects of the part that it contains.
    weight: u64,
    /// How well it divides: k x min(w, (n - w) / k).
    value: u64,
}

impl Choice<'_> {
    /// At most `slots` points to try beside those that are `running`, most wanted first; none when
    /// the outcomes of the running ones leave nothing that could be divided further.
    pub fn points(&self, running: &[Node], slots: usize) -> Vec<Node> {
        let mut parts = vec![Part::new(self.suspects.clone())];
        for &node in running {
            divide(&mut parts, &self.graph.ancestors(node));
        }
        let mut chosen = Vec::new();
        while chosen.len() < slots
            && let Some((part, share)) = neediest(&parts, slots - chosen.len())
        {
            match self.best(&parts[part], share) {
                Some(node) => {
                    divide(&mut parts, &self.graph.ancestors(node));
                    chosen.push(node);
                }
                None => parts[part].divisible = false,
            }
        }
        chosen
    }

    /// The point that takes off the first of `share + 1` equal pieces of `part` best.
    fn best(&self, part: &Part, share: u64) -> Option<Node> {
        let total = part.size;
        let weights = self.graph.weights(&part.members);
        let split = |node: Node| {
            let weight = u64::from(weights[node as usize]);
            let value = (weight * share).min(total - weight);
            (value > 0).then_some(Split {
                node,
                weight,
                value,
            })
        };
        let splits: Vec<Split> = self.testable.iter().filter_map(split).collect();
        let best = splits.iter().map(|s| s.value).max()?;
        let skipped: Vec<Split> = self.skipped.iter().copied().filter_map(split).collect();
        let least = window(best, &skipped);
        let distance = |s: &Split| match least {
            Some(_) => skipped.iter().map(|x| x.weight.abs_diff(s.weight)).min(),
            None => None,
        };
        splits
            .iter()
            .filter(|s| s.value as f64 >= least.unwrap_or(best as f64))
            .max_by_key(|s| {
                let suspect = self.suspects.contains(s.node);
                (distance(s), s.value, suspect, std::cmp::Reverse(s.node))
            })
            .map(|s| s.node)
    }
}

/// The least value that a point may have when skipped points lie near the best one; `None` when
/// none does.
fn window(best: u64, skipped: &[Split]) -> Option<f64> {
    let mut near = 0;
    let mut least = best as f64 * TOLERANCE;
    loop {
        let inside = skipped.iter().filter(|s| s.value as f64 >= least).count();
        if inside == near {
            return (near > 0).then_some(least);
        }
        near = inside;
        least = best as f64 * TOLERANCE.powi(i32::try_from(near).unwrap_or(i32::MAX));
    }
}

/// Suspects that the trials running and chosen so far do not tell apart.
#[derive(Debug, Clone)]
struct Part {
    members: Bits,
    size: u64,
    /// False once no testable point was found that divides it.
    divisible: bool,
}

impl Part {
    fn new(members: Bits) -> Self {
        let size = members.count() as u64;
        Self {
            members,
            size,
            divisible: size > 1,
        }
    }
}

/// Divides each part into what is in `inside` and what is not.
fn divide(parts: &mut Vec<Part>, inside: &Bits) {
    for i in 0..parts.len() {
        let within = parts[i].members.and(inside);
        let count = within.count() as u64;
        if count > 0 && count < parts[i].size {
            let without = parts[i].members.minus(inside);
            parts[i] = Part::new(within);
            parts.push(Part::new(without));
        }
    }
}

/// Deals out `slots` so that the largest piece becomes smallest; the part whose pieces stay
/// largest, with its number of slots.
fn neediest(parts: &[Part], slots: usize) -> Option<(usize, u64)> {
    let mut dealt = vec![0_u64; parts.len()];
    // a piece of a is larger than one of b, without dividing
    let larger = |dealt: &[u64], a: usize, b: usize| {
        parts[a].size * (dealt[b] + 1) > parts[b].size * (dealt[a] + 1)
    };
    let largest = |dealt: &[u64], may: &dyn Fn(usize) -> bool| {
        (0..parts.len())
            .filter(|&i| parts[i].divisible && may(i))
            .reduce(|a, b| if larger(dealt, b, a) { b } else { a })
    };
    for _ in 0..slots {
        let Some(part) = largest(&dealt, &|i| dealt[i] + 1 < parts[i].size) else {
            break;
        };
        dealt[part] += 1;
    }
    largest(&dealt, &|i| dealt[i] > 0).map(|part| (part, dealt[part]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(nodes: u32) -> Graph {
        let parents = (0..nodes).map(|n| n.checked_sub(1).into_iter().collect());
        Graph::new(parents.collect(), vec![true; nodes as usize]).unwrap()
    }

    /// What is chosen among all of `graph`, with these running and skipped.
    fn points(graph: &Graph, running: &[Node], skipped: &[Node], slots: usize) -> Vec<Node> {
        let mut suspects = Bits::new(graph.len());
        let nodes = || 0..graph.len() as Node;
        nodes()
            .filter(|&n| graph.is_candidate(n))
            .for_each(|n| suspects.insert(n));
        let mut testable = Bits::new(graph.len());
        nodes()
            .filter(|n| !running.contains(n) && !skipped.contains(n))
            .for_each(|n| testable.insert(n));
        let choice = Choice {
            graph,
            suspects: &suspects,
            testable: &testable,
            skipped,
        };
        choice.points(running, slots)
    }

    #[test]
    fn one_slot_takes_the_middle() {
        for (nodes, middle) in [(2, 0), (3, 0), (4, 1), (5, 1), (8, 3), (101, 49)] {
            assert_eq!(
                points(&chain(nodes), &[], &[], 1),
                [middle],
                "{nodes} nodes"
            );
        }
        assert!(points(&chain(1), &[], &[], 1).is_empty());
    }

    #[test]
    fn several_slots_take_the_quantiles() {
        assert_eq!(points(&chain(100), &[], &[], 3), [24, 49, 74]);
        assert_eq!(points(&chain(90), &[], &[], 2), [29, 59]);
        // Never more than can be told apart.
        let mut few = points(&chain(4), &[], &[], 9);
        few.sort_unstable();
        assert_eq!(few, [0, 1, 2]);
    }

    #[test]
    fn a_free_slot_goes_to_the_largest_part_that_the_running_ones_leave() {
        // 60 runs: 0..=60 and 61..=99 are left, and the first is larger.
        assert_eq!(points(&chain(100), &[60], &[], 1), [29]);
        assert_eq!(points(&chain(100), &[20], &[], 1), [59]);
        let mut two = points(&chain(100), &[49], &[], 2);
        two.sort_unstable();
        assert_eq!(two, [24, 74]);
    }

    #[test]
    fn nothing_is_chosen_that_the_running_ones_will_tell() {
        assert!(points(&chain(2), &[0], &[], 3).is_empty());
        assert!(points(&chain(3), &[0, 1], &[], 3).is_empty());
        assert!(points(&chain(3), &[0], &[1], 3).is_empty());
    }

    #[test]
    fn a_merge_that_is_no_candidate_is_tried_where_it_divides_best() {
        // Eight branches of one candidate each, off a common base, merged one by one.
        let mut parents: Vec<Vec<Node>> = vec![vec![]];
        let mut candidate = vec![false];
        let mut head = 0;
        for _ in 0..8 {
            let branch = parents.len() as Node;
            parents.push(vec![0]);
            parents.push(vec![head, branch]);
            candidate.extend([true, false]);
            head = branch + 1;
        }
        let graph = Graph::new(parents, candidate).unwrap();
        assert_eq!(points(&graph, &[], &[], 1), [8]);
        let mut three = points(&graph, &[], &[], 3);
        three.sort_unstable();
        assert_eq!(three, [4, 8, 12]);
    }

    #[test]
    fn a_skipped_middle_is_left_by_a_fifth_of_the_half_and_then_by_more() {
        let graph = chain(100);
        // Values of at least 80 % of the best: weights 40 to 60.
        assert_eq!(points(&graph, &[], &[49], 1), [39]);
        // 64 % with two in the window, and so on.
        assert_eq!(points(&graph, &[], &[49, 39], 1), [67]);
        assert_eq!(points(&graph, &[], &[49, 39, 67], 1), [25]);
        // Skipped points far from the middle do not matter.
        assert_eq!(points(&graph, &[], &[5, 95], 1), [49]);
    }

    #[test]
    fn a_long_untestable_stretch_is_left_within_a_few_trials() {
        let graph = chain(1000);
        let mut skipped = Vec::new();
        let outside = loop {
            let point = points(&graph, &[], &skipped, 1)[0];
            if !(300..700).contains(&point) {
                break point;
            }
            skipped.push(point);
        };
        assert!(skipped.len() <= 4, "left for {outside} after {skipped:?}");
    }
}
