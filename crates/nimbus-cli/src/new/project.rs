//! A project to begin with: its files, and how they come into a folder.

#[cfg(test)]
mod tests;

use std::{fs, io, path::Path};

use crate::{
    failure::Failure,
    new::{CrateName, KindName, Source},
};

/// A project to begin with.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) name: CrateName,
    pub(crate) kind: KindName,
    pub(crate) source: Source,
}

/// The files of a project. Where there is `{{WORD}}`, in a path or a text, comes what belongs there.
const FILES: [(&str, &str); 13] = [
    (".gitignore", include_str!("template/gitignore.in")),
    ("Cargo.toml", include_str!("template/Cargo.toml.in")),
    ("README.md", include_str!("template/README.md.in")),
    ("build.rs", include_str!("template/build.rs.in")),
    ("proto/{{PROTO_FILE}}", include_str!("template/kind.proto.in")),
    // A build has no bus to ask for it.
    ("proto/nimbus/v1/options.proto", nimbus_wire::v1::OPTIONS_PROTO),
    ("src/bin/agent.rs", include_str!("template/agent.rs.in")),
    ("src/bin/controller.rs", include_str!("template/controller.rs.in")),
    ("src/handler.rs", include_str!("template/handler.rs.in")),
    ("src/kinds.rs", include_str!("template/kinds.rs.in")),
    ("src/lib.rs", include_str!("template/lib.rs.in")),
    ("src/reactor.rs", include_str!("template/reactor.rs.in")),
    ("tests/story.rs", include_str!("template/story.rs.in")),
];

/// What is printed when it is done.
const NEXT_STEPS: &str = include_str!("template/next_steps.in");

// === impl Project ===

impl Project {
    /// Writes all files into a folder, which is new or empty. If that fails, a folder that was new is gone again.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let is_new = match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
            Ok(true) => {
                return Err(Failure::from(format!("{} is there already, and not empty", folder.display()))
                    .hint("choose another name, or move it out of the way"));
            }
            Ok(false) => false,
            // A file, or a link that leads nowhere.
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied && fs::symlink_metadata(folder).is_ok() => {
                return Err(Failure::from(format!("{} is there already, and no folder", folder.display()))
                    .hint("choose another name, or move it out of the way"));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(cannot_write(folder, &error)),
        };
        for (path, text) in self.files() {
            let path = folder.join(path);
            let parent = path.parent().unwrap_or(folder);
            if let Err(error) = fs::create_dir_all(parent).and_then(|()| fs::write(&path, text)) {
                if is_new {
                    // If this fails as well, then for the same reason, which is about to be said.
                    drop(fs::remove_dir_all(folder));
                }
                return Err(cannot_write(&path, &error));
            }
        }
        Ok(())
    }

    /// What can be done with it, once it is in that folder.
    pub(crate) fn next_steps(&self, folder: &Path) -> String {
        let folder = folder.display().to_string();
        self.filled(NEXT_STEPS)
            .replace("{{FOLDER}}", &folder)
            .replace("{{WORD}}", &shell_word(&folder))
    }

    /// Paths and texts.
    fn files(&self) -> impl Iterator<Item = (String, String)> {
        FILES.iter().map(|(path, text)| (self.filled(path), self.filled(text)))
    }

    fn filled(&self, text: &str) -> String {
        let Self { name, kind, source } = self;
        let words = [
            ("NAME", name.as_str().to_owned()),
            ("CRATE", name.identifier()),
            ("PACKAGE", kind.package().to_owned()),
            ("KIND", kind.message().to_owned()),
            ("SHORT", kind.short()),
            ("PROTO_FILE", kind.proto_file()),
            ("CTKIT", source.dependency("ctkit")),
            ("NIMBUS_AGENT", source.dependency("nimbus-agent")),
            ("NIMBUS_TESTKIT", source.dependency("nimbus-testkit")),
        ];
        words
            .iter()
            .fold(text.to_owned(), |text, (word, value)| text.replace(&format!("{{{{{word}}}}}"), value))
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::from(format!("cannot write {}: {error}", path.display())).hint("may this user write there?")
}

/// As a shell reads it.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
