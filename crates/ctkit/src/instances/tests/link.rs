//! The way from one instance to the lease table, and what can go wrong on it.

use std::{sync::Arc, time::Duration};

use nimbus_store::Guard;
use parking_lot::Mutex;
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use tokio::{sync::oneshot, time::sleep};

use crate::{Acquired, CommitError, Held, Leases, instances::tests::lease_table::LeaseTable};

/// The way from one instance to the lease table, and what can go wrong on it.
///
/// A request that was sent travels on by itself, and may arrive long after its sender gave it up.
pub(crate) struct Link {
    table: Arc<LeaseTable>,
    state: Mutex<State>,
}

struct State {
    rng: SmallRng,
    weather: Weather,
    failing: bool,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weather {
    /// Nothing arrives.
    pub(crate) cut: bool,
    /// How often a request is lost, from 0 to 1.
    pub(crate) lost_requests: f64,
    /// How often an answer is lost after the request took effect.
    pub(crate) lost_answers: f64,
    /// The longest way in each direction.
    pub(crate) delay: Duration,
}

// === impl Link ===

impl Link {
    pub(crate) fn new(table: Arc<LeaseTable>, seed: u64) -> Arc<Self> {
        let weather = Weather { delay: Duration::from_millis(5), ..Weather::default() };
        let rng = SmallRng::seed_from_u64(seed);
        Arc::new(Self { table, state: Mutex::new(State { rng, weather, failing: false }) })
    }

    pub(crate) fn set(&self, weather: Weather) {
        self.state.lock().weather = weather;
    }

    /// Panics in every call, as a table with a bug would.
    pub(crate) fn panic_from_now_on(&self, failing: bool) {
        self.state.lock().failing = failing;
    }

    async fn call<T: Send + 'static>(
        &self,
        effect: impl FnOnce(&LeaseTable) -> T + Send + 'static,
    ) -> Result<T, CommitError> {
        let (there, back, request_lost, answer_lost) = {
            let State { rng, weather, failing } = &mut *self.state.lock();
            assert!(!*failing, "a bug in the lease table");
            let mut way = || weather.delay.mul_f64(rng.random());
            let (there, back) = (way(), way());
            let lost = weather.cut || rng.random_bool(weather.lost_requests);
            (there, back, lost, rng.random_bool(weather.lost_answers))
        };
        let (answer, answered) = oneshot::channel();
        let table = self.table.clone();
        tokio::spawn(async move {
            sleep(there).await;
            if !request_lost {
                let result = effect(&table);
                sleep(back).await;
                // The sender may have given up, or died.
                let _ = if answer_lost { Ok(()) } else { answer.send(result).map_err(drop) };
            }
        });
        answered.await.map_err(|_| CommitError::Unavailable("nobody answers".into()))
    }
}

impl Leases for Link {
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Acquired, CommitError> {
        let (name, holder) = (name.to_owned(), holder.to_owned());
        self.call(move |table| table.acquire(&name, &holder, ttl)).await
    }

    async fn renew(&self, held: &[Guard]) -> Result<Vec<Arc<str>>, CommitError> {
        let held = held.to_vec();
        self.call(move |table| table.renew(&held)).await
    }

    async fn release(&self, held: &[Guard]) -> Result<(), CommitError> {
        let held = held.to_vec();
        self.call(move |table| table.release(&held)).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Held>, CommitError> {
        let prefix = prefix.to_owned();
        self.call(move |table| table.list(&prefix)).await
    }
}
