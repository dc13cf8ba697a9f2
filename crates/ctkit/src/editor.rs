//! Changes that depend on what is there: read, decide, write, and again if somebody was faster.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use nimbus_core::{Backoff, ObjectKey, PublisherId, Spec};
use nimbus_store::{Committed, Draft, Effect, Op, Precondition, Record, Step, Txn};
use tokio::time::timeout;

use crate::{
    reflector::{Reflector, ReflectorConfig, Reflectors},
    source::{CommitError, Source},
    typed::typed,
};

/// Changes objects of a source by what is in them, and never by what was: whoever is faster makes it read and decide
/// again, so that of many who count up one number, none is lost.
///
/// It is for programs that write beside reactors: an importer, an admission step, a button. What reactors publish, and what
/// they say of an object, the kit compares and writes again by itself.
///
/// Cheap to clone; clones share what they have read. A kind is watched from its first edit on, and for a while after its
/// last. One's own writes are read back: an edit that begins after another has returned sees what that one wrote. What
/// others wrote to a daemon a moment ago may be missing from what is read, but never be overwritten.
///
/// ```
/// use ctkit::{Editor, ObjectKey, Spec as _, Store};
/// # use nimbus_core::{PublisherId, Spec};
/// # #[derive(Clone, PartialEq, prost::Message)]
/// # struct Counter { #[prost(uint64, tag = "1")] value: u64 }
/// # impl prost::Name for Counter { const NAME: &str = "Counter"; const PACKAGE: &str = "demo.v1"; }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let editor = Editor::new(Store::in_memory(), PublisherId::new("importer")?);
/// let hits = ObjectKey::new(Counter::kind(), "", "hits")?;
/// editor.create(ctkit::Draft::new("hits", Counter { value: 1 })).await?;
/// editor.update(&hits, |counter: &mut Counter| counter.value += 1).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Editor<S> {
    source: Arc<S>,
    reflectors: Reflectors,
    publisher: PublisherId,
    take_over: bool,
}

/// How long to wait for word of what was faster, before the source is asked again all the same. The watch is normally a
/// moment behind; it may also be about to reconnect.
const PATIENCE: Backoff = Backoff { base: Duration::from_millis(50), max: Duration::from_secs(5) };

/// How long to wait for the objects of a kind to be listed once.
const FIRST_LIST: Duration = Duration::from_secs(30);

/// Refusals in a row that nothing which was read explains. The object has not changed, so the refusal is about something
/// else, and more patience would not cure it.
const UNEXPLAINED: u32 = 8;

// === impl Editor ===

impl<S: Source> Editor<S> {
    /// Edits objects of that source, in the name of that publisher.
    pub fn new(source: S, publisher: PublisherId) -> Self {
        let source = Arc::new(source);
        let reflectors = Reflectors::new(source.clone(), ReflectorConfig::default());
        Self { source, reflectors, publisher, take_over: false }
    }

    /// Changes objects of other publishers as well, which are this publisher's from then on. Without it, they are refused
    /// as [`CommitError::Foreign`].
    #[must_use]
    pub fn taking_over(self) -> Self {
        Self { take_over: true, ..self }
    }

    /// Creates an object, unless there is one of this name already. Says whether it did.
    ///
    /// # Errors
    /// If the draft is wrong, or the source refuses it.
    pub async fn create<K: Spec>(&self, draft: nimbus_core::Draft<K>) -> Result<bool, CommitError> {
        let draft =
            Draft::try_from(draft).map_err(|error| CommitError::Invalid { key: None, message: error.to_string() })?;
        let key = draft.key.clone();
        let put = |found: Option<&Record>| found.is_none().then(|| Op::Upsert(draft.clone()));
        Ok(self.write(&key, put).await?.is_some())
    }

    /// Changes the spec of an object and leaves all else as it is: labels, annotations, audience, references, owner. An
    /// edit that changes nothing writes nothing.
    ///
    /// `edit` is called again, on what is there then, whenever somebody else was faster: it must depend on nothing but
    /// its argument. Fields of the spec that `K` does not know are lost if it changes anything, as whenever prost writes a
    /// message that it has read.
    ///
    /// # Errors
    /// [`CommitError::NotFound`] if there is no such object, or it is being deleted; [`CommitError::Invalid`] if its spec is no
    /// `K`; whatever else the source refuses. After [`CommitError::Unavailable`], it is not known whether the change was
    /// made.
    pub async fn update<K: Spec>(&self, key: &ObjectKey, mut edit: impl FnMut(&mut K)) -> Result<(), CommitError> {
        let mut flaw = None;
        let put = |found: Option<&Record>| {
            flaw = None;
            let Some(record) = found.filter(|record| !record.is_deleting()) else {
                flaw = Some(CommitError::NotFound(key.clone()));
                return None;
            };
            let mut spec = match typed::<K>(record) {
                Ok(object) => object.spec,
                Err(error) => {
                    flaw = Some(CommitError::Invalid { key: Some(key.clone()), message: error.to_string() });
                    return None;
                }
            };
            let before = spec.pack_to_vec();
            edit(&mut spec);
            let after = spec.pack_to_vec();
            (after != before).then(|| Op::Upsert(redraft(record, after.into())))
        };
        self.write(key, put).await?;
        flaw.map_or(Ok(()), Err)
    }

    /// Makes whatever change `decide` wants of the object as it is, or none; says what came of it, if there was one.
    ///
    /// `decide` is called again, on what is there then, whenever somebody else was faster.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if the source refuses a change although the object is as `decide` saw it;
    /// [`CommitError::Invalid`] if the change is about another object; whatever else the source refuses. After
    /// [`CommitError::Unavailable`], it is not known whether the change was made.
    pub async fn write(
        &self,
        key: &ObjectKey,
        mut decide: impl FnMut(Option<&Record>) -> Option<Op>,
    ) -> Result<Option<Committed>, CommitError> {
        let reflector = self.reflectors.get(key.kind());
        if timeout(FIRST_LIST, reflector.synced()).await.is_err() {
            let why = reflector
                .status()
                .error
                .unwrap_or_else(|| "it was not listed yet (hint: is the bus complete? nimbus get shows it)".into());
            return Err(CommitError::Unavailable(format!("{} cannot be read: {why}", key.kind())));
        }
        let mut unexplained = 0;
        loop {
            // What can be read directly is never behind.
            let found = match self.source.state() {
                Some(state) => state.get(key),
                None => reflector.find(key),
            };
            let Some(op) = decide(found.as_deref()) else { return Ok(None) };
            if op.key() != key {
                let message = format!("an edit of {key} cannot change {} (hint: edit that one)", op.key());
                return Err(CommitError::Invalid { key: Some(key.clone()), message });
            }
            match self.source.commit(self.txn(op, found.as_deref())).await {
                Ok(committed) => {
                    read_back(&reflector, &committed).await;
                    return Ok(Some(committed));
                }
                Err(error @ (CommitError::Conflict { .. } | CommitError::NotFound(_))) => {
                    // Never less than half of it, so that a watch that is seconds behind is waited for in any case.
                    let wait = PATIENCE.delay(unexplained, rand::random_range(0.5..1.0));
                    let changed = timeout(wait, reflector.changed(key, found.as_deref())).await.is_ok();
                    unexplained = if changed { 0 } else { unexplained + 1 };
                    if unexplained == UNEXPLAINED {
                        return Err(error);
                    }
                    tracing::debug!(%key, %error, changed, "decided again");
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// One change, if the object is still the one that was read: in another epoch, revisions begin anew, and lives do not.
    fn txn(&self, op: Op, found: Option<&Record>) -> Txn {
        let precondition = Precondition {
            absent: found.is_none() && matches!(op, Op::Upsert(_)),
            uid: found.map(Record::to_uid),
            revision: found.map(Record::revision),
            generation: None,
        };
        let steps = vec![Step { op, precondition, take_over: self.take_over }];
        Txn { publisher: self.publisher.clone(), fence: 0, leases: Vec::new(), steps }
    }
}

impl<S> Clone for Editor<S> {
    fn clone(&self) -> Self {
        Self {
            source: self.source.clone(),
            reflectors: self.reflectors.clone(),
            publisher: self.publisher.clone(),
            take_over: self.take_over,
        }
    }
}

/// Waits until what was written can be read.
async fn read_back(reflector: &Reflector, committed: &Committed) {
    let is_change = |effect: Effect| !matches!(effect, Effect::Unchanged | Effect::Absent);
    if committed.outcomes.iter().any(|outcome| is_change(outcome.effect)) {
        reflector.reach(committed.revision).await;
    }
}

/// The same object with another spec.
fn redraft(record: &Record, spec: Bytes) -> Draft {
    let content = record.content();
    Draft {
        key: content.key,
        uid: None,
        generation: None,
        labels: content.labels,
        refs: content.refs,
        owner: content.owner,
        annotations: content.annotations,
        audience: content.audience,
        spec,
    }
}
