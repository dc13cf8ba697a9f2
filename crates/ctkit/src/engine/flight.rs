//! First reactions to a part of the list: run, published and confirmed in one place.

use std::sync::Arc;

use nimbus_core::{Failure, PublisherId};
use nimbus_store::{Draft, Record};

use crate::{
    action::{Action, Next},
    engine::{
        event::Event,
        ledger::SharedLedger,
        run::{Alone, Calls, Common, Ending, Finished, Runner},
        sending::{Batch, Parcel, Staged},
        starting::{Sort, is_paused},
        station::StationId,
        tenure::Tenure,
    },
    erased::ErasedTarget,
    few::Few,
    instances::Shares,
    queue::{Cause, Lane},
    reactor::Call,
};

/// Where the reactions of a shard publish.
pub(crate) struct Desk {
    pub(crate) station: StationId,
    pub(crate) shard: usize,
    pub(crate) lane: Lane,
    pub(crate) publisher: PublisherId,
    pub(crate) common: Arc<Common>,
    pub(crate) ledger: SharedLedger,
    pub(crate) target: Arc<dyn ErasedTarget>,
    pub(crate) shares: Shares,
    /// Leases are kept at the target.
    pub(crate) leases_there: bool,
}

/// Objects of one shard that nobody has looked at before.
///
/// The engine knows their names, and that they are on their way, and hears what came of it: until then, nothing of theirs
/// is anybody else's concern, so that everything which is done for one of them is done where it lies in the cache.
pub(crate) struct Flight {
    pub(crate) desk: Arc<Desk>,
    pub(crate) tenure: Tenure,
    pub(crate) records: Vec<Arc<Record>>,
}

// === impl Runner ===

impl Runner {
    /// Runs the first reactions to some objects, and publishes what comes of them in one transaction. Whatever is not simply
    /// done is left to the engine.
    pub(crate) fn fly(&self, flight: Flight) {
        let runner = self.clone();
        self.tracker.spawn(async move {
            let Flight { desk, tenure, records } = flight;
            let (mut finished, mut done) = (Vec::new(), Vec::with_capacity(records.len()));
            let mut drafts = Vec::with_capacity(records.len());
            let (common, lane, sort) = (&desk.common, desk.lane, Sort::Apply);
            let mut calls = Calls::default();
            for record in records {
                let key = record.key().clone();
                if tenure.is_over() || record.is_deleting() || is_paused(&record) {
                    finished.push(Finished::given_up(lane, key, sort, record, tenure.clone()));
                    continue;
                }
                let cx = calls.context(common, record.clone(), (0, Cause::Boot.into()), true);
                match calls.first_poll(common, &cx, Call::Create(record.clone())).await {
                    Ok(Ending::Returned(Ok(Action(next)))) if !matches!(next, Next::WaitFor(_)) => {
                        let (children, wishes) = cx.take();
                        drafts.push(children);
                        done.push(Staged { key, record, sort, next, wishes, steps: 0 });
                        calls.keep(cx);
                    }
                    Ok(ending) => {
                        finished.push(Finished::of(&cx, lane, key, sort, ending, tenure.clone()));
                        calls.keep(cx);
                    }
                    Err(reaction) => {
                        let alone = Alone { lane, key, sort, cx, reaction, tenure: tenure.clone() };
                        runner.run_alone(alone, common.deadline);
                    }
                }
            }
            let batch = desk.stage(done, drafts, &tenure, &mut finished);
            runner.send(finished).await;
            if batch.staged.is_empty() {
                return;
            }
            for part in batch.parts() {
                let landed = desk.parcel(part, tenure.clone()).send().await;
                // Nobody listens once the engine has stopped, and then nobody wants to know.
                drop(runner.events.send(Event::Landed(landed)).await);
            }
        });
    }
}

// === impl Desk ===

impl Desk {
    /// Puts reactions that went well, and what they publish, into one transaction, but for those that cannot be published.
    fn stage(
        &self,
        done: Vec<Staged>,
        drafts: Vec<Few<Draft>>,
        tenure: &Tenure,
        finished: &mut Vec<Finished>,
    ) -> Batch {
        let mut steps = Vec::with_capacity(done.len());
        let mut ledger = self.ledger.lock();
        // It ends before the ledger is begun anew: what is staged is staged in that of its own time.
        let is_over = tenure.is_over();
        let staged = done.into_iter().zip(drafts).filter_map(|(one, children)| {
            let ending = if is_over {
                Ending::GivenUp
            } else {
                let checked = self.common.check(&children);
                match checked.and_then(|()| ledger.stage(&one.key, &one.record, children, &mut steps)) {
                    Ok(steps) => return Some(Staged { steps, ..one }),
                    Err(failure) => Ending::Returned(Err(failure)),
                }
            };
            let Staged { key, record, sort, wishes, .. } = one;
            let (lane, children, tenure) = (self.lane, Few::None, tenure.clone());
            finished.push(Finished { lane, key, sort, record, children, wishes, ending, tenure });
            None
        });
        Batch { staged: staged.collect(), steps }
    }

    /// A transaction that can be sent.
    pub(crate) fn parcel(&self, batch: Batch, tenure: Tenure) -> Parcel {
        Parcel {
            station: self.station,
            shard: self.shard,
            publisher: self.publisher.clone(),
            batch,
            tenure,
            ledger: self.ledger.clone(),
            target: self.target.clone(),
            shares: self.shares.clone(),
            leases_there: self.leases_there,
        }
    }
}

// === impl Common ===

impl Common {
    /// Whether a controller may publish these.
    ///
    /// # Errors
    /// If it has not said so.
    pub(crate) fn check(&self, children: &Few<Draft>) -> Result<(), Failure> {
        let undeclared = |child: &&Draft| !self.outputs.contains(child.key.kind());
        match children.iter().find(undeclared) {
            None => Ok(()),
            Some(child) => {
                let (kind, name) = (child.key.kind(), &self.surroundings.controller);
                let message = format!("{name} does not say that it publishes {kind} (hint: Controller::publishes)");
                Err(Failure::new(message).with_code("UNDECLARED").permanent())
            }
        }
    }
}
