//! Waiting until enough agents have it, across restarts of the bus.

use std::{
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

use nimbus_core::Backoff;
use nimbus_wire::v1::{self, wait_for_response::Outcome};
use rand::RngExt as _;
use tokio::time::Instant;
use tonic::Code;

use crate::{
    client::Client,
    failure::{Exit, Failure, loss},
    goal::{Deed, Enough, Goal, Outlook},
    progress::{bar, percent},
    propagation_report::{self, Laggard},
};

/// Somebody who waits for agents, and says how it goes.
pub(crate) struct Waiting<'a> {
    client: &'a Client,
    goal: Goal,
    /// Seconds for all that is waited for.
    timeout: Option<f64>,
    until: Option<Instant>,
    progress: Progress,
}

/// Says how it goes, on standard error: a line that changes on a terminal, lines that follow each other elsewhere.
struct Progress {
    terminal: bool,
    said: String,
}

/// How a wait ended.
enum End {
    Reached(v1::Propagation),
    Hopeless(v1::Propagation),
    TimedOut(v1::Propagation),
}

/// A restart of the bus takes seconds.
const RETRY: Backoff = Backoff { base: Duration::from_millis(200), max: Duration::from_secs(5) };

/// Characters of the bar.
const BAR: usize = 30;

// === impl Waiting ===

impl<'a> Waiting<'a> {
    /// Begins to count the seconds.
    pub(crate) fn new(client: &'a Client, goal: Goal, timeout: Option<f64>) -> Self {
        let until = timeout.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
        let progress = Progress { terminal: std::io::stderr().is_terminal(), said: String::new() };
        Self { client, goal, timeout, until, progress }
    }

    /// Waits until enough of the agents that the request is about have it. `name` is what they are to have.
    ///
    /// # Errors
    /// If that cannot be any more, or was not in time; then it is said who does not have it, and why.
    pub(crate) async fn wait(&mut self, name: &str, request: v1::WaitForRequest) -> Result<v1::Propagation, Failure> {
        let request = v1::WaitForRequest {
            // The goal is judged here: the bus sends numbers until everybody has applied it, which is enough for any goal.
            percent: 100.0,
            max_failed: u32::MAX,
            min_agents: if let Enough::Agents(count) = self.goal.enough { count } else { 0 },
            ..request
        };
        match self.watch(request).await {
            Ok(End::Reached(propagation)) => Ok(propagation),
            Ok(End::Hopeless(propagation)) => Err(self.hopeless(name, &propagation)),
            Ok(End::TimedOut(propagation)) => Err(self.timed_out(name, &propagation)),
            Err(failure) => {
                self.progress.finish();
                Err(failure)
            }
        }
    }

    /// Leaves what was said of how it goes, and begins another line.
    pub(crate) fn finish(&mut self) {
        self.progress.finish();
    }

    /// Follows the numbers until it is decided.
    async fn watch(&mut self, request: v1::WaitForRequest) -> Result<End, Failure> {
        let mut attempts = 0;
        // What was said last, once something was.
        let mut last: Option<v1::Propagation> = None;
        loop {
            let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
            if let (Some(Duration::ZERO), Some(last)) = (left, &last) {
                return Ok(End::TimedOut(last.clone()));
            }
            let timeout_ms = left.map_or(0, |left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1));
            let request = v1::WaitForRequest { timeout_ms, ..request.clone() };
            let lost = match self.client.call(self.client.fleet().wait_for(request)).await {
                Err(failure) if last.is_none() || !failure.is(Exit::Unreachable) => return Err(failure),
                // It is still gone, as has been said.
                Err(_) => None,
                Ok(mut answers) => loop {
                    match answers.message().await {
                        Ok(Some(answer)) => {
                            attempts = 0;
                            let propagation = answer.propagation.clone().unwrap_or_default();
                            self.progress.show(self.goal, &propagation);
                            match (self.goal.outlook(&propagation), answer.outcome()) {
                                (Outlook::Reached, _) => return Ok(End::Reached(propagation)),
                                (Outlook::Hopeless, _) => return Ok(End::Hopeless(propagation)),
                                (Outlook::Open, Outcome::TimedOut) => return Ok(End::TimedOut(propagation)),
                                (Outlook::Open, _) => last = Some(propagation),
                            }
                        }
                        Ok(None) => break Some("the bus has ended the answer".to_owned()),
                        Err(status) if is_final(status.code()) => return Err(self.client.failure(status)),
                        Err(status) => break Some(loss(&status)),
                    }
                },
            };
            if let Some(lost) = lost {
                self.progress.note(&format!("connection lost: {lost}; trying again"));
            }
            let wait = RETRY.delay(attempts, rand::rng().random());
            attempts += 1;
            tokio::time::sleep(left.map_or(wait, |left| left.min(wait))).await;
        }
    }

    fn hopeless(&mut self, name: &str, propagation: &v1::Propagation) -> Failure {
        self.tell_missing(propagation);
        let (failed, needed) = (propagation.failed_for_good, self.goal.needed(propagation.agents));
        let (all, deed) = (propagation.agents, self.goal.deed.word());
        let message = format!("{name} cannot be {deed} by {needed} agents: of {all}, {failed} failed for good");
        Failure::new(Exit::Failed, message).hint("they try again when the object changes")
    }

    fn timed_out(&mut self, name: &str, propagation: &v1::Propagation) -> Failure {
        self.tell_missing(propagation);
        let (done, needed) = (self.goal.done(propagation), self.goal.needed(propagation.agents));
        let (all, deed) = (propagation.agents, self.goal.deed.word());
        let seconds = self.timeout.unwrap_or_default();
        let message = format!("{name} was not {deed} in {seconds} s: {done} of {all} agents have, {needed} are needed");
        let failure = Failure::new(Exit::TimedOut, message);
        if all == 0 { failure.hint("`nimbus agents` lists those that there are") } else { failure }
    }

    /// Names those who do not have it.
    fn tell_missing(&mut self, propagation: &v1::Propagation) {
        self.progress.finish();
        let named = propagation_report::missing(propagation);
        for Laggard { agent, standing, why } in &named {
            let why: String = why.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            self.progress.note(&format!("{agent} {}: {why}", standing.word()));
        }
        let more = ((propagation.failed + propagation.pending) as usize).saturating_sub(named.len());
        if more > 0 {
            self.progress.note(&format!("and {more} more"));
        }
    }
}

/// Whether asking again leads nowhere.
fn is_final(code: Code) -> bool {
    matches!(code, Code::NotFound | Code::InvalidArgument | Code::PermissionDenied | Code::ResourceExhausted)
}

// === impl Progress ===

impl Progress {
    fn show(&mut self, goal: Goal, propagation: &v1::Propagation) {
        let v1::Propagation { agents, failed, .. } = *propagation;
        let (done, deed) = (goal.done(propagation), goal.deed.word());
        let open = agents
            .saturating_sub(done)
            .saturating_sub(if goal.deed == Deed::Applied { failed } else { 0 });
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        let text = format!("{done} of {agents} agents have {deed} it, {open} have not yet{failed}");
        if text == self.said {
            return;
        }
        if self.terminal {
            let bar = bar(done, goal.needed(agents), BAR);
            self.draw(&format!("\r{bar} {:>3}% {text}\x1b[K", percent(done, agents)));
        } else {
            self.draw(&format!("nimbus: {text}\n"));
        }
        self.said = text;
    }

    fn note(&mut self, text: &str) {
        self.finish();
        self.draw(&format!("nimbus: {text}\n"));
    }

    /// Leaves the line as it is, and begins another one.
    fn finish(&mut self) {
        if self.terminal && !std::mem::take(&mut self.said).is_empty() {
            self.draw("\n");
        }
    }

    fn draw(&self, text: &str) {
        // Whoever does not want to see how it goes still wants to know how it ends.
        drop(std::io::stderr().write_all(text.as_bytes()));
    }
}
