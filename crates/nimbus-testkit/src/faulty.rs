//! Sources and targets that fail as they are told.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use ctkit::{
    Acquired, CommitError, Event, Guard, Held, Kind, Leases, ObjectKey, Record, Snapshot, Source, Target, TargetEvent,
    WatchError,
};
use nimbus_core::{Position, PublisherId};
use nimbus_store::{Committed, Txn};
use nimbus_wire::v1;
use parking_lot::Mutex;
use tokio_stream::{Stream, StreamExt as _};

/// A source or a target that fails as its [`Faults`] say, and otherwise is what is in it.
///
/// ```
/// # use ctkit::{CommitError, Leases as _, Store};
/// # use nimbus_testkit::{Faults, Faulty};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let faults = Faults::default();
/// let store = Faulty::new(Store::in_memory(), &faults);
/// faults.down();
/// assert!(matches!(store.list("").await, Err(CommitError::Unavailable(_))));
/// faults.up();
/// assert!(store.list("").await.is_ok());
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Faulty<S> {
    inner: S,
    faults: Faults,
}

/// What goes wrong with a source or a target. Clones are the same one; with the default, nothing does.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    commits: VecDeque<Fault>,
    latency: Duration,
    is_down: bool,
}

/// What becomes of one transaction.
#[derive(Debug)]
enum Fault {
    /// It does not happen.
    Refused(CommitError),
    /// It happens, and nobody is told.
    Unanswered,
}

// === impl Faults ===

impl Faults {
    /// The next `times` transactions do not happen, for this reason.
    pub fn fail_next_commits(&self, times: usize, error: &CommitError) {
        self.0.lock().commits.extend((0..times).map(|_| Fault::Refused(error.clone())));
    }

    /// The next `times` transactions happen, but the answer is lost: whoever asked must find out, or do it again.
    pub fn lose_next_answers(&self, times: usize) {
        self.0.lock().commits.extend((0..times).map(|_| Fault::Unanswered));
    }

    /// Every call takes this much longer, and so does every event of a watch.
    pub fn latency(&self, latency: Duration) {
        self.0.lock().latency = latency;
    }

    /// Every call fails, until it is up again. What is watched goes on.
    pub fn down(&self) {
        self.0.lock().is_down = true;
    }

    /// Calls work again.
    pub fn up(&self) {
        self.0.lock().is_down = false;
    }

    /// Transactions that are still to go wrong.
    pub fn left(&self) -> usize {
        self.0.lock().commits.len()
    }

    pub(crate) fn is_down(&self) -> bool {
        self.0.lock().is_down
    }

    pub(crate) fn delay(&self) -> Duration {
        self.0.lock().latency
    }

    /// Before a call: waits, and says whether it gets through.
    async fn pass(&self) -> Result<(), CommitError> {
        self.wait().await;
        if self.is_down() { Err(CommitError::Unavailable("it is down".to_owned())) } else { Ok(()) }
    }

    async fn wait(&self) {
        let latency = self.delay();
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
    }

    async fn commit(
        &self,
        commit: impl Future<Output = Result<Committed, CommitError>> + Send,
    ) -> Result<Committed, CommitError> {
        self.pass().await?;
        let fault = self.0.lock().commits.pop_front();
        match fault {
            None => commit.await,
            Some(Fault::Refused(error)) => Err(error),
            Some(Fault::Unanswered) => {
                commit.await?;
                Err(CommitError::Unavailable("the answer was lost".to_owned()))
            }
        }
    }
}

// === impl Faulty ===

impl<S> Faulty<S> {
    /// The same as `inner`, but for these faults.
    pub fn new(inner: S, faults: &Faults) -> Self {
        Self { inner, faults: faults.clone() }
    }
}

impl<S: Source> Source for Faulty<S> {
    fn watch(
        &self,
        kind: &Kind,
        from: Option<Position>,
    ) -> impl Stream<Item = Result<Event, WatchError>> + Send + 'static {
        let faults = self.faults.clone();
        self.inner.watch(kind, from).then(move |event| {
            let faults = faults.clone();
            async move {
                faults.wait().await;
                event
            }
        })
    }

    async fn commit(&self, txn: Txn) -> Result<Committed, CommitError> {
        self.faults.commit(Source::commit(&self.inner, txn)).await
    }

    fn state(&self) -> Option<Snapshot> {
        self.inner.state()
    }
}

impl<S: Target> Target for Faulty<S> {
    type Sync = S::Sync;

    async fn commit(&self, txn: Txn) -> Result<Committed, CommitError> {
        self.faults.commit(Target::commit(&self.inner, txn)).await
    }

    async fn begin_sync(
        &self,
        publisher: PublisherId,
        fence: u64,
        kinds: BTreeSet<Kind>,
        leases: Vec<Guard>,
    ) -> Result<S::Sync, CommitError> {
        self.faults.pass().await?;
        self.inner.begin_sync(publisher, fence, kinds, leases).await
    }

    async fn published(
        &self,
        publisher: &PublisherId,
        kinds: &BTreeSet<Kind>,
    ) -> Result<Vec<Arc<Record>>, CommitError> {
        self.faults.pass().await?;
        self.inner.published(publisher, kinds).await
    }

    async fn propagation(&self, key: &ObjectKey) -> Result<v1::Propagation, CommitError> {
        self.faults.pass().await?;
        self.inner.propagation(key).await
    }

    fn reports(&self, kinds: &BTreeSet<Kind>) -> impl Stream<Item = TargetEvent> + Send + 'static {
        self.inner.reports(kinds)
    }
}

impl<S: Leases> Leases for Faulty<S> {
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Acquired, CommitError> {
        self.faults.pass().await?;
        self.inner.acquire(name, holder, ttl).await
    }

    async fn renew(&self, held: &[Guard]) -> Result<Vec<Arc<str>>, CommitError> {
        self.faults.pass().await?;
        self.inner.renew(held).await
    }

    async fn release(&self, held: &[Guard]) -> Result<(), CommitError> {
        self.faults.pass().await?;
        self.inner.release(held).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Held>, CommitError> {
        self.faults.pass().await?;
        self.inner.list(prefix).await
    }
}
