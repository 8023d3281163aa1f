//! What can be wrong with a request for a history, and what to do about it.

use std::path::PathBuf;

/// Why no history could be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// There is no repository here.
    #[error("{} is not in a git repository", dir.display())]
    NotARepository {
        /// Where it was looked for.
        dir: PathBuf,
    },
    /// The repository belongs to another user, and git refuses to read it.
    #[error("the repository at {} belongs to another user, and git does not trust it", dir.display())]
    ForeignOwner {
        /// Where it was looked for.
        dir: PathBuf,
        /// The command that git itself proposes.
        remedy: String,
    },
    /// The repository has no checkout, or the user does not stand in it.
    #[error("{} is in a git repository, but not in a checkout of it", dir.display())]
    NoCheckout {
        /// Where the user stands.
        dir: PathBuf,
        /// The repository has no checkout of its own.
        bare: bool,
    },
    /// The `git` program is not there.
    #[error("the git program could not be started: {0}")]
    GitMissing(#[source] std::io::Error),
    /// The `git` program failed in a way that is not told apart.
    #[error("`git {command}` failed: {message}")]
    Git {
        /// Its arguments.
        command: String,
        /// Its last words.
        message: String,
    },
    /// A read with libgit2 that `git` cannot answer in its place.
    #[error("cannot read the repository: {0}")]
    Read(#[from] git2::Error),
    /// There is nothing to search: no commit was made yet.
    #[error("there are no commits yet: {rev:?} names none")]
    NoCommits {
        /// The revision as typed.
        rev: String,
    },
    /// The range lacks its two dots.
    #[error("{range:?} is not a range of the form OLD..NEW")]
    NotARange {
        /// The range as typed.
        range: String,
    },
    /// The range has three dots.
    #[error("{range:?} has three dots, where OLD..NEW has two")]
    ThreeDots {
        /// The range as typed.
        range: String,
        /// The same range with two.
        two: String,
    },
    /// No old end was given.
    #[error("no {} end is given: nothing says where the search begins", old_word(*fixed))]
    NoOldEnd {
        /// The request looks for a fix.
        fixed: bool,
    },
    /// More than one new end was given.
    #[error("{first:?} and {second:?} are both given as the {} end", new_word(*fixed))]
    TwoNewEnds {
        /// The request looks for a fix.
        fixed: bool,
        /// One of them.
        first: String,
        /// The other.
        second: String,
    },
    /// A revision looks like an option.
    #[error("{rev:?} begins with a dash, so it cannot be a revision")]
    DashRevision {
        /// The revision as typed.
        rev: String,
    },
    /// Nothing has that name.
    #[error("{rev:?} names no commit in this repository")]
    UnknownRevision {
        /// The revision as typed.
        rev: String,
        /// Branches and tags with a similar name, likeliest first.
        similar: Vec<String>,
    },
    /// A shortened hash fits several objects.
    #[error("{rev:?} fits more than one commit: {}", fits.join(", "))]
    AmbiguousRevision {
        /// The revision as typed.
        rev: String,
        /// What it fits, in git's words.
        fits: Vec<String>,
    },
    /// The revision names a file or a folder.
    #[error("{rev:?} names a {kind}, not a commit")]
    NotACommit {
        /// The revision as typed.
        rev: String,
        /// `tree` or `blob`.
        kind: String,
    },
    /// Both ends are the same commit.
    #[error("{old:?} and {new:?} are the same commit ({commit}): nothing lies between them")]
    Identical {
        /// The old end as typed.
        old: String,
        /// The new end as typed.
        new: String,
        /// The commit's hash, shortened.
        commit: String,
    },
    /// The old end is newer than the new one.
    #[error("{new:?} is an ancestor of {old:?}: the two ends are the wrong way round")]
    Swapped {
        /// The old end as typed: the one that is newer.
        old: String,
        /// The new end as typed: the one that is older.
        new: String,
        /// The request looks for a fix.
        fixed: bool,
    },
    /// No commit of the range changes one of the paths.
    #[error("no commit in {range} touches {}", paths.join(" or "))]
    NothingTouches {
        /// The range as it could be typed.
        range: String,
        /// The paths, relative to the root.
        paths: Vec<String>,
    },
    /// A path that cannot be in the repository.
    #[error("path {path:?} does not lie in the repository: it must be relative to its root")]
    PathOutside {
        /// The path.
        path: PathBuf,
    },
    /// A shallow clone lacks commits that the search needs.
    #[error("{rev:?} {}: this clone is shallow, its older history is missing", if *known {
        "has commits above it that are cut off"
    } else {
        "names no commit here"
    })]
    ShallowHides {
        /// The revision as typed.
        rev: String,
        /// The commit itself is there; what leads from it to the new end is not.
        known: bool,
    },
    /// The two ends have nothing in common.
    #[error("{old:?} and {new:?} have no common ancestor")]
    NoCommonAncestor {
        /// The old end as typed.
        old: String,
        /// The new end as typed.
        new: String,
    },
}

/// What the old end is called by a user who looks for a fix, or for a regression.
fn old_word(fixed: bool) -> &'static str {
    if fixed { "bad (old)" } else { "good" }
}

/// The flag that gives the old end.
fn old_flag(fixed: bool) -> &'static str {
    if fixed { "--bad" } else { "--good" }
}

/// As [`old_word`], for the new end.
fn new_word(fixed: bool) -> &'static str {
    if fixed { "good (new)" } else { "bad" }
}

impl HistoryError {
    /// Whether the request was sound but nothing lies between its ends (exit status 6).
    pub fn is_empty_range(&self) -> bool {
        matches!(self, Self::Identical { .. } | Self::NothingTouches { .. })
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotARepository { .. } => {
                "run it in a checkout of the repository to search (`git init` makes a new one)"
                    .into()
            }
            Self::ForeignOwner { remedy, .. } => format!("to trust it, run: {remedy}"),
            Self::NoCheckout { bare: true, .. } => "the repository is bare: make a checkout with \
                `git worktree add ../checkout BRANCH` or `git clone`, and run it there"
                .into(),
            Self::NoCheckout { bare: false, .. } => {
                "change to the top of the checkout, out of `.git`, and run it there".into()
            }
            Self::GitMissing(_) => "install git 2.30 or newer, or add it to PATH".into(),
            Self::Git { .. } | Self::Read(_) => {
                "`git fsck` says whether the repository is sound".into()
            }
            Self::NoCommits { .. } => {
                "commit something, or name a branch that has commits".into()
            }
            Self::NotARange { range } => format!(
                "write {range}..HEAD if {range} is the old end, or use --good REV and --bad REV"
            ),
            Self::ThreeDots { two, .. } => format!(
                "write {two}; where the ends have diverged, the commit where they part is tested too"
            ),
            Self::NoOldEnd { fixed } => {
                format!("give OLD..NEW, or {} REV", old_flag(*fixed))
            }
            Self::TwoNewEnds { fixed, .. } => format!(
                "give one; only the old end ({}) can be given several times",
                old_flag(*fixed)
            ),
            Self::DashRevision { .. } => "name it by its hash, or by its full name as in \
                `refs/heads/-name`; options go before the range or after it, each as a word of its own"
                .into(),
            Self::UnknownRevision { similar, .. } if similar.is_empty() => {
                "`git branch --all` and `git tag` list the names; `git fetch --tags` brings missing ones"
                    .into()
            }
            Self::UnknownRevision { similar, .. } => {
                format!("did you mean {}?", similar.join(" or "))
            }
            Self::AmbiguousRevision { .. } => "give more digits of the hash".into(),
            Self::NotACommit { .. } => {
                "name a commit; --path PATH keeps only the commits that touch a file or folder"
                    .into()
            }
            Self::Identical { .. } => "give an older good end or a newer bad end".into(),
            Self::Swapped { old, new, fixed } => swap_hint(old, new, *fixed),
            Self::NothingTouches { range, .. } => format!(
                "`git log {range} -- PATH` shows what touches a path; without --path every commit counts"
            ),
            Self::PathOutside { .. } => {
                "give a path below the root, without `..`, as `git ls-files` prints it".into()
            }
            Self::ShallowHides { .. } => "fetch the missing history with `git fetch --unshallow`, \
                or more of it with `git fetch --deepen=1000`"
                .into(),
            Self::NoCommonAncestor { .. } => {
                "choose ends on one line of history; `git merge-base A B` finds where two part"
                    .into()
            }
        };
        Some(hint)
    }
}

/// The two things that someone may mean who names the newer commit as the old end.
fn swap_hint(old: &str, new: &str, fixed: bool) -> String {
    if fixed {
        format!(
            "with --fixed the bad end is the older one; for the commit that fixed it: \
             --fixed {new}..{old}; for the one that broke it: {new}..{old}, without --fixed"
        )
    } else {
        format!(
            "for the commit that broke it: {new}..{old}; if {new} is bad and {old} is good, \
             for the one that fixed it: --fixed {new}..{old}"
        )
    }
}
