//! The circumstances of a reaction, and what it may do.

use std::{collections::BTreeSet, fmt, sync::Arc};

use nimbus_core::{Draft, Failure, Generation, Object, ObjectKey, Spec};
use nimbus_store::Record;
use nimbus_wire::v1;
use parking_lot::Mutex;

use crate::{
    engine::referring::SharedReferences,
    few::Few,
    queue::{Cause, Causes},
    references::Ref,
    reflector::Reflectors,
    standing::{self, Found},
    typed::typed,
};

/// The circumstances of a reaction, and what it may do. Cheap to clone.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    surroundings: Arc<Surroundings>,
    object: Arc<Record>,
    attempt: u32,
    causes: Causes,
    /// Whether this call decides what the object owns.
    publishes: bool,
    wanted: Mutex<Wanted>,
}

/// What is the same for all reactions of a controller.
pub(crate) struct Surroundings {
    pub(crate) controller: Arc<str>,
    pub(crate) dry_run: bool,
    pub(crate) reflectors: Reflectors,
    pub(crate) references: SharedReferences,
    /// Whether what objects refer to by themselves wakes their reactor.
    pub(crate) follows: bool,
}

/// What a reaction wants so far.
#[derive(Default)]
struct Wanted {
    children: Few<nimbus_store::Draft>,
    wishes: Wishes,
}

/// What a reaction wants to happen if it goes well, beside what should be published.
#[derive(Default)]
pub(crate) struct Wishes {
    /// What it has looked at.
    pub(crate) references: BTreeSet<Ref>,
    /// What it says of the object, in order.
    pub(crate) status: Vec<Edit>,
    /// What is on the bus and stays there, though its owner goes.
    pub(crate) kept: Vec<Arc<Record>>,
}

/// A change of the status.
pub(crate) type Edit = Box<dyn FnOnce(&mut v1::Standing) + Send>;

// === impl Context ===

impl Context {
    pub(crate) fn new(
        surroundings: Arc<Surroundings>,
        object: Arc<Record>,
        (attempt, causes): (u32, Causes),
        publishes: bool,
    ) -> Self {
        let wanted = Mutex::default();
        let cx = Self(Arc::new(Inner { surroundings, object, attempt, causes, publishes, wanted }));
        cx.follow();
        cx
    }

    /// The same, in place of one that nobody needs any more, if that is so.
    pub(crate) fn renewed(
        spare: Option<Self>,
        surroundings: &Arc<Surroundings>,
        object: Arc<Record>,
        circumstances: (u32, Causes),
        publishes: bool,
    ) -> Self {
        if let Some(mut spare) = spare
            && let Some(inner) = Arc::get_mut(&mut spare.0)
            && Arc::ptr_eq(&inner.surroundings, surroundings)
        {
            (inner.attempt, inner.causes) = circumstances;
            (inner.object, inner.publishes) = (object, publishes);
            *inner.wanted.get_mut() = Wanted::default();
            spare.follow();
            return spare;
        }
        Self::new(surroundings.clone(), object, circumstances, publishes)
    }

    /// Looks at what the object refers to by itself, before anything is read. Most objects refer to nothing.
    fn follow(&self) {
        let refs = self.0.object.refs();
        // Of all calls, those that publish say what their object refers to.
        if !refs.is_empty() && self.0.publishes && self.0.surroundings.follows {
            self.refer(refs.iter().map(|reference| Ref::to(&reference.to)));
        }
    }

    /// The name of the controller.
    pub fn controller(&self) -> &str {
        &self.0.surroundings.controller
    }

    /// The object that is reacted to.
    pub fn key(&self) -> &ObjectKey {
        self.0.object.key()
    }

    /// The version that is reacted to.
    pub(crate) fn object(&self) -> &Arc<Record> {
        &self.0.object
    }

    /// The generation that is reacted to.
    pub fn generation(&self) -> Generation {
        self.0.object.generation()
    }

    /// How often it has failed since it last went well, or was edited.
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// Why the reactor is called: everything that has happened since it last went well.
    pub fn causes(&self) -> Causes {
        self.0.causes
    }

    /// Whether it is called because of this.
    pub fn is_because_of(&self, cause: Cause) -> bool {
        self.0.causes.contains(cause)
    }

    /// Whether nothing of what it wants will happen: leave alone what is outside of nimbus.
    pub fn is_dry_run(&self) -> bool {
        self.0.surroundings.dry_run
    }

    /// Publishes an object on behalf of the one that is reacted to.
    ///
    /// It appears when the reactor has returned `Ok`, together with all else that it publishes. If it is there already and
    /// the same, nothing happens. What earlier calls published and this one does not is withdrawn.
    ///
    /// # Errors
    /// If a name or a label is not one, or this is no call that may publish. These are permanent: only a change of the
    /// object, or of the program, can cure them.
    #[allow(clippy::unused_async, reason = "so that it can wait one day for room, without a change to every reactor")]
    pub async fn publish<C: Spec>(&self, draft: Draft<C>) -> Result<(), Failure> {
        if !self.0.publishes {
            let message = "only on_apply, on_create and on_update publish (hint: return Action::requeue_after)";
            return Err(Failure::new(message).with_code("NOT_HERE").permanent());
        }
        let child = erase(draft)?;
        self.0.wanted.lock().children.push(child);
        Ok(())
    }

    /// An object of the source that this one refers to, as it is now. From here on, whenever it changes, appears or goes,
    /// the reactor is called again.
    ///
    /// The first reference to a kind waits until all of its objects are known.
    ///
    /// # Errors
    /// If its spec is not what its kind says.
    pub async fn get<R: Spec>(&self, key: &ObjectKey) -> Result<Option<Arc<Object<R>>>, Failure> {
        self.refer([Ref::to(key)]);
        let reflector = self.0.surroundings.reflectors.get(key.kind());
        reflector.synced().await;
        let Some(record) = reflector.snapshot().get(key) else { return Ok(None) };
        Ok(Some(Arc::new(typed(&record)?)))
    }

    /// All objects of a kind, as they are now. Whenever one of them changes, the reactor is called again.
    ///
    /// # Errors
    /// If a spec is not what its kind says.
    pub async fn list<R: Spec>(&self) -> Result<Vec<Arc<Object<R>>>, Failure> {
        let kind = R::kind();
        self.refer([Ref::all::<R>()]);
        let reflector = self.0.surroundings.reflectors.get(&kind);
        reflector.synced().await;
        let typed = |record: &Arc<Record>| Ok(Arc::new(typed(record)?));
        reflector.snapshot().list(&kind).map(typed).collect()
    }

    /// States what the object refers to, beyond what the reactor reads: whenever one of these changes, appears or goes,
    /// it is called again. What no call states any more is no longer watched.
    pub fn refer(&self, references: impl IntoIterator<Item = Ref>) {
        let references: Vec<Ref> = references.into_iter().collect();
        self.0.surroundings.references.add(self.key(), references.iter().cloned());
        self.0.wanted.lock().wishes.references.extend(references);
    }

    /// The status that the reactor wrote last, if there is one.
    pub fn status<S: Spec>(&self) -> Option<S> {
        let (standing, _) = standing::read(self.0.object.status_bytes());
        match standing::detail(&standing) {
            (detail, Found::Ours) => Some(detail),
            _ => None,
        }
    }

    /// Changes the status of the object. The kit writes it, also if the reactor fails, and until it is stored or there is
    /// a newer one.
    pub fn update_status<S: Spec + PartialEq>(&self, edit: impl FnOnce(&mut S) + Send + 'static) {
        self.0.wanted.lock().wishes.status.push(Box::new(move |standing| {
            standing::edit_detail(standing, edit);
        }));
    }

    /// Says that something is true of the object, or is not.
    pub fn set_condition(&self, condition: v1::Condition) {
        self.0.wanted.lock().wishes.status.push(Box::new(move |standing| {
            standing::set_condition(standing, condition);
        }));
    }

    /// These stay on the bus, though their owner goes.
    pub(crate) fn keep(&self, records: Vec<Arc<Record>>) {
        self.0.wanted.lock().wishes.kept = records;
    }

    /// What should be published, and what else it wanted.
    pub(crate) fn take(&self) -> (Few<nimbus_store::Draft>, Wishes) {
        let Wanted { children, wishes } = &mut *self.0.wanted.lock();
        (std::mem::take(children), std::mem::take(wishes))
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("object", self.key())
            .field("attempt", &self.0.attempt)
            .field("causes", &self.0.causes)
            .finish_non_exhaustive()
    }
}

/// A draft without the type of its spec, owned by the object that it is published for.
fn erase<C: Spec>(draft: Draft<C>) -> Result<nimbus_store::Draft, Failure> {
    nimbus_store::Draft::try_from(draft).map_err(|error| Failure::from(error).with_code("INVALID").permanent())
}
