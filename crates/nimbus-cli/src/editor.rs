//! A text in the user's editor.

use std::{
    env,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
    process::Command,
};

use tokio::signal::unix::{SignalKind, signal};

use crate::{
    document::Complaint,
    failure::{Exit, Failure},
};

/// A file that is being edited. Nobody else may read it: secrets may be written into it.
pub(crate) struct Editor {
    name: String,
    file: PathBuf,
    /// What was there at first.
    first: String,
    /// What was there when the editor was last opened.
    last: String,
    hint: &'static str,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Draft {
    Unchanged,
    /// Without the comments at the top.
    Changed(String),
}

const SECRETS: &str = "# <secret 1> and the like stand for secrets: leave them, and the secrets stay as they are.\n";

// === impl Editor ===

impl Editor {
    /// Writes the text to a file.
    pub(crate) fn open(name: &str, text: &str, no_secrets: bool) -> Result<Self, Failure> {
        let safe: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
            .collect();
        let safe: String = safe.chars().take(100).collect();
        let file = env::temp_dir().join(format!("nimbus-{safe}-{:08x}.yaml", rand::random::<u32>()));
        let hint = if no_secrets { "" } else { SECRETS };
        let editor = Self { name: name.to_owned(), file, first: text.to_owned(), last: text.to_owned(), hint };
        let head = format!(
            "# {} as it should be. If nothing is changed, or all is removed, nothing happens.\n{hint}",
            editor.name
        );
        let options = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&editor.file);
        options
            .and_then(|mut file| file.write_all(format!("{head}{text}").as_bytes()))
            .map_err(|error| editor.trouble(&error))?;
        Ok(editor)
    }

    /// Opens the editor, and waits until it is closed.
    pub(crate) async fn edit(&mut self) -> Result<Draft, Failure> {
        let program = ["VISUAL", "EDITOR"].into_iter().filter_map(|name| env::var(name).ok());
        let program = program.into_iter().find(|program| !program.trim().is_empty());
        let program = program.unwrap_or_else(|| "vi".to_owned());
        // An interrupt is for the editor; without somebody who listens, it would end this process, too.
        let _listens = signal(SignalKind::interrupt());
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{program} \"$1\"")).arg("sh").arg(&self.file);
        let ended = tokio::task::spawn_blocking(move || command.status()).await;
        let ended = ended.expect("nothing in it panics").map_err(|error| self.trouble(&error))?;
        let text = fs::read_to_string(&self.file).map_err(|error| self.trouble(&error))?;
        let body = body(&text);
        if !ended.success() {
            let message = format!("the editor `{program}` failed ({ended}); nothing was changed");
            let failure = Failure::new(Exit::Failed, message).hint("EDITOR names another one");
            if body != self.first {
                return Err(self.kept(failure));
            }
            self.remove();
            return Err(failure);
        }
        if body.trim().is_empty() || body == self.first {
            self.remove();
            return Ok(Draft::Unchanged);
        }
        if self.last != self.first && body == self.last {
            let failure = Failure::new(
                Exit::Invalid,
                format!("{}: nothing was changed, because it is still not valid", self.name),
            );
            return Err(self.kept(failure));
        }
        body.clone_into(&mut self.last);
        Ok(Draft::Changed(body.to_owned()))
    }

    /// Writes what is wrong above the text, for the next time that the editor is opened.
    pub(crate) fn complain(&self, body: &str, complaints: &[Complaint]) -> Result<(), Failure> {
        /// Lines around those that say what is wrong.
        const AROUND: usize = 2;

        let lines = complaints.len() + AROUND + self.hint.lines().count();
        let said = complaints.iter().map(|Complaint { at, message }| {
            format!("# {}:{}: {}\n", at.line + lines, at.column, message.replace('\n', " "))
        });
        let said: String = said.collect();
        let name = &self.name;
        let text = format!(
            "# {name} was not changed:\n{said}# Correct it, or remove everything to give up.\n{}{body}",
            self.hint
        );
        fs::write(&self.file, text).map_err(|error| self.trouble(&error))
    }

    /// Removes the file.
    pub(crate) fn remove(&self) {
        // It is one of many in a directory that is emptied by others.
        drop(fs::remove_file(&self.file));
    }

    /// Says where to find what was written.
    pub(crate) fn kept(&self, failure: Failure) -> Failure {
        failure.before(&format!("; what you wrote is in {}", self.file.display()))
    }

    fn trouble(&self, error: &io::Error) -> Failure {
        Failure::new(Exit::Failed, format!("cannot edit {}: {error}", self.file.display()))
    }
}

/// The text without the comments at its top.
fn body(text: &str) -> &str {
    let mut rest = text;
    while rest.starts_with('#') {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    rest
}
