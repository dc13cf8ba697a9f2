//! The options of a command, as clap knows them: whatever has a flag can be set by the environment and in a file.

use std::any::TypeId;

use clap::{Arg, ArgAction, Command};

/// What the value of an option looks like in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Boolean,
    Integer,
    Number,
    Text,
}

/// Flags that say where options come from, and are none themselves.
const NO_OPTIONS: [&str; 5] = ["config", "print-config", "verbose", "help", "version"];

/// The flag that names the file.
const CONFIG: &str = "config";

/// All options of a command, in the order of its help.
pub(crate) fn options(command: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    let named = command.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg)));
    named.filter(|(name, _)| !NO_OPTIONS.contains(name))
}

/// Whether there is a flag of that name that is no option.
pub(crate) fn is_no_option(name: &str) -> bool {
    NO_OPTIONS.contains(&name)
}

/// Lets the environment set an option: `--max-objects` is `NIMBUS_MAX_OBJECTS`.
pub(crate) fn from_environment(arg: Arg) -> Arg {
    match arg.get_long() {
        Some(name) if name == CONFIG || !is_no_option(name) => {
            let variable = variable(name);
            arg.env(variable)
        }
        _ => arg,
    }
}

/// The variable of the environment that sets an option.
pub(crate) fn variable(name: &str) -> String {
    format!("NIMBUS_{}", name.to_uppercase().replace('-', "_"))
}

/// Whether an option is a list.
pub(crate) fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

// === impl Shape ===

impl Shape {
    /// What values of an option look like, by the type that they are parsed to.
    pub(crate) fn of(arg: &Arg) -> Self {
        let id = arg.get_value_parser().type_id();
        let is = |types: &[TypeId]| types.iter().any(|other| id == *other);
        if is(&[TypeId::of::<bool>()]) {
            Self::Boolean
        } else if is(&[TypeId::of::<usize>(), TypeId::of::<u64>(), TypeId::of::<u32>(), TypeId::of::<u16>()]) {
            Self::Integer
        } else if is(&[TypeId::of::<f64>()]) {
            Self::Number
        } else {
            Self::Text
        }
    }

    /// What is expected, in words.
    pub(crate) fn described(self) -> &'static str {
        match self {
            Self::Boolean => "true or false",
            Self::Integer => "a whole number, 0 or more",
            Self::Number => "a number",
            Self::Text => "a string",
        }
    }
}
