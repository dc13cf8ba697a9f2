//! A publisher that says again and again what should exist.

use std::{collections::BTreeMap, iter, time::Duration};

use nimbus_wire::v1::{self, sync_request};
use rand::{RngExt as _, rngs::SmallRng};
use tokio::{sync::mpsc, time::sleep};
use tokio_stream::wrappers::ReceiverStream;

use crate::powercut::{
    ledger::{Ledger, Step},
    life::{Answer, Life},
    thing,
};

/// A publisher that says again and again what should exist.
#[derive(Debug)]
pub(crate) struct Syncer {
    pub(crate) name: String,
    pub(crate) ledger: Ledger,
    interval: Duration,
    /// Rises with every version, and so do generations.
    number: u64,
    rng: SmallRng,
}

/// Some of which exist at a time.
const NAMES: usize = 24;

/// A sync is of several of these, so that it can be cut off between two.
const ITEMS: usize = 4;

/// The sender waits for the bus.
const QUEUE: usize = 1;

// === impl Syncer ===

impl Syncer {
    pub(crate) fn new(name: String, interval: Duration, rng: SmallRng) -> Self {
        Self { name, ledger: Ledger::default(), interval, number: 0, rng }
    }

    /// Syncs until the bus is killed.
    pub(crate) async fn run(mut self, mut life: Life) -> Self {
        while self.sync(&life).await && life.pause(self.interval.mul_f64(2.0 * self.rng.random::<f64>())).await {}
        self
    }

    /// Syncs once. Says whether the bus lives.
    pub(crate) async fn sync(&mut self, life: &Life) -> bool {
        let batches = self.plan();
        let (sender, receiver) = mpsc::channel(QUEUE);
        let pauses: Vec<_> = batches.iter().map(|_| Duration::from_micros(self.rng.random_range(0..3000))).collect();
        let feed = async {
            let begin =
                v1::SyncBegin { publisher: self.name.clone(), kinds: vec![thing::KIND.into()], ..Default::default() };
            let half = batches.len() / 2;
            let items = batches.into_iter().map(|objects| sync_request::Step::Items(v1::SyncItems { objects }));
            let steps = iter::once(sync_request::Step::Begin(begin)).chain(items);
            for (at, (step, pause)) in steps.zip(iter::once(Duration::ZERO).chain(pauses)).enumerate() {
                sleep(pause).await;
                if at == half {
                    life.syncing.notify_waiters();
                }
                // If nobody takes it any more, the call says why.
                drop(sender.send(v1::SyncRequest { step: Some(step) }).await);
            }
            drop(sender.send(v1::SyncRequest { step: Some(sync_request::Step::End(v1::SyncEnd {})) }).await);
            drop(sender);
        };
        let mut publisher = life.publisher();
        let (answer, ()) = tokio::join!(life.call(publisher.sync(ReceiverStream::new(receiver))), feed);
        match answer {
            Answer::Done(response) => {
                life.witness.hear(response.epoch, response.revision);
                self.ledger.acknowledged_until(response.revision);
                life.witness.acknowledged("sync");
                true
            }
            Answer::Refused(status) => {
                life.witness.accuse(format_args!("a sync of {} was refused: {status:?}", self.name));
                false
            }
            Answer::Lost => false,
        }
    }

    /// What should exist, in parts, of which the ledger is told.
    fn plan(&mut self) -> Vec<Vec<v1::Object>> {
        let mut wanted = BTreeMap::new();
        for at in 0..NAMES {
            let name = format!("{}-{at}", self.name);
            let known = self.ledger.object(&name).cloned();
            match known {
                _ if self.rng.random_bool(0.2) => {}
                Some(object) if self.rng.random_bool(0.6) => drop(wanted.insert(name, (object, false))),
                known => {
                    self.number += 1;
                    let uid = known.map_or_else(|| format!("{name}-{}", self.number), |object| object.uid);
                    let object = thing::object(&self.name, &name, &uid, self.number, &mut self.rng);
                    wanted.insert(name, (object, true));
                }
            }
        }
        let gone: Step = (self.ledger.names())
            .filter(|name| !wanted.contains_key(*name))
            .map(|name| (name.clone(), None))
            .collect();
        let wanted: Vec<_> = wanted.into_iter().collect();
        let change = |(name, (object, changed)): &(String, (v1::Object, bool))| {
            changed.then(|| (name.clone(), Some(object.clone())))
        };
        let steps = wanted.chunks(ITEMS).map(|items| items.iter().filter_map(change).collect::<Step>());
        self.ledger.attempt(steps.chain([gone]).filter(|step| !step.is_empty()).collect());
        wanted
            .chunks(ITEMS)
            .map(|items| items.iter().map(|(_, (object, _))| object.clone()).collect())
            .collect()
    }
}
