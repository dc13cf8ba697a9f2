//! Less of what fails, and still the same property that does not hold.

use std::{collections::BTreeSet, fmt, ops::Range, process::Command, time::Duration};

use crate::{
    case::Case,
    children::{Report, each},
    faults::Planned,
    real_clock::real_clock,
    run::schedule,
};

/// The smallest case that was found, and how it ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Smallest {
    /// How it ended.
    pub report: Report,
    /// How many faults there were at first.
    pub before: usize,
    /// What is left of them, in order.
    pub faults: Vec<String>,
    /// How many runs it took to find it.
    pub runs: usize,
}

/// A search for less of what fails.
struct Search<C> {
    /// The smallest case so far.
    best: Report,
    property: String,
    command: C,
    jobs: usize,
    runs: usize,
    /// Until when to begin with more runs.
    end: Duration,
}

/// Everything fails for at least so long: nobody has even begun before.
const SHORTEST: Duration = Duration::from_millis(500);

/// Looks for a smaller case in which the same property does not hold: without the faults of one sort, without those of one
/// host, without a half, a quarter, and so on down to single ones, and with less time for all of them. That a fault is left
/// out changes everything that happens after it, so a smaller case may well hide what is wrong; then it is not taken.
///
/// # Errors
/// If a process cannot be started.
pub fn minimise(
    failed: Report,
    jobs: usize,
    limit: Duration,
    command: impl Fn(&Case) -> Command,
) -> anyhow::Result<Smallest> {
    let property = failed.property().unwrap_or_default().to_owned();
    let before = schedule(&failed.case).len();
    let mut search = Search { best: failed, property, command, jobs, runs: 0, end: real_clock() + limit };
    // Often enough it is not the faults.
    search.first([search.with(BTreeSet::new())])?;
    search.leave_out(|planned| planned.fault.sort().to_owned())?;
    search.leave_out(|planned| planned.fault.host().to_owned())?;
    search.bisect()?;
    search.shorten()?;
    let faults = schedule(&search.best.case).iter().map(ToString::to_string).collect();
    Ok(Smallest { report: search.best, before, faults, runs: search.runs })
}

// === impl Search ===

impl<C: Fn(&Case) -> Command> Search<C> {
    /// The first of these that fails in the same way is the best one from now on; says which it was.
    fn first(&mut self, cases: impl IntoIterator<Item = Case>) -> anyhow::Result<Option<usize>> {
        let (end, mut runs, mut found) = (self.end, 0, None);
        let cases = cases.into_iter().take_while(|_| real_clock() < end);
        each(cases, self.jobs, &self.command, |report| {
            runs += 1;
            if report.property() == Some(&self.property) {
                found = Some(report);
            }
            found.is_none()
        })?;
        self.runs += runs;
        let Some(report) = found else { return Ok(None) };
        self.best = report;
        Ok(Some(runs - 1))
    }

    /// What is left, in order.
    fn left(&self) -> Vec<Planned> {
        schedule(&self.best.case)
    }

    fn with(&self, faults: BTreeSet<usize>) -> Case {
        Case { faults: Some(faults), ..self.best.case.clone() }
    }

    /// Leaves out all faults that have something in common, as often as that can be done.
    fn leave_out(&mut self, common: impl Fn(&Planned) -> String) -> anyhow::Result<()> {
        loop {
            let left = self.left();
            let all: BTreeSet<String> = left.iter().map(&common).collect();
            let without = |what: &String| {
                let others = left.iter().filter(|planned| common(planned) != *what);
                self.with(others.map(|planned| planned.number).collect())
            };
            let cases: Vec<_> = all.iter().map(without).collect();
            if self.first(cases)?.is_none() {
                return Ok(());
            }
        }
    }

    /// Leaves out halves, then quarters, and so on down to single faults.
    fn bisect(&mut self) -> anyhow::Result<()> {
        let mut size = self.left().len().div_ceil(2);
        let mut from = 0;
        while size > 0 {
            let left: Vec<usize> = self.left().iter().map(|planned| planned.number).collect();
            let without = |range: Range<usize>| {
                let kept = left.iter().enumerate().filter(|(at, _)| !range.contains(at));
                self.with(kept.map(|(_, number)| *number).collect())
            };
            let starts = (from..left.len()).step_by(size);
            let cases: Vec<_> = starts.map(|at| without(at..at + size)).collect();
            match self.first(cases)? {
                // What comes after it has not been tried yet.
                Some(index) => from += index * size,
                None if size == 1 => return Ok(()),
                None => (size, from) = (size.div_ceil(2), 0),
            }
        }
        Ok(())
    }

    /// Gives everything less time to fail.
    fn shorten(&mut self) -> anyhow::Result<()> {
        let last = self.left().last().map_or(SHORTEST, |planned| planned.at + SHORTEST);
        let upper = self.best.case.chaos.unwrap_or(Duration::from_secs(64));
        let lengths =
            std::iter::successors(Some(last), |length| Some(*length * 2)).take_while(|length| *length < upper);
        let cases: Vec<_> = lengths.map(|chaos| Case { chaos: Some(chaos), ..self.best.case.clone() }).collect();
        self.first(cases).map(drop)
    }
}

impl fmt::Display for Smallest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, before, faults, runs } = self;
        let violation = report.violation.as_deref().unwrap_or_default();
        writeln!(f, "the smallest schedule found in {runs} runs has {} of {before} faults:", faults.len())?;
        faults.iter().try_for_each(|fault| writeln!(f, "  {fault}"))?;
        write!(f, "case {} fails: {violation}", report.case)
    }
}
