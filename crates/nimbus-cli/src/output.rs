//! What commands print: tables for people, JSON, YAML and names for programs.

mod items;
mod printer;
mod table;
mod thousands;
mod wire;
mod yaml;

use std::{env, io::IsTerminal as _};

use clap::{Args, ValueEnum};

pub(crate) use crate::output::{
    items::Items,
    printer::Printer,
    table::{Cell, Column, Table, Tone},
    thousands::thousands,
    wire::wire_json,
    yaml::document as yaml_document,
};

/// How to print. To be flattened into the arguments of every command that prints more than a line.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// What to print.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,

    /// Whether to use colours. Without being told, only on a terminal, and not if `NO_COLOR` is set.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: Color,

    /// No first line with the names of the columns.
    #[arg(long)]
    no_headers: bool,
}

/// What to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people.
    Table,
    /// The same, with more of them.
    Wide,
    /// One document; of several objects `{"items": [...]}`.
    Json,
    /// One document for each object, as in docs/MANIFESTS.md.
    Yaml,
    /// KIND/NAME, one a line.
    Name,
}

/// Whether to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

// === impl Format ===

impl Format {
    /// Whether specs are printed, and so must be readable.
    pub(crate) fn has_specs(self) -> bool {
        matches!(self, Self::Json | Self::Yaml)
    }
}

// === impl OutputArguments ===

impl OutputArguments {
    /// Prints to standard output in this way.
    pub(crate) fn printer(&self) -> Printer {
        Printer::new(Box::new(std::io::stdout().lock()), self.output, self.color.is_wanted(), !self.no_headers)
    }

    /// What to print.
    pub(crate) fn format(&self) -> Format {
        self.output
    }
}

/// A page on standard output for people, who get colours on a terminal.
pub(crate) fn page() -> Printer {
    Printer::page(Color::Auto.is_wanted())
}

// === impl Color ===

impl Color {
    /// Whether standard output is to have colours.
    pub(crate) fn is_wanted(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => std::io::stdout().is_terminal() && colors_are_welcome(),
        }
    }
}

/// As no-color.org has it, and terminals that cannot.
pub(crate) fn colors_are_welcome() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && env::var_os("TERM").is_none_or(|term| term != "dumb")
}
