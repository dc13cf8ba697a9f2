//! Instances that contend for leases, and writes of those who lost one.

use std::{collections::BTreeMap, time::Duration};

use nimbus_wire::v1;
use rand::{RngExt as _, rngs::SmallRng};
use tokio::time::Instant;
use tonic::Code;

use crate::powercut::life::{Answer, Life};

/// Instances that contend for leases, one call at a time.
#[derive(Debug)]
pub(crate) struct Contender {
    interval: Duration,
    leases: BTreeMap<String, Known>,
    rng: SmallRng,
}

/// What is known of a lease.
#[derive(Debug, Default)]
struct Known {
    /// Who must hold it.
    held: Option<Held>,
    /// The highest token that was given.
    highest: u64,
}

#[derive(Debug, Clone)]
struct Held {
    holder: String,
    token: u64,
    ttl: Duration,
    /// Until then at least.
    until: Instant,
}

const LEASES: usize = 3;

const HOLDERS: [&str; 3] = ["one", "two", "three"];

/// Who writes under leases.
const PUBLISHER: &str = "contender";

/// Shorter than some lives of the bus, longer than others.
const TTL_MS: std::ops::Range<u32> = 100..1500;

// === impl Contender ===

impl Contender {
    pub(crate) fn new(interval: Duration, rng: SmallRng) -> Self {
        let leases = (0..LEASES).map(|at| (format!("lease-{at}"), Known::default())).collect();
        Self { interval, leases, rng }
    }

    /// A bus is about to start. It gives all leases their whole time again.
    pub(crate) fn restart(&mut self, now: Instant) {
        for held in self.leases.values_mut().filter_map(|known| known.held.as_mut()) {
            held.until = now + held.ttl;
        }
    }

    /// A bus was killed. What had ended by then may be held again or not.
    pub(crate) fn killed(&mut self, now: Instant) {
        for known in self.leases.values_mut() {
            known.held = known.held.take().filter(|held| held.until > now);
        }
    }

    /// Contends until the bus is killed.
    pub(crate) async fn run(mut self, mut life: Life) -> Self {
        while life.pause(self.interval.mul_f64(2.0 * self.rng.random::<f64>())).await {
            let name = format!("lease-{}", self.rng.random_range(0..LEASES));
            let goes_on = match self.rng.random_range(0..10) {
                0..6 => self.acquire(&life, &name).await,
                6 => self.release(&life, &name).await,
                7 => self.write(&life, &name).await,
                _ => self.write_without(&life, &name).await,
            };
            if !goes_on {
                break;
            }
        }
        self
    }

    async fn acquire(&mut self, life: &Life, name: &str) -> bool {
        let holder = HOLDERS[self.rng.random_range(0..HOLDERS.len())];
        let ttl_ms = self.rng.random_range(TTL_MS);
        let known = self.leases.get_mut(name).expect("there are these only");
        // Until the answer is there, nobody is sure to hold it.
        let held = known.held.take();
        let asked = Instant::now();
        let request = v1::AcquireRequest { name: name.to_owned(), holder: holder.to_owned(), ttl_ms };
        let (granted, lease) = match life.call(life.leases().acquire(request)).await {
            Answer::Done(v1::AcquireResponse { granted, lease: Some(lease) }) => (granted, lease),
            Answer::Lost => return false,
            other => {
                life.witness.accuse(format_args!("{name} could not be asked for: {other:?}"));
                return false;
            }
        };
        life.witness.lease(&lease);
        life.witness.acknowledged("lease");
        if lease.token < known.highest {
            life.witness
                .accuse(format_args!("tokens of {name} go back, from {} to {}", known.highest, lease.token));
        }
        if let Some(held) = held.filter(|held| held.until > Instant::now())
            && (lease.token != held.token || granted != (held.holder == holder))
        {
            life.witness
                .accuse(format_args!("{held:?} was not over, but {holder} was told {granted} and {lease:?}"));
        }
        known.highest = known.highest.max(lease.token);
        if granted {
            let ttl = Duration::from_millis(ttl_ms.into());
            known.held = Some(Held { holder: holder.to_owned(), token: lease.token, ttl, until: asked + ttl });
        }
        true
    }

    async fn release(&mut self, life: &Life, name: &str) -> bool {
        let known = self.leases.get_mut(name).expect("there are these only");
        let Some(held) = known.held.take() else { return true };
        let leases = vec![v1::LeaseToken { name: name.to_owned(), token: held.token }];
        !matches!(life.call(life.leases().release(v1::ReleaseRequest { leases })).await, Answer::Lost)
    }

    /// Whoever is sure to hold a lease may write under it.
    async fn write(&mut self, life: &Life, name: &str) -> bool {
        let Some(held) = self.leases[name].held.clone() else { return true };
        let answer = life.call(life.publisher().apply(guarded(name, held.token))).await;
        match answer {
            Answer::Done(_) => true,
            Answer::Lost => false,
            Answer::Refused(_) if held.until <= Instant::now() => true,
            Answer::Refused(status) => {
                life.witness.accuse(format_args!("{held:?} was not over, but refused: {status:?}"));
                false
            }
        }
    }

    /// Whoever held it before somebody else may not.
    async fn write_without(&mut self, life: &Life, name: &str) -> bool {
        let highest = self.leases[name].highest;
        if highest < 2 {
            return true;
        }
        let token = self.rng.random_range(1..highest);
        match life.call(life.publisher().apply(guarded(name, token))).await {
            Answer::Refused(status) if status.code() == Code::FailedPrecondition => true,
            Answer::Lost => false,
            other => {
                life.witness
                    .accuse(format_args!("token {token} of {name} passed, after {highest}: {other:?}"));
                false
            }
        }
    }
}

/// Somebody who looks at leases and holds none, until the bus is killed.
pub(crate) async fn look_on(mut life: Life) {
    const INTERVAL: Duration = Duration::from_millis(3);
    while life.pause(INTERVAL).await {
        match life.call(life.leases().list_leases(v1::ListLeasesRequest::default())).await {
            Answer::Done(response) => response.leases.iter().for_each(|lease| life.witness.lease(lease)),
            _ => break,
        }
    }
}

fn guarded(name: &str, token: u64) -> v1::ApplyRequest {
    let leases = vec![v1::LeaseToken { name: name.to_owned(), token }];
    v1::ApplyRequest { publisher: PUBLISHER.to_owned(), leases, ..v1::ApplyRequest::default() }
}
