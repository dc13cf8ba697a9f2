//! `WaitFor`: looks again when something changed, until it is decided.

use std::sync::Arc;

use nimbus_wire::v1::{self, wait_for_response::Outcome};
use tokio::time::{Duration, Instant};
use tonic::Status;

use crate::{
    fault,
    fleet::{Slot, check_draining, propagation::Survey, selector_of, target::Target},
    inner::Inner,
};

/// When it is enough, and when too much has failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Criteria {
    percent: f64,
    max_failed: u32,
    min_agents: u32,
}

/// A call that waits.
pub(crate) struct Wait {
    inner: Arc<Inner>,
    target: Target,
    survey: Survey,
    criteria: Criteria,
    until: Option<Instant>,
    /// What was said last, and when.
    said: Option<(Numbers, Instant)>,
    /// How much had happened when it looked last, and when that was.
    looked: Option<(u64, Instant)>,
    /// What to say first.
    first: Option<v1::WaitForResponse>,
    over: bool,
    _slot: Slot,
}

/// What makes a message worth sending.
type Numbers = (u64, [u32; 7], u64);

/// Looking at ten thousand agents takes a millisecond; changes come in thousands.
const PACE: Duration = Duration::from_millis(50);

/// A caller that hears nothing for longer than this may think that the bus is gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

// === impl Criteria ===

impl Criteria {
    pub(crate) fn parse(request: &v1::WaitForRequest) -> Result<Self, Status> {
        let percent = request.percent;
        if !(0.0..=100.0).contains(&percent) {
            return Err(fault::bad("percent", format!("between 0 and 100, found {percent}")));
        }
        Ok(Self {
            percent: if percent == 0.0 { 100.0 } else { percent },
            max_failed: request.max_failed,
            min_agents: request.min_agents.max(1),
        })
    }

    /// Agents that must have applied it.
    fn enough(self, agents: u32) -> u32 {
        // Of 30 agents, 70 % are 21; in binary fractions it would be a little more.
        let exact = f64::from(agents) * self.percent / 100.0;
        let rounded = exact.round();
        let least = if (exact - rounded).abs() < 1e-6 { rounded } else { exact.ceil() };
        least as u32
    }

    /// Whether it is decided.
    pub(crate) fn judge(self, propagation: &v1::Propagation) -> Outcome {
        let v1::Propagation { agents, applied, failed, failed_for_good, .. } = *propagation;
        if failed_for_good > self.max_failed {
            return Outcome::Failed;
        }
        let done = agents >= self.min_agents && applied >= self.enough(agents) && failed <= self.max_failed;
        if done { Outcome::Done } else { Outcome::Waiting }
    }

    /// The same for people.
    pub(crate) fn say(self, propagation: &v1::Propagation, outcome: Outcome) -> String {
        let v1::Propagation { agents, applied, failed, failed_for_good, pending, .. } = *propagation;
        let counts = format!("{applied} of {agents} agents have applied it, {failed} failed, {pending} are pending");
        match outcome {
            Outcome::Done => format!("done: {counts}"),
            Outcome::Failed => {
                format!("failed: {failed_for_good} agents failed for good, {} are allowed; {counts}", self.max_failed)
            }
            Outcome::TimedOut => format!("timed out: {counts}"),
            _ if agents < self.min_agents => format!("waiting for at least {} agents: {counts}", self.min_agents),
            _ if failed > self.max_failed => {
                format!("waiting for {failed} failures to be overcome, {} are allowed: {counts}", self.max_failed)
            }
            _ => format!("waiting for {} agents: {counts}", self.enough(agents)),
        }
    }
}

// === impl Wait ===

impl Wait {
    /// Checks a request, and looks for the first time.
    pub(crate) fn begin(inner: Arc<Inner>, request: v1::WaitForRequest) -> Result<Self, Status> {
        let criteria = Criteria::parse(&request)?;
        let now = Instant::now();
        let until = match request.timeout_ms {
            0 => None,
            // Beyond what the clock can say is never.
            ms => now.checked_add(Duration::from_millis(ms)),
        };
        let mut wait = Self {
            survey: Survey {
                selector: selector_of(&inner, &request.selector)?,
                count_lost: request.count_lost,
                max_agents: request.max_agents,
            },
            target: Target::parse(request.target)?,
            criteria,
            until,
            said: None,
            looked: None,
            first: None,
            over: false,
            _slot: Slot::take(&inner)?,
            inner,
        };
        wait.first = wait.look(now)?;
        Ok(wait)
    }

    /// The next message, when there is something to say.
    pub(crate) async fn next(mut self) -> Option<(Result<v1::WaitForResponse, Status>, Self)> {
        if let Some(first) = self.first.take() {
            return Some((Ok(first), self));
        }
        while !self.over {
            self.rest().await;
            let answer = check_draining(&self.inner).and_then(|()| self.look(Instant::now()));
            match answer {
                Ok(None) => {}
                Ok(Some(message)) => return Some((Ok(message), self)),
                Err(status) => {
                    self.over = true;
                    return Some((Err(status), self));
                }
            }
        }
        None
    }

    /// Waits until there may be something to say: something changed, or time has passed.
    async fn rest(&self) {
        let (Some((seen, looked)), Some((_, said))) = (self.looked, self.said) else { return };
        let alarm = said + SIGN_OF_LIFE;
        let alarm = self.until.map_or(alarm, |until| until.min(alarm));
        tokio::select! {
            () = async {
                self.inner.fleet.activity.beyond(seen).await;
                tokio::time::sleep_until(looked + PACE).await;
            } => {}
            () = tokio::time::sleep_until(alarm) => {}
        }
    }

    /// Looks, and says what there is to say.
    fn look(&mut self, now: Instant) -> Result<Option<v1::WaitForResponse>, Status> {
        // What happens from here on makes it look again.
        self.looked = Some((self.inner.fleet.activity.count(), now));
        let propagation = self.survey.of(&self.inner, &self.target, now)?;
        let mut outcome = self.criteria.judge(&propagation);
        if outcome == Outcome::Waiting && self.until.is_some_and(|until| now >= until) {
            outcome = Outcome::TimedOut;
        }
        self.over = outcome != Outcome::Waiting;
        let numbers = numbers(&propagation);
        let quiet = self.said.is_some_and(|(said, at)| said == numbers && now < at + SIGN_OF_LIFE);
        if quiet && !self.over {
            return Ok(None);
        }
        self.said = Some((numbers, now));
        let message = self.criteria.say(&propagation, outcome);
        Ok(Some(v1::WaitForResponse { propagation: Some(propagation), outcome: outcome.into(), message }))
    }
}

fn numbers(of: &v1::Propagation) -> Numbers {
    let excluded = of.excluded.iter().map(|exclusion| u64::from(exclusion.count)).sum();
    let counts = [of.agents, of.received, of.applied, of.failed, of.pending, of.degraded, of.failed_for_good];
    (of.revision, counts, excluded)
}
