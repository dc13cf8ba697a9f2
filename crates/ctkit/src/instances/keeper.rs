//! The task that keeps the leases of an instance.

use std::{future::Future, sync::Arc};

use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

use crate::{
    instances::{
        assignment::Assignment,
        call::{Call, Topic},
        calls::Calls,
        config::Settings,
        events::Finished,
        solo,
        view::View,
    },
    leases::Leases,
    source::CommitError,
};

/// The task that keeps the leases of an instance: it takes, renews and gives back.
///
/// It waits for nobody but the lease table, so that leases are renewed however long reactions take.
#[must_use = "no shard is taken before it runs"]
#[derive(Debug)]
pub struct ShardKeeper<L> {
    leases: Arc<L>,
    settings: Arc<Settings>,
    /// There are no others, and no leases.
    alone: bool,
    seed: u64,
    finished: Arc<Finished>,
    view: watch::Sender<View>,
}

/// A keeper that runs.
struct Running<L> {
    leases: Arc<L>,
    settings: Arc<Settings>,
    assignment: Assignment,
    calls: Calls,
    rng: SmallRng,
    view: watch::Sender<View>,
}

// === impl ShardKeeper ===

impl<L: Leases> ShardKeeper<L> {
    pub(crate) fn new(
        leases: Arc<L>,
        settings: Arc<Settings>,
        alone: bool,
        seed: u64,
        finished: Arc<Finished>,
        view: watch::Sender<View>,
    ) -> Self {
        Self { leases, settings, alone, seed, finished, view }
    }

    /// Keeps leases until `shutdown`; then hands all shards over, and returns within the time that was set for that.
    ///
    /// A shard of which something still runs at that time is not given back: its lease ends by itself.
    ///
    /// # Cancel safety
    /// If it is dropped, nothing is renewed or given back; others take over when the leases end.
    pub async fn run_until(self, shutdown: impl Future<Output = ()> + Send) {
        let Self { leases, settings, alone, seed, finished, view } = self;
        if alone {
            return solo::run(&view, &finished, settings.grace, shutdown).await;
        }
        let assignment = Assignment::new(settings.clone(), Instant::now().into_std());
        let (calls, rng) = (Calls::default(), SmallRng::seed_from_u64(seed));
        let mut running = Running { leases, settings, assignment, calls, rng, view };
        let mut shutdown = std::pin::pin!(shutdown);
        let mut leaving = false;
        loop {
            running.poll();
            if running.assignment.has_left(Instant::now().into_std()) {
                break;
            }
            let due = running.assignment.due().map(Instant::from_std);
            tokio::select! {
                () = &mut shutdown, if !leaving => {
                    leaving = true;
                    running.assignment.leave(Instant::now().into_std());
                }
                Some((topic, answer)) = running.calls.next() => {
                    let (now, random) = (Instant::now().into_std(), running.rng.random());
                    running.assignment.answer(topic, answer, now, random);
                }
                shards = finished.take() => {
                    for (shard, number) in shards {
                        running.assignment.drained(shard, number, Instant::now().into_std());
                    }
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
        }
        running.view.send_modify(View::clear);
    }
}

// === impl Running ===

impl<L: Leases> Running<L> {
    /// Does what is due.
    fn poll(&mut self) {
        let calls = self.assignment.poll(Instant::now().into_std());
        // Shown before anything is sent: what is given back must not be acted on any more.
        self.show();
        for (topic, call) in calls {
            self.send(topic, call);
        }
    }

    fn send(&mut self, topic: Topic, call: Call) {
        let (leases, settings) = (self.leases.clone(), self.settings.clone());
        self.calls.spawn(topic, async move {
            let Settings { names, instance, ttl, .. } = &*settings;
            let limit = settings.call_timeout();
            let answer = timeout(limit, call.make(&*leases, &names.prefix(), instance, *ttl)).await;
            answer.unwrap_or_else(|_| Err(CommitError::Unavailable(format!("no answer within {limit:?}"))))
        });
    }

    fn show(&mut self) {
        let view = self.assignment.view();
        let instance = &self.settings.instance;
        self.view.send_if_modified(|shown| {
            if *shown == view {
                return false;
            }
            log(instance.as_str(), shown, &view);
            *shown = view;
            true
        });
    }
}

/// Tells people what has changed.
fn log(instance: &str, old: &View, new: &View) {
    match (&old.trouble, &new.trouble) {
        (None, Some(reason)) => tracing::warn!(instance.id = instance, %reason, "lease table does not answer"),
        (Some(_), None) => tracing::info!(instance.id = instance, "lease table answers again"),
        _ => {}
    }
    if old.members != new.members {
        tracing::info!(instance.id = instance, members = new.members.len(), "instances changed");
    }
    for (shard, (old, new)) in old.seats.iter().zip(&new.seats).enumerate() {
        match (old, new) {
            (None, Some(_)) => tracing::info!(instance.id = instance, shard, "shard gained"),
            (Some(old), None) if old.draining => tracing::info!(instance.id = instance, shard, "shard handed over"),
            (Some(_), None) => tracing::warn!(instance.id = instance, shard, "shard lost"),
            _ => {}
        }
    }
}
