//! Editable installs in real virtual environments, written as pip, setuptools and uv write them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use fbisect::trials::editable::{EditableError, LeadsBack, check};
use tempfile::TempDir;

/// A user's checkout, a workspace and an environment outside both.
struct World {
    _temp: TempDir,
    user: PathBuf,
    workspace: PathBuf,
    env: PathBuf,
}

/// Names with values.
type Variables<'a> = &'a [(&'a str, &'a str)];

impl World {
    fn new() -> Self {
        let temp = TempDir::new().unwrap();
        let top = fs::canonicalize(temp.path()).unwrap();
        for name in ["user/src/pkg", "workspace/src/pkg"] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        make_env(&top.join("env"));
        Self {
            user: top.join("user"),
            workspace: top.join("workspace"),
            env: top.join("env"),
            _temp: temp,
        }
    }

    fn python(&self) -> String {
        self.env.join("bin/python").display().to_string()
    }

    fn site(&self) -> PathBuf {
        site_of(&self.env)
    }

    fn install(&self, name: &str, content: &str) -> PathBuf {
        let file = self.site().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
        file
    }

    fn check(&self, argv: &[&str]) -> Result<(), EditableError> {
        self.check_with(argv, &[])
    }

    /// With nothing of this machine's in the environment but what the system needs.
    fn check_with(&self, argv: &[&str], more: Variables<'_>) -> Result<(), EditableError> {
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        let plain = [
            ("PATH", "/usr/bin:/bin"),
            ("VIRTUAL_ENV", ""),
            ("PYTHONPATH", ""),
        ];
        let env: Vec<(String, String)> = plain
            .iter()
            .chain(more)
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        check(&self.workspace, &self.user, &argv, &env)
    }

    fn script(&self, name: &str, text: &str) -> String {
        let path = self.workspace.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }
}

fn make_env(at: &Path) {
    let made = Command::new("python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(at)
        .status()
        .unwrap();
    assert!(made.success());
}

fn site_of(env: &Path) -> PathBuf {
    let lib = fs::read_dir(env.join("lib")).unwrap().next().unwrap();
    lib.unwrap().path().join("site-packages")
}

#[test]
fn an_environment_without_editable_installs_passes() {
    let world = World::new();
    world.install("ok.pth", "# a comment\n\n/usr/lib\nimport os\n");
    world.install(
        "x-1.dist-info/direct_url.json",
        r#"{"url": "https://e.example/x.zip"}"#,
    );
    // Built from the checkout, but copied: not editable.
    let url = format!(
        r#"{{"url": "file://{}", "dir_info": {{}}}}"#,
        world.user.display()
    );
    world.install("y-1.dist-info/direct_url.json", &url);
    assert_eq!(world.check(&[&world.python(), "train.py"]), Ok(()));
}

#[test]
fn a_path_line_is_found_with_its_line_and_remedies() {
    let world = World::new();
    let text = format!(
        "# made by an installer\n{}\n",
        world.user.join("src").display()
    );
    let file = world.install("__editable__.pkg-0.1.pth", &text);
    let error = world.check(&[&world.python(), "train.py"]).unwrap_err();
    assert_eq!(error.interpreter, Path::new(&world.python()));
    assert_eq!(error.path, world.user.join("src"));
    let line = Some(2);
    assert_eq!(
        error.source_of,
        LeadsBack::File {
            file: file.clone(),
            line
        }
    );
    assert!(
        error.to_string().contains(&format!("{}:2", file.display())),
        "{error}"
    );
    let hints = error.hints.join("\n");
    for remedy in [
        "PYTHONPATH={workspace}/src",
        "--setup",
        "--allow-editable",
        "uninstall",
    ] {
        assert!(hints.contains(remedy), "{remedy}: {hints}");
    }
}

#[test]
fn a_path_into_another_folder_of_like_name_is_not_ours() {
    let world = World::new();
    let beside = world.user.with_file_name("user-2");
    fs::create_dir(&beside).unwrap();
    world.install("other.pth", &format!("{}\n", beside.display()));
    assert_eq!(world.check(&[&world.python()]), Ok(()));
}

#[test]
fn a_path_that_reaches_the_checkout_by_a_link_is_found() {
    let world = World::new();
    let link = world.user.with_file_name("home");
    symlink(&world.user, &link).unwrap();
    world.install(
        "easy-install.pth",
        &format!("{}\n", link.join("src").display()),
    );
    let error = world.check(&[&world.python()]).unwrap_err();
    assert_eq!(error.path, world.user.join("src"));
}

#[test]
fn a_finder_of_setuptools_is_found_in_its_module() {
    let world = World::new();
    let pth = "import __editable___pkg_0_1_finder; __editable___pkg_0_1_finder.install()";
    world.install("__editable__.pkg-0.1.pth", pth);
    let finder = format!(
        "from __future__ import annotations\nMAPPING: dict[str, str] = {{'pkg': '{}'}}\n",
        world.user.join("src/pkg").display()
    );
    let file = world.install("__editable___pkg_0_1_finder.py", &finder);
    let error = world.check(&[&world.python()]).unwrap_err();
    assert_eq!(
        error.source_of,
        LeadsBack::File {
            file,
            line: Some(2)
        }
    );
    assert_eq!(error.path, world.user.join("src/pkg"));
}

#[test]
fn egg_links_and_editable_direct_urls_are_found() {
    let world = World::new();
    let link = world.install("pkg.egg-link", &format!("{}\n.\n", world.user.display()));
    let error = world.check(&[&world.python()]).unwrap_err();
    assert!(matches!(
        error.source_of,
        LeadsBack::File { line: Some(1), .. }
    ));
    fs::remove_file(link).unwrap();

    let spaced = world.user.join("a b");
    fs::create_dir(&spaced).unwrap();
    let url = spaced.display().to_string().replace(' ', "%20");
    let json = format!(r#"{{"dir_info": {{"editable": true}}, "url": "file://{url}"}}"#);
    let file = world.install("pkg-0.1.dist-info/direct_url.json", &json);
    let error = world.check(&[&world.python()]).unwrap_err();
    assert_eq!(error.source_of, LeadsBack::File { file, line: None });
    assert_eq!(error.path, spaced);
}

#[test]
fn an_environment_in_the_checkout_may_hold_its_own_packages() {
    let world = World::new();
    let inner = world.user.join(".venv");
    make_env(&inner);
    let own = site_of(&inner).join("own");
    fs::create_dir(&own).unwrap();
    fs::write(site_of(&inner).join("own.pth"), "own\n").unwrap();
    let python = inner.join("bin/python").display().to_string();
    assert_eq!(world.check(&[&python, "x.py"]), Ok(()));
    fs::write(
        site_of(&inner).join("back.pth"),
        format!("{}\n", world.user.display()),
    )
    .unwrap();
    assert!(world.check(&[&python, "x.py"]).is_err());
}

#[test]
fn every_way_to_reach_a_python_is_followed() {
    let world = World::new();
    world.install("back.pth", &format!("{}\n", world.user.display()));
    let (python, env) = (world.python(), world.env.display().to_string());
    let bin = format!("{env}/bin:/usr/bin:/bin");
    let on_path = [("PATH", bin.as_str())];
    let active = [("VIRTUAL_ENV", env.as_str())];
    fs::write(world.env.join("bin/tool"), format!("#!{python}\n")).unwrap();
    fs::write(
        world.env.join("bin/torchrun"),
        format!("#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n"),
    )
    .unwrap();
    for tool in ["tool", "torchrun"] {
        let path = world.env.join("bin").join(tool);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let names = world.script(
        "names.sh",
        &format!("#!/bin/bash\nset -e\nexec {python} train.py\n"),
    );
    let sources = world.script(
        "sources.sh",
        &format!("source {env}/bin/activate\npython t.py\n"),
    );
    let sets = world.script(
        "sets.sh",
        &format!("#!/bin/sh\nexport VIRTUAL_ENV='{env}'\n"),
    );
    let home = world.script("home.sh", "#!/bin/sh\n. \"$HOME/env/bin/activate\"\n");
    let plain = world.script("plain.sh", "#!/usr/bin/env bash\npython train.py\n");
    let text = format!("cd x && {python} t.py");
    let top = world.env.parent().unwrap().display().to_string();

    let cases: [(&[&str], Variables<'_>); 15] = [
        (&[&python, "t.py"], &[]),
        (&["env", "A=b", "timeout", "-k", "5", "60", &python], &[]),
        (&["python", "t.py"], &on_path),
        (&["tool"], &on_path),
        (&["torchrun", "--nproc=2", "t.py"], &on_path),
        (&[&names], &[]),
        (&["bash", "-e", "names.sh"], &[]),
        (&["./names.sh"], &[]),
        (&[&sources], &[]),
        (&[&sets], &[]),
        (&[&home], &[("HOME", &top)]),
        (&["bash", "-c", &text], &[]),
        (&[&plain], &on_path),
        (&[&plain], &active),
        (&["uv", "run", "t.py"], &active),
    ];
    for (argv, more) in cases {
        let found = world.check_with(argv, more);
        assert!(found.is_err(), "{argv:?} {more:?}");
    }
    // The same commands with nothing that leads to that environment.
    for argv in [
        &["python3", "t.py"][..],
        &[&plain],
        &["true"],
        &["no-such-program"],
    ] {
        assert_eq!(world.check(argv), Ok(()), "{argv:?}");
    }
}

#[test]
fn uv_takes_the_workspaces_environment() {
    let world = World::new();
    let own = world.workspace.join(".venv");
    make_env(&own);
    assert_eq!(world.check(&["uv", "run", "t.py"]), Ok(()));
    fs::write(
        site_of(&own).join("back.pth"),
        format!("{}\n", world.user.display()),
    )
    .unwrap();
    assert!(world.check(&["uv", "run", "t.py"]).is_err());
}

#[test]
fn an_install_of_the_workspace_itself_passes() {
    let world = World::new();
    world.install(
        "ws.pth",
        &format!("{}\n", world.workspace.join("src").display()),
    );
    assert_eq!(world.check(&[&world.python(), "t.py"]), Ok(()));
}

#[test]
fn a_python_path_into_the_checkout_is_found_unless_the_command_sets_its_own() {
    let world = World::new();
    let src = world.user.join("src").display().to_string();
    let given = [("PYTHONPATH", src.as_str())];
    let error = world
        .check_with(&[&world.python(), "t.py"], &given)
        .unwrap_err();
    assert_eq!(error.source_of, LeadsBack::PythonPath);
    assert!(
        error.hints[0].contains("env PYTHONPATH={workspace}/src"),
        "{:?}",
        error.hints
    );
    let own = format!("PYTHONPATH={}", world.workspace.join("src").display());
    let argv = ["env", &own, &world.python(), "t.py"];
    assert_eq!(world.check_with(&argv, &given), Ok(()));
}

#[test]
fn a_python_that_does_not_answer_is_let_pass() {
    let world = World::new();
    let silent = world.script("python3", "#!/bin/sh\nexit 1\n");
    assert_eq!(world.check(&[&silent, "t.py"]), Ok(()));
}
