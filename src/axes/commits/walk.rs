//! The commits that are reachable from the new end and from no old end, with their parents.

use std::collections::{BinaryHeap, HashMap};

use git2::Oid;

use super::error::HistoryError;
use super::repo::Repo;
use crate::model::CommitId;

/// A commit and what it stands on.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: CommitId,
    /// Committer time, in seconds since 1970.
    pub(super) time: i64,
    /// First parent first.
    pub(super) parents: Vec<CommitId>,
    /// Its tree, where libgit2 read it.
    pub(super) tree: Option<Oid>,
}

/// The commits reachable from `new` and from none of `old`, in no particular order.
///
/// # Errors
/// When neither libgit2 (if it is given) nor `git` can read the history.
pub(super) fn between(
    repo: &Repo,
    libgit2: Option<&git2::Repository>,
    old: &[&CommitId],
    new: &CommitId,
) -> Result<Vec<Link>, HistoryError> {
    // An error of libgit2's is no news yet: what it cannot read, git may; or git says why not.
    if let Some(links) = libgit2.and_then(|libgit2| painted(libgit2, old, new).ok()) {
        return Ok(links);
    }
    listed(repo, old, new)
}

/// The same, as `git rev-list` tells it.
fn listed(repo: &Repo, old: &[&CommitId], new: &CommitId) -> Result<Vec<Link>, HistoryError> {
    let mut args: Vec<String> = ["rev-list", "--parents", "--timestamp", "--end-of-options"]
        .map(str::to_owned)
        .to_vec();
    args.push(new.to_string());
    args.extend(old.iter().map(|id| format!("^{id}")));
    args.push("--".into());
    let answer = repo.git().ask(args)?;
    let text = answer.text()?;
    text.lines()
        .map(|line| link(line).ok_or_else(|| unreadable(line)))
        .collect()
}

/// One line of `git rev-list --parents --timestamp`.
fn link(line: &str) -> Option<Link> {
    let mut words = line.split(' ');
    let time = words.next()?.parse().ok()?;
    let id = CommitId::parse(words.next()?)?;
    let parents = words.map(CommitId::parse).collect::<Option<_>>()?;
    Some(Link {
        id,
        time,
        parents,
        tree: None,
    })
}

fn unreadable(line: &str) -> HistoryError {
    HistoryError::Git {
        command: "rev-list --parents --timestamp".into(),
        message: format!("expected a time and hashes, found {line:?}"),
    }
}

/// The same, read with libgit2.
fn painted(
    libgit2: &git2::Repository,
    old: &[&CommitId],
    new: &CommitId,
) -> Result<Vec<Link>, git2::Error> {
    let mut painter = Painter {
        libgit2,
        seen: Vec::new(),
        index: HashMap::new(),
        queue: BinaryHeap::new(),
        undecided: 0,
        oldest: i64::MAX,
    };
    painter.start(Oid::from_str(new.as_str())?, Reach::New)?;
    for id in old {
        painter.start(Oid::from_str(id.as_str())?, Reach::Old)?;
    }
    painter.run()?;
    Ok(painter.links())
}

/// From where a commit is reachable, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// From the new end.
    New,
    /// From an old end. What else reaches it does not matter.
    Old,
}

/// A commit that was read.
struct Seen {
    oid: Oid,
    time: i64,
    parents: Vec<Oid>,
    tree: Oid,
    reach: Reach,
    queued: bool,
}

/// Walks from all ends at once, newest commit first, and carries their [`Reach`] to the parents.
///
/// Each commit is read once, which is what takes the time. Committer clocks differ, so a commit may
/// be found reachable from an old end after its ancestors were passed: then they are queued again.
struct Painter<'r> {
    libgit2: &'r git2::Repository,
    seen: Vec<Seen>,
    index: HashMap<Oid, usize>,
    /// By time, then by number.
    queue: BinaryHeap<(i64, usize)>,
    /// Queued commits that only the new end is known to reach.
    undecided: usize,
    /// The least time among commits that were passed while only the new end reached them.
    oldest: i64,
}

impl Painter<'_> {
    /// Commits older than every candidate that are still read, in search of one with a wrong clock
    /// that leads from an old end back among the candidates. `git rev-list` reads five.
    const SLOP: u32 = 1000;

    fn start(&mut self, oid: Oid, reach: Reach) -> Result<(), git2::Error> {
        let number = self.number(oid, reach)?;
        self.reach(number, reach);
        Ok(())
    }

    /// The commit's number; it is read if it is new.
    fn number(&mut self, oid: Oid, reach: Reach) -> Result<usize, git2::Error> {
        if let Some(number) = self.index.get(&oid) {
            return Ok(*number);
        }
        let commit = self.libgit2.find_commit(oid)?;
        let number = self.seen.len();
        let time = commit.time().seconds();
        self.seen.push(Seen {
            oid,
            time,
            parents: commit.parent_ids().collect(),
            tree: commit.tree_id(),
            reach,
            queued: true,
        });
        self.index.insert(oid, number);
        self.queue.push((time, number));
        self.undecided += usize::from(reach == Reach::New);
        Ok(number)
    }

    /// Notes that a commit is reachable from an end, and queues it if that is news.
    fn reach(&mut self, number: usize, reach: Reach) {
        let seen = &mut self.seen[number];
        if seen.reach == Reach::Old || reach == Reach::New {
            return;
        }
        seen.reach = Reach::Old;
        if seen.queued {
            self.undecided -= 1;
        } else {
            seen.queued = true;
            self.queue.push((seen.time, number));
        }
    }

    fn run(&mut self) -> Result<(), git2::Error> {
        let mut slop = Self::SLOP;
        while let Some((time, number)) = self.queue.pop() {
            let seen = &mut self.seen[number];
            seen.queued = false;
            let reach = seen.reach;
            match reach {
                Reach::New => {
                    self.undecided -= 1;
                    self.oldest = self.oldest.min(time);
                }
                Reach::Old if self.undecided == 0 && time < self.oldest => {
                    if slop == 0 {
                        return Ok(());
                    }
                    slop -= 1;
                }
                Reach::Old => {}
            }
            let parents = std::mem::take(&mut self.seen[number].parents);
            for parent in &parents {
                let parent = self.number(*parent, reach)?;
                self.reach(parent, reach);
            }
            self.seen[number].parents = parents;
        }
        Ok(())
    }

    fn links(self) -> Vec<Link> {
        self.seen
            .into_iter()
            .filter(|seen| seen.reach == Reach::New)
            .map(|seen| Link {
                id: id(seen.oid),
                time: seen.time,
                parents: seen.parents.into_iter().map(id).collect(),
                tree: Some(seen.tree),
            })
            .collect()
    }
}

/// libgit2's name of a commit as ours.
fn id(oid: Oid) -> CommitId {
    CommitId::parse(&oid.to_string()).expect("an Oid prints as 40 lower-case hexadecimal digits")
}
