//! Label selectors, in the syntax that Kubernetes users know.

use std::{collections::BTreeSet, fmt, sync::Arc};

use crate::{
    Labels,
    id::Invalid,
    labels::{check_key, check_value},
};

/// Which labels match: `zone in (a,b),role=edge,!canary`. Empty matches everything.
///
/// Kept in a canonical form: two selectors with the same requirements are equal, however they were written.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Selector(Arc<[Requirement]>);

/// One condition of a selector; all must hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Requirement {
    /// The label exists and has one of these values (`k=a`, `k in (a,b)`).
    In(Box<str>, BTreeSet<Box<str>>),
    /// The label does not exist or has none of these values (`k!=a`, `k notin (a,b)`).
    NotIn(Box<str>, BTreeSet<Box<str>>),
    /// The label exists (`k`).
    Exists(Box<str>),
    /// The label does not exist (`!k`).
    Absent(Box<str>),
}

/// A pair that labels must have in order to match; what an index looks selectors up by.
pub type Term = (Box<str>, Box<str>);

const SYNTAX: &str = "a selector such as `zone in (a,b),role=edge,tier!=db,gpu,!canary`";

// === impl Selector ===

impl Selector {
    /// Reads a selector.
    ///
    /// # Errors
    /// If it does not parse, or names labels that cannot exist.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let whole = |_| Invalid::new("selector", text, SYNTAX);
        let mut requirements = BTreeSet::new();
        for part in split_outside_parentheses(text) {
            let part = part.trim();
            if part.is_empty() && text.trim().is_empty() {
                continue;
            }
            requirements.insert(parse_requirement(part).map_err(whole)?);
        }
        Ok(Self(requirements.into_iter().collect()))
    }

    /// Whether the labels meet every requirement.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|requirement| requirement.holds(labels))
    }

    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets of pairs, of each of which matching labels have at least one. None, if no particular pair is demanded.
    pub fn pivots(&self) -> impl Iterator<Item = Vec<Term>> {
        self.0.iter().filter_map(|requirement| match requirement {
            Requirement::In(key, values) => Some(values.iter().map(|value| (key.clone(), value.clone())).collect()),
            _ => None,
        })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selector({self})")
    }
}

// === impl Requirement ===

impl Requirement {
    fn holds(&self, labels: &Labels) -> bool {
        match self {
            Self::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
            Self::NotIn(key, values) => labels.get(key).is_none_or(|value| !values.contains(value)),
            Self::Exists(key) => labels.get(key).is_some(),
            Self::Absent(key) => labels.get(key).is_none(),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, word, values) = match self {
            Self::Exists(key) => return write!(f, "{key}"),
            Self::Absent(key) => return write!(f, "!{key}"),
            Self::In(key, values) => (key, "in", values),
            Self::NotIn(key, values) => (key, "notin", values),
        };
        if let (1, Some(value)) = (values.len(), values.first()) {
            return write!(f, "{key}{}{value}", if word == "in" { "=" } else { "!=" });
        }
        let values: Vec<&str> = values.iter().map(|value| &**value).collect();
        write!(f, "{key} {word} ({})", values.join(","))
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_requirement(part: &str) -> Result<Requirement, Invalid> {
    let key = |text: &str| check_key(text.trim()).map(|()| Box::from(text.trim()));
    let value = |text: &str| check_value(text.trim()).map(|()| Box::from(text.trim()));
    if let Some((left, right)) = part.split_once("!=") {
        return Ok(Requirement::NotIn(key(left)?, BTreeSet::from([value(right)?])));
    }
    if let Some((left, right)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(Requirement::In(key(left)?, BTreeSet::from([value(right)?])));
    }
    if let Some((left, right)) = part.split_once('(') {
        let invalid = || Invalid::new("selector", part, SYNTAX);
        let inner = right.strip_suffix(')').ok_or_else(invalid)?;
        let values = inner.split(',').map(value).collect::<Result<_, _>>()?;
        let (name, word) = left.trim().rsplit_once(char::is_whitespace).ok_or_else(invalid)?;
        return match word {
            "in" => Ok(Requirement::In(key(name)?, values)),
            "notin" => Ok(Requirement::NotIn(key(name)?, values)),
            _ => Err(invalid()),
        };
    }
    match part.strip_prefix('!') {
        Some(name) => Ok(Requirement::Absent(key(name)?)),
        None => Ok(Requirement::Exists(key(part)?)),
    }
}

#[cfg(test)]
mod tests;
