//! The history between the ends, as the numbered graph that a search works on.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::path::PathBuf;

use super::error::HistoryError;
use super::repo::Repo;
use super::resolve::Resolved;
use super::touching::touching;
use super::walk::{Link, between};
use crate::model::CommitId;
use crate::search::graph::{Graph, Node};

/// The commits between the ends and around them.
///
/// Nodes are, in this order: commits that are no candidates and stand without parents (direct
/// parents of the range that lie outside it, old ends, merge bases), by hash; then the range:
/// what the new end reaches and no old end does, parents before children, else oldest first. The
/// order is a function of the history alone.
#[derive(Debug, Clone)]
pub struct History {
    /// Each node's commit.
    pub commits: Vec<CommitId>,
    /// How they descend from one another, and which of them are candidates.
    pub graph: Graph,
    /// The new end. With paths it may be no candidate.
    pub bad: Node,
    /// The old ends, without repetitions.
    pub goods: Vec<Node>,
    /// Where the new end's history parts from an old end that is not its ancestor, except where
    /// that is an old end itself: the best common ancestors of the new end and of all old ends
    /// taken together, as `git bisect` tests them.
    pub merge_bases: Vec<Node>,
    candidates: usize,
    numbers: HashMap<CommitId, Node>,
}

impl History {
    /// Reads the history between the ends.
    ///
    /// With `first_parent`, the range is the chain of first parents from the new end to the first
    /// commit that an old end reaches; each keeps only its first parent. With `paths` (relative to
    /// the root; files or folders, taken literally), only commits that touch one of them are
    /// candidates; the others stay in the graph. `fixed` only changes what errors say.
    ///
    /// # Errors
    /// When there is no candidate (see [`HistoryError::is_empty_range`]), when the ends are
    /// swapped or unrelated, when a shallow clone lacks parents of the range, and when the
    /// repository cannot be read.
    pub fn load(
        repo: &Repo,
        ends: &Resolved,
        first_parent: bool,
        paths: &[PathBuf],
        fixed: bool,
    ) -> Result<Self, HistoryError> {
        let goods: BTreeSet<&CommitId> = ends.good.iter().map(|(_, id)| id).collect();
        let bad = &ends.bad.1;
        let libgit2 = repo.libgit2();
        let old: Vec<&CommitId> = goods.iter().copied().collect();
        let mut links = between(repo, libgit2.as_ref(), &old, bad)?;
        if links.is_empty() {
            return Err(no_range(repo, ends, fixed)?);
        }
        let merge_bases = merge_bases(repo, ends, &links)?;
        if first_parent {
            links = first_parents(links, bad);
        }
        refuse_cut_off(repo, ends, &links)?;
        let chosen = if paths.is_empty() {
            vec![true; links.len()]
        } else {
            touching(repo, libgit2.as_ref(), &links, paths)?
        };
        if !chosen.contains(&true) {
            return Err(nothing_touches(ends, paths));
        }
        Ok(numbered(&links, &chosen, bad, &goods, &merge_bases))
    }

    /// The node of a commit.
    pub fn node(&self, commit: &CommitId) -> Option<Node> {
        self.numbers.get(commit).copied()
    }

    /// How many commits can be the answer. At least one.
    pub fn candidates(&self) -> usize {
        self.candidates
    }
}

/// Why the new end reaches nothing that the old ends do not.
fn no_range(repo: &Repo, ends: &Resolved, fixed: bool) -> Result<HistoryError, HistoryError> {
    let (new, bad) = &ends.bad;
    if let Some((old, _)) = ends.good.iter().find(|(_, id)| id == bad) {
        return Ok(HistoryError::Identical {
            old: old.clone(),
            new: new.clone(),
            commit: bad.short().to_owned(),
        });
    }
    for (old, id) in &ends.good {
        if common_ancestors(repo, bad, &[id])?.contains(bad) {
            return Ok(HistoryError::Swapped {
                old: old.clone(),
                new: new.clone(),
                fixed,
            });
        }
    }
    Ok(HistoryError::Git {
        command: "rev-list".into(),
        message: format!("{new:?} is reachable from an old end, and yet from none"),
    })
}

/// The best common ancestors of a commit and of the others taken together.
fn common_ancestors(
    repo: &Repo,
    one: &CommitId,
    others: &[&CommitId],
) -> Result<BTreeSet<CommitId>, HistoryError> {
    let mut args = vec!["merge-base", "--all", "--end-of-options", one.as_str()];
    args.extend(others.iter().map(|id| id.as_str()));
    let answer = repo.git().ask(args)?;
    // Exit status 1 without a word is its way to say "none".
    if !answer.ok && answer.stderr.is_empty() {
        return Ok(BTreeSet::new());
    }
    Ok(answer.text()?.lines().filter_map(CommitId::parse).collect())
}

/// See [`History::merge_bases`].
fn merge_bases(
    repo: &Repo,
    ends: &Resolved,
    links: &[Link],
) -> Result<BTreeSet<CommitId>, HistoryError> {
    // An old end right below the range is the new end's ancestor: the usual case, known for free.
    let below: HashSet<&CommitId> = links.iter().flat_map(|link| &link.parents).collect();
    let bad = &ends.bad.1;
    let mut parted = false;
    for (old, id) in ends.good.iter().filter(|(_, id)| !below.contains(id)) {
        let common = common_ancestors(repo, bad, &[id])?;
        if common.is_empty() {
            return Err(unconnected(repo, ends, old));
        }
        parted |= !common.contains(id);
    }
    if !parted {
        return Ok(BTreeSet::new());
    }
    let goods: Vec<&CommitId> = ends.good.iter().map(|(_, id)| id).collect();
    let mut bases = common_ancestors(repo, bad, &goods)?;
    bases.retain(|base| !goods.contains(&base));
    Ok(bases)
}

/// Why an old end and the new one share nothing.
fn unconnected(repo: &Repo, ends: &Resolved, old: &str) -> HistoryError {
    if repo.is_shallow() {
        HistoryError::ShallowHides {
            rev: old.to_owned(),
            known: true,
        }
    } else {
        HistoryError::NoCommonAncestor {
            old: old.to_owned(),
            new: ends.bad.0.clone(),
        }
    }
}

/// Refuses a range of a shallow clone that reaches down to a commit without parents.
///
/// Its parents may be cut off, and the answer with them. Or it may be the real root, which only
/// seems to be new since what makes it an ancestor of an old end is cut off.
fn refuse_cut_off(repo: &Repo, ends: &Resolved, links: &[Link]) -> Result<(), HistoryError> {
    if links.iter().any(|link| link.parents.is_empty()) && repo.is_shallow() {
        return Err(HistoryError::ShallowHides {
            rev: ends.good[0].0.clone(),
            known: true,
        });
    }
    Ok(())
}

/// The chain of first parents from the new end, as far as it lies in the range.
fn first_parents(links: Vec<Link>, bad: &CommitId) -> Vec<Link> {
    let mut range: HashMap<CommitId, Link> = links
        .into_iter()
        .map(|link| (link.id.clone(), link))
        .collect();
    let mut chain = Vec::new();
    let mut next = Some(bad.clone());
    while let Some(mut link) = next.and_then(|id| range.remove(&id)) {
        link.parents.truncate(1);
        next = link.parents.first().cloned();
        chain.push(link);
    }
    chain
}

fn nothing_touches(ends: &Resolved, paths: &[PathBuf]) -> HistoryError {
    let old: Vec<&str> = ends.good.iter().map(|(rev, _)| rev.as_str()).collect();
    HistoryError::NothingTouches {
        range: format!("{}..{}", old.join(","), ends.bad.0),
        paths: paths
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
    }
}

/// Gives every commit its number.
fn numbered(
    links: &[Link],
    chosen: &[bool],
    bad: &CommitId,
    goods: &BTreeSet<&CommitId>,
    merge_bases: &BTreeSet<CommitId>,
) -> History {
    let range: HashSet<&CommitId> = links.iter().map(|link| &link.id).collect();
    let mut outside: BTreeSet<&CommitId> = links
        .iter()
        .flat_map(|link| &link.parents)
        .filter(|parent| !range.contains(parent))
        .collect();
    outside.extend(goods);
    outside.extend(merge_bases);

    let order = parents_first(links);
    let mut commits: Vec<CommitId> = outside.into_iter().cloned().collect();
    let mut parents = vec![Vec::new(); commits.len()];
    let mut candidate = vec![false; commits.len()];
    commits.extend(order.iter().map(|at| links[*at].id.clone()));
    let numbers: HashMap<CommitId, Node> = commits.iter().cloned().zip(0..).collect();
    for at in order {
        let own = links[at].parents.iter().map(|parent| numbers[parent]);
        parents.push(own.collect());
        candidate.push(chosen[at]);
    }
    History {
        bad: numbers[bad],
        goods: goods.iter().map(|id| numbers[*id]).collect(),
        merge_bases: merge_bases.iter().map(|id| numbers[id]).collect(),
        candidates: chosen.iter().filter(|chosen| **chosen).count(),
        graph: graph(parents, candidate),
        commits,
        numbers,
    }
}

fn graph(parents: Vec<Vec<Node>>, candidate: Vec<bool>) -> Graph {
    Graph::new(parents, candidate).expect("the order puts every parent before its children")
}

/// Positions of the links, parents before children; where both could come next, the older one,
/// then the one with the smaller hash. (Kahn, Communications of the ACM 5 (1962), 558-562.)
fn parents_first(links: &[Link]) -> Vec<usize> {
    let position: HashMap<&CommitId, usize> = links
        .iter()
        .enumerate()
        .map(|(at, link)| (&link.id, at))
        .collect();
    let mut children = vec![Vec::new(); links.len()];
    let mut missing = vec![0_usize; links.len()];
    for (at, link) in links.iter().enumerate() {
        for parent in link.parents.iter().filter_map(|id| position.get(id)) {
            children[*parent].push(at);
            missing[at] += 1;
        }
    }
    let key = |at: usize| Reverse((links[at].time, &links[at].id, at));
    let mut ready: BinaryHeap<_> = (0..links.len())
        .filter(|at| missing[*at] == 0)
        .map(key)
        .collect();
    let mut order = Vec::with_capacity(links.len());
    while let Some(Reverse((_, _, at))) = ready.pop() {
        order.push(at);
        for child in &children[at] {
            missing[*child] -= 1;
            if missing[*child] == 0 {
                ready.push(key(*child));
            }
        }
    }
    order
}
