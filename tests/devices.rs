//! The GPU probe against drivers that are made for the purpose, in a process of its own.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, too, fail by panicking"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fbisect::executors::devices::{Probe, ProbeError, Visible, divide, probe};

/// The example that prints the answer; cargo builds examples before it runs tests.
fn answering_program() -> PathBuf {
    let target = std::env::current_exe().unwrap();
    let program = target
        .parent()
        .unwrap()
        .with_file_name("examples/probe_gpus");
    assert!(
        program.exists(),
        "run all of `cargo test`, or first `cargo build --examples`"
    );
    program
}

/// A program that answers the probe with a driver compiled with `options`, or with none.
fn machine(dir: &Path, options: &[&str]) -> PathBuf {
    if !options.is_empty() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_gpu/libcuda.c");
        let words = ["-shared", "-fPIC", "-o", "libcuda.so.1"]
            .iter()
            .chain(options);
        let compiled = duct::cmd("cc", words.map(Into::into).chain([source.into_os_string()]))
            .dir(dir)
            .stderr_capture()
            .unchecked()
            .run()
            .unwrap();
        assert!(
            compiled.status.success(),
            "{}",
            String::from_utf8_lossy(&compiled.stderr)
        );
    }
    let script = dir.join("program");
    let text = format!(
        "#!/bin/sh\nunset CUDA_VISIBLE_DEVICES\nLD_LIBRARY_PATH={} exec {} \"$@\"\n",
        dir.display(),
        answering_program().display()
    );
    // Written by another process: a file that this one has held open for writing may be busy.
    duct::cmd("tee", [&script])
        .stdin_bytes(text)
        .stdout_null()
        .run()
        .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script
}

fn probe_with(options: &[&str]) -> Result<Probe, ProbeError> {
    let dir = tempfile::tempdir().unwrap();
    probe(&machine(dir.path(), options))
}

#[test]
fn two_devices_are_described() {
    let Probe::Gpus { driver, gpus } = probe_with(&["-DDEVICES=2"]).unwrap() else {
        panic!("no GPUs");
    };
    assert_eq!(driver, (12, 8));
    assert_eq!(gpus.len(), 2);
    assert_eq!(gpus[1].index, 1);
    assert_eq!(gpus[1].name, "Fake GPU");
    assert_eq!(gpus[1].total_bytes, 80 << 30);
    assert_eq!(gpus[1].capability, (9, 0));
    let uuid = "GPU-a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1";
    assert_eq!(gpus[1].uuid.as_deref(), Some(uuid));
    let visible = Visible::from_probe(&Probe::Gpus { driver, gpus });
    assert_eq!(
        divide(&visible, 2).unwrap(),
        [Some("0".into()), Some("1".into())]
    );
}

#[test]
fn a_driver_without_devices_is_no_gpu() {
    let Probe::None { why } = probe_with(&["-DDEVICES=0"]).unwrap() else {
        panic!("a GPU out of nowhere");
    };
    assert_eq!(why, "the CUDA driver sees no device");
}

#[test]
fn a_missing_function_is_told_by_its_name() {
    let error = probe_with(&["-DDEVICES=1", "-DNO_NAME"]).unwrap_err();
    assert!(matches!(error, ProbeError::Driver(_)));
    assert!(error.to_string().contains("cuDeviceGetName"), "{error}");
}

#[test]
fn a_driver_without_identifiers_still_counts() {
    let Probe::Gpus { gpus, .. } = probe_with(&["-DDEVICES=1", "-DNO_UUID"]).unwrap() else {
        panic!("no GPUs");
    };
    assert_eq!(gpus[0].uuid, None);
}

#[test]
fn a_crashing_driver_only_means_that_it_could_not_be_told() {
    let error = probe_with(&["-DDEVICES=1", "-DCRASH"]).unwrap_err();
    assert!(matches!(error, ProbeError::Child(_)), "{error}");
}

#[test]
fn a_program_that_does_not_exist_is_an_error() {
    let error = probe(Path::new("/nowhere/program")).unwrap_err();
    assert!(matches!(error, ProbeError::Spawn { .. }));
}
