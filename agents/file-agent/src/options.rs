//! What can be asked for on the command line.

use std::path::PathBuf;

use clap::Parser;

/// Keeps files below a directory as a nimbus bus says.
#[derive(Debug, Parser)]
#[command(name = "file-agent", version)]
pub(crate) struct Options {
    /// The name of this agent, which no other has.
    #[arg(long, env = "NIMBUS_AGENT_ID")]
    pub(crate) id: String,

    /// Where the bus is.
    #[arg(long, env = "NIMBUS_BUS", default_value = "http://127.0.0.1:7400")]
    pub(crate) bus: String,

    /// The directory that files are kept in. Nothing outside of it is ever touched.
    #[arg(long, env = "NIMBUS_FILE_ROOT", value_name = "DIR")]
    pub(crate) root: PathBuf,

    /// Where the agent remembers what it has done. One agent has it at a time.
    #[arg(long, env = "NIMBUS_STATE", value_name = "DIR", default_value = "/var/lib/nimbus/file-agent")]
    pub(crate) state: PathBuf,

    /// A label, which the audiences of objects look at. May be given several times; commas separate in the environment.
    #[arg(long, env = "NIMBUS_LABELS", value_name = "KEY=VALUE", value_delimiter = ',', value_parser = parse_label)]
    pub(crate) label: Vec<(String, String)>,

    /// A program that objects may have run, by its absolute path. May be given several times.
    ///
    /// Whoever can publish files can then run it, with any arguments, as the user that the agent runs as.
    #[arg(long, env = "NIMBUS_ALLOW", value_name = "PROGRAM", value_delimiter = ',', value_parser = parse_program)]
    pub(crate) allow: Vec<String>,

    /// Seconds between looks at whether files still are as they were left.
    #[arg(long, env = "NIMBUS_OBSERVE_INTERVAL", value_name = "SECONDS", default_value_t = 60.0, value_parser = parse_seconds)]
    pub(crate) observe_interval: f64,
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn parse_program(text: &str) -> Result<String, String> {
    if text.starts_with('/') { Ok(text.to_owned()) } else { Err("expected an absolute path".to_owned()) }
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds between 0.01 and 86400".to_owned()),
    }
}
