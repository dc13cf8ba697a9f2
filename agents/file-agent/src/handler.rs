//! Files as the bus wants them.

use std::{io, path::PathBuf, sync::Arc};

use nimbus_agent::{Context, Failure, Handler, Object, ObjectKey, Observation, Status};

use crate::{
    command::{Allowed, Command},
    directories::Directories,
    file::File,
    ledger::{Ledger, LedgerError, Turn},
    node::{Begun, Node, Replacement},
    refusal,
    root::Root,
    steps::Steps,
    wanted::Wanted,
};

/// What the operator of a machine decides.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// Where files are kept.
    pub(crate) root: PathBuf,
    /// Where the agent keeps what it has to remember.
    pub(crate) state: PathBuf,
    /// The programs that objects may have run.
    pub(crate) allowed: Allowed,
}

/// Keeps files below a directory as the bus wants them.
pub(crate) struct Files {
    node: Arc<Node>,
    allowed: Allowed,
}

/// Why an agent cannot begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("cannot keep files in {}: {source} (hint: --root is a directory that exists)", .path.display())]
    Root { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// A reload that fails after the file is gone is given up after this many attempts: some programs cannot be reloaded
/// without the file, and nobody can correct an object that no longer exists.
const RELOADS_OF_THE_REMOVED: u32 = 5;

// === impl Files ===

impl Files {
    /// Opens the root and the ledger.
    pub(crate) fn open(config: Config) -> Result<Self, OpenError> {
        Self::with_steps(config, Steps::default())
    }

    pub(crate) fn with_steps(config: Config, steps: Steps) -> Result<Self, OpenError> {
        let Config { root, state, allowed } = config;
        let ledger = Ledger::open(&state)?;
        let directories = Directories::open(&state);
        let directories = directories.map_err(|source| LedgerError::Io { path: state.clone(), source })?;
        let root = Root::new(&root, &state).map_err(|source| OpenError::Root { path: root, source })?;
        Ok(Self { node: Arc::new(Node { root, ledger, directories, steps }), allowed })
    }

    /// Makes a file as it should be. Does nothing at all if it is.
    pub(crate) async fn put(&self, key: &ObjectKey, file: &File) -> Result<(), Failure> {
        let wanted = Arc::new(Wanted::new(file, &self.allowed)?);
        let turn = self.node.ledger.turn(key).await;
        let new = Arc::clone(&wanted);
        let mut turn = match self.on_node(move |node| node.begin(turn, &new)).await? {
            Begun::InPlace(turn) => turn,
            Begun::Staged(replacement) => self.replace(&wanted, replacement).await?,
        };
        let new = Arc::clone(&wanted);
        let mut turn = self.on_node(move |node| node.tidy(&mut turn, &new).map(|()| turn)).await?;
        if !turn.record().reload_pending {
            return Ok(());
        }
        self.reload(wanted.reload.as_ref(), &file.path, "in place").await?;
        self.on_node(move |node| node.reloaded(&mut turn)).await
    }

    /// Validates a new version, and puts it in place or drops it.
    async fn replace(&self, wanted: &Arc<Wanted>, replacement: Replacement) -> Result<Turn, Failure> {
        let (validated, wanted) = (self.validate(wanted).await, Arc::clone(wanted));
        self.on_node(move |node| match validated {
            Ok(()) => node.switch(replacement, &wanted),
            Err(failure) => {
                node.abandon(replacement, &wanted.path);
                Err(failure)
            }
        })
        .await
    }

    /// Takes a file away, if it is the object's.
    pub(crate) async fn take(&self, key: &ObjectKey, file: &File, attempt: u32) -> Result<(), Failure> {
        // A command that is not allowed was never run: there is nothing to take back.
        let reload = Command::new(&file.reload, file.reload_timeout_ms, &self.allowed).unwrap_or_default();
        let (mut turn, has_reload) = (self.node.ledger.turn(key).await, reload.is_some());
        let removed = self.on_node(move |node| node.remove(&mut turn, has_reload).map(|is_due| (turn, is_due)));
        let (mut turn, is_reload_due) = removed.await?;
        if !is_reload_due {
            return Ok(());
        }
        match self.reload(reload.as_ref(), &file.path, "removed").await {
            Err(failure) if attempt < RELOADS_OF_THE_REMOVED => return Err(failure),
            Err(failure) => tracing::warn!(object = %key, %failure, "gave up the reload after a removal"),
            Ok(()) => {}
        }
        self.on_node(move |node| node.reloaded(&mut turn)).await
    }

    /// Looks whether a file is as it was put there.
    pub(crate) async fn look(&self, key: &ObjectKey) -> Result<Observation, Failure> {
        let turn = self.node.ledger.turn(key).await;
        self.on_node(move |node| node.observe(&turn)).await
    }

    /// The command's no is final for this version. That it could not answer is not.
    async fn validate(&self, wanted: &Wanted) -> Result<(), Failure> {
        let Some(command) = &wanted.validate else { return Ok(()) };
        let staged = self.node.root.path().join(wanted.path.staged());
        command.about(&staged).run(self.node.root.path()).await.map_err(|error| {
            let failure = refusal::validation(&wanted.path, &error);
            if error.is_verdict() { failure.permanent() } else { failure }
        })
    }

    async fn reload(&self, command: Option<&Command>, path: &str, state: &str) -> Result<(), Failure> {
        let Some(command) = command else { return Ok(()) };
        let ended = command.run(self.node.root.path()).await;
        ended.map_err(|error| refusal::reload(path, state, error))
    }

    /// Disks are slow. Work that was begun goes on to its end, also if nobody waits for it any more.
    async fn on_node<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Node) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let node = Arc::clone(&self.node);
        tokio::task::spawn_blocking(move || work(&node)).await?
    }
}

impl Handler<File> for Files {
    async fn apply(&self, _: &Context, object: Arc<Object<File>>) -> Result<Status, Failure> {
        self.put(object.key(), &object.spec).await?;
        Ok(Status::applied())
    }

    async fn remove(&self, cx: &Context, object: Arc<Object<File>>) -> Result<(), Failure> {
        self.take(object.key(), &object.spec, cx.attempt()).await
    }

    async fn observe(&self, _: &Context, object: Arc<Object<File>>) -> Result<Observation, Failure> {
        self.look(object.key()).await
    }
}

#[cfg(test)]
mod tests;
