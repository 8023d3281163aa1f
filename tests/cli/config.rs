//! `fbisect.toml`: defaults, and which wins.

use std::fmt::Write as _;

use crate::support::{Bed, EXIT_CODE};

const REPRO: &str = "repro = \"sh -c 'exit $(cat code)'\"\n";

#[test]
fn a_repro_and_options_from_the_file() {
    let bed = Bed::broken_from(5, 9);
    bed.write(
        "fbisect.toml",
        &format!("{REPRO}seed = 7\ndeterministic = true\n"),
    );
    let document = bed.run(&["commits", "c0..c8", "--json"]).exits(0).json();
    assert_eq!(bed.named(&document), "c5");
    assert_eq!(document["seed"], 7);
    assert_eq!(document["command"], serde_json::json!(EXIT_CODE));
    // log2(8) + 2: no confirmation.
    assert_eq!(document["trials"], 5);
}

#[test]
fn a_flag_wins() {
    let bed = Bed::broken_from(5, 9);
    bed.write(
        "fbisect.toml",
        "repro = \"false\"\nseed = 7\nmax_trials = 1\nbuild = \"exit 1\"\n",
    );
    let options = [
        "commits",
        "c0..c8",
        "--json",
        "--seed",
        "3",
        "--max-trials",
        "50",
        "--build",
        "true",
        "--",
    ];
    let document = bed
        .run(&[&options[..], &EXIT_CODE].concat())
        .exits(0)
        .json();
    assert_eq!(bed.named(&document), "c5");
    assert_eq!(document["seed"], 3);
}

#[test]
fn no_config_leaves_the_file_unread() {
    let bed = Bed::broken_from(5, 9);
    bed.write("fbisect.toml", "deterministic = true\nno such thing\n");
    let _ = bed.commits(&["c0..c8"], &EXIT_CODE).exits(2);
    let document = bed.document(0, &["c0..c8", "--no-config"], &EXIT_CODE);
    // Both ends, three cuts, and the culprit and its parent again.
    assert_eq!(document["trials"], 7);
    let _ = bed.run(&["commits", "c0..c8", "--no-config"]).exits(2);
}

#[test]
fn every_key_does_what_its_flag_does() {
    let bed = Bed::line(9, |i| format!("code={} lib/a={}", u8::from(i >= 4), i / 2));
    bed.write("data/x", "1");
    bed.write("limit", "0");
    bed.write(
        "fbisect.toml",
        "repro = ['sh', '-c', 'test -e data/x && test -e limit && test -e setup && test -e built || exit 3; exit $(cat code)']\n\
         build = 'test -e setup && touch built'\nsetup = 'touch setup; echo setup >> $LOG'\nsetup_key = 'lib/a'\n\
         pin = ['limit']\nlink = 'data'\npath = 'lib'\nfirst_parent = true\nclean = 'none'\nsubmodules = false\n\
         jobs = 1\ntimeout = '1m'\non_timeout = 'skip'\ngrace = 2\nany_failure = true\ncache = 'own'\n\
         output_limit = 1\nseed = 5\nmax_time = '1h'\nunpinned = false\nallow_editable = true\n",
    );
    let document = bed.run(&["commits", "c0..c8", "--json"]).exits(0).json();
    assert_eq!(bed.named(&document), "c4");
    // c2 c4 c6 c8
    assert_eq!(document["candidates"], 4);
}

#[test]
fn a_command_in_the_file_is_relative_to_the_top() {
    let bed = Bed::line(9, |i| format!("sub/code={}", u8::from(i >= 5)));
    bed.write("fbisect.toml", "repro = './tools/check.sh'\n");
    bed.script("tools/check.sh", "#!/bin/sh\nexit $(cat sub/code)\n");
    let ran = bed.run_in(&bed.root().join("sub"), &["commits", "c0..c8", "--json"]);
    assert_eq!(bed.named(&ran.exits(0).json()), "c5");
}

#[test]
fn mistakes_name_the_line() {
    let bed = Bed::broken_from(5, 9);
    let mut all = String::new();
    for text in [
        "seed = 1\n\ntiemout = \"10m\"\n",
        "timeout = \"soon\"\n",
        "seed = 1\njobs = 0\n",
        "max_trials = 0\n",
        "seed = -1\n",
        "repro = 5\n",
        "json = true\n",
        "repro = \"./a\n",
        "[commits]\nrepro = \"./a\"\n",
        "output_limit = 65537\n",
        "grace = 0\n",
    ] {
        bed.write("fbisect.toml", text);
        let ran = bed.run(&["commits", "c0..c8", "--", "true"]).exits(2);
        writeln!(all, "{text}{}", ran.err).unwrap();
    }
    insta::assert_snapshot!(bed.tidy(&all));
}
