//! What the command says about its work, on standard error.

use std::{io::IsTerminal as _, str::FromStr};

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

/// What is logged, and how it looks.
#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    /// What is logged: a level (off, error, warn, info, debug, trace), or levels for parts of it, such as
    /// `info,nimbus_bus=debug`.
    #[arg(long, default_value = "info", value_name = "FILTER")]
    log: Filter,

    /// How logs look: lines for people, or JSON for programs; `auto` means people if standard error is a terminal.
    #[arg(long, default_value = "auto", value_name = "FORMAT")]
    log_format: Format,
}

/// What is logged, in a form that is known to be one.
#[derive(Debug, Clone)]
struct Filter(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Auto,
    Human,
    Json,
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Begins to log for people: what `NIMBUS_LOG` says, or else `level`; with `-v`, more.
pub(crate) fn start(otherwise: &str, verbose: u8) {
    let asked = std::env::var("NIMBUS_LOG").ok().map(|text| text.parse::<Filter>());
    let filter = match (level(verbose), asked) {
        (Some(level), _) => level.to_owned(),
        (None, None) => otherwise.to_owned(),
        (None, Some(Ok(Filter(filter)))) => filter,
        (None, Some(Err(error))) => {
            let message = format!("invalid value for NIMBUS_LOG: {error}\n");
            clap::Error::raw(clap::error::ErrorKind::InvalidValue, message).exit()
        }
    };
    let filter = EnvFilter::builder().parse_lossy(filter);
    let on_terminal = std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(on_terminal)
        .with_writer(std::io::stderr)
        .init();
}

/// What `-v` asks for.
fn level(verbose: u8) -> Option<&'static str> {
    match verbose {
        0 => None,
        1 => Some("debug"),
        _ => Some("trace"),
    }
}

// === impl LogArguments ===

impl LogArguments {
    /// Begins to log; at least so much as `-v` asks for.
    pub(crate) fn start(&self, verbose: u8) {
        let filter = EnvFilter::builder().parse_lossy(level(verbose).unwrap_or(&self.log.0));
        let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
        let human = match self.log_format {
            Format::Auto => std::io::stderr().is_terminal(),
            Format::Human => true,
            Format::Json => false,
        };
        if human { logs.with_ansi(std::io::stderr().is_terminal()).init() } else { logs.json().init() }
    }
}

// === impl Filter ===

impl FromStr for Filter {
    type Err = String;

    /// A word alone is a level here. Elsewhere it could also be the name of a part, and a typing error would then turn off
    /// everything else.
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected a level (off, error, warn, info, debug, trace), or levels of parts, such as \
                        info,nimbus_bus=debug";
        let is_level = |word: &str| LEVELS.contains(&&*word.to_lowercase());
        let bad = text
            .split(',')
            .map(str::trim)
            .find(|part| !part.contains(['=', '[', ']']) && !is_level(part));
        if let Some(bad) = bad {
            return Err(format!("`{bad}` is no level: {expected}"));
        }
        match EnvFilter::builder().parse(text) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => Err(format!("{error}: {expected}")),
        }
    }
}

#[cfg(test)]
mod tests;
