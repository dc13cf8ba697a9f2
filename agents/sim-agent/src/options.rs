//! What can be asked for on the command line.

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

use clap::Parser;
use nimbus_agent::Kind;

/// Thousands of agents in one process, which apply nothing, as slowly and badly as you like.
#[derive(Debug, Clone, Parser)]
#[command(name = "sim-agent", version)]
pub(crate) struct Options {
    /// Address of the bus. May be given several times.
    #[arg(long, env = "NIMBUS_BUS", default_value = "http://127.0.0.1:7400")]
    pub(crate) bus: Vec<String>,

    /// How many agents.
    #[arg(long, default_value_t = 100)]
    pub(crate) agents: usize,

    /// Their names are this, and a number.
    #[arg(long, default_value = "sim-")]
    pub(crate) prefix: String,

    /// Kinds to subscribe to. May be given several times.
    #[arg(long, required = true, value_parser = kind)]
    pub(crate) kind: Vec<Kind>,

    /// A label, with values that are dealt out in turn: `zone=a|b|c`. May be given several times.
    #[arg(long, value_parser = label)]
    pub(crate) label: Vec<(String, Vec<String>)>,

    /// How long an apply takes: `20ms`, or somewhere in `5ms..2s`.
    #[arg(long, default_value = "0ms", value_parser = latency)]
    pub(crate) latency: Latency,

    /// Part of the applies that fail, and are tried again.
    #[arg(long, default_value_t = 0.0, value_parser = part)]
    pub(crate) fail_rate: f64,

    /// Part of the objects that an agent rejects for good.
    #[arg(long, default_value_t = 0.0, value_parser = part)]
    pub(crate) reject_rate: f64,

    /// Part of the applies that stall.
    #[arg(long, default_value_t = 0.0, value_parser = part)]
    pub(crate) stall_rate: f64,

    /// How long they stall.
    #[arg(long, default_value = "60s", value_parser = duration)]
    pub(crate) stall: Duration,

    /// Restarts each agent after about this long, again and again; as a crash, without a word.
    #[arg(long, value_parser = duration)]
    pub(crate) restart_every: Option<Duration>,

    /// A restarted agent remembers what it had, in files in this folder. Without it, it begins from nothing.
    #[arg(long)]
    pub(crate) cache: Option<PathBuf>,

    /// Starts this many agents per second.
    #[arg(long, default_value_t = 1_000.0)]
    pub(crate) ramp: f64,

    /// Ends after this many seconds; otherwise with Ctrl-C.
    #[arg(long)]
    pub(crate) seconds: Option<f64>,

    /// Where randomness begins.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// One line of JSON each second.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How long something takes.
pub(crate) type Latency = RangeInclusive<Duration>;

fn kind(text: &str) -> Result<Kind, String> {
    Kind::new(text).map_err(|error| error.to_string())
}

fn label(text: &str) -> Result<(String, Vec<String>), String> {
    let (key, values) = text.split_once('=').ok_or("expected key=value or key=a|b|c")?;
    Ok((key.to_owned(), values.split('|').map(ToOwned::to_owned).collect()))
}

fn part(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(part) if (0.0..=1.0).contains(&part) => Ok(part),
        _ => Err("expected a number between 0 and 1".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    const EXPECTED: &str = "expected a time such as 250ms, 2s or 5m";
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or(EXPECTED)?;
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| EXPECTED)?;
    let seconds = match unit {
        "us" => number / 1e6,
        "ms" => number / 1e3,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(EXPECTED.to_owned()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| EXPECTED.to_owned())
}

fn latency(text: &str) -> Result<Latency, String> {
    match text.split_once("..") {
        None => duration(text).map(|exactly| exactly..=exactly),
        Some((from, to)) => {
            let (from, to) = (duration(from)?, duration(to)?);
            if from > to {
                return Err(format!("{text} ends before it begins"));
            }
            Ok(from..=to)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        assert_eq!(latency("20ms"), Ok(Duration::from_millis(20)..=Duration::from_millis(20)));
        assert_eq!(latency("5ms..2s"), Ok(Duration::from_millis(5)..=Duration::from_secs(2)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        for wrong in ["", "5", "ms", "5 ms", "2s..1s", "-1s", "5parsecs"] {
            assert!(latency(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn labels_are_dealt_out_in_turn() {
        assert_eq!(label("zone=a|b"), Ok(("zone".to_owned(), vec!["a".to_owned(), "b".to_owned()])));
        assert!(label("zone").is_err());
    }
}
