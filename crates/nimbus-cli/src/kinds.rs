//! The kinds that a bus knows, and how people call them.

#[cfg(test)]
mod tests;

use nimbus_core::nearest;
use nimbus_wire::v1;

use crate::{client::Client, failure::Failure, naming::Naming};

/// The kinds that a bus knows, in the order of their names.
///
/// People name a kind in full (`demo.v1.NetworkPolicy`) or by the end of its name (`v1.NetworkPolicy`,
/// `networkpolicy`), in upper or lower case, in the singular or the plural.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kinds(Vec<v1::KindInfo>);

// === impl Kinds ===

impl Kinds {
    /// Asks the bus.
    pub(crate) async fn fetch(client: &Client) -> Result<Self, Failure> {
        let answer = client.call(client.bus().list_kinds(v1::ListKindsRequest {})).await?;
        Ok(Self::new(answer.kinds))
    }

    /// Exactly these.
    pub(crate) fn new(infos: Vec<v1::KindInfo>) -> Self {
        Self(infos)
    }

    /// What is known of each.
    pub(crate) fn infos(&self) -> &[v1::KindInfo] {
        &self.0
    }

    /// The full name of the kind that `text` means.
    ///
    /// # Errors
    /// If it means none, or more than one; the message says which it could be.
    pub(crate) fn resolve(&self, text: &str) -> Result<&str, Failure> {
        if let Some(exact) = self.names().find(|name| *name == text) {
            return Ok(exact);
        }
        let wanted = text.to_lowercase();
        let mut found: Vec<&str> = self.names().filter(|name| means(&wanted, &name.to_lowercase())).collect();
        if found.is_empty() {
            found = self.names().filter(|name| means(&wanted, &plural(&name.to_lowercase()))).collect();
        }
        match found[..] {
            [] => Err(self.unknown(text)),
            [one] => Ok(one),
            _ => Err(Failure::invalid(format!("kind {text:?} is ambiguous: {}", found.join(", ")))
                .hint("write more of the name you mean")),
        }
    }

    /// The key of the object that was named.
    pub(crate) fn key(&self, naming: &Naming) -> Result<v1::Key, Failure> {
        let kind = self.resolve(&naming.kind)?.to_owned();
        Ok(v1::Key { kind, namespace: naming.namespace.clone(), name: naming.name.clone() })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|info| info.kind.as_str())
    }

    fn unknown(&self, text: &str) -> Failure {
        let failure = Failure::invalid(format!("kind {text:?} is not known to the bus"));
        match self.nearest(text) {
            Some(near) => failure.hint(format!("did you mean {near}?")),
            None if self.0.is_empty() => failure.hint("it knows none yet: `nimbus register FILE.proto` makes some"),
            None => failure.hint("`nimbus kinds` lists them"),
        }
    }

    /// The kind that was probably meant. Who writes only the end of a name is compared with ends of names.
    pub(crate) fn nearest(&self, text: &str) -> Option<&str> {
        let wanted = text.to_lowercase();
        let end = |name: &str| if text.contains('.') { name.to_lowercase() } else { last_part(name).to_lowercase() };
        let ends: Vec<String> = self.names().map(end).collect();
        let near = nearest(&wanted, ends.iter().map(String::as_str))?;
        self.names().zip(&ends).find(|(_, end)| **end == near).map(|(name, _)| name)
    }
}

/// Whether `wanted` is the name, or what follows one of its dots.
fn means(wanted: &str, name: &str) -> bool {
    !wanted.is_empty() && name.strip_suffix(wanted).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// As English makes it most of the time.
fn plural(name: &str) -> String {
    let before = name.chars().rev().nth(1);
    match name.strip_suffix('y') {
        Some(stem) if before.is_some_and(|c| !"aeiou".contains(c)) => format!("{stem}ies"),
        _ if ["s", "x", "z", "ch", "sh"].iter().any(|end| name.ends_with(end)) => format!("{name}es"),
        _ => format!("{name}s"),
    }
}
