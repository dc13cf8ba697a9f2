//! What users write, and what controllers must make of it.

use std::collections::BTreeMap;

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

    /// Nobody can see older writes any more.
    pub(crate) fn forget(&mut self) {
        self.writes
            .values_mut()
            .for_each(|writes| drop(writes.drain(..writes.len().saturating_sub(1))));
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
