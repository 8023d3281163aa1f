//! A journal that was cut, as by a power failure, or damaged.

use std::collections::BTreeSet;
use std::fs;

use crate::support::{Bed, in_full, text};

/// Where to cut: after every `step`-th line, and within the line that follows.
fn cuts(journal: &[u8], step: usize) -> Vec<usize> {
    let ends = journal
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b'\n')
        .map(|(at, _)| at + 1);
    let ends: Vec<usize> = ends.collect();
    let within = |at: usize, nth: usize| match nth % 3 {
        0 => at + 1,
        1 => at + 57,
        // All of the line but its end.
        _ => at + journal[at..].iter().position(|b| *b == b'\n').unwrap_or(0),
    };
    let chosen = ends.iter().enumerate().skip(1).step_by(step);
    let mut cuts: Vec<usize> = chosen
        .flat_map(|(nth, at)| [*at, within(*at, nth)])
        .collect();
    cuts.insert(0, ends[0]);
    cuts.retain(|at| *at < journal.len());
    cuts
}

#[test]
fn a_journal_cut_anywhere_leads_to_the_same_answer() {
    let bed = Bed::new(24, 2, |n| match n {
        9 | 10 => "skip",
        14.. => "bad",
        _ => "good",
    });
    bed.repro(
        &crate::support::REPRO
            .replace("sleep 0.03", "")
            .replace("setsid", "#"),
    );
    let output = bed.run(&bed.words(&[], &["./repro.sh"]));
    assert!(output.status.success(), "{output:?}");
    let (answer, whole) = (bed.answer(), bed.journal().finished());
    let file = bed.session().join("events.jsonl");
    let journal = fs::read(&file).unwrap();
    // Uneven, so that the sample meets every kind of line.
    let cuts = cuts(&journal, if in_full() { 1 } else { 7 });
    assert!(
        cuts.len() >= 12,
        "{} cuts of {} bytes",
        cuts.len(),
        journal.len()
    );
    for at in cuts {
        fs::write(&file, &journal[..at]).unwrap();
        fs::remove_file(bed.session().join("result.json")).unwrap();
        fs::remove_file(bed.path("log")).unwrap_or_default();
        let kept = bed.journal().finished();
        let output = bed.run(&["resume"]);
        assert!(output.status.success(), "cut at {at}: {output:?}");
        assert_eq!(bed.answer(), answer, "cut at {at}");
        bed.assert_nothing_left();
        let runs = |trials: &BTreeSet<(u32, String, String)>| {
            trials
                .iter()
                .map(|(_, commit, seed)| (commit.clone(), seed.clone()))
                .collect::<BTreeSet<_>>()
        };
        let lost: BTreeSet<_> = runs(&whole).difference(&runs(&kept)).cloned().collect();
        let again = bed
            .ran()
            .into_iter()
            .map(|(_, commit, seed)| (commit, seed));
        let again: Vec<_> = again.collect();
        assert_eq!(
            again.iter().cloned().collect::<BTreeSet<_>>(),
            lost,
            "run again after a cut at {at}"
        );
        assert_eq!(
            again.len(),
            lost.len(),
            "some ran twice after a cut at {at}"
        );
    }
}

#[test]
fn a_journal_without_a_whole_line_is_an_error_that_says_so() {
    let bed = Bed::new(4, 0, |n| if n >= 2 { "bad" } else { "good" });
    assert!(bed.run(&bed.words(&[], &["./repro.sh"])).status.success());
    let file = bed.session().join("events.jsonl");
    let journal = fs::read(&file).unwrap();
    for kept in [0, 1, 100] {
        fs::write(&file, &journal[..kept]).unwrap();
        for words in [&["resume"][..], &["status"], &["log"]] {
            let output = bed.run(words);
            assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
            let said = text(&output.stderr);
            assert!(
                said.contains("events.jsonl: the journal is empty"),
                "{said}"
            );
        }
    }
}

#[test]
fn a_damaged_line_is_named_by_file_and_number() {
    let bed = Bed::new(8, 0, |n| if n >= 2 { "bad" } else { "good" });
    assert!(bed.run(&bed.words(&[], &["./repro.sh"])).status.success());
    let file = bed.session().join("events.jsonl");
    let journal = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = journal.lines().collect();
    let with_fifth = |new: &str| {
        let mut lines = lines.clone();
        lines[4] = new;
        format!("{}\n", lines.join("\n"))
    };
    let garbled = [
        with_fifth("{\"event\":\"trial_fin"),
        with_fifth("\0\0\0\0\0\0\0\0"),
        with_fifth("{\"event\":\"judged\",\"trial\":99,\"outcome\":\"bad\",\"skip\":null}"),
        with_fifth("{\"event\":\"something\"}"),
        with_fifth(lines[0]),
    ];
    for journal in garbled {
        fs::write(&file, &journal).unwrap();
        for words in [&["resume"][..], &["status"]] {
            let output = bed.run(words);
            assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
            let said = text(&output.stderr);
            assert!(said.contains("events.jsonl:5: "), "{said}");
        }
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            journal,
            "a damaged journal is left alone"
        );
    }
}

#[test]
fn a_journal_of_another_format_is_refused_by_its_number() {
    let bed = Bed::new(4, 0, |n| if n >= 2 { "bad" } else { "good" });
    assert!(bed.run(&bed.words(&[], &["./repro.sh"])).status.success());
    let file = bed.session().join("events.jsonl");
    let journal = fs::read_to_string(&file).unwrap();
    let newer = journal.replacen("\"version\":1", "\"version\":2", 1);
    assert_ne!(newer, journal);
    // Such a format need not have the fields of ours.
    let strange = "{\"event\":\"begun\",\"version\":2,\"fbisect\":\"9.9.9\"}\n".to_owned();
    for (journal, tool) in [(newer, env!("CARGO_PKG_VERSION")), (strange, "9.9.9")] {
        fs::write(&file, &journal).unwrap();
        for words in [&["resume"][..], &["status"], &["log"], &["rerun", "1"]] {
            let output = bed.run(words);
            assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
            let said = text(&output.stderr);
            let wanted =
                format!("format 2 (written by fbisect {tool}); this fbisect reads format 1");
            assert!(said.contains(&wanted), "{said}");
            assert!(!said.contains("damaged"), "{said}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), journal);
    }
}
