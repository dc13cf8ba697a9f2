//! How a run ended.

use std::{collections::BTreeMap, fmt, time::Duration};

use crate::{
    faults::Planned,
    world::{Event, Inner},
};

/// How a run ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The seed that it followed from.
    pub seed: u64,
    /// Stands for everything that happened: two runs with the same one were the same.
    pub fingerprint: u64,
    /// Things that somebody did or saw.
    pub events: u64,
    /// Faults that were inflicted, by their sort.
    pub faults: BTreeMap<&'static str, u64>,
    /// Objects that were written.
    pub writes: u64,
    /// Calls of handlers.
    pub calls: u64,
    /// How long it would have taken.
    pub time: Duration,
    /// What was wrong, if something was.
    pub violation: Option<String>,
    /// What the seed decided, what went wrong, and what happened last.
    pub story: Vec<String>,
    /// Everything that happened, or the end of it.
    pub trace: Vec<String>,
}

/// What stands between words.
const BETWEEN: [char; 6] = [' ', ',', ':', '(', ')', '"'];

/// Enough to see what led to it, and not more than somebody reads.
const TOLD: usize = 60;

// === impl Outcome ===

impl Outcome {
    pub(crate) fn new(
        world: &mut Inner,
        schedule: &[Planned],
        time: Duration,
        faults: BTreeMap<&'static str, u64>,
    ) -> Self {
        let violation = world.violation.clone();
        let mut story = Vec::new();
        if violation.is_some() {
            let last = world.events.last().map(|event| event.at).unwrap_or_default();
            story.push(format!("{:#?}", world.setup));
            story.push("faults:".to_owned());
            story.extend(schedule.iter().filter(|planned| planned.at <= last).map(|planned| format!("  {planned}")));
            // Of everybody a little, and of who complained more.
            let culprit = world.events.iter().find(|event| event.what.starts_with("VIOLATION"));
            let culprit = culprit.map(|event| event.who.clone()).unwrap_or_default();
            let told = |event: &&Event| event.to_string();
            story.push(format!("the last events of {culprit}:"));
            let of: Vec<_> = world.events.iter().filter(|event| event.who == culprit).collect();
            story.extend(of[of.len().saturating_sub(TOLD)..].iter().map(told));
            story.push("the last events of all:".to_owned());
            story.extend(world.events[world.events.len().saturating_sub(TOLD)..].iter().map(|event| told(&event)));
            if let Some(key) = violation.as_deref().and_then(|violation| named(world, violation)) {
                story.push(format!("all events of {key}:"));
                // Rules are named after their policy.
                let is_it =
                    |word: &str| word == key || word.strip_prefix(&*key).is_some_and(|rest| rest.starts_with('-'));
                let about = |event: &&Event| event.what.split(BETWEEN).any(is_it);
                let about: Vec<_> = world.events.iter().filter(about).collect();
                story.extend(about[about.len().saturating_sub(3 * TOLD)..].iter().map(told));
            }
        }
        Self {
            seed: world.setup.seed,
            fingerprint: world.fingerprint(),
            events: world.count,
            faults,
            writes: world.writes,
            calls: world.machines.values().map(|machine| machine.calls).sum(),
            time,
            violation,
            story,
            trace: world.events.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The object that a complaint is about.
fn named(world: &Inner, violation: &str) -> Option<String> {
    let keys: Vec<String> = world.model.objects.keys().map(ToString::to_string).collect();
    let mut words = violation.split(BETWEEN);
    words.find_map(|word| {
        let policy = word.strip_prefix("policy-").and_then(|rest| rest.split('-').next());
        policy
            .map(|policy| format!("policy-{policy}"))
            .or_else(|| keys.iter().find(|key| *key == word).cloned())
    })
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, fingerprint, events, writes, calls, time, .. } = self;
        let faults: u64 = self.faults.values().sum();
        write!(
            f,
            "seed {seed} fingerprint {fingerprint:016x} events {events} faults {faults} writes {writes} calls {calls} seconds {:.3}",
            time.as_secs_f64()
        )?;
        self.faults.iter().try_for_each(|(sort, count)| write!(f, " {sort}={count}"))
    }
}
