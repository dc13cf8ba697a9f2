//! Waiting until agents have applied what was published.

use std::{collections::BTreeSet, time::Duration};

use nimbus_wire::v1::{self, wait_for_response::Outcome};
use tokio::time::Instant;

use crate::{
    client::Client,
    failure::{Exit, Failure},
    progress::StatusLine,
};

/// Waits until all agents have applied these transactions.
///
/// # Errors
/// If an agent failed for good, or it took too long.
pub(crate) async fn wait_for(client: &Client, revisions: &BTreeSet<u64>, limit: Duration) -> Result<(), Failure> {
    let end = Instant::now() + limit;
    let mut line = StatusLine::default();
    let waiting = async {
        let mut last = String::new();
        for revision in revisions {
            last = wait_for_one(client, *revision, end, &mut line).await?;
        }
        Ok(last)
    };
    let ended = tokio::select! {
        ended = waiting => ended,
        _ = tokio::signal::ctrl_c() => {
            Err(Failure::new(Exit::Interrupted, "interrupted while waiting for agents; everything is applied on the bus"))
        }
    };
    match ended {
        Ok(last) => {
            line.set(&last);
            line.end();
            Ok(())
        }
        Err(failure) => {
            line.clear();
            Err(failure)
        }
    }
}

async fn wait_for_one(client: &Client, revision: u64, end: Instant, line: &mut StatusLine) -> Result<String, Failure> {
    let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let request = v1::WaitForRequest {
        target: Some(v1::Target { target: Some(v1::target::Target::Revision(revision)) }),
        timeout_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
        ..v1::WaitForRequest::default()
    };
    let mut answers = client.call(client.fleet().wait_for(request)).await?;
    while let Some(answer) = answers.message().await.map_err(|status| client.failure(status))? {
        let propagation = answer.propagation.clone().unwrap_or_default();
        match answer.outcome() {
            Outcome::Done => return Ok(answer.message),
            Outcome::Failed => return Err(failed(&answer.message, &propagation)),
            Outcome::TimedOut => {
                return Err(Failure::new(Exit::TimedOut, answer.message)
                    .hint("is an agent running, and is the kind complete? `nimbus kinds` says so"));
            }
            _ => line.set(&answer.message),
        }
    }
    Err(Failure::from("the bus stopped answering before the agents were done".to_owned()))
}

/// Names the first agent that failed, and why.
fn failed(message: &str, propagation: &v1::Propagation) -> Failure {
    let first = propagation.failures.first();
    let why = first.map(|failure| {
        let exception = failure.exception.clone().unwrap_or_default();
        format!("; {}: {}", failure.agent, exception.message)
    });
    Failure::new(Exit::Failed, format!("{message}{}", why.unwrap_or_default()))
}
