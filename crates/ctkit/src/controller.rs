//! A reactor, and how it is to be run.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use nimbus_core::{Backoff, Kind, PublisherId, Spec, is_name};

use crate::{
    observer::{self, ErasedObserver, Observer},
    queue::{Debounce, Policy, Rate},
    reactor::{Erased, ErasedReactor, Reactor},
};

/// A reactor, and how it is to be run.
///
/// ```
/// # use ctkit::{functions, Action, Controller};
/// # #[derive(Clone, PartialEq, prost::Message)]
/// # struct Policy { #[prost(string, tag = "1")] text: String }
/// # impl prost::Name for Policy { const NAME: &'static str = "Policy"; const PACKAGE: &'static str = "demo.v1"; }
/// # let policies = functions::<Policy>();
/// let controller = Controller::new::<Policy>(policies).publishes::<Policy>().concurrency(8);
/// ```
#[must_use]
pub struct Controller {
    pub(crate) name: Option<String>,
    pub(crate) reactor: Arc<dyn ErasedReactor>,
    pub(crate) outputs: BTreeSet<Kind>,
    pub(crate) policy: Policy,
    pub(crate) deadline: Duration,
    pub(crate) finalizer: Option<String>,
    pub(crate) finalizes_after: BTreeSet<String>,
    pub(crate) deletion: Deletion,
    pub(crate) observation: Option<Observing>,
    pub(crate) tells: bool,
    pub(crate) follows: bool,
}

/// How an observer is to be run.
pub(crate) struct Observing {
    pub(crate) observer: Arc<dyn ErasedObserver>,
    pub(crate) kind: Kind,
    pub(crate) interval: Duration,
}

/// What becomes of what was published for an object that is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Deletion {
    /// It is withdrawn, and the object goes.
    #[default]
    Cascade,
    /// It is withdrawn, and the object goes when every agent that counts has removed it. Needs a finalizer.
    AfterAgents,
    /// It stays, and belongs to nobody.
    Orphan,
}

/// Why a controller cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControllerError {
    /// The name cannot be that of a publisher.
    #[error("{0:?} is no name for a controller: expected 1 to 200 of the characters A-Z a-z 0-9 - _ . : @ + ~ =")]
    Name(String),
    /// Somebody wants to hear of a controller that there is not.
    #[error("there is no controller {name:?} to hear of; there are {}", .known.join(", "))]
    NoSuchController {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Two controllers have the same name.
    #[error("two controllers are called {0:?}: they would withdraw what the other publishes (hint: Controller::named)")]
    Twice(String),
    /// The finalizer cannot be one.
    #[error("{0:?} is no name for a finalizer")]
    Finalizer(String),
    /// It would wait for others without being waited for.
    #[error(
        "{0}: to finalize after others takes a finalizer of one's own, and another one (hint: Controller::finalizer)"
    )]
    NothingToOrder(String),
    /// There is nothing that could hold the object until agents have removed what was published for it.
    #[error("{0}: a deletion that waits for agents needs a finalizer (hint: Controller::finalizer)")]
    NothingToWaitWith(String),
    /// The observer is for another kind.
    #[error("{controller} reacts to {kind}, but its observer looks at {observed}")]
    Observer {
        /// Which controller.
        controller: String,
        /// What it reacts to.
        kind: Kind,
        /// What the observer looks at.
        observed: Kind,
    },
}

/// A reaction that takes longer has most likely lost what it waits for. Reactions that need longer say so.
const DEADLINE: Duration = Duration::from_secs(300);

/// Most reactions need not wait for anything, and those of one transaction are cheaper together; so many are enough for two
/// transactions to be under way while two others are put together.
const CONCURRENCY: usize = 1024;

/// Room for the number of a shard behind the name.
const MAX_NAME: usize = 200;

// === impl Controller ===

impl Controller {
    /// A reactor for objects of kind `K`, to be run with the usual settings.
    pub fn new<K: Spec>(reactor: impl Reactor<K>) -> Self {
        let policy = Policy { concurrency: CONCURRENCY, ..Policy::default() };
        Self {
            name: None,
            reactor: Arc::new(Erased::new(reactor)),
            outputs: BTreeSet::new(),
            policy,
            deadline: DEADLINE,
            finalizer: None,
            finalizes_after: BTreeSet::new(),
            deletion: Deletion::default(),
            observation: None,
            tells: true,
            follows: true,
        }
    }

    /// Under this name it publishes; the kind of its objects, if nothing is said. What is published under another name
    /// later is somebody else's.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// It publishes objects of this kind, though there may be none at times. Agents are told when all of them are there.
    pub fn publishes<C: Spec>(mut self) -> Self {
        self.outputs.insert(C::kind());
        self
    }

    /// So many reactions at once.
    pub fn concurrency(mut self, reactions: usize) -> Self {
        self.policy.concurrency = reactions;
        self
    }

    /// At most so many reactions begin per second, after a burst of as many at once.
    pub fn rate(mut self, per_second: u32, burst: u32) -> Self {
        self.policy.rate = Some(Rate::per_second(per_second, burst));
        self
    }

    /// Changes that follow each other closely are one.
    pub fn debounce(mut self, debounce: Debounce) -> Self {
        self.policy.debounce = Some(debounce);
        self
    }

    /// How long to wait after a failure.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.policy.backoff = backoff;
        self
    }

    /// How long to wait after a panic, and after how many in a row to wait for an edit.
    pub fn quarantine(mut self, backoff: Backoff, poison_after: u32) -> Self {
        (self.policy.quarantine, self.policy.poison_after) = (backoff, poison_after);
        self
    }

    /// A reaction that takes longer is given up, and tried again.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Every object is marked before the first reaction to it, and does not go before `on_delete` has returned `Ok` and what
    /// was published for it is withdrawn.
    pub fn finalizer(self, name: impl Into<String>) -> Self {
        Self { finalizer: Some(name.into()), ..self }
    }

    /// Others first: a deleted object that still has one of these finalizers is left alone until it has none of them. So
    /// the end of an object has an order, such as rules before the zone that they are in, without the controllers knowing
    /// of each other.
    ///
    /// Needs a [`Controller::finalizer`], for without one the object may be gone by then. Two controllers that wait for one
    /// another wait for ever; the finalizers that an object still has tell for whom it waits.
    pub fn finalizes_after(self, others: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { finalizes_after: others.into_iter().map(Into::into).collect(), ..self }
    }

    /// What becomes of what was published for an object that is deleted.
    pub fn on_deletion(self, deletion: Deletion) -> Self {
        Self { deletion, ..self }
    }

    /// The kit does not say by itself how objects fare: of their statuses, only what the reactor says is written. For
    /// sources that have no statuses, and where another controller speaks for the same objects.
    pub fn without_ready_condition(self) -> Self {
        Self { tells: false, ..self }
    }

    /// Only what the reactor reads and states wakes it, and not what its objects refer to by themselves.
    ///
    /// Without this, an object is looked at again whenever something changes, appears or goes that it refers to in its
    /// metadata, strongly or weakly, because its publisher or its schema says so: mostly the reactor has read it, and a
    /// reaction too many changes nothing, while one that is missed would be missed for ever. It takes a watch of each kind
    /// that is referred to, though, and a second look at those objects when it has begun. A controller that does without
    /// these objects can save it. Objects that refer to nothing cost nothing in either case.
    pub fn without_refs_of_objects(self) -> Self {
        Self { follows: false, ..self }
    }

    /// Looks how things really are, every so often for each object.
    pub fn observe<K: Spec>(self, observer: impl Observer<K>, interval: Duration) -> Self {
        let observer: Arc<dyn ErasedObserver> = Arc::new(observer::Erased::new(observer));
        Self { observation: Some(Observing { observer, kind: K::kind(), interval }), ..self }
    }

    /// The name under which it publishes.
    pub(crate) fn publisher(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.reactor.kind().to_string())
    }

    /// Looks whether it can be run.
    pub(crate) fn check(&self) -> Result<(), ControllerError> {
        let name = self.publisher();
        if name.len() > MAX_NAME || PublisherId::new(&name).is_err() {
            return Err(ControllerError::Name(name));
        }
        if let Some(other) = self.finalizes_after.iter().find(|other| !is_name(other)) {
            return Err(ControllerError::Finalizer(other.clone()));
        }
        let is_ordered = !self.finalizes_after.is_empty();
        if is_ordered && self.finalizer.as_ref().is_none_or(|own| self.finalizes_after.contains(own)) {
            return Err(ControllerError::NothingToOrder(name));
        }
        match &self.finalizer {
            Some(finalizer) if !is_name(finalizer) => return Err(ControllerError::Finalizer(finalizer.clone())),
            None if self.deletion == Deletion::AfterAgents => return Err(ControllerError::NothingToWaitWith(name)),
            _ => {}
        }
        match &self.observation {
            Some(of) if of.kind != self.reactor.kind() => {
                let (kind, observed) = (self.reactor.kind(), of.kind.clone());
                Err(ControllerError::Observer { controller: name, kind, observed })
            }
            _ => Ok(()),
        }
    }
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller").field("name", &self.publisher()).finish_non_exhaustive()
    }
}
