//! Everybody who writes.

use std::time::Duration;

use nimbus_client::Channel;
use nimbus_wire::v1;
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use tokio::{task::JoinHandle, time::Instant};
use tonic::Code;

use crate::powercut::{
    contender::{Contender, look_on},
    ledger::{Fate, Objects},
    life::{Answer, Life},
    listing::Listing,
    syncer::Syncer,
    thing,
    witness::Sent,
    writer::Writer,
};

/// Everybody who writes. Between two lives of the bus they rest, and what they know can be compared.
#[derive(Debug)]
pub(crate) struct Crew {
    writers: Vec<Writer>,
    syncers: Vec<Syncer>,
    contender: Contender,
    /// How many kinds were ever sent to be registered.
    kinds: u32,
    rng: SmallRng,
}

/// The crew while it works.
#[derive(Debug)]
pub(crate) struct Working {
    writers: Vec<JoinHandle<Writer>>,
    syncers: Vec<JoinHandle<Syncer>>,
    contender: JoinHandle<Contender>,
    others: Vec<JoinHandle<()>>,
    kinds: u32,
    rng: SmallRng,
}

/// Calls that were never answered, by what had become of them.
#[derive(Debug, Default)]
pub(crate) struct Fates {
    pub(crate) applied: u64,
    pub(crate) begun: u64,
    pub(crate) not_applied: u64,
}

/// Each has one call under way at most: as many can be cut off at once.
const WRITERS: usize = 16;

const SYNCERS: usize = 2;

/// Of every hundred writes, contenders for leases make so many.
const LEASE_SHARE: f64 = 0.1;

/// Long enough that a sync is one of several things that happen.
const SYNC_INTERVAL: Duration = Duration::from_millis(150);

/// Registered kinds are limited.
const MAX_KINDS: u32 = 40;

// === impl Crew ===

impl Crew {
    pub(crate) fn new(rate: f64, mut rng: SmallRng) -> Self {
        let interval = Duration::from_secs_f64(WRITERS as f64 / (rate * (1.0 - LEASE_SHARE)));
        let mut fork = || SmallRng::from_rng(&mut rng);
        Self {
            writers: (0..WRITERS).map(|at| Writer::new(format!("writer-{at}"), interval, fork())).collect(),
            syncers: (0..SYNCERS)
                .map(|at| Syncer::new(format!("syncer-{at}"), SYNC_INTERVAL, fork()))
                .collect(),
            contender: Contender::new(Duration::from_secs_f64(1.0 / (rate * LEASE_SHARE)), fork()),
            kinds: 0,
            rng,
        }
    }

    /// Makes the kind known and complete, before anything else happens.
    pub(crate) async fn prepare(&mut self, life: &Life) {
        register(life.clone(), "Thing".to_owned()).await;
        for syncer in &mut self.syncers {
            syncer.sync(life).await;
        }
    }

    /// A bus is about to start.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.contender.restart(now);
    }

    /// A bus was killed.
    pub(crate) fn killed(&mut self, now: Instant) {
        self.contender.killed(now);
    }

    /// Begins to write, over these connections.
    pub(crate) fn work(mut self, life: &Life, channels: &[Channel]) -> Working {
        let mut turn = channels.iter().cycle();
        let mut life = || Life { channel: turn.next().unwrap_or(&life.channel).clone(), ..life.clone() };
        let mut others = vec![tokio::spawn(look_on(life()))];
        if self.kinds < MAX_KINDS && self.rng.random_bool(0.3) {
            self.kinds += 1;
            others.push(tokio::spawn(register(life(), format!("Extra{}", self.kinds))));
        }
        Working {
            writers: self.writers.into_iter().map(|writer| tokio::spawn(writer.run(life()))).collect(),
            syncers: self.syncers.into_iter().map(|syncer| tokio::spawn(syncer.run(life()))).collect(),
            contender: tokio::spawn(self.contender.run(life())),
            others,
            kinds: self.kinds,
            rng: self.rng,
        }
    }

    /// Compares what everybody knows with what the bus lists, and says what had become of calls without an answer.
    pub(crate) fn settle(&mut self, life: &Life, listing: &Listing) -> Fates {
        let (mut fates, none) = (Fates::default(), Objects::new());
        let publishers = listing.by_publisher();
        let writers = self.writers.iter_mut().map(|writer| (&*writer.name, &mut writer.ledger));
        let syncers = self.syncers.iter_mut().map(|syncer| (&*syncer.name, &mut syncer.ledger));
        for (name, ledger) in writers.chain(syncers) {
            match ledger.settle(publishers.get(name).unwrap_or(&none), listing.revision) {
                Ok(Fate::NoneUnderWay) => {}
                Ok(Fate::Applied) => fates.applied += 1,
                Ok(Fate::Begun) => fates.begun += 1,
                Ok(Fate::NotApplied) => fates.not_applied += 1,
                Err(what) => life.witness.accuse(format_args!("{name}: {what}")),
            }
        }
        for object in &listing.objects {
            life.witness.written(object.revision, &object.manager);
        }
        fates
    }

    /// Whether an object that subscribers were sent at a revision has ended after it.
    pub(crate) fn has_ended(&self, name: &str, sent: &Sent) -> bool {
        let writers = self.writers.iter().map(|writer| &writer.ledger);
        let mut ledgers = writers.chain(self.syncers.iter().map(|syncer| &syncer.ledger));
        ledgers.any(|ledger| ledger.ended(name).is_some_and(|ended| ended > sent.revision()))
    }

    /// One of the writers of before tries to write.
    pub(crate) async fn check_fence(&mut self, life: &Life) {
        let writer = &self.writers[self.rng.random_range(0..self.writers.len())];
        if writer.fenced < 2 {
            return;
        }
        let (publisher, fence) = (writer.name.clone(), writer.fenced - 1);
        let request = v1::ApplyRequest { publisher, fence, ..v1::ApplyRequest::default() };
        match life.call(life.publisher().apply(request)).await {
            Answer::Refused(status) if status.code() == Code::FailedPrecondition => {}
            other => {
                let (name, fenced) = (&writer.name, writer.fenced);
                life.witness
                    .accuse(format_args!("fence {fence} of {name} passed, after {fenced}: {other:?}"));
            }
        }
    }
}

// === impl Working ===

impl Working {
    /// Waits until everybody has noticed that the bus was killed.
    pub(crate) async fn rest(self) -> anyhow::Result<Crew> {
        let (mut writers, mut syncers) = (Vec::new(), Vec::new());
        for writer in self.writers {
            writers.push(writer.await?);
        }
        for syncer in self.syncers {
            syncers.push(syncer.await?);
        }
        let contender = self.contender.await?;
        for other in self.others {
            other.await?;
        }
        Ok(Crew { writers, syncers, contender, kinds: self.kinds, rng: self.rng })
    }
}

/// Registers a kind.
async fn register(life: Life, message: String) {
    let descriptor_set = thing::descriptors(&message).into();
    let request = v1::RegisterKindsRequest { descriptor_set, kinds: Vec::new() };
    match life.call(life.publisher().register_kinds(request)).await {
        Answer::Done(response) => {
            life.witness.acknowledged("kind");
            response.kinds.into_iter().for_each(|kind| life.witness.registered(kind));
        }
        Answer::Refused(status) => life.witness.accuse(format_args!("{message} was not registered: {status:?}")),
        Answer::Lost => {}
    }
}
