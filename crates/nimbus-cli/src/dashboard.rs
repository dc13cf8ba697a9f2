//! A fleet at a glance: numbers, rates, and the agents in an order that somebody chose.
//!
//! No I/O: samples go in, text comes out.

#[cfg(test)]
mod tests;

use std::{cmp::Reverse, collections::HashMap, time::Duration};

use clap::ValueEnum;
use nimbus_wire::v1::{AgentInfo, Propagation};

use crate::{
    agent_table::{is_behind, lag, position, state},
    output::{Cell, Column, Table, Tone},
    progress::{bar, percent},
};

/// A look at the fleet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    /// Which history this is of.
    pub(crate) epoch: u64,
    pub(crate) revision: u64,
    pub(crate) connected: u32,
    pub(crate) away: u32,
    pub(crate) lost: u32,
    pub(crate) agents: Vec<AgentInfo>,
    /// How far the newest revision has come; none if there is none yet.
    pub(crate) newest: Option<Propagation>,
}

/// What agents are sorted by; the names decide between equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// Those first that are furthest behind.
    Lag,
    /// Those first at which most has failed.
    Failed,
    /// Those first that apply most.
    Rate,
    /// By name.
    Name,
}

/// The last two looks, and how to show them.
#[derive(Debug)]
pub(crate) struct Dashboard {
    address: String,
    sort: Sort,
    sample: Sample,
    /// Revisions per second, of the bus and of each agent by its name; empty after the first look.
    rate: Option<f64>,
    rates: HashMap<String, f64>,
    /// Why the last look failed, if it did.
    trouble: Option<String>,
    /// The first agent that is shown.
    top: usize,
}

/// Characters of the bar.
const BAR: usize = 30;

// === impl Dashboard ===

impl Dashboard {
    /// Nothing was seen yet.
    pub(crate) fn new(address: &str, sort: Sort) -> Self {
        Self {
            address: address.to_owned(),
            sort,
            sample: Sample::default(),
            rate: None,
            rates: HashMap::new(),
            trouble: None,
            top: 0,
        }
    }

    /// Takes a look that was taken that long after the one before.
    pub(crate) fn take(&mut self, sample: Sample, since: Option<Duration>) {
        self.trouble = None;
        (self.rate, self.rates) = (None, HashMap::new());
        // What was counted in another history cannot be compared.
        if let Some(since) = since.filter(|since| !since.is_zero() && self.sample.epoch == sample.epoch) {
            let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / since.as_secs_f64();
            self.rate = Some(rate(self.sample.revision, sample.revision));
            let before: HashMap<&str, u64> =
                self.sample.agents.iter().map(|agent| (&*agent.agent, agent.applied)).collect();
            let known = sample.agents.iter().filter_map(|agent| Some((agent, *before.get(&*agent.agent)?)));
            self.rates = known.map(|(agent, before)| (agent.agent.clone(), rate(before, agent.applied))).collect();
        }
        self.sample = sample;
        self.arrange();
    }

    /// The last look failed. What was seen before stays.
    pub(crate) fn fail(&mut self, why: &str) {
        self.trouble = Some(why.chars().map(|c| if c.is_control() { ' ' } else { c }).collect());
    }

    /// Sorts by the next criterion.
    pub(crate) fn sort_by_next(&mut self) {
        self.sort = match self.sort {
            Sort::Lag => Sort::Failed,
            Sort::Failed => Sort::Rate,
            Sort::Rate => Sort::Name,
            Sort::Name => Sort::Lag,
        };
        self.top = 0;
        self.arrange();
    }

    /// Moves down, or up, by that many agents.
    pub(crate) fn scroll(&mut self, by: isize) {
        self.top = self.top.saturating_add_signed(by).min(self.sample.agents.len().saturating_sub(1));
    }

    fn arrange(&mut self) {
        let rates = &self.rates;
        let millis = |rate: f64| (rate * 1_000.0) as u64;
        self.sample.agents.sort_by_key(|agent| {
            let weight = match self.sort {
                Sort::Name => 0,
                Sort::Failed => u64::from(agent.failed),
                Sort::Rate => rates.get(&agent.agent).map_or(0, |rate| millis(*rate)),
                Sort::Lag if !is_behind(agent) => 0,
                // It has been behind for longer than the bus remembers.
                Sort::Lag if agent.lag_ms == 0 => u64::MAX,
                Sort::Lag => agent.lag_ms,
            };
            (Reverse(weight), agent.agent.clone())
        });
        self.scroll(0);
    }

    /// All of it as lines of text.
    pub(crate) fn page(&self, colored: bool) -> Vec<String> {
        let mut lines = self.summary();
        lines.push(String::new());
        lines.extend(self.table().text(colored).lines().map(str::to_owned));
        lines
    }

    /// As much of it as fits on a screen of that many lines.
    pub(crate) fn screen(&self, height: usize, colored: bool) -> Vec<String> {
        let mut lines = self.summary();
        let sort = self
            .sort
            .to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned());
        lines.push(format!("sorted by {sort}; s sorts, arrows scroll, q quits"));
        lines.push(String::new());
        let table = self.table().text(colored);
        let mut rows = table.lines().map(str::to_owned);
        lines.extend(rows.next());
        let room = height.saturating_sub(lines.len());
        lines.extend(rows.skip(self.top).take(room));
        lines.truncate(height);
        lines
    }

    fn summary(&self) -> Vec<String> {
        let Sample { revision, connected, away, lost, agents, newest, .. } = &self.sample;
        let rate = self.rate.map_or_else(String::new, |rate| format!(", {rate:.1} a second"));
        let (mut in_sync, mut failed, mut pending, mut degraded) = (0, 0, 0, 0);
        for agent in agents {
            in_sync += u32::from(agent.in_sync);
            failed += agent.failed;
            pending += agent.pending;
            degraded += agent.degraded;
        }
        let mut lines = vec![
            format!("bus         {}, revision {revision}{rate}", self.address),
            format!(
                "agents      {connected} connected, {away} away, {lost} lost; {in_sync} of {} in sync",
                agents.len()
            ),
            format!("objects     {failed} failed, {pending} pending, {degraded} degraded, over all agents"),
        ];
        if let Some(Propagation { agents, applied, failed, .. }) = newest {
            let (bar, percent) = (bar(*applied, *agents, BAR), percent(*applied, *agents));
            let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
            lines.push(format!("newest      {bar} {percent}%, applied by {applied} of {agents} agents{failed}"));
        }
        if let Some(trouble) = &self.trouble {
            lines.push(format!("trouble     {trouble}"));
        }
        lines
    }

    fn table(&self) -> Table {
        let titles = ["AGENT", "STATE", "POSITION", "LAG", "RATE", "FAILED", "PENDING", "DEGRADED"];
        let mut table = Table::new(titles.map(Column::new));
        let troubled = |count: u32, tone| Cell::from(count).tone(if count > 0 { tone } else { Tone::Plain });
        for agent in &self.sample.agents {
            let rate = self.rates.get(&agent.agent).map_or_else(String::new, |rate| format!("{rate:.1}/s"));
            table.row([
                Cell::from(&agent.agent),
                state(agent),
                position(agent),
                lag(agent),
                Cell::from(rate),
                troubled(agent.failed, Tone::Bad),
                troubled(agent.pending, Tone::Warning),
                troubled(agent.degraded, Tone::Warning),
            ]);
        }
        table
    }
}
