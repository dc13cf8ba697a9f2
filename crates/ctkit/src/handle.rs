//! Looks into a manager that runs, and steers it.

use std::{sync::Arc, time::Duration};

use nimbus_core::{Failure, ObjectKey};
use tokio::sync::{mpsc, oneshot};

use crate::{
    engine::{
        event::{Command, Event},
        station::StationId,
    },
    instances::{InstancesStatus, Shares},
    queue::Causes,
    ready::Readiness,
    references::Ref,
};

/// Looks into a manager that runs, and steers it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(crate) events: mpsc::WeakSender<Event>,
    pub(crate) controllers: Arc<[Arc<str>]>,
    pub(crate) readiness: Readiness,
    pub(crate) shares: Shares,
}

/// The manager has stopped, or never had such a controller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandleError {
    /// It has stopped.
    #[error("the manager has stopped")]
    Stopped,
    /// It has no controller of that name.
    #[error("there is no controller {name:?}; there are {}", .known.join(", "))]
    NoSuchController {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
}

/// What is known of an object that is not simply done.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The controller.
    pub controller: Arc<str>,
    /// The object.
    pub object: ObjectKey,
    /// How it is, in a word.
    pub state: Waiting,
    /// For how long.
    pub since: Duration,
    /// When it is looked at again, if that is planned.
    pub next_in: Option<Duration>,
    /// Why it is to be looked at.
    pub causes: Causes,
    /// How often it has failed since it last went well, or was edited.
    pub attempts: u32,
    /// The last failure.
    pub failure: Option<Failure>,
}

/// How an object is that is not simply done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Waiting {
    /// As soon as there is room.
    Ready,
    /// At a time that was asked for.
    Delayed,
    /// After a failure.
    Retrying,
    /// Now.
    Running,
    /// When something else has come.
    Waiting,
    /// When it is edited.
    Failed,
    /// After a panic.
    Quarantined,
    /// When it is edited, after too many panics.
    Poisoned,
    /// When somebody says so.
    Paused,
    /// When this instance may act on it, or the bus is back.
    Held,
}

/// An object that others refer to and that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dangling {
    /// What is missing.
    pub referent: ObjectKey,
    /// Those who refer to it.
    pub referrers: Vec<ObjectKey>,
    /// For how long it has been missed.
    pub since: Duration,
}

/// Why an object is as it is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// What is known of it in the queue; nothing if it is done.
    pub entry: Option<Entry>,
    /// The generation that was last dealt with.
    pub dealt_with: Option<u64>,
    /// What was published for it.
    pub published: Vec<ObjectKey>,
    /// What it refers to.
    pub refers_to: Vec<Ref>,
    /// What it waits for, and what that waits for.
    pub waits_for: Vec<ObjectKey>,
}

// === impl Handle ===

impl Handle {
    /// Everything that is not simply done: what waits, why, until when, and how often it was tried.
    ///
    /// # Errors
    /// If the manager has stopped.
    pub async fn entries(&self) -> Result<Vec<Entry>, HandleError> {
        self.ask(Command::Entries).await
    }

    /// Why an object is as it is; `None` if the controller knows nothing of it.
    ///
    /// # Errors
    /// If the manager has stopped, or has no such controller.
    pub async fn explain(&self, controller: &str, object: &ObjectKey) -> Result<Option<Explanation>, HandleError> {
        let (station, object) = (self.station(controller)?, object.clone());
        self.ask(|answer| Command::Explain(station, object, answer)).await
    }

    /// Reacts to an object no more, or to no object of a controller, until it is resumed. What happens meanwhile is noted.
    ///
    /// The status of an object that is paused says so; that of a whole controller's objects is left as it is. To pause an
    /// object whatever becomes of this process, annotate it with `nimbus/paused`.
    ///
    /// # Errors
    /// If the manager has stopped, or has no such controller.
    pub async fn pause(&self, controller: &str, object: Option<&ObjectKey>) -> Result<(), HandleError> {
        self.tell(Command::Pause(self.station(controller)?, object.cloned())).await
    }

    /// Goes on with what was paused. An object is looked at once, also if nothing has happened to it.
    ///
    /// # Errors
    /// If the manager has stopped, or has no such controller.
    pub async fn resume(&self, controller: &str, object: Option<&ObjectKey>) -> Result<(), HandleError> {
        self.tell(Command::Resume(self.station(controller)?, object.cloned())).await
    }

    /// Looks at an object now, whatever stands against it.
    ///
    /// # Errors
    /// If the manager has stopped, or has no such controller.
    pub async fn wake(&self, controller: &str, object: &ObjectKey) -> Result<(), HandleError> {
        self.tell(Command::Wake(self.station(controller)?, object.clone())).await
    }

    /// Objects that others refer to and that do not exist, those first that have been missing for longest.
    ///
    /// # Errors
    /// If the manager has stopped, or has no such controller.
    pub async fn dangling(&self, controller: &str) -> Result<Vec<Dangling>, HandleError> {
        let station = self.station(controller)?;
        self.ask(|answer| Command::Dangling(station, answer)).await
    }

    /// Waits until there is nothing left to do now: everything that has happened in the source was looked at, published
    /// and written. What is due later is not waited for: a retry, a requeue, the end of a burst of changes.
    ///
    /// # Errors
    /// If the manager has stopped.
    pub async fn settled(&self) -> Result<(), HandleError> {
        self.ask(Command::Settled).await
    }

    /// Whether everything that should work does.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// How this instance stands with the others.
    pub fn instances(&self) -> InstancesStatus {
        self.shares.status()
    }

    fn station(&self, name: &str) -> Result<StationId, HandleError> {
        let found = self.controllers.iter().position(|controller| **controller == *name);
        found.map(StationId).ok_or_else(|| HandleError::NoSuchController {
            name: name.to_owned(),
            known: self.controllers.iter().map(ToString::to_string).collect(),
        })
    }

    async fn tell(&self, command: Command) -> Result<(), HandleError> {
        let events = self.events.upgrade().ok_or(HandleError::Stopped)?;
        events.send(Event::Command(command)).await.map_err(|_| HandleError::Stopped)
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, HandleError> {
        let (answer, answered) = oneshot::channel();
        self.tell(command(answer)).await?;
        answered.await.map_err(|_| HandleError::Stopped)
    }
}
