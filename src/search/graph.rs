//! The commit graph as a search sees it: numbered nodes, parents before children.

/// A commit's number: its position in an order in which every parent stands before its children.
pub type Node = u32;

/// A directed acyclic graph of commits, some of which are candidates.
#[derive(Debug, Clone)]
pub struct Graph {
    parents: Vec<Vec<Node>>,
    candidate: Vec<bool>,
}

impl Graph {
    /// `parents[n]` are the parents of node `n`, first parent first; `candidate[n]` says whether
    /// `n` can be the answer.
    ///
    /// # Errors
    /// When the lengths differ or a parent does not stand before its child.
    pub fn new(parents: Vec<Vec<Node>>, candidate: Vec<bool>) -> Result<Self, GraphError> {
        if parents.len() != candidate.len() {
            return Err(GraphError);
        }
        Ok(Self { parents, candidate })
    }
}

/// A graph that is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a commit's parent does not stand before it")]
pub struct GraphError;
