//! The commit graph as a search sees it: numbered nodes, parents before children.
//!
//! It knows nothing of commits: not their names, and not why a node is a candidate. Nodes that are
//! none may stand in it too (good ends, merge bases, commits that touch no path of interest), with
//! their parents or without.

use super::bits::Bits;

/// A commit's number: its position in an order in which every parent stands before its children.
pub type Node = u32;

/// A directed acyclic graph of commits, some of which are candidates.
#[derive(Debug, Clone)]
pub struct Graph {
    /// Node `n`'s parents are `parents[starts[n]..starts[n + 1]]`.
    starts: Vec<u32>,
    parents: Vec<Node>,
    /// How many edges lead to each node from its children.
    children: Vec<u32>,
    candidates: Bits,
}

impl Graph {
    /// `parents[n]` are the parents of node `n`, first parent first; `candidate[n]` says whether
    /// `n` can be the answer.
    ///
    /// # Errors
    /// When the lengths differ, a parent does not stand before its child, or there are more nodes
    /// or edges than 32 bits can number.
    // By value: the lists are given up here, and callers have no use for them afterwards.
    #[expect(clippy::needless_pass_by_value, reason = "the graph replaces them")]
    pub fn new(parents: Vec<Vec<Node>>, candidate: Vec<bool>) -> Result<Self, GraphError> {
        if parents.len() != candidate.len() {
            return Err(GraphError::Lengths {
                parents: parents.len(),
                candidates: candidate.len(),
            });
        }
        let edges: usize = parents.iter().map(Vec::len).sum();
        if Node::try_from(edges.max(parents.len())).is_err() {
            return Err(GraphError::TooLarge);
        }
        let mut graph = Self {
            starts: Vec::with_capacity(parents.len() + 1),
            parents: Vec::with_capacity(edges),
            children: vec![0; parents.len()],
            candidates: Bits::new(parents.len()),
        };
        graph.starts.push(0);
        for (node, list) in (0..).zip(&parents) {
            for &parent in list {
                if parent >= node {
                    return Err(GraphError::Order { node, parent });
                }
                graph.children[parent as usize] += 1;
                graph.parents.push(parent);
            }
            graph.starts.push(graph.parents.len() as u32);
            if candidate[node as usize] {
                graph.candidates.insert(node);
            }
        }
        Ok(graph)
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// Whether `node` can be the answer.
    pub fn is_candidate(&self, node: Node) -> bool {
        self.candidates.contains(node)
    }

    /// How many nodes can be the answer.
    pub fn candidates(&self) -> usize {
        self.candidates.count()
    }

    /// The parents of `node`, first parent first.
    ///
    /// # Panics
    /// When there is no such node.
    pub fn parents(&self, node: Node) -> &[Node] {
        let n = node as usize;
        &self.parents[self.starts[n] as usize..self.starts[n + 1] as usize]
    }

    /// `node` and everything that it descends from.
    ///
    /// # Panics
    /// When there is no such node.
    pub fn ancestors(&self, node: Node) -> Bits {
        let mut found = Bits::new(self.len());
        found.insert(node);
        for child in (0..=node).rev() {
            if found.contains(child) {
                self.parents(child).iter().for_each(|&p| found.insert(p));
            }
        }
        found
    }

    /// The candidates among `node` and its ancestors.
    ///
    /// # Panics
    /// When there is no such node.
    pub fn candidates_up_to(&self, node: Node) -> Bits {
        self.candidates.and(&self.ancestors(node))
    }

    /// For every node, how many of `suspects` are that node or its ancestors.
    ///
    /// Takes time in proportion to the nodes, and to (merges + forks) x suspects / 64; memory for
    /// as many sets of suspects as there are lines of history open at once.
    pub fn weights(&self, suspects: &Bits) -> Vec<u32> {
        Sweep::new(self, suspects.count()).run(suspects).0
    }
}

/// One pass from the oldest node to the newest that carries each line's set of suspects along.
///
/// A set is handed on from parent to child and freed with the last child: a stretch of
/// single-parent commits costs one bit a commit, and only forks copy and merges unite. Sets that
/// hold no suspect or all of them are never stored, since their size says everything.
struct Sweep<'a> {
    graph: &'a Graph,
    total: u32,
    words: usize,
    weights: Vec<u32>,
    rows: Vec<Option<Row>>,
    /// Children's edges not yet walked, for each node.
    unread: Vec<u32>,
    /// Freed rows, to be written over.
    spare: Vec<Row>,
    live: usize,
    peak: usize,
}

/// Suspects by their rank among all suspects.
type Row = Box<[u64]>;

impl<'a> Sweep<'a> {
    fn new(graph: &'a Graph, total: usize) -> Self {
        Self {
            graph,
            total: total as u32,
            words: total.div_ceil(64),
            weights: vec![0; graph.len()],
            rows: vec![None; graph.len()],
            unread: graph.children.clone(),
            spare: Vec::new(),
            live: 0,
            peak: 0,
        }
    }

    /// The weights, and the largest number of rows that were held at once.
    fn run(mut self, suspects: &Bits) -> (Vec<u32>, usize) {
        let mut rank = 0;
        for node in 0..self.graph.len() as Node {
            let suspect = suspects.contains(node).then_some(rank);
            rank += usize::from(suspect.is_some());
            self.visit(node, suspect);
        }
        (self.weights, self.peak)
    }

    fn visit(&mut self, node: Node, suspect: Option<usize>) {
        let graph = self.graph;
        let parents = graph.parents(node);
        // The heaviest parent's row needs the fewest bits added.
        let heaviest = parents.iter().copied().max_by_key(|&p| self.weight(p));
        let mut weight = heaviest.map_or(0, |p| self.weight(p));
        let mut row = None;
        if let Some(base) = heaviest.filter(|_| weight > 0 && weight < self.total) {
            row = Some(self.inherit(base));
            for &other in parents.iter().filter(|&&p| p != base) {
                weight += unite(row.as_deref_mut(), self.rows[other as usize].as_deref());
            }
        }
        if let Some(rank) = suspect {
            let bits = row.get_or_insert_with(|| self.blank());
            bits[rank / 64] |= 1 << (rank % 64);
            weight += 1;
        }
        self.weights[node as usize] = weight;
        for &parent in parents {
            self.unread[parent as usize] -= 1;
            if self.unread[parent as usize] == 0 {
                let freed = self.rows[parent as usize].take();
                self.release(freed);
            }
        }
        if self.unread[node as usize] == 0 || weight == self.total {
            self.release(row);
        } else {
            self.rows[node as usize] = row;
        }
    }

    fn weight(&self, node: Node) -> u32 {
        self.weights[node as usize]
    }

    /// The row of `parent`: itself when nobody else will read it, else a copy.
    fn inherit(&mut self, parent: Node) -> Row {
        if self.unread[parent as usize] == 1
            && let Some(row) = self.rows[parent as usize].take()
        {
            return row;
        }
        let mut copy = self.blank();
        if let Some(row) = &self.rows[parent as usize] {
            copy.copy_from_slice(row);
        }
        copy
    }

    /// A row of zeros.
    fn blank(&mut self) -> Row {
        self.live += 1;
        self.peak = self.peak.max(self.live);
        match self.spare.pop() {
            Some(mut row) => {
                row.fill(0);
                row
            }
            None => vec![0; self.words].into_boxed_slice(),
        }
    }

    fn release(&mut self, row: Option<Row>) {
        if let Some(row) = row {
            self.live -= 1;
            self.spare.push(row);
        }
    }
}

/// Adds `other` to `row` and says how many bits were new.
fn unite(row: Option<&mut [u64]>, other: Option<&[u64]>) -> u32 {
    let (Some(row), Some(other)) = (row, other) else {
        return 0;
    };
    let mut new = 0;
    for (mine, &theirs) in row.iter_mut().zip(other) {
        let missing = theirs & !*mine;
        // Two lines of one history differ in few words.
        if missing != 0 {
            new += missing.count_ones();
            *mine |= missing;
        }
    }
    new
}

/// A graph that is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A parent is the node itself, comes later, or does not exist.
    #[error(
        "node {node} has parent {parent}, which does not stand before it: sort parents before \
         their children"
    )]
    Order {
        /// The node whose parent is wrong.
        node: Node,
        /// That parent.
        parent: Node,
    },
    /// The two lists that describe the nodes differ in length.
    #[error("parents are given for {parents} nodes and candidate marks for {candidates}")]
    Lengths {
        /// Nodes with a list of parents.
        parents: usize,
        /// Nodes with a mark.
        candidates: usize,
    },
    /// More nodes or edges than can be numbered.
    #[error("more than 4294967295 nodes or edges: narrow the range")]
    TooLarge,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph from the parents of each node, all candidates.
    fn graph(parents: &[&[Node]]) -> Graph {
        let lists = parents.iter().map(|p| p.to_vec()).collect();
        Graph::new(lists, vec![true; parents.len()]).unwrap()
    }

    /// What [`Graph::weights`] says, by the definition.
    fn weights_by_definition(graph: &Graph, suspects: &Bits) -> Vec<u32> {
        (0..graph.len() as Node)
            .map(|n| graph.ancestors(n).and(suspects).count() as u32)
            .collect()
    }

    #[test]
    fn a_wrong_graph_is_refused_with_the_place() {
        let order = |parents: Vec<Vec<Node>>| {
            let marks = vec![true; parents.len()];
            Graph::new(parents, marks).map(|_| ()).unwrap_err()
        };
        let late = GraphError::Order { node: 1, parent: 2 };
        assert_eq!(order(vec![vec![], vec![2], vec![]]), late);
        let own = GraphError::Order { node: 1, parent: 1 };
        assert_eq!(order(vec![vec![], vec![0, 1]]), own);
        let text = GraphError::Order { node: 1, parent: 9 }.to_string();
        assert!(text.contains("node 1 has parent 9"), "{text}");
        let lengths = Graph::new(vec![vec![]], vec![]).map(|_| ()).unwrap_err();
        assert_eq!(
            lengths,
            GraphError::Lengths {
                parents: 1,
                candidates: 0
            }
        );
    }

    #[test]
    fn ancestors_follow_every_parent_and_include_the_node() {
        let g = graph(&[&[], &[0], &[0], &[], &[1, 2, 3], &[3]]);
        let up_to = |n| g.ancestors(n).iter().collect::<Vec<_>>();
        assert_eq!(up_to(4), [0, 1, 2, 3, 4]);
        assert_eq!(up_to(5), [3, 5]);
        assert_eq!(g.parents(4), [1, 2, 3]);
        assert_eq!((g.len(), g.candidates(), g.is_empty()), (6, 6, false));
    }

    #[test]
    fn shared_ancestors_are_counted_once() {
        let g = graph(&[&[], &[0], &[0], &[1, 2], &[2], &[3, 4]]);
        let all = g.ancestors(5);
        assert_eq!(g.weights(&all), [1, 2, 2, 4, 3, 6]);
        let mut two = Bits::new(6);
        two.insert(2);
        two.insert(4);
        assert_eq!(g.weights(&two), [0, 0, 1, 1, 2, 2]);
        assert_eq!(g.weights(&Bits::new(6)), [0; 6]);
    }

    /// Deterministic, and irregular enough to mix chains, forks, roots and merges of three.
    fn tangle(nodes: u32) -> Graph {
        let mut state = 12345_u32;
        let mut next = move |bound: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % bound
        };
        let parents = (0..nodes).map(|n| {
            let near = n.min(12);
            let count = if near == 0 {
                0
            } else {
                [0, 1, 1, 1, 2, 3][next(6) as usize]
            };
            (0..count).map(|_| n - 1 - next(near)).collect()
        });
        Graph::new(parents.collect(), vec![true; nodes as usize]).unwrap()
    }

    #[test]
    fn weights_agree_with_their_definition() {
        let g = tangle(300);
        for keep in [1, 2, 3, 7, 70] {
            let mut suspects = Bits::new(g.len());
            (0..300)
                .filter(|n| n % keep == 0)
                .for_each(|n| suspects.insert(n));
            assert_eq!(g.weights(&suspects), weights_by_definition(&g, &suspects));
        }
    }

    #[test]
    fn rows_are_freed_as_their_children_finish() {
        // A ladder: each rung forks off the main line and is merged back three commits later.
        let parents = (0..30_000_u32).map(|n| match n {
            0 => vec![],
            n if n % 3 == 0 => vec![n - 1, n - 2],
            n if n % 3 == 2 => vec![n - 2],
            n => vec![n - 1],
        });
        let g = Graph::new(parents.collect(), vec![true; 30_000]).unwrap();
        let all = g.ancestors(29_999);
        let (weights, peak) = Sweep::new(&g, all.count()).run(&all);
        assert_eq!(weights[29_997], 29_998);
        assert!(peak <= 4, "{peak} rows were held at once");
    }
}
