//! A publisher of single transactions.

use std::{collections::BTreeMap, time::Duration};

use nimbus_wire::v1::{self, op::Op};
use rand::{RngExt as _, rngs::SmallRng};
use tonic::Code;

use crate::powercut::{
    ledger::{Ledger, Step},
    life::{Answer, Life},
    thing,
};

/// A publisher of single transactions.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) name: String,
    pub(crate) ledger: Ledger,
    interval: Duration,
    /// Rises with every write, and so do generations.
    number: u64,
    /// The highest that was sent.
    fence: u64,
    /// The highest that was acknowledged.
    pub(crate) fenced: u64,
    rng: SmallRng,
}

/// A write, and how the objects will be.
#[derive(Debug, Default)]
struct Write {
    ops: Vec<v1::Op>,
    step: Step,
    sort: &'static str,
}

/// Few enough that each is written often, in all ways.
const NAMES: u64 = 12;

const MAX_OPS: usize = 6;

// === impl Writer ===

impl Writer {
    pub(crate) fn new(name: String, interval: Duration, rng: SmallRng) -> Self {
        Self { name, ledger: Ledger::default(), interval, number: 0, fence: 1, fenced: 0, rng }
    }

    /// Writes until the bus is killed.
    pub(crate) async fn run(mut self, mut life: Life) -> Self {
        while life.pause(self.interval.mul_f64(2.0 * self.rng.random::<f64>())).await {
            let goes_on = match self.rng.random_range(0..100) {
                0..5 => self.write_stale(&life).await,
                5..8 => self.repeat(&life).await,
                8..12 => {
                    self.fence += 1;
                    let write =
                        if self.rng.random() { Write { sort: "fence", ..Write::default() } } else { self.any() };
                    self.send(&life, write).await
                }
                _ => {
                    let write = self.any();
                    self.send(&life, write).await
                }
            };
            if !goes_on {
                break;
            }
        }
        self
    }

    /// Sends a write that must be accepted. Says whether the bus lives.
    async fn send(&mut self, life: &Life, write: Write) -> bool {
        let Write { ops, step, sort } = write;
        let (changes, fence) = (step.len(), self.fence);
        self.ledger.attempt(if step.is_empty() { Vec::new() } else { vec![step] });
        match life.call(life.publisher().apply(self.request(ops, fence))).await {
            Answer::Done(response) => {
                life.witness.hear(response.epoch, response.revision);
                if changes > 0 {
                    life.witness.written(response.revision, &self.name);
                    self.ledger.acknowledged(response.revision);
                }
                self.fenced = self.fenced.max(fence);
                life.witness.acknowledged(sort);
                true
            }
            Answer::Refused(status) => {
                life.witness.accuse(format_args!("{sort} of {} was refused: {status:?}", self.name));
                self.ledger.refused();
                false
            }
            Answer::Lost => false,
        }
    }

    /// Sends what must be refused: a write that somebody has overtaken.
    async fn write_stale(&mut self, life: &Life) -> bool {
        let Some(name) = self.existing() else { return true };
        let Some(revision) = self.ledger.revision(&name) else { return true };
        let (op, fence) = if self.fenced > 1 && self.rng.random() {
            (upsert(self.object(&name)), self.rng.random_range(1..self.fenced))
        } else {
            let stale = v1::Precondition { revision: Some(revision - 1), ..v1::Precondition::default() };
            (v1::Op { precondition: Some(stale), ..self.status(&name).0 }, self.fence)
        };
        match life.call(life.publisher().apply(self.request(vec![op], fence))).await {
            Answer::Refused(status) if status.code() == Code::FailedPrecondition => true,
            Answer::Lost => false,
            other => {
                life.witness
                    .accuse(format_args!("a stale write of {} was not refused: {other:?}", self.name));
                false
            }
        }
    }

    /// Sends what is already there: it makes no revision.
    async fn repeat(&mut self, life: &Life) -> bool {
        let Some(object) = self.existing().and_then(|name| self.ledger.object(&name)) else { return true };
        let object = v1::Object { status: None, observed_generation: 0, ..object.clone() };
        match life.call(life.publisher().apply(self.request(vec![upsert(object)], self.fence))).await {
            Answer::Done(response) => {
                if response.outcomes[0].result() != v1::Result::Unchanged {
                    life.witness.accuse(format_args!("{} repeated itself: {response:?}", self.name));
                }
                self.fenced = self.fenced.max(self.fence);
                life.witness.acknowledged("repeated");
                true
            }
            Answer::Refused(status) => {
                life.witness
                    .accuse(format_args!("{} was not allowed to repeat itself: {status:?}", self.name));
                false
            }
            Answer::Lost => false,
        }
    }

    fn request(&self, ops: Vec<v1::Op>, fence: u64) -> v1::ApplyRequest {
        v1::ApplyRequest { publisher: self.name.clone(), fence, ops, ..v1::ApplyRequest::default() }
    }

    /// Something to write: one change, or several at once.
    fn any(&mut self) -> Write {
        let wanted = if self.rng.random_bool(0.25) { self.rng.random_range(2..=MAX_OPS) } else { 1 };
        let (mut write, mut ops) = (Write::default(), BTreeMap::new());
        while ops.len() < wanted {
            let name = format!("{}-{}", self.name, self.rng.random_range(0..NAMES));
            if ops.contains_key(&name) {
                continue;
            }
            let (op, object, sort) = self.change(&name);
            ops.insert(name.clone(), op);
            write.step.insert(name, object);
            write.sort = if wanted > 1 { "transaction" } else { sort };
        }
        write.ops = ops.into_values().collect();
        write
    }

    /// A change of an object, and how it will be.
    fn change(&mut self, name: &str) -> (v1::Op, Option<v1::Object>, &'static str) {
        if self.ledger.object(name).is_none() {
            let (object, precondition) = (self.object(name), v1::Precondition { absent: true, ..Default::default() });
            let op = v1::Op { precondition: Some(precondition), ..upsert(object.clone()) };
            return (op, Some(object), "create");
        }
        match self.rng.random_range(0..10) {
            0..2 => {
                let op = v1::Op { op: Some(Op::Delete(thing::key(name))), ..v1::Op::default() };
                (op, None, "delete")
            }
            2..5 => {
                let (op, object) = self.status(name);
                (op, Some(object), "status")
            }
            _ => {
                let object = self.object(name);
                let before = self.ledger.object(name).expect("it is there");
                let kept = v1::Object {
                    status: before.status.clone(),
                    observed_generation: before.observed_generation,
                    ..object.clone()
                };
                (upsert(object), Some(kept), "update")
            }
        }
    }

    /// Another version of an object, of the same life if it has one.
    fn object(&mut self, name: &str) -> v1::Object {
        self.number += 1;
        let uid = self.ledger.object(name).map(|object| object.uid.clone());
        let uid = uid.unwrap_or_else(|| format!("{name}-{}", self.number));
        thing::object(&self.name, name, &uid, self.number, &mut self.rng)
    }

    /// A status for an object that nobody has changed since, and how it will be.
    fn status(&mut self, name: &str) -> (v1::Op, v1::Object) {
        self.number += 1;
        let object = self.ledger.object(name).expect("it is there").clone();
        let (status, observed_generation) = (Some(thing::status(self.number)), object.generation);
        let write = v1::StatusWrite { key: Some(thing::key(name)), status: status.clone(), observed_generation };
        let revision = self.ledger.revision(name);
        let precondition = v1::Precondition { revision, ..v1::Precondition::default() };
        let op = v1::Op { op: Some(Op::Status(write)), precondition: Some(precondition), ..v1::Op::default() };
        (op, v1::Object { status, observed_generation, ..object })
    }

    fn existing(&mut self) -> Option<String> {
        let names: Vec<_> = self.ledger.names().collect();
        (!names.is_empty()).then(|| names[self.rng.random_range(0..names.len())].clone())
    }
}

fn upsert(object: v1::Object) -> v1::Op {
    v1::Op { op: Some(Op::Upsert(object)), ..v1::Op::default() }
}
