//! `fbisect commits`: from typed words to a plan, then the session, then the report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::args::{CacheArg, CommitsArgs};
use super::config;
use crate::axes::commits::{self, Repo};
use crate::error::{Error, Exit, Result};
use crate::journal::State;
use crate::model::{CommandSpec, CommitDetails, CommitId, Conclusion, Pins, Plan, SetupSpec};
use crate::reports::{Report, console, json, text};
use crate::session::{self, Closed, Opened, Request, inside};
use crate::trials::workspace::base_dir;

/// Commits whose subjects a report reads, at most.
const SUBJECTS: usize = 400;

/// Runs the subcommand.
///
/// # Errors
/// Everything that keeps the search from starting or from going on.
pub fn run(args: CommitsArgs) -> Result<u8> {
    let cwd = super::here()?;
    let repo = Repo::discover(&cwd).map_err(|e| session::history_error(&e))?;
    let defaults = if args.no_config {
        config::Config::default()
    } else {
        config::read(repo.root())?
    };
    let args = args.with_defaults(defaults, repo.root());
    let json = args.json;
    let request = request(&repo, &cwd, args)?;
    let plan = request.plan.clone();
    let opened = match session::open(repo, request) {
        Ok(opened) => opened,
        Err(e) if e.exit == Exit::EmptyRange && json => {
            // A program that reads the document learns it there too.
            console::error(&e);
            console::result(&json::empty_range(&plan, &e.to_string()).map_err(not_encoded)?);
            return Ok(Exit::EmptyRange as u8);
        }
        Err(e) => return Err(e),
    };
    announce(&opened);
    hunt(opened, json)
}

/// Drives an opened session and reports on it.
///
/// # Errors
/// When the session cannot go on.
pub(super) fn hunt(mut opened: Opened, json: bool) -> Result<u8> {
    crate::executors::prepare_process();
    crate::executors::mark_helpers(&opened.state.session.0);
    let closed = if opened.state.conclusion.is_some() {
        Closed::Concluded
    } else {
        // One thread: it only waits. What blocks goes to threads of its own.
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Error::failed("the runtime cannot be started").caused_by(e))?
            .block_on(session::drive(&mut opened))?
    };
    let report = report(&opened.repo, &opened.state);
    let document = json::document(&report).map_err(not_encoded)?;
    let code = exit(closed, &opened.state);
    if closed == Closed::Concluded {
        write_result(&opened.files.result(), &document)?;
    }
    if json {
        console::result(&document);
        console::say(&text::headline(&opened.state));
    } else {
        console::report(&text::report(&report));
    }
    if closed == Closed::Interrupted {
        console::say(&format!(
            "go on with: fbisect resume {}",
            opened.state.session
        ));
    }
    Ok(code)
}

fn not_encoded(e: serde_json::Error) -> Error {
    Error::failed("the JSON report cannot be made").caused_by(e)
}

fn exit(closed: Closed, state: &State) -> u8 {
    if closed == Closed::Interrupted {
        return Exit::Interrupted as u8;
    }
    let exit = match &state.conclusion {
        Some(Conclusion::Found { .. }) => Exit::Ok,
        Some(Conclusion::BadEndPassed { .. }) => Exit::BadEndPassed,
        Some(Conclusion::GoodEndFailed { .. }) => Exit::GoodEndFailed,
        Some(
            Conclusion::Suspects { .. }
            | Conclusion::Contradictory { .. }
            | Conclusion::MergeBaseFailed { .. }
            | Conclusion::EndUntestable { .. }
            | Conclusion::BudgetSpent { .. },
        ) => Exit::NoCulprit,
        Some(Conclusion::EmptyRange) => Exit::EmptyRange,
        None => Exit::Failed,
    };
    exit as u8
}

/// `result.json`: written beside its place and moved there, so that it is whole or not there.
fn write_result(path: &Path, document: &str) -> Result<()> {
    use std::io::Write as _;
    let folder = path.parent().unwrap_or(path);
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        writeln!(file, "{document}")?;
        file.as_file().sync_all()?;
        file.persist(path).map(drop).map_err(|e| e.error)
    });
    written.map_err(|e| Error::failed(format!("{} cannot be written", path.display())).caused_by(e))
}

fn announce(opened: &Opened) {
    let plan = &opened.state.plan;
    let goods: Vec<&str> = plan.good.iter().map(|(name, _)| name.as_str()).collect();
    console::prose(&format!(
        "fbisect: {} between {} and {}; session {}, seed {}",
        console::count(opened.history.candidates(), "candidate"),
        console::clean(&goods.join(", ")),
        console::clean(&plan.bad.0),
        opened.state.session,
        plan.seed
    ));
    if !plan.pins.files.is_empty() {
        let files: Vec<String> = (plan.pins.files.iter())
            .map(|f| console::clean(&f.to_string_lossy()))
            .collect();
        console::prose(&format!("pinned as they are today: {}", files.join(", ")));
        warn_of_pinned_code(opened);
    }
}

/// A pinned file that changed between the ends may be the test, which is meant to stay the same,
/// or the code under test, which is not.
fn warn_of_pinned_code(opened: &Opened) {
    let plan = &opened.state.plan;
    let Some((_, old)) = plan.good.first() else {
        return;
    };
    let changed = commits::changed_between(&opened.repo, old, &plan.bad.1, &plan.pins.files);
    if !changed.is_empty() {
        let files: Vec<String> = (changed.iter())
            .map(|f| console::clean(&f.to_string_lossy()))
            .collect();
        console::warn(&format!(
            "{} changed between the ends and is pinned: if it is the code under test, give --unpinned",
            files.join(", ")
        ));
    }
}

/// Reads what a report shows of the commits. What cannot be read is left out: the answer is
/// there, and its names are a courtesy.
pub fn report<'a>(repo: &Repo, state: &'a State) -> Report<'a> {
    let culprit = match &state.conclusion {
        Some(Conclusion::Found { commit, .. }) => commits::details(repo, commit).ok(),
        _ => None,
    };
    let warnings = culprit
        .as_ref()
        .map(|c| warnings(repo, state, c))
        .unwrap_or_default();
    Report {
        state,
        warnings,
        subjects: subjects(repo, state),
        culprit,
    }
}

/// Subjects of the commits that a report or a log names.
pub fn subjects(repo: &Repo, state: &State) -> BTreeMap<CommitId, String> {
    let mut wanted: BTreeSet<CommitId> = state
        .finished()
        .map(|t| t.record.spec.commit.clone())
        .collect();
    wanted.insert(state.plan.bad.1.clone());
    wanted.extend(state.plan.good.iter().map(|(_, id)| id.clone()));
    if let Some(Conclusion::Suspects { commits, .. } | Conclusion::BudgetSpent { commits }) =
        &state.conclusion
    {
        wanted.extend(commits.iter().take(50).cloned());
    }
    let wanted: Vec<CommitId> = wanted.into_iter().take(SUBJECTS).collect();
    commits::subjects(repo, &wanted).unwrap_or_default()
}

/// Reasons to doubt that a commit can be the cause although it flips the outcome: nothing that
/// it changes is seen by the trials.
fn warnings(repo: &Repo, state: &State, culprit: &CommitDetails) -> Vec<String> {
    let plan = &state.plan;
    let mut warnings = Vec::new();
    let files: Vec<&PathBuf> = culprit.files.iter().map(|(_, path)| path).collect();
    if files.is_empty() {
        warnings.push(
            "it changes no file against its first parent: look for something outside the repository \
             that changed between the trials"
                .to_owned(),
        );
        return warnings;
    }
    let pinned = |path: &PathBuf| plan.pins.files.contains(path);
    if files.iter().all(|path| pinned(path)) {
        warnings.push(
            "all files that it changes are pinned as they are today, so no trial saw its change"
                .to_owned(),
        );
    }
    let seen = |path: &PathBuf| {
        plan.paths
            .iter()
            .any(|p| path.starts_with(p) || p.as_os_str() == ".")
    };
    if !plan.paths.is_empty() && !files.iter().any(|path| seen(path)) {
        warnings.push("against its first parent it changes nothing under --path".to_owned());
    }
    if files.iter().all(|path| is_prose(path)) {
        warnings.push(
            "it changes only documentation: make sure that the repro is not flaky".to_owned(),
        );
    } else if commits::is_hidden_by_sparse_checkout(repo, &files) {
        warnings.push(
            "the sparse checkout leaves out all files that it changes, so no trial saw its change"
                .to_owned(),
        );
    }
    warnings
}

/// Files that neither a build nor a run reads, in nearly every project.
fn is_prose(path: &Path) -> bool {
    let ends = |ext: &str| {
        path.extension()
            .is_some_and(|e| e.eq_ignore_ascii_case(ext))
    };
    let stem = path.file_stem().map(|s| s.to_string_lossy().to_uppercase());
    let named = stem.is_some_and(|s| {
        [
            "LICENSE",
            "COPYING",
            "AUTHORS",
            "CHANGELOG",
            "CONTRIBUTING",
            "CODEOWNERS",
        ]
        .contains(&s.as_str())
    });
    ["md", "rst", "adoc"].into_iter().any(ends) || named
}

/// The request that the words make.
fn request(repo: &Repo, cwd: &Path, args: CommitsArgs) -> Result<Request> {
    if args.command.is_empty() {
        return Err(Error::usage("no command to run on the commits")
            .hint("write it after `--`: fbisect commits GOOD..BAD -- ./repro.sh")
            .hint("or set `repro` in fbisect.toml at the top of the checkout"));
    }
    if !args.setup_key.is_empty() && args.setup.is_none() {
        return Err(Error::usage(
            "--setup-key without --setup: there is nothing to run again",
        ));
    }
    // The flag takes words up to the next option, so also a range that follows it.
    let range = |path: &PathBuf| {
        path.to_str()
            .filter(|p| p.contains(".."))
            .map(str::to_owned)
    };
    if let (None, Some(range)) = (&args.range, args.setup_key.last().and_then(range)) {
        return Err(
            Error::usage(format!("{range} was read as a file of --setup-key")).hint(format!(
                "write the range first: fbisect commits {range} --setup-key ..."
            )),
        );
    }
    let root = repo.root();
    let paths = |flag: &str, paths: &[PathBuf]| inside(root, cwd, flag, paths);
    let path = paths("--path", &args.path)?;
    let ends = commits::Request {
        range: args.range,
        good: args.good,
        bad: args.bad,
        first_parent: args.first_parent,
        paths: path.clone(),
        fixed: args.fixed,
    };
    let resolved = commits::resolve(repo, &ends).map_err(|e| session::history_error(&e))?;
    let local_fix = args.apply.as_ref().map(|file| {
        std::fs::read_to_string(cwd.join(file)).map_err(|e| {
            Error::usage(format!("--apply {}: cannot be read", file.display())).caused_by(e)
        })
    });
    let workspace_dir = base_dir(args.workspace_dir.as_deref(), &[root, repo.common_dir()])
        .map_err(|e| Error::usage(e.to_string()))?;
    // A command from fbisect.toml is written as seen from the top, like that file.
    let (cwd, prefix) = if args.command_from_file {
        (root.to_owned(), PathBuf::new())
    } else {
        (cwd.to_owned(), repo.prefix().to_owned())
    };
    let plan = Plan {
        repository: root.to_owned(),
        good: resolved.good,
        bad: resolved.bad,
        first_parent: args.first_parent,
        paths: path,
        fixed: args.fixed,
        command: CommandSpec {
            argv: args.command,
            prefix,
        },
        build: args.build,
        setup: match args.setup {
            Some(command) => Some(SetupSpec {
                command,
                key_files: paths("--setup-key", &args.setup_key)?,
            }),
            None => None,
        },
        patch: local_fix.transpose()?,
        pins: Pins {
            files: paths("--pin", &args.pin)?,
            links: paths("--link", &args.link)?,
        },
        clean: args.clean.map(Into::into).unwrap_or_default(),
        submodules: args.submodules,
        jobs: usize::from(args.jobs.unwrap_or(1)),
        timeout_seconds: args.timeout.map(|t| t.as_secs_f64()),
        on_timeout: args.on_timeout.map(Into::into).unwrap_or_default(),
        max_trials: args.max_trials,
        max_seconds: args.max_time.map(|t| t.as_secs_f64()),
        seed: args.seed.unwrap_or_else(random_seed),
        deterministic: args.deterministic,
        any_failure: args.any_failure,
        workspace_dir,
        allow_editable: args.allow_editable,
        cold_caches: args.cache != Some(CacheArg::Own),
        grace_seconds: args.grace.map_or(10.0, |t| t.as_secs_f64()),
        output_limit: u64::from(args.output_limit.unwrap_or(64)) * 1024 * 1024,
    };
    Ok(Request {
        plan,
        cwd,
        unpinned: args.unpinned,
    })
}

/// A seed that is short enough to type again.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    // The standard library seeds this from the system's random source.
    let random = std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish();
    random >> 32
}
