//! Which failure a log shows: a table of ends and logs, and which failures are the same.

use std::path::Path;

use fbisect::model::SignatureClass::{
    self, Assertion, Build, Checkpoint, Crash, Hang, Import, Loader, Nan, Nccl, Oom, Other,
};
use fbisect::model::{Ended, PrepareStep, Signature};
use fbisect::trials::signature::{read_tail_and_head, same_failure, signature};

/// Class, exception type ("": none) and a part of the frame ("": any).
type Expected = (SignatureClass, &'static str, &'static str);

fn check(what: &str, seen: Option<&Signature>, expected: Expected) {
    let (class, exception, frame) = expected;
    let seen = seen.unwrap_or_else(|| panic!("{what}: no signature"));
    let shown = format!("{what}: {seen:?}");
    assert_eq!(seen.class, class, "{shown}");
    assert_eq!(
        seen.exception.as_deref().unwrap_or(""),
        exception,
        "{shown}"
    );
    assert!(
        seen.frame.as_deref().unwrap_or("").contains(frame),
        "{shown}"
    );
}

fn exited(code: i32) -> Ended {
    Ended::Exited { code }
}

/// Logs with more than a few lines, on standard error, of a repro that exits with 1.
const LOGS: &[(&str, Expected)] = &[
    (
        "nan_floating_point",
        (Nan, "FloatingPointError", "trainer/guards.py:check"),
    ),
    ("nan_anomaly", (Nan, "RuntimeError", "w/train.py:<module>")),
    (
        "nan_warning_then_import",
        (Import, "ImportError", "w/train.py:<module>"),
    ),
    (
        "oom_caught_then_assertion",
        (Assertion, "AssertionError", "w/train.py:main"),
    ),
    (
        "oom_torch",
        (Oom, "torch.OutOfMemoryError", "nets/attention.py:forward"),
    ),
    (
        "oom_jax",
        (
            Oom,
            "jaxlib.xla_extension.XlaRuntimeError",
            "w/fit.py:<module>",
        ),
    ),
    (
        "ranks_value_error_then_nccl",
        (Other, "ValueError", "data/shards.py:read"),
    ),
    (
        "ranks_without_prefix",
        (Other, "KeyError", "engine/step.py:step"),
    ),
    (
        "elastic_inner_traceback",
        (Other, "IndexError", "w/train.py:main"),
    ),
    (
        "spawn_process_raised",
        (Other, "TypeError", "nets/base.py:load"),
    ),
    (
        "chain_context",
        (Other, "w.config.ConfigError", "w/config.py:get"),
    ),
    (
        "loader_caught",
        (Loader, "ValueError", "data/images.py:__getitem__"),
    ),
    (
        "loader_killed",
        (Loader, "RuntimeError", "w/train.py:<module>"),
    ),
    (
        "checkpoint_state_dict",
        (Checkpoint, "RuntimeError", "w/resume.py:<module>"),
    ),
    ("unittest", (Other, "KeyError", "w/trainer.py:resume")),
    (
        "build_extension",
        (Build, "RuntimeError", "w/train.py:<module>"),
    ),
    ("segfault_faulthandler", (Crash, "SIGSEGV", "")),
    (
        "srun_ranks",
        (Assertion, "AssertionError", "w/train.py:<module>"),
    ),
    ("teardown_noise", (Other, "ValueError", "nets/fit.py:fit")),
    ("bitten_by_signal_after_log", (Crash, "SIGSEGV", "")),
];

fn log(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/signatures");
    let text = read_tail_and_head(&folder.join(format!("{name}.log")), 1 << 20);
    assert!(!text.is_empty(), "{name} cannot be read");
    text
}

#[test]
fn whole_logs_show_their_cause() {
    for (name, expected) in LOGS {
        let seen = signature(&exited(1), "step 1 loss 2.3\n", &log(name));
        check(name, seen.as_ref(), *expected);
    }
}

#[test]
fn every_fixture_is_in_a_table() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/signatures");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let used = LOGS.iter().any(|(log, _)| *log == name) || name.starts_with("pytest_");
        assert!(used, "{name} is in no table");
    }
}

#[test]
fn test_reports_on_standard_output_count_first() {
    let noise = "Traceback (most recent call last):\n  File \"x.py\", line 1, in f\nOSError: x\n";
    let seen = signature(&exited(1), &log("pytest_failures"), noise);
    let test = "tests/test_schedule.py::test_warmup_starts";
    check("pytest", seen.as_ref(), (Other, "ZeroDivisionError", test));

    let seen = signature(&exited(2), &log("pytest_collection"), "");
    check(
        "collection",
        seen.as_ref(),
        (Import, "ImportError", "tests/test_kernel.py"),
    );
}

/// Status, standard error, what it shows.
const LINES: &[(i32, &str, Expected)] = &[
    (1, "", (Other, "", "")),
    (
        3,
        "usage: train.py [-h]\ntrain.py: error: bad flag --foo 3\n",
        (Other, "", "bad flag --foo N"),
    ),
    (
        1,
        "checked 12 files, 0 errors\nall done, 0 error(s)\n",
        (Other, "", "N error"),
    ),
    (
        1,
        "step 7 loss 0.5 no nan detected\nbye\n",
        (Other, "", "bye"),
    ),
    (
        1,
        "loss is nan at step 12, giving up\n",
        (Nan, "", "loss is nan at step N"),
    ),
    (1, "Loss is NaN or inf, stopping\n", (Nan, "", "")),
    (
        1,
        "step 8 loss 0.9\nstep 9 loss nan\nstep 10 loss nan\n",
        (Nan, "", ""),
    ),
    (
        1,
        "step 3: nan detected, skipped\nstep 4 loss 1\nstep 5 loss 1\nstep 6 loss 1\ntoo slow\n",
        (Other, "", "too slow"),
    ),
    (
        1,
        "FloatingPointError: overflow encountered in exp\n",
        (Nan, "FloatingPointError", "overflow"),
    ),
    (
        1,
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nAssertionError: loss is nan\n",
        (Nan, "AssertionError", "a.py:<module>"),
    ),
    (
        1,
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nMemoryError\n",
        (Oom, "MemoryError", "a.py:f"),
    ),
    (
        1,
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB\n",
        (Oom, "RuntimeError", "CUDA out of memory"),
    ),
    (
        1,
        "RuntimeError: CUDA error: an illegal memory access was encountered\n",
        (Crash, "RuntimeError", ""),
    ),
    (
        1,
        "RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported\n",
        (Assertion, "RuntimeError", ""),
    ),
    (
        1,
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n",
        (Oom, "std::bad_alloc", ""),
    ),
    (
        134,
        "terminate called after throwing an instance of 'std::out_of_range'\n  what():  vector::_M_range_check: __n (which is 9) >= this->size() (which is 3)\nAborted (core dumped)\n",
        (Crash, "std::out_of_range", "_M_range_check"),
    ),
    (
        134,
        "trainer: src/ring.cc:88: void Ring::push(int): Assertion `n < size' failed.\nAborted\n",
        (Assertion, "", ""),
    ),
    (
        134,
        "double free or corruption (!prev)\nAborted (core dumped)\n",
        (Crash, "SIGABRT", "double free"),
    ),
    (
        101,
        "thread 'main' panicked at src/loader.rs:12:9:\nindex out of bounds: the len is 3 but the index is 7\nnote: run with `RUST_BACKTRACE=1`\n",
        (Crash, "panic", "the len is N but the index is N"),
    ),
    (
        101,
        "thread 'main' panicked at tests/a.rs:3:5:\nassertion `left == right` failed\n  left: 1\n right: 2\n",
        (Assertion, "panic", ""),
    ),
    (
        101,
        "thread 'main' panicked at 'loss is nan', src/main.rs:4:5\n",
        (Nan, "panic", ""),
    ),
    (139, "", (Crash, "SIGSEGV", "")),
    (
        139,
        "./repro.sh: line 4:  1234 Segmentation fault      (core dumped) python3 train.py\n",
        (Crash, "SIGSEGV", ""),
    ),
    (
        1,
        "./repro.sh: line 4:  1234 Segmentation fault      (core dumped) python3 train.py\n",
        (Crash, "SIGSEGV", ""),
    ),
    (
        136,
        "Floating point exception (core dumped)\n",
        (Crash, "SIGFPE", ""),
    ),
    (137, "step 4 loss 2.1\nKilled\n", (Crash, "SIGKILL", "")),
    (
        137,
        "slurmstepd: error: Detected 1 oom_kill event in StepId=9.0. Some of the step tasks have been OOM Killed.\n",
        (Oom, "", ""),
    ),
    (
        143,
        "BrokenPipeError: [Errno 32] Broken pipe\n",
        (Crash, "SIGTERM", ""),
    ),
    (
        137,
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'x'\n",
        (Other, "KeyError", "a.py:f"),
    ),
    (124, "step 4 loss 2.1\n", (Hang, "", "")),
    (
        1,
        "[rank0]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error\n",
        (Nccl, "torch.distributed.DistBackendError", ""),
    ),
    (
        134,
        "[rank1]:[E1101 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5) ran for 600012 milliseconds\nterminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [PG ID 0 Rank 1] Process group watchdog thread terminated: collective operation timeout\n",
        (Nccl, "", ""),
    ),
    (
        1,
        "RuntimeError: NCCL error in: x.cpp:3\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 2 'out of memory'\n",
        (Oom, "RuntimeError", ""),
    ),
    (
        1,
        "RuntimeError: Gloo connectFullMesh failed with timed out\n",
        (Nccl, "RuntimeError", ""),
    ),
    (
        1,
        "ModuleNotFoundError: No module named 'apex'\n",
        (Import, "ModuleNotFoundError", ""),
    ),
    (
        1,
        "python3: symbol lookup error: ./_C.so: undefined symbol: _ZN2at4_ops3addE\n",
        (Import, "", ""),
    ),
    (
        127,
        "./train: error while loading shared libraries: libnccl.so.2: cannot open shared object file: No such file or directory\n",
        (Import, "", ""),
    ),
    (
        1,
        "src/ring.cc:12:5: error: 'foo' was not declared in this scope\n   12 |     foo();\nmake: *** [Makefile:9: ring.o] Error 1\n",
        (Build, "", "error: '..' was not declared"),
    ),
    (
        101,
        "error[E0433]: failed to resolve: use of undeclared type `Foo`\n --> src/main.rs:3:5\nerror: could not compile `x` (bin \"x\") due to 1 previous error\n",
        (Build, "", "failed to resolve"),
    ),
    (
        1,
        "CMake Error at CMakeLists.txt:12 (find_package):\n",
        (Build, "", "CMake Error"),
    ),
    (
        1,
        "nvcc fatal   : Unsupported gpu architecture 'compute_20'\n",
        (Build, "", "nvcc fatal"),
    ),
    (
        1,
        "  File \"train.py\", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax\n",
        (Build, "SyntaxError", "invalid syntax"),
    ),
    (
        1,
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\n",
        (Checkpoint, "RuntimeError", ""),
    ),
    (
        1,
        "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge\n",
        (Checkpoint, "safetensors_rust.SafetensorError", ""),
    ),
    (
        1,
        "FileNotFoundError: [Errno 2] No such file or directory: 'out/checkpoint-500/model.pt'\n",
        (Checkpoint, "FileNotFoundError", ""),
    ),
    (
        1,
        "error: checkpoint step_100.pt not found\n",
        (Checkpoint, "", ""),
    ),
    (
        1,
        "RuntimeError: DataLoader worker (pid 99) is killed by signal: Killed.\n",
        (Loader, "RuntimeError", ""),
    ),
    (
        1,
        "2024-01-01 10:00:00,123 - root - ERROR - training failed: ValueError: bad shape (3, 4)\n",
        (Other, "ValueError", "bad shape (N, N)"),
    ),
    (
        1,
        "subprocess.CalledProcessError: Command '['./bin']' died with <Signals.SIGSEGV: 11>.\n",
        (Crash, "SIGSEGV", "died with"),
    ),
    (
        1,
        "E1101 api.py:869] failed (exitcode: -11) local_rank: 0 (pid: 7) of binary: python\n",
        (Crash, "SIGSEGV", ""),
    ),
    (
        1,
        "zlib.error: Error -3 while decompressing data: invalid block type\n",
        (Other, "zlib.error", ""),
    ),
    (
        1,
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: \n\nPartial traceback\n",
        (Other, "ValueError", "a.py:f"),
    ),
    (
        1,
        "(Trainer pid=77) Traceback (most recent call last):\n(Trainer pid=77)   File \"t.py\", line 5, in fit\n(Trainer pid=77) OSError: [Errno 5] Input/output error\nTraceback (most recent call last):\n  File \"d.py\", line 1, in <module>\nray.exceptions.ActorDiedError: The actor died unexpectedly\n",
        (Other, "OSError", "t.py:fit"),
    ),
];

#[test]
fn short_outputs_show_their_cause() {
    assert!(LINES.len() + LOGS.len() >= 40);
    for (code, text, expected) in LINES {
        check(
            text,
            signature(&exited(*code), "", text).as_ref(),
            *expected,
        );
    }
}

#[test]
fn what_stands_on_standard_output_is_read_too() {
    let seen = signature(&exited(1), "loss=nan at 3\n", "a harmless remark\n");
    check("stdout", seen.as_ref(), (Nan, "", ""));
}

#[test]
fn ends_without_a_failure_of_the_candidate_have_no_signature() {
    let text = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 1\n";
    for ended in [
        exited(0),
        exited(125),
        Ended::Interrupted,
        Ended::Faulted {
            detail: "disk".into(),
        },
        Ended::PrepareFailed {
            step: PrepareStep::Build,
            detail: "exit status 1".into(),
        },
    ] {
        assert_eq!(signature(&ended, text, text), None, "{ended:?}");
    }
}

#[test]
fn a_timeout_is_a_hang_and_a_signal_a_crash() {
    let stopped = Ended::TimedOut { limit_seconds: 3.0 };
    check(
        "timeout",
        signature(&stopped, "", "KeyError: 1\n").as_ref(),
        (Hang, "", ""),
    );
    for (signal, name) in [(11, "SIGSEGV"), (9, "SIGKILL"), (40, "signal 40")] {
        let seen = signature(&Ended::Signalled { signal }, "step 1 loss 2\n", "");
        check(name, seen.as_ref(), (Crash, name, ""));
    }
    let start = Ended::SpawnFailed {
        code: 127,
        error: "No such file or directory".into(),
    };
    check(
        "spawn",
        signature(&start, "", "").as_ref(),
        (Other, "", "No such file"),
    );
}

#[test]
fn the_same_failure_of_two_runs_is_the_same_signature() {
    let run = |step: u32, root: &str| {
        let text = format!(
            "Traceback (most recent call last):\n  File \"{root}/t/a.py\", line {step}, in f\n\
             ValueError: bad value at {step}\n"
        );
        signature(&exited(1), "", &text)
    };
    assert_eq!(run(3, "/tmp/one"), run(17, "/scratch/x/two"));
}

#[test]
fn same_failure_follows_its_table() {
    let sign = |class, exception: &str| Signature {
        class,
        exception: (!exception.is_empty()).then(|| exception.to_owned()),
        frame: None,
    };
    for (a, b, same) in [
        (
            (Oom, "torch.OutOfMemoryError"),
            (Oom, "torch.cuda.OutOfMemoryError"),
            true,
        ),
        ((Oom, "RuntimeError"), (Oom, "torch.OutOfMemoryError"), true),
        ((Oom, "MemoryError"), (Oom, "torch.OutOfMemoryError"), false),
        ((Oom, "RuntimeError"), (Crash, "RuntimeError"), false),
        ((Nan, "FloatingPointError"), (Nan, ""), true),
        ((Nan, "FloatingPointError"), (Nan, "AssertionError"), false),
        ((Nan, "RuntimeError"), (Nan, "FloatingPointError"), false),
        ((Nan, ""), (Import, "ImportError"), false),
        ((Crash, "SIGSEGV"), (Crash, "SIGABRT"), false),
        ((Crash, "SIGSEGV"), (Crash, "SIGSEGV"), true),
        ((Other, ""), (Other, ""), true),
        ((Other, ""), (Other, "KeyError"), false),
        ((Other, ""), (Import, "ImportError"), false),
        ((Other, "a.MyError"), (Other, "b.MyError"), true),
        ((Other, "KeyError"), (Other, "ValueError"), false),
        ((Hang, ""), (Hang, ""), true),
        ((Hang, ""), (Nccl, "DistBackendError"), false),
    ] {
        let (first, second) = (sign(a.0, a.1), sign(b.0, b.1));
        assert_eq!(same_failure(&first, &second), same, "{a:?} {b:?}");
        assert_eq!(same_failure(&second, &first), same, "{b:?} {a:?}");
    }
}

#[test]
fn a_log_full_of_exceptions_is_read_in_reasonable_time() {
    let mut text = "ValueError: x\n".repeat(20_000);
    text.push_str(
        "Traceback (most recent call last):\n"
            .repeat(2_000)
            .as_str(),
    );
    text.push_str("  File \"a.py\", line 1, in f\nKeyError: 'k'\n");
    let started = std::time::Instant::now();
    let seen = signature(&exited(1), &text, &text);
    check("long", seen.as_ref(), (Other, "KeyError", "a.py:f"));
    assert!(started.elapsed().as_secs() < 20);
}
