//! What users write, and what controllers must make of it.

use std::collections::BTreeMap;

use nimbus_core::{Kind, Spec as _};
use nimbus_store::State;
use nimbus_wire::v1;
use prost::Message as _;

use crate::machine::Broken;

/// What a user writes: so many rules.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Policy {
    #[prost(uint32, tag = "1")]
    pub(crate) rules: u32,
    /// Of the write; rises over all of them.
    #[prost(uint64, tag = "2")]
    pub(crate) number: u64,
}

impl prost::Name for Policy {
    const NAME: &'static str = "Policy";
    const PACKAGE: &'static str = "sim.v1";
}

/// What a controller publishes for each of them.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Rule {
    #[prost(string, tag = "1")]
    pub(crate) policy: String,
    #[prost(uint32, tag = "2")]
    pub(crate) index: u32,
    /// Of the write of the policy.
    #[prost(uint64, tag = "3")]
    pub(crate) number: u64,
}

impl prost::Name for Rule {
    const NAME: &'static str = "Rule";
    const PACKAGE: &'static str = "sim.v1";
}

/// Every policy that was ever written.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    /// Of each, the writes: number, and how many rules; none is a delete.
    writes: BTreeMap<String, Vec<(u64, Option<u32>)>>,
    /// How often each was created.
    lives: BTreeMap<String, u64>,
    last: u64,
    pub(crate) fence: u64,
    /// The user has nothing more to say, and was heard.
    pub(crate) done: bool,
    /// Of each policy that was written while nothing failed, the write before it, and that one; none is a delete.
    steady: BTreeMap<String, (Option<u64>, Option<u64>)>,
    /// Calls of reactors since then, and how they were made: what was there before, and what should be there.
    calls: Vec<Call>,
}

/// A call of a reactor that went well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) policy: String,
    /// `old`, or `last`; none for an object of which no version was dealt with yet.
    pub(crate) old: Option<u64>,
    /// None if it is gone.
    pub(crate) new: Option<u64>,
}

// === impl Policies ===

impl Policies {
    /// Takes note of a write that is about to be made; returns its number.
    pub(crate) fn change(&mut self, policy: &str, rules: Option<u32>) -> u64 {
        self.last += 1;
        if rules.is_some() && self.wanted(policy).is_none_or(|(_, before, _)| before.is_none()) {
            *self.lives.entry(policy.to_owned()).or_default() += 1;
        }
        self.writes.entry(policy.to_owned()).or_default().push((self.last, rules));
        self.last
    }

    /// The last write of a policy, how many rules it has, and which life of it this is.
    pub(crate) fn wanted(&self, policy: &str) -> Option<(u64, Option<u32>, u64)> {
        let (number, rules) = *self.writes.get(policy)?.last()?;
        Some((number, rules, self.lives.get(policy).copied().unwrap_or_default()))
    }

    /// A policy that has not been written since nothing fails any more.
    pub(crate) fn untouched<'a>(&self, mut policies: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        policies.find(|policy| !self.steady.contains_key(*policy))
    }

    /// A policy is changed while nothing fails; returns the number of the write.
    pub(crate) fn touch(&mut self, policy: &str, rules: Option<u32>) -> u64 {
        let live = |(number, rules, _): (u64, Option<u32>, u64)| rules.map(|_| number);
        let before = self.wanted(policy).and_then(live);
        let number = self.change(policy, rules);
        self.steady.insert(policy.to_owned(), (before, rules.map(|_| number)));
        number
    }

    /// Begins to count what reactors are called with.
    pub(crate) fn begin_steady(&mut self) {
        self.done = false;
        self.steady.clear();
        self.calls.clear();
    }

    /// A reactor was called, and it went well.
    pub(crate) fn called(&mut self, call: Call) {
        self.calls.push(call);
    }

    /// Each policy that was written while nothing failed led to one call, with what was there before.
    pub(crate) fn judge_calls(&self) -> Result<(), Broken> {
        for (policy, (old, new)) in &self.steady {
            let calls: Vec<_> = self.calls.iter().filter(|call| call.policy == *policy).cloned().collect();
            let call = Call { policy: policy.clone(), old: *old, new: *new };
            let expected = if old.is_none() && new.is_none() { Vec::new() } else { vec![call] };
            if calls != expected {
                return Err(("Reactions", format!("of {policy} there were {calls:?}, but should be {expected:?}")));
            }
        }
        Ok(())
    }

    /// How what a controller wrote differs from what it should have written: that each policy is ready, and which version of
    /// it was dealt with.
    pub(crate) fn differs_at(&self, state: &State) -> Option<String> {
        let mut expected = BTreeMap::new();
        for (policy, writes) in &self.writes {
            if let Some((number, Some(_))) = writes.last() {
                expected.insert(policy.clone(), *number);
            }
        }
        let records = |kind: Kind| {
            let all = state.kind(&kind).map(|kind| kind.all().iter(None).cloned().collect::<Vec<_>>());
            all.unwrap_or_default()
        };
        let ready = records(Policy::kind()).into_iter().filter_map(|record| {
            let any = prost_types::Any::decode(record.status()).ok()?;
            let conditions = v1::Standing::decode(&*any.value).ok()?.conditions;
            let ready = conditions.into_iter().find(|condition| condition.r#type == "Ready")?;
            (ready.code == "Reconciled").then(|| (record.key().name().to_owned(), ready.generation))
        });
        let ready: BTreeMap<_, _> = ready.collect();
        if ready != expected {
            return Some(format!("the policies that are ready are {ready:?}, but should be {expected:?}"));
        }
        let dealt = records(v1::Acknowledged::kind()).into_iter().filter_map(|record| {
            let any = prost_types::Any::decode(record.spec()).ok()?;
            let object = v1::Acknowledged::decode(&*any.value).ok()?.object?;
            Some((object.name, object.generation))
        });
        let dealt: BTreeMap<_, _> = dealt.collect();
        (dealt != expected).then(|| format!("the policies dealt with are {dealt:?}, but should be {expected:?}"))
    }

    /// Nobody can see older writes any more.
    pub(crate) fn forget(&mut self) {
        self.writes
            .values_mut()
            .for_each(|writes| drop(writes.drain(..writes.len().saturating_sub(1))));
    }

    /// Writes and calls that are kept.
    pub(crate) fn kept(&self) -> usize {
        self.calls.len() + self.writes.values().map(Vec::len).sum::<usize>()
    }

    pub(crate) fn judge_apply(
        &self,
        policy: &str,
        index: u32,
        number: u64,
        before: Option<u64>,
        quiet: bool,
    ) -> Result<(), Broken> {
        let name = format!("{policy}-{index}");
        let written = self.writes.get(policy).and_then(|writes| writes.iter().find(|(at, _)| *at == number));
        if !written.is_some_and(|(_, rules)| rules.is_some_and(|rules| index < rules)) {
            return Err(("Reliable", format!("no policy ever asked for {name} as {number}")));
        }
        if let Some(before) = before.filter(|before| *before > number) {
            return Err(("Ordered", format!("{name} goes back from {before} to {number}")));
        }
        if quiet {
            return Err(("Quiet", format!("{name} as {number} is a change although nothing has changed")));
        }
        Ok(())
    }

    pub(crate) fn judge_remove(&self, policy: &str, index: u32, number: u64) -> Result<(), Broken> {
        let after = self.writes.get(policy).into_iter().flatten().filter(|(at, _)| *at > number);
        let gone = after.into_iter().any(|(_, rules)| rules.is_none_or(|rules| index >= rules));
        if gone { Ok(()) } else { Err(("NoFalseDelete", format!("{policy}-{index} as {number} is still asked for"))) }
    }

    /// How the rules on a machine differ from those that should be there.
    pub(crate) fn differs<'a>(&self, rules: impl Iterator<Item = &'a Rule>) -> Option<String> {
        let mut expected = Vec::new();
        for (policy, writes) in &self.writes {
            if let Some((number, Some(count))) = writes.last() {
                expected.extend((0..*count).map(|index| (policy.as_str(), index, *number)));
            }
        }
        let mut found: Vec<_> = rules.map(|rule| (rule.policy.as_str(), rule.index, rule.number)).collect();
        found.sort_unstable();
        (found != expected).then(|| format!("the rules are {found:?}, but should be {expected:?}"))
    }
}
