//! Files as objects come and go, and as others meddle with them.

mod commands;
mod crash;
mod drift;
mod ownership;
mod paths;
mod writing;

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use nimbus_agent::{Failure, ObjectKey, Spec as _};
use tempfile::TempDir;

use crate::{
    command::Allowed,
    file::{Content, File},
    handler::{Config, Files, OpenError},
    steps::{Step, Steps},
};

/// A machine of its own for each test.
struct Machine {
    /// Goes away with this value.
    _folder: TempDir,
    root: PathBuf,
    state: PathBuf,
    /// Where nothing may happen.
    outside: PathBuf,
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(File::kind(), "", name).unwrap()
}

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), content: Some(Content::Text(text.to_owned())), ..File::default() }
}

/// A command of the shell, with `{}` as its first argument.
fn shell(script: &str) -> Vec<String> {
    ["/bin/sh", "-c", script, "sh", "{}"].map(str::to_owned).into()
}

/// A reload that can be counted, by lines in a file beside the root.
fn counted_reload() -> Vec<String> {
    ["/bin/sh", "-c", "echo reload >> ../reloads"].map(str::to_owned).into()
}

#[track_caller]
fn expect<T>(result: Result<T, Failure>, code: &str, is_permanent: bool, words: &str) {
    let Err(failure) = result else { panic!("accepted, but expected {code}") };
    assert_eq!((failure.code(), failure.is_permanent()), (code, is_permanent), "{failure:?}");
    assert!(failure.message().contains(words), "expected {words:?} in {failure:?}");
}

// === impl Machine ===

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| {
            fs::create_dir(folder.path().join(name)).unwrap();
            folder.path().join(name).canonicalize().unwrap()
        };
        Self { root: place("root"), outside: place("outside"), state: folder.path().join("state"), _folder: folder }
    }

    /// The machine as it would be if the agent were killed now.
    fn copy(&self) -> Self {
        let copy = Self::new();
        for (from, to) in [(&self.root, &copy.root), (&self.state, &copy.state), (&self.outside, &copy.outside)] {
            fs::create_dir_all(to).unwrap();
            let copied = std::process::Command::new("cp").arg("-aT").args([from, to]).status().unwrap();
            assert!(copied.success());
        }
        let reloads = |machine: &Self| machine.root.parent().unwrap().join("reloads");
        if reloads(self).exists() {
            fs::copy(reloads(self), reloads(&copy)).unwrap();
        }
        copy
    }

    fn try_open(&self, steps: Steps) -> Result<Files, OpenError> {
        let allowed = Allowed::new(["/bin/sh".to_owned()]);
        Files::with_steps(Config { root: self.root.clone(), state: self.state.clone(), allowed }, steps)
    }

    /// An agent that has just started.
    fn start(&self) -> Files {
        self.try_open(Steps::default()).unwrap()
    }

    /// An agent to which something happens at certain moments.
    fn start_with(&self, on: impl Fn(Step) -> io::Result<()> + Send + Sync + 'static) -> Files {
        self.try_open(Steps { on: Some(Arc::new(on)) }).unwrap()
    }

    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.at(path), text).unwrap();
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(0o644)).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// How often the counted reload ran.
    fn reloads(&self) -> usize {
        let text = fs::read_to_string(self.root.parent().unwrap().join("reloads"));
        text.unwrap_or_default().lines().count()
    }

    /// Which file this is, and when it was written.
    fn identity(&self, path: &str) -> (u64, i64, i64) {
        let metadata = fs::symlink_metadata(self.at(path)).unwrap();
        (metadata.ino(), metadata.mtime(), metadata.mtime_nsec())
    }

    /// Everything below the root, directories with a slash at their end.
    fn tree(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.root.clone()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                let path = entry.path();
                let is_directory = entry.file_type().unwrap().is_dir();
                let name = path.strip_prefix(&self.root).unwrap().display().to_string();
                found.push(if is_directory { format!("{name}/") } else { name });
                if is_directory {
                    open.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// How many objects the ledger knows.
    fn pages(&self) -> usize {
        fs::read_dir(self.state.join("files")).unwrap().count()
    }
}
