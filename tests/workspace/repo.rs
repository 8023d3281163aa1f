//! A throw-away repository with a user's checkout, and the folder for workspaces beside it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use fbisect::model::{Clean, CommitId};
use fbisect::trials::workspace::{PinSnapshot, Workspace, WorkspaceRules};
use tempfile::TempDir;

pub(crate) const SESSION: &str = "20260102-030405-7f3a";

pub(crate) struct Repo {
    pub(crate) temp: TempDir,
    pub(crate) root: PathBuf,
}

impl Repo {
    pub(crate) fn new() -> Self {
        let temp = TempDir::new().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap().join("user");
        fs::create_dir(&root).unwrap();
        let repo = Self { temp, root };
        repo.git(&["init", "-q", "-b", "main"]);
        repo
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git_in(&self.root, args)
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        write(&self.root.join(path), content);
    }

    /// Commits everything that lies in the checkout.
    pub(crate) fn commit(&self, message: &str) -> CommitId {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.id("HEAD")
    }

    pub(crate) fn id(&self, revision: &str) -> CommitId {
        CommitId::parse(&self.git(&["rev-parse", revision])).unwrap()
    }

    pub(crate) fn base(&self) -> PathBuf {
        fs::canonicalize(self.temp.path()).unwrap().join("base")
    }

    pub(crate) fn rules(&self) -> WorkspaceRules {
        WorkspaceRules {
            repository_root: self.root.clone(),
            common_dir: self.root.join(".git"),
            base_dir: self.base(),
            session: SESSION.to_owned(),
            clean: Clean::Untracked,
            submodules: false,
            pins: PinSnapshot::default(),
            links: Vec::new(),
            patch: None,
        }
    }

    pub(crate) fn pin(&self, files: &[&str]) -> PinSnapshot {
        let files: Vec<_> = files.iter().map(PathBuf::from).collect();
        PinSnapshot::take(&self.root, &files, &self.temp.path().join("pins")).unwrap()
    }

    /// Every file of the user's checkout and of its git folder.
    pub(crate) fn everything(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        list(&self.root, &self.root, &mut found);
        found
    }

    /// No worktree but the user's, no folder of the session's.
    pub(crate) fn assert_nothing_left(&self) {
        let list = self.git(&["worktree", "list", "--porcelain"]);
        assert_eq!(list.matches("worktree ").count(), 1, "{list}");
        assert!(!self.root.join(".git/worktrees").exists());
        let left = fs::read_dir(self.base()).map_or(0, Iterator::count);
        assert_eq!(left, 0, "folders left in the base");
    }
}

pub(crate) fn workspace(rules: WorkspaceRules, at: &CommitId) -> Workspace {
    Workspace::create(&Arc::new(rules), "slot-0", at).unwrap()
}

pub(crate) fn git_in(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(dir)
        .args(["-c", "user.name=T", "-c", "user.email=t@example.org"])
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

pub(crate) fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path.as_ref()).unwrap_or_else(|e| panic!("{}: {e}", path.as_ref().display()))
}

pub(crate) fn executable(path: &Path, content: &str) {
    write(path, content);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn list(root: &Path, dir: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        let name = path.strip_prefix(root).unwrap().to_path_buf();
        let what = if meta.is_dir() {
            list(root, &path, found);
            "folder".to_owned()
        } else if meta.is_symlink() {
            format!("link to {}", fs::read_link(&path).unwrap().display())
        } else {
            let content = fs::read(&path).unwrap();
            format!("{:o} {}", meta.permissions().mode(), content.escape_ascii())
        };
        found.insert(name, what);
    }
}
