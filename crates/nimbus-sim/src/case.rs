//! A seed, and how much of what fails is left of it.

use std::{collections::BTreeSet, fmt, str::FromStr, time::Duration};

/// A seed, and how much of what fails is left of it. Written as `42`; as `42/3,17` if only these faults are inflicted, by
/// their numbers in the schedule of the seed; and as `42/3,17/9500` if everything fails for so many milliseconds only.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Case {
    /// What everything follows from.
    pub seed: u64,
    /// The faults that are left; none: all of them.
    pub faults: Option<BTreeSet<usize>>,
    /// For how long everything fails, if that is not left to the seed.
    pub chaos: Option<Duration>,
}

/// What was expected.
const EXPECTED: &str = "expected a seed such as 42, or 42/3,17 or 42/3,17/9500";

// === impl Case ===

impl Case {
    /// All that follows from a seed.
    pub fn whole(seed: u64) -> Self {
        Self { seed, faults: None, chaos: None }
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |part: &str| format!("{part:?}: {EXPECTED}");
        let number = |part: &str| part.parse::<u64>().map_err(|_| wrong(part));
        let mut parts = text.split('/');
        let seed = number(parts.next().unwrap_or_default())?;
        let faults = parts.next().map(|list| {
            let numbers = list.split(',').filter(|part| !part.is_empty());
            numbers
                .map(|part| part.parse().map_err(|_| wrong(part)))
                .collect::<Result<BTreeSet<usize>, _>>()
        });
        let chaos = parts.next().map(number).transpose()?.map(Duration::from_millis);
        match parts.next() {
            None => Ok(Self { seed, faults: faults.transpose()?, chaos }),
            Some(rest) => Err(wrong(rest)),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, faults, chaos } = self;
        write!(f, "{seed}")?;
        if let Some(faults) = faults {
            let numbers: Vec<_> = faults.iter().map(ToString::to_string).collect();
            write!(f, "/{}", numbers.join(","))?;
        }
        if let Some(chaos) = chaos {
            write!(f, "/{}", chaos.as_millis())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
