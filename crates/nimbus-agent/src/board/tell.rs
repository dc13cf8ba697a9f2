//! What there is to tell about objects that are not as they should be.

use std::borrow::Cow;

use nimbus_core::{Generation, ObjectKey, Revision};
use nimbus_wire::v1::Phase;
use tokio::time::Instant;

use crate::board::{
    Board,
    node::{Node, Stage, Want},
    slots::Slot,
    watch::TOO_OFTEN,
};

/// An object that is not as it should be, and why.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Exceptional<'a> {
    pub(crate) key: &'a ObjectKey,
    /// The watermark before the first change that is not finished.
    pub(crate) floor: Revision,
    /// Of the version that should be here; 0 if none should.
    pub(crate) generation: Generation,
    pub(crate) phase: Phase,
    pub(crate) code: Cow<'a, str>,
    pub(crate) message: Cow<'a, str>,
    /// Whether it will be tried again without a change.
    pub(crate) retryable: bool,
    /// How often it was tried.
    pub(crate) attempts: u32,
    pub(crate) since: Instant,
    pub(crate) retry_at: Option<Instant>,
    /// What it waits for; not all of it, if it is much.
    pub(crate) waits_for: Vec<ObjectKey>,
}

/// Why an object is as it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Explained {
    /// One sentence for people.
    pub(crate) sentence: String,
    pub(crate) since: Instant,
    /// What it waits for, what that waits for in turn, and so on.
    pub(crate) chain: Vec<ObjectKey>,
}

/// As many as a bus takes.
const MAX_WAITS: usize = 16;

/// Longer chains are cut: their end says no more.
const MAX_CHAIN: usize = 32;

// === impl Board ===

impl Board {
    /// Everything that is not as it should be.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = Exceptional<'_>> {
        self.unfinished.iter().map(|slot| self.exception(*slot))
    }

    /// Everything that is as it should be, and yet worth a look.
    pub(crate) fn degraded(&self) -> impl Iterator<Item = Exceptional<'_>> {
        self.degraded.iter().map(|slot| self.degradation(*slot))
    }

    /// Why an object is as it is; `None` if nothing is known of it.
    pub(crate) fn explain(&self, key: &ObjectKey) -> Option<Explained> {
        let slot = self.nodes.find(key)?;
        let node = &self.nodes[slot];
        let mut chain = Vec::new();
        let mut seen = vec![slot];
        while chain.len() < MAX_CHAIN
            && let Some(next) = self.blockers(seen[seen.len() - 1]).find(|next| !seen.contains(next))
        {
            seen.push(next);
            chain.push(self.nodes[next].key.clone());
        }
        let mut sentence = self.sentence(slot);
        let last = seen[seen.len() - 1];
        if last != slot {
            sentence = format!("{sentence}; in the end for {}, which {}", self.nodes[last].key, self.sentence(last));
        }
        let since = if node.share.degraded { node.degraded_since } else { self.since(slot) };
        Some(Explained { sentence, since, chain })
    }

    fn sentence(&self, slot: Slot) -> String {
        let node = &self.nodes[slot];
        let what = match (&node.desired, node.want()) {
            (None, Want::Nothing) => return "is not here: the bus has not sent it".to_owned(),
            (Some(_), Want::Nothing) if node.share.degraded => {
                let Exceptional { code, message, .. } = self.degradation(slot);
                return format!("is applied, but degraded ({code}): {message}");
            }
            (Some(_), Want::Nothing) => return "is applied".to_owned(),
            (None, _) => "should be removed",
            (Some(_), _) => "should be applied",
        };
        let Exceptional { phase, code, message, .. } = self.exception(slot);
        let verb = if phase == Phase::Failed { "has failed" } else { "is pending" };
        format!("{what}, and {verb} ({code}): {message}")
    }

    fn exception(&self, slot: Slot) -> Exceptional<'_> {
        let node = &self.nodes[slot];
        let (phase, code, message, retryable) = if let Some(knot) = node.knot {
            (Phase::Failed, Cow::Borrowed("CYCLE"), Cow::Borrowed(self.knots.message(knot)), false)
        } else if let Some(trouble) = &node.trouble {
            let failure = &trouble.failure;
            (Phase::Failed, failure.code().into(), failure.message().into(), !failure.is_permanent())
        } else {
            let (code, message) = self.pending(slot);
            (Phase::Pending, code.into(), message, true)
        };
        let waits = node.stage == Stage::Blocked;
        let blockers = waits.then(|| self.blockers(slot).take(MAX_WAITS)).into_iter().flatten();
        Exceptional {
            key: &node.key,
            floor: node.floor.unwrap_or_default(),
            generation: generation(node),
            phase,
            code,
            message,
            retryable,
            attempts: node.attempts(),
            since: self.since(slot),
            retry_at: node.retry_at,
            waits_for: blockers.map(|slot| self.nodes[slot].key.clone()).collect(),
        }
    }

    fn pending(&self, slot: Slot) -> (&'static str, Cow<'_, str>) {
        let node = &self.nodes[slot];
        match node.stage {
            Stage::Running => ("RUNNING", "the handler is at work".into()),
            Stage::Blocked if !self.awaits_nodes(slot) => ("HELD", "the others of its transaction come first".into()),
            Stage::Blocked => {
                let count = if node.want() == Want::Apply { node.missing } else { node.held_by.len() };
                let first = self
                    .blockers(slot)
                    .next()
                    .map_or_else(String::new, |slot| self.nodes[slot].key.to_string());
                let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
                let why = if node.want() == Want::Apply { "needs" } else { "is still needed by" };
                ("WAITING", format!("{why} {first}{more}").into())
            }
            _ if self.held => ("QUEUED", "the agent has just started".into()),
            _ => ("QUEUED", "other objects are handled first".into()),
        }
    }

    fn degradation(&self, slot: Slot) -> Exceptional<'_> {
        let node = &self.nodes[slot];
        let watch = &node.watch;
        let lost = watch.drift.as_ref().and_then(|drift| Some((drift, drift.failure.as_ref()?)));
        let (code, message, attempts) = if let Some((drift, failure)) = lost {
            let message = format!("{} (drifted: {})", failure.message(), drift.message);
            (failure.code().into(), message.into(), drift.attempts)
        } else if watch.drifts >= TOO_OFTEN {
            let last = watch.drift.as_ref().map_or(String::new(), |drift| format!(": {}", drift.message));
            let message = format!("drifted {} times in a row{last}", watch.drifts);
            (Cow::Borrowed("DRIFT"), Cow::Owned(message), watch.drifts)
        } else if watch.errors >= TOO_OFTEN {
            let last = watch.error.as_ref().map_or("", |error| error.message());
            (
                "OBSERVE".into(),
                format!("could not be observed {} times in a row: {last}", watch.errors).into(),
                watch.errors,
            )
        } else {
            let remark = node.remark.as_ref();
            let (code, message) = remark.map_or(("", ""), |remark| (remark.code(), remark.message()));
            (code.into(), message.into(), 0)
        };
        Exceptional {
            key: &node.key,
            floor: Revision::default(),
            generation: generation(node),
            phase: Phase::Degraded,
            code,
            message,
            retryable: true,
            attempts,
            since: node.degraded_since,
            retry_at: node.watch.drift.as_ref().and(node.watch.at),
            waits_for: Vec::new(),
        }
    }

    fn since(&self, slot: Slot) -> Instant {
        let node = &self.nodes[slot];
        node.trouble
            .as_ref()
            .filter(|_| node.knot.is_none())
            .map_or(node.since, |trouble| trouble.since)
    }
}

fn generation(node: &Node) -> Generation {
    node.desired.as_ref().map_or(Generation(0), |desired| desired.generation())
}
