//! `nimbus wait`: until enough agents have it.

use std::{
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

use clap::Args;
use nimbus_core::Backoff;
use nimbus_wire::v1::{self, wait_for_response::Outcome};
use rand::RngExt as _;
use tokio::time::Instant;
use tonic::Code;

use crate::{
    client::{Client, ConnectionArguments, parse_seconds},
    command::propagation::target,
    failure::{Exit, Failure, loss},
    goal::{Deed, Enough, Goal, Outlook},
    output::Printer,
    progress::{bar, percent},
    propagation_report::{self, Laggard, SurveyArguments},
};

/// Wait until enough agents have applied an object or a transaction.
///
/// Of an object, its newest version counts, also if it changes meanwhile; of one that was deleted, its end. Progress goes to
/// standard error. It ends with 7 if it was not reached in time, and with 1 as soon as too many agents have failed for good;
/// both times, it says who is missing, and why.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nimbus wait networkpolicy web --timeout 60
  nimbus wait networkpolicy/web --at-least 90% -l zone=a
  nimbus wait --at 17 --for received")]
pub(crate) struct Arguments {
    /// KIND NAME, or KIND/NAME.
    #[arg(required_unless_present = "at", value_name = "KIND NAME")]
    words: Vec<String>,

    /// Instead of an object, the transaction that made this revision.
    #[arg(long, value_name = "REVISION", conflicts_with = "words")]
    at: Option<u64>,

    /// What agents must have done.
    #[arg(long = "for", value_name = "DEED", default_value = "applied")]
    deed: Deed,

    /// How many agents are enough: a number, or a part of those that it is for.
    #[arg(long, value_name = "N|P%", default_value = "100%")]
    at_least: Enough,

    /// Seconds until it is given up. Without it, never.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<f64>,

    #[command(flatten)]
    survey: SurveyArguments,

    #[command(flatten)]
    connection: ConnectionArguments,
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

/// Enough to see what the matter is.
const NAMED: u32 = 20;

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { words, at, survey, .. } = arguments;
    let client = arguments.connection.client()?;
    let (target, name) = target(&client, words, *at, survey.namespace.as_deref()).await?;
    let goal = Goal { deed: arguments.deed, enough: arguments.at_least };
    let request = v1::WaitForRequest {
        target: Some(target),
        selector: survey.selector.clone().unwrap_or_default(),
        // The goal is judged here: the bus sends numbers until everybody has applied it, which is enough for any goal.
        percent: 100.0,
        max_failed: u32::MAX,
        min_agents: if let Enough::Agents(count) = goal.enough { count } else { 0 },
        count_lost: survey.count_lost,
        max_agents: survey.max_agents.unwrap_or(NAMED),
        ..v1::WaitForRequest::default()
    };
    let mut progress = Progress { terminal: std::io::stderr().is_terminal(), said: String::new() };
    let end = watch(&client, request, goal, arguments.timeout, &mut progress).await;
    progress.finish();
    let mut printer = Printer::lines();
    let deed = goal.deed.word();
    match end? {
        End::Reached(propagation) => {
            let (done, all) = (goal.done(&propagation), propagation.agents);
            let revision = propagation.revision;
            let at = if at.is_some() { String::new() } else { format!(" at revision {revision}") };
            printer.line(&format!("{name} {deed} by {done} of {all} agents{at}"))?;
            printer.flush()
        }
        End::Hopeless(propagation) => {
            missing(&mut printer, &propagation)?;
            let (failed, needed) = (propagation.failed_for_good, goal.needed(propagation.agents));
            let all = propagation.agents;
            Err(Failure::new(
                Exit::Failed,
                format!("{name} cannot be {deed} by {needed} agents: of {all}, {failed} failed for good"),
            )
            .hint("they try again when the object changes"))
        }
        End::TimedOut(propagation) => {
            missing(&mut printer, &propagation)?;
            let (done, needed) = (goal.done(&propagation), goal.needed(propagation.agents));
            let all = propagation.agents;
            let seconds = arguments.timeout.unwrap_or_default();
            let failure = Failure::new(
                Exit::TimedOut,
                format!("{name} was not {deed} in {seconds} s: {done} of {all} agents have, {needed} are needed"),
            );
            Err(if all == 0 { failure.hint("`nimbus agents` lists those that there are") } else { failure })
        }
    }
}

/// Follows the numbers until it is decided, across restarts of the bus.
async fn watch(
    client: &Client,
    request: v1::WaitForRequest,
    goal: Goal,
    timeout: Option<f64>,
    progress: &mut Progress,
) -> Result<End, Failure> {
    let until = timeout.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let mut attempts = 0;
    // What was said last, once something was.
    let mut last: Option<v1::Propagation> = None;
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if let (Some(Duration::ZERO), Some(last)) = (left, &last) {
            return Ok(End::TimedOut(last.clone()));
        }
        let timeout_ms = left.map_or(0, |left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1));
        let request = v1::WaitForRequest { timeout_ms, ..request.clone() };
        let lost = match client.call(client.fleet().wait_for(request)).await {
            Err(failure) if last.is_none() || !failure.is(Exit::Unreachable) => return Err(failure),
            // It is still gone, as has been said.
            Err(_) => None,
            Ok(mut answers) => loop {
                match answers.message().await {
                    Ok(Some(answer)) => {
                        attempts = 0;
                        let propagation = answer.propagation.clone().unwrap_or_default();
                        progress.show(goal, &propagation);
                        match (goal.outlook(&propagation), answer.outcome()) {
                            (Outlook::Reached, _) => return Ok(End::Reached(propagation)),
                            (Outlook::Hopeless, _) => return Ok(End::Hopeless(propagation)),
                            (Outlook::Open, Outcome::TimedOut) => return Ok(End::TimedOut(propagation)),
                            (Outlook::Open, _) => last = Some(propagation),
                        }
                    }
                    Ok(None) => break Some("the bus has ended the answer".to_owned()),
                    Err(status) if is_final(status.code()) => return Err(client.failure(status)),
                    Err(status) => break Some(loss(&status)),
                }
            },
        };
        if let Some(lost) = lost {
            progress.note(&format!("connection lost: {lost}; trying again"));
        }
        let wait = RETRY.delay(attempts, rand::rng().random());
        attempts += 1;
        tokio::time::sleep(left.map_or(wait, |left| left.min(wait))).await;
    }
}

/// Whether asking again leads nowhere.
fn is_final(code: Code) -> bool {
    matches!(code, Code::NotFound | Code::InvalidArgument | Code::PermissionDenied | Code::ResourceExhausted)
}

/// Names those who do not have it.
fn missing(printer: &mut Printer, propagation: &v1::Propagation) -> Result<(), Failure> {
    let named = propagation_report::missing(propagation);
    for Laggard { agent, standing, why } in &named {
        let why: String = why.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        printer.note(&format!("{agent} {}: {why}", standing.word()))?;
    }
    let more = ((propagation.failed + propagation.pending) as usize).saturating_sub(named.len());
    if more > 0 {
        printer.note(&format!("and {more} more"))?;
    }
    Ok(())
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
