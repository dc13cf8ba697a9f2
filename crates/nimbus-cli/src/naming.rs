//! How people name objects on the command line: `KIND NAME…` or `KIND/NAME…`.

#[cfg(test)]
mod tests;

use crate::failure::Failure;

/// An object as somebody has named it. The kind may be abbreviated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Naming {
    pub(crate) kind: String,
    /// Empty if the object has none.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// What the words of a command name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    /// All objects of these kinds.
    Kinds(Vec<String>),
    /// These objects.
    Objects(Vec<Naming>),
}

const SYNTAX: &str = "write KIND NAME..., or KIND/NAME, or KIND/NAMESPACE/NAME";

// === impl Named ===

impl Named {
    /// Reads words such as `policy web db`, `policy/web zone/a`, `policy,zone`. `namespace` is that of names without one.
    pub(crate) fn parse(words: &[String], namespace: Option<&str>) -> Result<Self, Failure> {
        let namespace = namespace.unwrap_or_default();
        let Some((first, names)) = words.split_first() else {
            return Err(Failure::invalid("no kind is named").hint("`nimbus kinds` lists them"));
        };
        if words.iter().any(|word| word.contains('/')) {
            return words
                .iter()
                .map(|word| slashed(word, namespace))
                .collect::<Result<_, _>>()
                .map(Self::Objects);
        }
        let kinds = first.split(',').map(str::to_owned);
        if names.is_empty() {
            return Ok(Self::Kinds(kinds.collect()));
        }
        let object = |(name, kind)| Naming { kind, namespace: namespace.to_owned(), name };
        let pairs = names.iter().flat_map(|name| kinds.clone().map(|kind| (name.clone(), kind)));
        Ok(Self::Objects(pairs.map(object).collect()))
    }

    /// The same, where nothing but objects will do.
    pub(crate) fn objects(words: &[String], namespace: Option<&str>) -> Result<Vec<Naming>, Failure> {
        match Self::parse(words, namespace)? {
            Self::Objects(objects) => Ok(objects),
            Self::Kinds(kinds) => {
                Err(Failure::invalid(format!("{} is named, but no object of it", kinds.join(","))).hint(SYNTAX))
            }
        }
    }

    /// The same, where nothing but one object will do.
    pub(crate) fn object(words: &[String], namespace: Option<&str>) -> Result<Naming, Failure> {
        let mut objects = Self::objects(words, namespace)?;
        match objects.pop() {
            Some(object) if objects.is_empty() => Ok(object),
            _ => Err(Failure::invalid("more than one object is named").hint("write KIND NAME, or KIND/NAME")),
        }
    }
}

fn slashed(word: &str, namespace: &str) -> Result<Naming, Failure> {
    let parts: Vec<&str> = word.split('/').collect();
    let (kind, namespace, name) = match parts[..] {
        [kind, name] => (kind, namespace, name),
        [kind, given, name] if namespace.is_empty() || namespace == given => (kind, given, name),
        [_, _, _] => {
            return Err(Failure::invalid(format!("{word} is in another namespace than --namespace {namespace} says")));
        }
        _ => return Err(Failure::invalid(format!("{word:?} names no object")).hint(SYNTAX)),
    };
    if kind.is_empty() || name.is_empty() {
        return Err(Failure::invalid(format!("{word:?} names no object")).hint(SYNTAX));
    }
    Ok(Naming { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() })
}
