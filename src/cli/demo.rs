//! `fbisect demo`: a throw-away repository with a planted bug, found before the user's eyes.

use std::path::Path;

use super::args::DemoArgs;
use super::demo_world;
use crate::error::{Error, Result};
use crate::reports::console;

/// What is typed on the demo's repository, after the program's name.
const SEARCH: [&str; 6] = [
    "commits",
    "v0.1..main",
    "--build",
    "./build.sh",
    "--",
    "./repro.sh",
];

/// Runs the subcommand: builds the repository, then this very program on it, as a user would.
///
/// # Errors
/// When the repository cannot be made or the program cannot be started.
pub fn run(args: &DemoArgs) -> Result<u8> {
    let temporary = tempfile::Builder::new()
        .prefix("fbisect-demo-")
        .tempdir()
        .map_err(|e| Error::failed("no folder for the demo's repository").caused_by(e))?;
    let folder = match &args.keep {
        Some(Some(folder)) => folder.clone(),
        Some(None) | None => temporary.path().join("tinynn"),
    };
    let world = demo_world::build(&folder)
        .map_err(|e| Error::failed("the demo's repository cannot be made").caused_by(e))?;
    console::prose(&format!(
        "made a repository with {} ({}, {} that do not build) around a small training loop: {}",
        console::count(world.commits, "commit"),
        console::count(world.merges, "merge"),
        world.unbuildable.len(),
        world.root.display()
    ));
    console::prose(
        "at v0.1 it trains; at main its loss goes NaN. Looking for the commit that did it:\n",
    );
    let mut words: Vec<String> = SEARCH.iter().map(|w| (*w).to_owned()).collect();
    if args.jobs > 1 {
        words.splice(2..2, ["--jobs".to_owned(), args.jobs.to_string()]);
    }
    console::say(&format!(
        "$ cd {}\n$ fbisect {}\n",
        shell_words::quote(&world.root.to_string_lossy()),
        shell_words::join(&words)
    ));
    let code = search(&world.root, &words)?;
    if args.keep.is_some() {
        let root = if args.keep == Some(None) {
            temporary.keep().join("tinynn")
        } else {
            world.root
        };
        console::say(&format!(
            "\nthe repository stays in {}; the same by hand:\n\n  cd {} && {} {}",
            root.display(),
            shell_words::quote(&root.to_string_lossy()),
            program(),
            shell_words::join(&words)
        ));
    } else {
        console::prose(
            "\nthe repository has been removed; `fbisect demo --keep` leaves it, to type the command by hand",
        );
    }
    Ok(code)
}

/// This program as it can be typed: `fbisect` when that is what PATH finds, else its path.
fn program() -> String {
    let typed = std::env::args_os()
        .next()
        .unwrap_or_else(|| "fbisect".into());
    let typed = Path::new(&typed);
    if typed.components().count() == 1 {
        return "fbisect".to_owned();
    }
    let full = std::env::current_exe().unwrap_or_else(|_| typed.to_owned());
    shell_words::quote(&full.to_string_lossy()).into_owned()
}

fn search(root: &Path, words: &[String]) -> Result<u8> {
    let started = std::env::current_exe().and_then(|exe| {
        // The same terminal and the same process group: Ctrl-C reaches it as if it was typed.
        duct::cmd(exe, words).dir(root).unchecked().run()
    });
    let output = started.map_err(|e| Error::failed("fbisect cannot start itself").caused_by(e))?;
    Ok(output
        .status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1))
}
