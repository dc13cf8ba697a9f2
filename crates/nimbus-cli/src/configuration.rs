//! The configuration of a command: flags, then the environment, then a file, then defaults.

use std::{ffi::OsString, path::PathBuf};

use clap::{ArgMatches, Command, FromArgMatches, parser::ValueSource};

use crate::{
    file::ConfigFile,
    options::{self, Shape},
};

/// What is in force for a subcommand, and where it comes from.
#[derive(Debug)]
pub(crate) struct Configuration {
    command: Command,
    matches: ArgMatches,
    file: Option<ConfigFile>,
}

/// Where the value of an option comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    Flag,
    Environment,
    /// A file, and the place in it.
    File(String),
    Default,
    Unset,
}

/// What a printed configuration begins with.
const TITLE: &str = "# What `nimbus serve` does here. The same file can be given with --config.\n";

// === impl Configuration ===

impl Configuration {
    /// What these arguments mean for the subcommand that they name, with what the file says.
    ///
    /// What a file says takes the place of the defaults, so that clap itself decides what goes before what.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub(crate) fn read(
        program: Command,
        subcommand: &str,
        arguments: impl Iterator<Item = OsString>,
        path: Option<&PathBuf>,
    ) -> Result<Self, String> {
        let of = |program: &Command| program.find_subcommand(subcommand).cloned().unwrap_or_default();
        let file = path.map(|path| ConfigFile::read(path, &of(&program))).transpose()?;
        let program = match &file {
            None => program,
            Some(file) => program.mut_subcommand(subcommand, |command| {
                command.mut_args(|arg| match arg.get_long().and_then(|name| file.get(name)) {
                    Some(entry) => arg.default_values(entry.values.clone()),
                    None => arg,
                })
            }),
        };
        let command = of(&program);
        let matches = program.get_matches_from(arguments);
        let matches = matches.subcommand_matches(subcommand).cloned().unwrap_or_default();
        Ok(Self { command, matches, file })
    }

    /// The values that are in force.
    ///
    /// # Errors
    /// Never for what was parsed; what clap says otherwise.
    pub(crate) fn arguments<T: FromArgMatches>(&self) -> Result<T, String> {
        T::from_arg_matches(&self.matches).map_err(|error| error.to_string())
    }

    /// How to speak of an option in a message: by what set it.
    pub(crate) fn name(&self, option: &str) -> String {
        match self.origin(option) {
            Origin::File(place) => format!("{place}: {option}"),
            Origin::Environment => options::variable(option),
            Origin::Flag | Origin::Default | Origin::Unset => format!("--{option}"),
        }
    }

    /// All of it as TOML that [`Configuration::read`] takes, with a comment for each value that says where it is from.
    pub(crate) fn to_toml(&self) -> String {
        let mut text = TITLE.to_owned();
        for (name, arg) in options::options(&self.command) {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let origin = match self.origin(name) {
                Origin::Flag => format!("--{name}"),
                Origin::Environment => options::variable(name),
                Origin::File(place) => place,
                Origin::Default => "default".to_owned(),
                Origin::Unset => "not set".to_owned(),
            };
            let shape = Shape::of(arg);
            let raw = self.matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
            let values: Vec<String> = raw.map(|value| shape.write(&value.to_string_lossy())).collect();
            let value = if options::is_list(arg) { format!("[{}]", values.join(", ")) } else { values.join("") };
            let help = help.replace('\n', " ");
            text.push_str(&match values.is_empty() {
                true => format!("\n# {help}\n# {name} = # {origin}\n"),
                false => format!("\n# {help}\n{name} = {value} # {origin}\n"),
            });
        }
        text
    }

    fn origin(&self, option: &str) -> Origin {
        let arg = options::options(&self.command).find(|(name, _)| *name == option);
        let source = arg.and_then(|(_, arg)| self.matches.value_source(arg.get_id().as_str()));
        match (source, self.file.as_ref().and_then(|file| file.get(option))) {
            (Some(ValueSource::CommandLine), _) => Origin::Flag,
            (Some(ValueSource::EnvVariable), _) => Origin::Environment,
            (Some(_), Some(entry)) => Origin::File(entry.place.to_string()),
            (Some(_), None) => Origin::Default,
            (None, _) => Origin::Unset,
        }
    }
}

// === impl Shape ===

impl Shape {
    /// A value as it stands in a file.
    fn write(self, value: &str) -> String {
        match self {
            Self::Text => toml::Value::String(value.to_owned()).to_string(),
            // The environment may say yes, or 1.
            Self::Boolean => (!matches!(&*value.to_lowercase(), "false" | "f" | "no" | "n" | "off" | "0")).to_string(),
            Self::Integer => value
                .trim_start_matches('+')
                .parse::<u64>()
                .map_or(value.to_owned(), |value| value.to_string()),
            Self::Number => value.parse::<f64>().map_or(value.to_owned(), |value| format!("{value:?}")),
        }
    }
}

#[cfg(test)]
mod tests;
