//! What is done to the machine, in steps that block.

use std::{io, sync::Arc};

use nimbus_agent::{Failure, Observation};

use crate::{
    directories::Directories,
    ledger::{Ledger, Turn},
    path::FilePath,
    record::{Claim, Record},
    refusal::{self, UNSAFE_PATH},
    root::{Found, Root},
    steps::{Step, Steps},
    wanted::Wanted,
    writer::{Replace, Staged, discard},
};

/// The machine as far as this agent has a hand in it: the files below the root, and the ledger of what is whose.
///
/// Every method blocks, and takes the turn of the object with it, so that no other call can meet it half-way.
pub(crate) struct Node {
    pub(crate) root: Root,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) directories: Directories,
    pub(crate) steps: Steps,
}

/// What has to be done for a file.
pub(crate) enum Begun {
    /// It is as it should be.
    InPlace(Turn),
    /// The new version lies beside it.
    Staged(Replacement),
}

/// A new version that is about to be put in place.
pub(crate) struct Replacement {
    turn: Turn,
    staged: Staged,
    replace: Replace,
    /// The record to go back to if nothing comes of it.
    before: Record,
}

// === impl Node ===

impl Node {
    /// Looks at what is there, and if that has to change, writes down the intention and the new version.
    pub(crate) fn begin(&self, mut turn: Turn, wanted: &Wanted) -> Result<Begun, Failure> {
        let Wanted { path, stamp, .. } = wanted;
        turn.check(path)?;
        let before = turn.record().clone();
        let found = self.root.look(path)?;
        // What was found may be the file of an object that came at the same time, which is not a foreign one.
        turn.check(path)?;
        if found == Found::File(stamp.clone()) {
            // An agent that died on the way to another version may have left a part of it.
            self.discard_staged(path)?;
            // Also if somebody else made it: nobody can tell the difference, and it is left as it is.
            turn.write(before.applied(path, stamp))?;
            return Ok(Begun::InPlace(turn));
        }
        let replace = judge(&before, wanted, &found)?;
        turn.write(before.intending(path, stamp, wanted.reload.is_some()))?;
        match self.stage(wanted) {
            Ok(staged) => Ok(Begun::Staged(Replacement { turn, staged, replace, before })),
            Err(failure) => {
                self.restore(&mut turn, &wanted.path, before);
                Err(failure)
            }
        }
    }

    fn stage(&self, wanted: &Wanted) -> Result<Staged, Failure> {
        let path = &wanted.path;
        let failed = |error: io::Error| refusal::failed(format!("write {path}"), error);
        self.steps.reached(Step::Intended).map_err(failed)?;
        let mut staged = self
            .directories
            .put_into(&self.root, path, |parent| Staged::create(parent, path).map_err(failed))?;
        self.steps.reached(Step::Created).map_err(failed)?;
        staged.fill(wanted.content.as_bytes(), &wanted.stamp).map_err(failed)?;
        self.steps.reached(Step::Staged).map_err(failed)?;
        Ok(staged)
    }

    /// Puts the new version in place, and takes away what the object had elsewhere.
    pub(crate) fn switch(&self, replacement: Replacement, wanted: &Wanted) -> Result<Turn, Failure> {
        let Wanted { path, stamp, .. } = wanted;
        let Replacement { mut turn, staged, replace, before } = replacement;
        if let Err(failure) = put_in_place(staged, replace, wanted) {
            self.restore(&mut turn, path, before);
            return Err(failure);
        }
        let failed = |error: io::Error| refusal::failed(format!("write {path}"), error);
        self.steps.reached(Step::Switched).map_err(failed)?;
        // The directory may have been moved away meanwhile. Then the file is in it, wherever it is.
        if self.root.look(path)? != Found::File(stamp.clone()) {
            return Err(refusal::failed(format!("write {path}"), "somebody else changes it at the same time"));
        }
        tracing::info!(object = %turn.key(), %path, "file put in place");
        Ok(turn)
    }

    /// Goes back to what was known before: nothing has come of it.
    pub(crate) fn abandon(&self, replacement: Replacement, path: &FilePath) {
        let Replacement { mut turn, staged, before, .. } = replacement;
        drop(staged);
        self.restore(&mut turn, path, before);
    }

    fn restore(&self, turn: &mut Turn, path: &FilePath, before: Record) {
        let left = self.leave(path);
        // The intention that stays in the ledger then does no harm: it is not what is found in place.
        if let Err(failure) = left.and_then(|()| turn.write(before)) {
            tracing::warn!(object = %turn.key(), %path, %failure, "cannot tidy up after a failure");
        }
    }

    /// Takes away what the object had under other paths. The file itself is in place.
    pub(crate) fn tidy(&self, turn: &mut Turn, wanted: &Wanted) -> Result<(), Failure> {
        let record = turn.record().applied(&wanted.path, &wanted.stamp);
        for path in record.files.keys().filter(|path| **path != wanted.path) {
            self.take_away(turn, path)?;
        }
        let failed = |error| refusal::failed("tidy up", error);
        self.steps.reached(Step::Tidied).map_err(failed)?;
        let files = record.files.into_iter().filter(|(path, _)| *path == wanted.path).collect();
        // Without anything to run there is nothing to wait for.
        let reload_pending = record.reload_pending && wanted.reload.is_some();
        turn.write(Record { files, reload_pending })
    }

    /// Remembers that the reload has succeeded.
    pub(crate) fn reloaded(&self, turn: &mut Turn) -> Result<(), Failure> {
        self.steps
            .reached(Step::Reloaded)
            .map_err(|error| refusal::failed("remember the reload", error))?;
        let record = Record { reload_pending: false, ..turn.record().clone() };
        turn.write(record)
    }

    /// Takes away everything that the object has, and says whether a reload is due.
    pub(crate) fn remove(&self, turn: &mut Turn, has_reload: bool) -> Result<bool, Failure> {
        let mut record = turn.record().clone();
        record.reload_pending = has_reload && !record.is_empty();
        turn.write(record.clone())?;
        for path in record.files.keys() {
            self.take_away(turn, path)?;
        }
        self.steps
            .reached(Step::Removed)
            .map_err(|error| refusal::failed("remember the removal", error))?;
        record.files.clear();
        let reload_pending = record.reload_pending;
        turn.write(record)?;
        Ok(reload_pending)
    }

    /// Looks whether everything is as it was put there.
    pub(crate) fn observe(&self, turn: &Turn) -> Result<Observation, Failure> {
        let record = turn.record();
        if record.files.is_empty() {
            return Ok(Observation::Drifted("the ledger does not know the file".to_owned()));
        }
        for (path, claim) in &record.files {
            let difference = match (claim, self.root.look(path)) {
                (Claim { intended: Some(_), .. } | Claim { applied: None, .. }, _) => Some("half-written".to_owned()),
                (Claim { applied: Some(applied), .. }, Ok(Found::File(found))) => applied.difference(&found),
                (_, Ok(Found::Missing)) => Some("missing".to_owned()),
                (_, Ok(Found::Link)) => Some("a symbolic link".to_owned()),
                (_, Ok(Found::Other(what))) => Some(what.to_owned()),
                (_, Err(failure)) if failure.code() == UNSAFE_PATH => Some(failure.message().to_owned()),
                (_, Err(failure)) => return Err(failure),
            };
            if let Some(difference) = difference {
                return Ok(Observation::Drifted(format!("{path}: {difference}")));
            }
        }
        if record.reload_pending {
            return Ok(Observation::Drifted("the reload is still to be done".to_owned()));
        }
        Ok(Observation::InSync)
    }

    /// Removes a file that is the object's, with the directories that were made for it. What is not stays.
    fn take_away(&self, turn: &Turn, path: &FilePath) -> Result<(), Failure> {
        let failed = |error: io::Error| refusal::failed(format!("remove {path}"), error);
        let parent = match self.root.parent(path) {
            Ok(parent) => parent,
            // Its directory is no longer one, so the file is gone; what the link leads to is not ours.
            Err(failure) if failure.code() == UNSAFE_PATH => None,
            Err(failure) => return Err(failure),
        };
        let Some(parent) = parent else { return Ok(()) };
        self.discard_staged(path)?;
        let found = self.root.look(path)?;
        match &found {
            Found::Missing => {}
            Found::File(_) | Found::Link if turn.record().owns(path, &found) => {
                discard(&parent, path.name()).map_err(failed)?;
                rustix::fs::fsync(&parent).map_err(|error| failed(error.into()))?;
                tracing::info!(object = %turn.key(), %path, "file removed");
            }
            _ => tracing::warn!(object = %turn.key(), %path, "not removed: it is not ours any more"),
        }
        self.leave(path)
    }

    fn discard_staged(&self, path: &FilePath) -> Result<(), Failure> {
        let Some(parent) = self.root.parent(path)? else { return Ok(()) };
        discard(&parent, &path.staged_name()).map_err(|error| refusal::failed(format!("tidy up beside {path}"), error))
    }

    fn leave(&self, path: &FilePath) -> Result<(), Failure> {
        match self.directories.leave(&self.root, path) {
            Err(failure) if failure.code() == UNSAFE_PATH => Ok(()),
            left => left,
        }
    }
}

/// Whether what is there may be replaced.
fn judge(record: &Record, wanted: &Wanted, found: &Found) -> Result<Replace, Failure> {
    let path = &wanted.path;
    match found {
        Found::Missing => Ok(Replace::No),
        // Something that nobody replaces has taken the place of our file. That may pass.
        Found::Other(what) if record.owns(path, found) => Err(refusal::failed(format!("replace {path}"), what)),
        Found::Other(what) => Err(refusal::unsafe_path(path, what)),
        Found::File(_) | Found::Link if record.owns(path, found) => Ok(Replace::Yes),
        Found::File(_) if wanted.adopt => Ok(Replace::Yes),
        Found::File(_) => Err(refusal::not_owned(path)),
        Found::Link => Err(refusal::unsafe_path(path, "a symbolic link")),
    }
}

/// The last look at the staged file, and the switch.
fn put_in_place(staged: Staged, replace: Replace, wanted: &Wanted) -> Result<(), Failure> {
    let path = &wanted.path;
    let failed = |error: io::Error| refusal::failed(format!("write {path}"), error);
    if !staged.is_still(&wanted.stamp).map_err(failed)? {
        return Err(refusal::validation(path, "it changed while it was validated").permanent());
    }
    match staged.switch(replace) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(refusal::not_owned(path)),
        switched => switched.map_err(failed),
    }
}
