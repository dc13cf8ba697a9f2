//! `Explain`: why an agent has, or has not, applied an object.

use std::{
    collections::{BTreeSet, VecDeque},
    fmt::Write as _,
};

use nimbus_core::{AgentId, Audience, Kind, ObjectKey, Revision};
use nimbus_store::{Fields, Record, State};
use nimbus_wire::v1::{self, AgentState, Verdict};
use tokio::time::{Duration, Instant};

use crate::{
    fleet::{
        Fleet,
        agent::{Agent, Entry},
        exception::{Exception, millis},
        progress::Marks,
        shape::Written,
        view::{Detail, Viewer},
    },
    inner::Inner,
};

/// What keeps an object from an agent, or what the agent has made of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    /// What comes after the name of the object, in a sentence.
    pub(crate) text: String,
    pub(crate) rule: String,
}

/// Looks at one agent in one state of the collection.
pub(crate) struct Inspector<'a> {
    pub(crate) state: &'a State,
    pub(crate) fields: &'a dyn Fields,
    pub(crate) agent: &'a AgentId,
    pub(crate) entry: &'a Entry,
    pub(crate) lost_after: Duration,
    pub(crate) now: Instant,
}

/// Who waits for more than this in a row has another problem.
const MAX_DEPTH: usize = 16;

/// A chain that people read.
const MAX_HOPS: usize = 64;

/// Agents named in a rule, before it says how many more there are.
const NAMED: usize = 5;

/// Why an agent has, or has not, applied an object.
pub(crate) fn explain(inner: &Inner, id: &AgentId, key: &ObjectKey, now: Instant) -> v1::ExplainResponse {
    inner.fleet.tick(now);
    let state = inner.store.state();
    let record = state.get(key);
    let mut answer = v1::ExplainResponse {
        generation: record.map_or(0, |record| record.generation().0),
        revision: record.map_or_else(|| state.end_of(key).unwrap_or_default(), |record| record.revision()).0,
        ..Default::default()
    };
    let Some(agent) = inner.fleet.agent(id) else {
        answer.verdict = Verdict::UnknownAgent.into();
        answer.explanation = format!(
            "{id} has not been seen by this bus, or so long ago that it was forgotten (hint: the name is the one that \
             it subscribes with)"
        );
        return answer;
    };
    let entry = agent.entry.lock();
    let (fields, lost_after) = (&*inner.fields, inner.fleet.lost_after);
    let inspector = Inspector { state: &state, fields, agent: id, entry: &entry, lost_after, now };
    let finding = inspector.find(key);
    answer.verdict = finding.verdict.into();
    answer.explanation = format!("{key} {}", finding.text);
    answer.rule = finding.rule;
    answer.exception = entry.progress.exceptions.get(key).map(|exception| exception.to_wire(key, now));
    if finding.verdict == Verdict::Held {
        answer.chain = inspector.chain(key);
    }
    if let Some(record) = record {
        (answer.received_after_ms, answer.applied_after_ms) = latencies(&inner.fleet, &state, record, &agent, &entry);
    }
    answer.agent = Some(Viewer::new(&inner.fleet, &state, None, now).show(&agent, &entry, Detail::Everything));
    answer
}

/// From publishing to the reports of it, as far as that is known.
fn latencies(fleet: &Fleet, state: &State, record: &Record, agent: &Agent, entry: &Entry) -> (u64, u64) {
    let sent_at = state.sent_at(record, &agent.id);
    let Some(published) = fleet.published_at(sent_at) else { return (0, 0) };
    let marks = entry.progress.marks();
    let after = |at: Option<Instant>, mark: Revision| {
        let known = at.filter(|_| mark >= sent_at);
        known.map_or(0, |at| millis(at.saturating_duration_since(published)).max(1))
    };
    let progress = &entry.progress;
    (after(progress.received.passed(sent_at), marks.received), after(progress.applied.passed(sent_at), marks.applied))
}

// === impl Inspector ===

impl Inspector<'_> {
    /// What the agent has made of an object.
    pub(crate) fn find(&self, key: &ObjectKey) -> Finding {
        let exception = self.entry.progress.exceptions.get(key);
        match self.state.get(key) {
            None => self.find_end(key, exception),
            Some(record) => match self.barrier(record) {
                Some(mut finding) => {
                    if let Some(exception) = exception {
                        // It had the object before, and did not get rid of it.
                        let _ = write!(finding.text, "; the agent says of it: {}", said(exception));
                    }
                    finding
                }
                None => self.find_object(record, exception),
            },
        }
    }

    /// What the object waits for, and what that waits for, each once.
    pub(crate) fn chain(&self, key: &ObjectKey) -> Vec<v1::Hop> {
        let mut hops = Vec::new();
        let mut seen = BTreeSet::from([key.clone()]);
        let mut next = VecDeque::from([(key.clone(), 0)]);
        while let Some((key, depth)) = next.pop_front() {
            let Some(exception) = self.entry.progress.exceptions.get(&key).filter(|_| depth < MAX_DEPTH) else {
                continue;
            };
            for waited in &exception.waits_for {
                if hops.len() >= MAX_HOPS || !seen.insert(waited.clone()) {
                    continue;
                }
                let finding = self.find(waited);
                hops.push(v1::Hop {
                    object: Some(waited.to_wire()),
                    verdict: finding.verdict.into(),
                    explanation: format!("{waited} {}", finding.text),
                });
                next.push_back((waited.clone(), depth + 1));
            }
        }
        hops
    }

    /// What keeps an object from the agent.
    fn barrier(&self, record: &Record) -> Option<Finding> {
        let (key, shape) = (record.key(), &self.entry.shape);
        let barrier = |verdict, rule: String| {
            Some(Finding { verdict, text: format!("is not sent to {}: {rule}", self.agent), rule })
        };
        if !shape.covers(key.kind()) {
            let kinds = shape.kinds.iter().flat_map(|kinds| kinds.iter());
            let kinds = listed(kinds.map(Kind::as_str));
            return barrier(Verdict::KindNotSubscribed, format!("the agent is subscribed to {kinds} only"));
        }
        if let Some(filter) = &shape.filter {
            let shown = self.state.shows(key, filter).unwrap_or_else(|| filter.passes(record, self.fields));
            if !shown {
                let part = filter.refusal(record, self.fields).unwrap_or_else(|| filter.to_string());
                return barrier(Verdict::FilteredOut, format!("filtered out by {part}"));
            }
        }
        let rule = match record.audience() {
            Audience::Selector(selector) if !selector.matches(&shape.labels) => {
                format!("audience is {selector}, the agent's labels are {}", Written(&shape.labels))
            }
            Audience::Agents(ids) if ids.is_empty() => "the audience is nobody".to_owned(),
            Audience::Agents(ids) if !ids.contains(self.agent) => {
                format!("audience is {}, the agent is not among them", listed(ids.iter().map(AgentId::as_str)))
            }
            _ => return None,
        };
        barrier(Verdict::NotInAudience, rule)
    }

    fn find_object(&self, record: &Record, exception: Option<&Exception>) -> Finding {
        let marks = self.entry.progress.marks();
        let sent_at = self.state.sent_at(record, self.agent);
        // What it said of an earlier version, before it got this one, says nothing of this one.
        let exception =
            exception.filter(|exception| marks.applied >= sent_at || exception.generation == record.generation());
        self.judge(marks, sent_at, exception)
    }

    fn find_end(&self, key: &ObjectKey, exception: Option<&Exception>) -> Finding {
        let Some(end) = self.state.end_of(key) else {
            return match exception {
                None => {
                    let rule = String::new();
                    Finding { verdict: Verdict::NoSuchObject, text: "does not exist".to_owned(), rule }
                }
                Some(exception) => {
                    let finding = reported(exception);
                    Finding { text: format!("is gone, but at the agent it {}", finding.text), ..finding }
                }
            };
        };
        let last = self.state.last_change(&self.entry.shape.scope(self.agent));
        let (marks, bar) = (self.entry.progress.marks(), end.min(last));
        // Before that, it speaks of the object while it lived.
        let exception = exception.filter(|_| marks.applied >= bar);
        let finding = self.judge(marks, bar, exception);
        let text = match finding.verdict {
            Verdict::Applied => format!("was deleted at revision {end}, and the agent does not have it any more"),
            _ => format!("was deleted at revision {end}, but at the agent it {}", finding.text),
        };
        let verdict = if finding.verdict == Verdict::Applied { Verdict::Removed } else { finding.verdict };
        Finding { verdict, text, ..finding }
    }

    /// What the agent's marks, and what it says, mean for a change at revision `at`.
    fn judge(&self, marks: Marks, at: Revision, exception: Option<&Exception>) -> Finding {
        let plain = |verdict, text: String| Finding { verdict, text, rule: String::new() };
        if let Some(exception) = exception {
            return reported(exception);
        }
        if marks.applied >= at {
            return plain(
                Verdict::Applied,
                format!("is applied: the agent has applied everything up to {}", marks.applied),
            );
        }
        if marks.received >= at {
            let text = format!("has arrived: the agent has applied everything up to {}, this is {at}", marks.applied);
            return plain(Verdict::Received, text);
        }
        let (state, since) = self.entry.presence.state(self.now, self.lost_after);
        let seconds = self.now.saturating_duration_since(since).as_secs();
        let text = match state {
            AgentState::Connected if self.entry.progress.is_void() => {
                "is on its way: the agent's scope has changed, and it has not reported since".to_owned()
            }
            AgentState::Connected => {
                format!("is on its way: the agent has received everything up to {}, this is {at}", marks.received)
            }
            AgentState::Away => format!("has not arrived: the agent has been away for {seconds} s"),
            _ => format!("has not arrived: the agent has been lost for {seconds} s"),
        };
        plain(Verdict::NotReceived, text)
    }
}

/// What the agent says.
fn reported(exception: &Exception) -> Finding {
    let verdict = match exception.phase {
        v1::Phase::Failed => Verdict::Failed,
        v1::Phase::Degraded => Verdict::Degraded,
        _ if exception.waits_for.is_empty() => Verdict::Pending,
        _ => Verdict::Held,
    };
    Finding { verdict, text: said(exception), rule: String::new() }
}

fn said(exception: &Exception) -> String {
    let mut text = match exception.phase {
        v1::Phase::Failed => "failed".to_owned(),
        v1::Phase::Degraded => "is applied, but degraded".to_owned(),
        _ if exception.waits_for.is_empty() => "is pending".to_owned(),
        _ => {
            let keys: Vec<_> = exception.waits_for.iter().map(ToString::to_string).collect();
            format!("waits for {}", listed(keys.iter().map(String::as_str)))
        }
    };
    let detail = [&exception.code, &exception.message].map(|part| part.trim());
    let detail: Vec<_> = detail.into_iter().filter(|part| !part.is_empty()).collect();
    if !detail.is_empty() {
        let _ = write!(text, ": {}", detail.join(": "));
    }
    if exception.is_final() {
        text.push_str(" (not tried again before it changes)");
    }
    text
}

/// The first few of them, and how many there are.
fn listed<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    let count = names.clone().count();
    let first: Vec<_> = names.take(NAMED).collect();
    let more = if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
    format!("{}{more}", first.join(", "))
}
