//! A configuration file: options by their names, each with the place where it stands.

use std::{collections::BTreeMap, error::Error as _, fmt, fs, path::Path};

use clap::{Command, error::ContextKind, error::ErrorKind};
use nimbus_core::nearest;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::options::{self, Shape};

/// Options by their names, as a file says them.
#[derive(Debug)]
pub(crate) struct ConfigFile(BTreeMap<String, Entry>);

/// One option, and where it stands.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) values: Vec<String>,
    pub(crate) place: Place,
}

/// Where something stands in a file; columns are characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    file: String,
    line: usize,
    column: usize,
}

/// A file as text, to say where in it something is.
struct Source<'a> {
    name: &'a Path,
    text: &'a str,
}

// === impl ConfigFile ===

impl ConfigFile {
    /// Reads options of a command, and checks each as its flag would be.
    ///
    /// # Errors
    /// If the file cannot be read, is no TOML, or has an option that is not known or not valid: with its place.
    pub(crate) fn read(path: &Path, command: &Command) -> Result<Self, String> {
        let text = fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error} (hint: --config names a TOML file)", path.display()))?;
        Self::parse(path, &text, command)
    }

    pub(crate) fn parse(path: &Path, text: &str, command: &Command) -> Result<Self, String> {
        let source = Source { name: path, text };
        let table = DeTable::parse(text).map_err(|error| {
            let place = source.place(error.span().map_or(0, |span| span.start));
            format!("{place}: {}", error.message().replace('\n', ", "))
        })?;
        let mut entries: Vec<_> = table.get_ref().iter().collect();
        // What is wrong first in the file is said first.
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut file = BTreeMap::new();
        for (key, value) in entries {
            let (name, place) = (&**key.get_ref(), source.place(value.span().start));
            let Some((_, arg)) = options::options(command).find(|(known, _)| *known == name) else {
                let place = source.place(key.span().start);
                return Err(format!("{place}: {}", unknown(name, value.get_ref(), command)));
            };
            let shape = Shape::of(arg);
            let items: Vec<&DeValue<'_>> = match value.get_ref() {
                DeValue::Array(items) if options::is_list(arg) => items.iter().map(Spanned::get_ref).collect(),
                value => vec![value],
            };
            let values = items.into_iter().map(|item| {
                let expected = || format!("expected {}, found {}", shape.described(), found(item));
                shape.read(item).ok_or_else(expected)
            });
            let values = values.collect::<Result<Vec<_>, _>>();
            let checked = values.and_then(|values| check(command, name, &values).map(|()| values));
            let values = checked.map_err(|why| format!("{place}: {name}: {why}"))?;
            file.insert(name.to_owned(), Entry { values, place });
        }
        Ok(Self(file))
    }

    /// An option, if the file says it.
    pub(crate) fn get(&self, name: &str) -> Option<&Entry> {
        self.0.get(name)
    }
}

/// Why a name is none, and which one was probably meant.
fn unknown(name: &str, value: &DeValue<'_>, command: &Command) -> String {
    if options::is_no_option(name) {
        return format!("{name} cannot be set in a file (hint: say --{name})");
    }
    let near = nearest(name, options::options(command).map(|(known, _)| known));
    let hint = match near {
        Some(near) => format!("did you mean {near}?"),
        None if matches!(value, DeValue::Table(_)) => "options stand alone, without tables".to_owned(),
        None => "--print-config shows all of them".to_owned(),
    };
    format!("there is no option {name} (hint: {hint})")
}

fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(_) => "a string".to_owned(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Says why the flag of that name would not take these values.
fn check(command: &Command, name: &str, values: &[String]) -> Result<(), String> {
    let flags = values.iter().map(|value| format!("--{name}={value}"));
    let probe = command.clone().no_binary_name(true);
    let Err(error) = probe.try_get_matches_from(flags) else { return Ok(()) };
    match (error.kind(), error.source()) {
        (ErrorKind::ValueValidation, Some(cause)) => Err(cause.to_string()),
        (ErrorKind::InvalidValue, _) => {
            let valid = error.get(ContextKind::ValidValue).map(ToString::to_string).unwrap_or_default();
            Err(format!("expected one of {valid}"))
        }
        // What is wrong with all of them together is said when all of them are there.
        _ => Ok(()),
    }
}

// === impl Shape ===

impl Shape {
    /// A value as its flag would take it; `None` if it is of another shape.
    fn read(self, value: &DeValue<'_>) -> Option<String> {
        match (self, value) {
            (Self::Boolean, DeValue::Boolean(value)) => Some(value.to_string()),
            (Self::Text, DeValue::String(text)) => Some(text.to_string()),
            (Self::Number, DeValue::Float(number)) => Some(number.as_str().to_owned()),
            (Self::Integer | Self::Number, DeValue::Integer(number)) => {
                u128::from_str_radix(number.as_str(), number.radix())
                    .ok()
                    .map(|number| number.to_string())
            }
            _ => None,
        }
    }
}

// === impl Source ===

impl Source<'_> {
    fn place(&self, offset: usize) -> Place {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let (line, start) = (before.matches('\n').count() + 1, before.rfind('\n').map_or(0, |at| at + 1));
        Place { file: self.name.display().to_string(), line, column: before[start..].chars().count() + 1 }
    }
}

// === impl Place ===

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

#[cfg(test)]
mod tests;
