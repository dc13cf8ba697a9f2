//! Where a project has nimbus from: no registry has it.

#[cfg(test)]
mod tests;

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use crate::failure::Failure;

/// Where a project has nimbus from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// Sources on this machine, by a path that holds from everywhere.
    Tree(String),
    /// A git repository.
    Git(String),
}

/// By this a folder is known as the sources of nimbus.
const MARK: &str = "crates/ctkit/Cargo.toml";

// === impl Source ===

impl Source {
    /// Sources that somebody has named.
    pub(crate) fn tree(path: &Path) -> Result<Self, Failure> {
        if !path.join(MARK).is_file() {
            return Err(Failure::invalid(format!("--nimbus {}: no sources of nimbus there", path.display()))
                .hint("name the top of a clone, which has crates/ctkit in it"));
        }
        let tree: PathBuf = fs::canonicalize(path)
            .map_err(|error| Failure::invalid(format!("--nimbus {}: {error}", path.display())))?;
        match tree.to_str() {
            Some(tree) => Ok(Self::Tree(tree.to_owned())),
            None => Err(Failure::invalid(format!("--nimbus {}: its path is not UTF-8", tree.display()))
                .hint("a Cargo.toml cannot name it; move it")),
        }
    }

    /// Sources that the command was built from, if they are still there.
    pub(crate) fn built_from(path: &Path) -> Result<Self, Failure> {
        Self::tree(path).map_err(|_| {
            Failure::invalid("the sources that this command was built from are not on this machine")
                .hint("say where there are some: --nimbus PATH, or --git URL")
        })
    }

    /// A repository, which cargo looks for when it builds the project.
    pub(crate) fn git(url: &str) -> Result<Self, Failure> {
        let is_url = url.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
        if !is_url || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(Failure::invalid(format!("--git {url:?}: expected a URL"))
                .hint("such as https://example.org/nimbus.git, or ssh://git@example.org/nimbus.git"));
        }
        Ok(Self::Git(url.to_owned()))
    }

    /// A crate of nimbus as a dependency, as a Cargo.toml has it.
    pub(crate) fn dependency(&self, package: &str) -> String {
        match self {
            Self::Tree(tree) => format!("{package} = {{ path = {} }}", quoted(&format!("{tree}/crates/{package}"))),
            Self::Git(url) => format!("{package} = {{ git = {} }}", quoted(url)),
        }
    }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => write!(quoted, "\\u{:04X}", u32::from(c)).expect("a String takes everything"),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
