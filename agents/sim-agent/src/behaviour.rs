//! How a simulated agent handles objects.

use std::{hash::BuildHasher as _, sync::Arc, time::Duration};

use nimbus_agent::{Context, Failure, Handler, Object, Status};
use prost_types::Any;
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};

use crate::{
    options::{Latency, Options},
    tally::Tally,
};

/// A handler that applies nothing, as slowly and badly as it was asked to.
#[derive(Debug, Clone)]
pub(crate) struct Behaviour {
    seed: u64,
    latency: Latency,
    fail_rate: f64,
    reject_rate: f64,
    stall_rate: f64,
    stall: Duration,
    tally: Arc<Tally>,
}

// === impl Behaviour ===

impl Behaviour {
    pub(crate) fn new(options: &Options, tally: &Arc<Tally>) -> Self {
        Self {
            seed: options.seed,
            latency: options.latency.clone(),
            fail_rate: options.fail_rate,
            reject_rate: options.reject_rate,
            stall_rate: options.stall_rate,
            stall: options.stall,
            tally: tally.clone(),
        }
    }

    /// Chance that is the same for the same call, whatever else happens.
    fn chance(&self, cx: &Context, object: &Object<Any>, attempt: u32) -> SmallRng {
        let hasher = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default();
        let call = (self.seed, cx.agent().as_str(), object.key(), object.meta.generation, attempt);
        SmallRng::seed_from_u64(hasher.hash_one(call))
    }

    async fn take_time(&self, chance: &mut SmallRng) {
        let (from, to) = (*self.latency.start(), *self.latency.end());
        let mut time = from + (to - from).mul_f64(chance.random());
        if chance.random_bool(self.stall_rate) {
            self.tally.stalled.add(1);
            time += self.stall;
        }
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
    }
}

impl Handler<Any> for Behaviour {
    async fn apply(&self, cx: &Context, object: Arc<Object<Any>>) -> Result<Status, Failure> {
        // Whether it is rejected belongs to the generation, not to the attempt.
        if self.chance(cx, &object, u32::MAX).random_bool(self.reject_rate) {
            self.tally.rejected.add(1);
            return Err(Failure::new("rejected, as it was asked to").with_code("REJECTED").permanent());
        }
        let mut chance = self.chance(cx, &object, cx.attempt());
        self.take_time(&mut chance).await;
        if chance.random_bool(self.fail_rate) {
            self.tally.failed.add(1);
            return Err(Failure::new("failed, as it was asked to").with_code("SIMULATED"));
        }
        self.tally.applied.add(1);
        Ok(Status::applied())
    }

    async fn remove(&self, cx: &Context, object: Arc<Object<Any>>) -> Result<(), Failure> {
        self.take_time(&mut self.chance(cx, &object, cx.attempt())).await;
        self.tally.removed.add(1);
        Ok(())
    }
}
