//! A history as long as a large project's.

use std::fmt::Write as _;

use super::bed::{Bed, candidate_ids, git_in, range, touching};

const COMMITS: usize = 50_000;

/// A main line that changes one of seven folders at each commit; every hundredth commit merges a
/// branch of one commit that forked thirty commits earlier and changed another folder.
fn stream() -> String {
    let mut out = String::new();
    let mut commit = |mark: usize, parents: &[usize], path: &str| {
        // Clocks that differ by up to ten minutes, where commits are a minute apart.
        let time = 1_600_000_000 + 60 * (mark % 100_000) + mark * 37 % 600;
        write!(
            out,
            "commit refs/heads/main\nmark :{mark}\ncommitter S <s@example.com> {time} +0000\ndata 0\n"
        )
        .unwrap();
        for (nth, parent) in parents.iter().enumerate() {
            let word = if nth == 0 { "from" } else { "merge" };
            writeln!(out, "{word} :{parent}").unwrap();
        }
        write!(out, "M 644 inline {path}\ndata 6\n{:06}\n", mark % 100_000).unwrap();
    };
    commit(1, &[], "d1/f");
    for n in 2..=COMMITS {
        if n % 100 == 50 {
            // The side commit and the merge write the same content.
            commit(100_000 + n, &[n - 30], "side/s");
            commit(n, &[n - 1, 100_000 + n], "side/s");
        } else {
            commit(n, &[n - 1], &format!("d{}/f", n % 7));
        }
    }
    out.push_str("reset refs/tags/start\nfrom :1\n\n");
    out
}

#[test]
fn fifty_thousand_commits() {
    let dir = tempfile::tempdir().unwrap();
    git_in(dir.path(), &["init", "-q", "-b", "main"], b"");
    let bed = Bed::import(dir, &stream());
    let history = bed.load(&range("start..main")).unwrap();
    let expected = bed.rev_list(&["start..main"]);
    assert_eq!(expected.len(), COMMITS - 1 + COMMITS / 100);
    assert_eq!(history.candidates(), expected.len());
    assert_eq!(candidate_ids(&history), expected);

    // A good end in the middle leaves branches that forked before it.
    let middle = "main~25060..main";
    let expected = bed.rev_list(&[middle]);
    assert_eq!(candidate_ids(&bed.load(&range(middle)).unwrap()), expected);

    let folder = bed.load(&touching("start..main", &["d3"])).unwrap();
    let own = (2..=COMMITS)
        .filter(|n| n % 7 == 3 && n % 100 != 50)
        .count();
    assert_eq!(folder.candidates(), own);
    // Merges take the side branch's content.
    let side = bed.load(&touching("start..main", &["side/s"])).unwrap();
    assert_eq!(side.candidates(), COMMITS / 100);
}
