//! From a [`ProcessSpec`] to a running process: environment, signals, and what a failure means.
//!
//! Runs on a thread of its own and blocks there; it does not wait for the command.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use duct::Handle;
use nix::errno::Errno;
use nix::sys::signal::{SigHandler, Signal, signal};

use super::output::Logs;
use super::process_tree::Tree;
use super::{MARK_VARIABLE, ProcessEnd, ProcessIdentity, ProcessSpec, proc_table, program};

/// How long a program file may be held open for writing. Another thread that forks just when we
/// have written a script holds it until its own exec.
const BUSY_PATIENCE: Duration = Duration::from_secs(2);

/// A command that has been started.
pub(super) struct Launched {
    pub(super) tree: Tree,
    pub(super) handle: Handle,
    pub(super) identity: ProcessIdentity,
    pub(super) logs: Logs,
    pub(super) began: Instant,
}

/// Starts the command.
pub(super) fn launch(spec: &ProcessSpec) -> Result<Launched, ProcessEnd> {
    let opened = Logs::open(&spec.stdout, &spec.stderr, spec.output, spec.output_limit);
    let (logs, out, err) = opened.map_err(|error| ProcessEnd::Faulted { error })?;
    if !spec.cwd.is_dir() {
        return Err(ProcessEnd::SpawnFailed {
            code: 127,
            error: format!("the directory {} does not exist", spec.cwd.display()),
        });
    }
    let env = environment(spec);
    let path = env.get(OsStr::new("PATH")).map(OsString::as_os_str);
    let file = program::find(&spec.program, &spec.cwd, path)?;
    let deadline = Instant::now() + BUSY_PATIENCE;
    let mut words = vec![file.clone().into_os_string()];
    words.extend(spec.args.iter().cloned());
    let mut name = spec.program.clone();
    loop {
        let began = Instant::now();
        match start(spec, &words, &name, &env, (&out, &err)) {
            Ok((tree, handle, identity)) => {
                return Ok(Launched {
                    tree,
                    handle,
                    identity,
                    logs,
                    began,
                });
            }
            // A script without a first line that names its interpreter: shells run it themselves.
            Err(error) if is(&error, Errno::ENOEXEC) && words[0] == file => {
                name = "sh".into();
                words.insert(0, "/bin/sh".into());
            }
            Err(error) if is(&error, Errno::ETXTBSY) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(meaning(&error, &file)),
        }
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno as i32)
}

/// Whether the command or the machine is to blame that it did not start.
fn meaning(error: &io::Error, file: &std::path::Path) -> ProcessEnd {
    let text = format!("cannot start {}: {error}", file.display());
    let fault = [
        Errno::EAGAIN,
        Errno::ENOMEM,
        Errno::EMFILE,
        Errno::ENFILE,
        Errno::EIO,
        Errno::ETXTBSY,
    ];
    if fault.iter().any(|errno| is(error, *errno)) {
        return ProcessEnd::Faulted { error: text };
    }
    let missing = is(error, Errno::ENOENT) || is(error, Errno::ENOTDIR);
    ProcessEnd::SpawnFailed {
        code: if missing { 127 } else { 126 },
        error: if missing {
            format!("{text} (is the interpreter that its first line names missing?)")
        } else {
            text
        },
    }
}

fn environment(spec: &ProcessSpec) -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    env.insert("PWD".into(), spec.cwd.clone().into_os_string());
    for (name, value) in &spec.env {
        match value {
            Some(value) => env.insert(name.clone(), value.clone()),
            None => env.remove(name),
        };
    }
    env.insert(MARK_VARIABLE.into(), OsString::from(&spec.mark));
    env
}

fn start(
    spec: &ProcessSpec,
    words: &[OsString],
    name: &OsStr,
    env: &BTreeMap<OsString, OsString>,
    (out, err): (&File, &File),
) -> io::Result<(Tree, Handle, ProcessIdentity)> {
    let name = name.to_owned();
    let expression = duct::cmd(PathBuf::from(&words[0]), &words[1..])
        .full_env(env)
        .dir(&spec.cwd)
        .stdin_null()
        .stdout_file(out.try_clone()?)
        .stderr_file(err.try_clone()?)
        .unchecked()
        .before_spawn(move |command| {
            command.arg0(&name).process_group(0);
            heed_signals(command);
            Ok(())
        });
    Tree::start(&spec.mark, || {
        let handle = expression.start()?;
        let pid = handle.pids().first().copied().unwrap_or_default();
        let pid = i32::try_from(pid).map_err(io::Error::other)?;
        Ok((handle, pid))
    })
}

/// Has the command heed signals that we were started to ignore (`nohup`, a background job).
fn heed_signals(command: &mut Command) {
    let ignored = proc_table::pass_on_ignored();
    if ignored.is_empty() {
        return; // then the quicker way of starting a process can be taken
    }
    let restore = move || {
        for &number in &ignored {
            restore_default(number)?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only calls sigaction, which is async-signal-safe,
    // and allocates nothing.
    unsafe { command.pre_exec(restore) };
}

fn restore_default(number: Signal) -> io::Result<()> {
    // SAFETY: the default disposition runs no code of ours.
    unsafe { signal(number, SigHandler::SigDfl) }?;
    Ok(())
}
