//! The command line: arguments, defaults from `fbisect.toml`, one file a subcommand.
//!
//! This room turns words into a [`Plan`](crate::model::Plan) and an outcome into an exit status.
//! It decides nothing about the search.

pub mod args;
pub mod commits;
pub mod config;
pub mod demo;
pub mod demo_world;
pub mod inspect;
pub mod rerun;
pub mod resume;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::axes::commits::HistoryError;
use crate::error::{Error, Exit, Result};
use crate::reports::console;
use args::{Cli, Sub};

/// Runs the program: parses, acts, prints an error if there is one, and says how it ended.
pub fn main() -> ExitCode {
    // The hidden word that a child of ours gets (see `executors::devices`). It stands outside the
    // parser, so that no flag of ours can change what a crashing driver may take down.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|a| a == "__probe-gpus")
    {
        console::result(&crate::executors::devices::answer_probe());
        return ExitCode::SUCCESS;
    }
    let cli = match parse() {
        Ok(cli) => cli,
        Err(e) => {
            if let Some(error) = range_like_an_option(&e) {
                console::error(&error);
                return ExitCode::from(error.exit as u8);
            }
            // Help and version are results; anything else is a usage error, which is 2 there too.
            let _ = e.print();
            return ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(Exit::Usage as u8));
        }
    };
    let outcome = match cli.sub {
        Sub::Commits(args) => commits::run(*args),
        Sub::Resume(args) => resume::run(&args),
        Sub::Status(args) => inspect::status(&args),
        Sub::Log(args) => inspect::log(&args),
        Sub::Rerun(args) => rerun::run(&args),
        Sub::Demo(args) => demo::run(&args),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            console::error(&error);
            ExitCode::from(error.exit as u8)
        }
    }
}

/// Our own words: those before the repro's.
fn own_words() -> impl Iterator<Item = String> {
    let words = std::env::args_os().skip(1).take_while(|word| word != "--");
    words.map(|word| word.to_string_lossy().into_owned())
}

fn parse() -> std::result::Result<Cli, clap::Error> {
    let mut command = Cli::command();
    if own_words().any(|word| word == "-h") {
        // A screen has no room for headings: they are for --help.
        command = command.mut_subcommand("commits", |commits| {
            commits.mut_args(|arg| arg.help_heading(None::<&str>))
        });
    }
    Cli::from_arg_matches(&command.try_get_matches()?)
}

/// A range whose old end begins with a dash looks like an option to the parser.
fn range_like_an_option(e: &clap::Error) -> Option<Error> {
    let unknown = e.kind() == clap::error::ErrorKind::UnknownArgument;
    let range = own_words().find(|word| word.starts_with('-') && word.contains(".."));
    let rev = range.filter(|_| unknown)?;
    Some(crate::session::history_error(&HistoryError::DashRevision {
        rev,
    }))
}

/// The checkout that the user stands in.
fn here() -> Result<std::path::PathBuf> {
    std::env::current_dir().map_err(|e| {
        Error::failed("the current directory cannot be read")
            .caused_by(e)
            .hint("it may have been removed: `cd` to the repository again")
    })
}
