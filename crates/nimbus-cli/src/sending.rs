//! Objects on their way to a bus: in batches, a few at a time, or all in one transaction.

use std::{collections::VecDeque, ops::Range};

use nimbus_wire::v1::{self, Result as Effect};
use prost::Message as _;
use tokio::task::JoinSet;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::{
    client::Client,
    failure::{Exit, Failure},
    output::thousands,
    progress::Tally,
};

/// How objects are sent.
#[derive(Debug, Clone)]
pub(crate) struct Sending {
    pub(crate) client: Client,
    pub(crate) publisher: String,
    pub(crate) dry_run: bool,
    /// What to do if there are too many for one transaction.
    pub(crate) if_too_many: &'static str,
}

/// What became of objects.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// By their place; none where nothing is known.
    pub(crate) outcomes: Vec<Option<v1::Outcome>>,
    /// Objects that were refused, by their place.
    pub(crate) refused: Vec<(usize, Failure)>,
    /// Why it ended before all were sent.
    pub(crate) ended: Option<Failure>,
}

/// Many enough that a transaction costs next to nothing for each, few enough that others get their turn and a failure is found
/// soon.
const BATCH_OBJECTS: usize = 200;

/// Well below what a bus takes in one message, unless somebody has set it to very little.
const BATCH_BYTES: usize = 512 << 10;

/// Transactions under way: the next is there when the bus has done one, and the way to the bus costs nothing.
const UNDER_WAY: usize = 4;

// === impl Sending ===

impl Sending {
    /// Sends these, in batches. One that is refused is sent in halves, until it is known which objects it was for; all others
    /// are done.
    pub(crate) async fn batches(&self, ops: &[v1::Op], progress: &mut Tally) -> Sent {
        let mut sent = Sent { outcomes: vec![None; ops.len()], ..Sent::default() };
        let mut waiting = batches(ops);
        let mut under_way = JoinSet::new();
        let mut unknown = 0;
        let interrupted = tokio::signal::ctrl_c();
        tokio::pin!(interrupted);
        loop {
            while under_way.len() < UNDER_WAY
                && let Some(range) = waiting.pop_front()
            {
                let (sending, ops) = (self.clone(), ops[range.clone()].to_vec());
                unknown += range.len();
                under_way.spawn(async move { (range, sending.transaction(ops).await) });
            }
            let joined = tokio::select! {
                joined = under_way.join_next() => joined,
                _ = &mut interrupted => {
                    progress.clear();
                    sent.ended = Some(interruption(progress, unknown));
                    return sent;
                }
            };
            let Some(joined) = joined else { break };
            let (range, answer) = joined.expect("nothing in it panics, and nobody aborts it");
            unknown -= range.len();
            match answer {
                Ok(answer) => {
                    for (index, outcome) in range.clone().zip(answer.outcomes) {
                        sent.outcomes[index] = Some(outcome);
                    }
                    progress.advance(range.len());
                }
                Err(failure) if !concerns_an_object(&failure) => {
                    progress.clear();
                    sent.ended = Some(failure.after(&goes_on(progress, unknown + range.len())));
                    return sent;
                }
                Err(failure) if range.len() == 1 => {
                    sent.refused.push((range.start, failure));
                    progress.advance(1);
                }
                Err(_) => {
                    let middle = range.start + range.len() / 2;
                    waiting.push_front(middle..range.end);
                    waiting.push_front(range.start..middle);
                }
            }
        }
        progress.clear();
        sent.refused.sort_by_key(|(index, _)| *index);
        sent
    }

    /// Sends these, all in one transaction.
    pub(crate) async fn at_once(&self, ops: &[v1::Op]) -> Sent {
        let answer = tokio::select! {
            answer = self.transaction(ops.to_vec()) => answer,
            _ = tokio::signal::ctrl_c() => Err(Failure::new(
                Exit::Interrupted,
                "interrupted while the transaction was under way: it was done as a whole, or not at all; run it again to be sure",
            )),
        };
        match answer {
            Ok(answer) => Sent { outcomes: answer.outcomes.into_iter().map(Some).collect(), ..Sent::default() },
            Err(failure) => {
                let failure = too_many(&failure, ops, self.if_too_many).unwrap_or(failure);
                Sent { outcomes: vec![None; ops.len()], refused: Vec::new(), ended: Some(failure) }
            }
        }
    }

    async fn transaction(&self, ops: Vec<v1::Op>) -> Result<v1::ApplyResponse, Failure> {
        let request = v1::ApplyRequest {
            publisher: self.publisher.clone(),
            ops,
            dry_run: self.dry_run,
            ..v1::ApplyRequest::default()
        };
        self.client.call(self.client.publisher().apply(request)).await
    }
}

// === impl Sent ===

impl Sent {
    /// How many came out so.
    pub(crate) fn count(&self, effect: Effect) -> usize {
        self.outcomes.iter().flatten().filter(|outcome| outcome.result() == effect).count()
    }
}

fn batches(ops: &[v1::Op]) -> VecDeque<Range<usize>> {
    let mut batches = VecDeque::new();
    let (mut start, mut bytes) = (0, 0);
    for (index, op) in ops.iter().enumerate() {
        let len = op.encoded_len();
        if index > start && (index - start >= BATCH_OBJECTS || bytes + len > BATCH_BYTES) {
            batches.push_back(start..index);
            (start, bytes) = (index, 0);
        }
        bytes += len;
    }
    if start < ops.len() {
        batches.push_back(start..ops.len());
    }
    batches
}

/// Whether others in the same transaction may be fine, or fewer of them would be.
fn concerns_an_object(failure: &Failure) -> bool {
    let Some(status) = failure.status() else { return false };
    let details = status.get_error_details();
    match status.code() {
        Code::InvalidArgument => {
            let fields = details.bad_request().map(|request| &request.field_violations);
            fields.is_none_or(|fields| fields.iter().all(|violation| violation.field != "publisher"))
        }
        Code::FailedPrecondition => {
            let violations = details.precondition_failure().map(|failure| &failure.violations);
            violations.is_some_and(|all| all.iter().all(|one| !matches!(&*one.r#type, "fence" | "lease")))
        }
        Code::ResourceExhausted => limit(failure).is_some(),
        _ => false,
    }
}

/// The limit of one transaction that was reached, if it is one.
fn limit(failure: &Failure) -> Option<&'static str> {
    let details = failure.status()?.get_error_details();
    let name = details.error_info()?.metadata.get("limit")?.clone();
    ["ops", "message_bytes"].into_iter().find(|limit| *limit == name)
}

/// Says how many fit into one transaction, if that is why it failed.
fn too_many(failure: &Failure, ops: &[v1::Op], hint: &str) -> Option<Failure> {
    let limit = limit(failure)?;
    let message = failure.status()?.message();
    let digits = message.rsplit(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty())?;
    let max: usize = digits.parse().ok()?;
    let (fit, flag) = match limit {
        "ops" => (max, "--max-ops"),
        _ => {
            let sizes = ops.iter().scan(0, |sum, op| {
                *sum += op.encoded_len() + 8;
                Some(*sum)
            });
            (sizes.take_while(|sum| *sum <= max).count(), "--max-message-bytes")
        }
    };
    let (all, fit) = (thousands(ops.len()), thousands(fit));
    let message = format!("{all} objects are too many for one transaction: {fit} of them fit; nothing was sent");
    Some(Failure::new(Exit::Invalid, message).hint(format!("{hint}, or start the bus with a larger {flag}")))
}

fn interruption(progress: &Tally, unknown: usize) -> Failure {
    Failure::new(Exit::Interrupted, format!("interrupted: {}", goes_on(progress, unknown)))
}

fn goes_on(progress: &Tally, unknown: usize) -> String {
    let under_way = if unknown > 0 { format!(", {} more were under way", thousands(unknown)) } else { String::new() };
    format!("{}{under_way}; run it again to go on", progress.words())
}
