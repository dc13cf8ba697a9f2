//! Objects as publishers want them.

mod derived;

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    sync::Arc,
};

use crate::{
    AgentId, Annotations, Audience, Generation, Invalid, Kind, Labels, ObjectKey, Owner, Reference, Selector, Spec,
    Uid,
    labels::{check_key, check_value},
};

/// An object as its publisher wants it.
///
/// Everything but its name and spec is optional. What is wrong with it is said once, when it is published: until then
/// calls can be chained.
///
/// ```
/// # use nimbus_core::Draft;
/// # use nimbus_wire::v1::Key;
/// let draft = Draft::new("greeting", Key::default()).label("tier", "edge").for_label("zone", "a");
/// assert!(draft.check().is_ok());
/// assert!(draft.label("two words", "").check().is_err());
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a draft does nothing until it is published"]
pub struct Draft<K> {
    name: Name,
    uid: Option<Uid>,
    generation: Option<Generation>,
    labels: Labels,
    annotations: BTreeMap<String, String>,
    audience: Audience,
    refs: Vec<Reference>,
    owner: Option<Owner>,
    spec: K,
    flaws: Vec<Invalid>,
}

/// What a draft is called.
#[derive(Debug, Clone)]
enum Name {
    /// As somebody has said it, right or wrong.
    Said { namespace: String, name: String },
    /// It was computed, and is right.
    Key(ObjectKey),
}

/// A draft that was checked, taken apart.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DraftParts<K> {
    /// Its name.
    pub key: ObjectKey,
    /// This life of the name, if the publisher decides it.
    pub uid: Option<Uid>,
    /// How often the spec changed, if the publisher counts.
    pub generation: Option<Generation>,
    /// What selectors look at.
    pub labels: Labels,
    /// Notes for people and programs.
    pub annotations: Annotations,
    /// Whom it is for.
    pub audience: Audience,
    /// What it needs, each referent once.
    pub refs: Arc<[Reference]>,
    /// On whose behalf it exists.
    pub owner: Option<Owner>,
    /// What should be true.
    pub spec: K,
}

/// Why a draft cannot be published: everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {name:?}: {}", display_flaws(.flaws))]
#[non_exhaustive]
pub struct InvalidDraft {
    /// The kind of the draft.
    pub kind: Kind,
    /// Its name, as it was given.
    pub name: String,
    /// What is wrong, in the order in which it was said; at least one thing.
    pub flaws: Vec<Invalid>,
}

fn display_flaws(flaws: &[Invalid]) -> String {
    flaws.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

// === impl Draft ===

impl<K: Spec> Draft<K> {
    /// An object of this name, for everyone.
    pub fn new(name: &str, spec: K) -> Self {
        Self::named(Name::Said { namespace: String::new(), name: name.to_owned() }, spec)
    }

    fn named(name: Name, spec: K) -> Self {
        Self {
            name,
            uid: None,
            generation: None,
            labels: Labels::default(),
            annotations: BTreeMap::new(),
            audience: Audience::Everyone,
            refs: Vec::new(),
            owner: None,
            spec,
            flaws: Vec::new(),
        }
    }

    /// Puts it into a namespace.
    pub fn in_namespace(self, namespace: &str) -> Self {
        let (_, name) = self.name.texts();
        Self { name: Name::Said { namespace: namespace.to_owned(), name: name.to_owned() }, ..self }
    }

    /// Adds a label, or changes it.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.note("label", check_key(key).and_then(|()| check_value(value)));
        self.labels = self.labels.with(key, value);
        self
    }

    /// Adds an annotation, or changes it.
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.note("annotation", check_key(key));
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Only agents with this label get it. Together with other labels and selectors, all of them must match.
    pub fn for_label(mut self, key: &str, value: &str) -> Self {
        match check_key(key).and_then(|()| check_value(value)) {
            Ok(()) => self.for_selector(&format!("{key}={value}")),
            Err(flaw) => {
                self.note("audience", Err(flaw));
                self
            }
        }
    }

    /// Only agents whose labels match get it. Together with other labels and selectors, all of them must match.
    pub fn for_selector(mut self, selector: &str) -> Self {
        let narrowed = Selector::parse(selector).and_then(|given| match &self.audience {
            Audience::Selector(before) if before.is_empty() => Ok(given),
            Audience::Selector(before) if !given.is_empty() => Selector::parse(&format!("{before},{given}")),
            Audience::Selector(before) => Ok(before.clone()),
            _ => Ok(given),
        });
        let audience = narrowed.map(|selector| self.audience = Audience::Selector(selector));
        self.note("audience", audience);
        self
    }

    /// Only these agents get it, whether they are known yet or not. None of them is nobody.
    pub fn for_agents(mut self, agents: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let ids: Result<_, _> = agents.into_iter().map(|id| AgentId::new(id.as_ref())).collect();
        let audience = ids.map(|ids| self.audience = Audience::Agents(Arc::new(ids)));
        self.note("audience", audience);
        self
    }

    /// Every agent gets it, whatever was said before.
    pub fn for_everyone(self) -> Self {
        Self { audience: Audience::Everyone, ..self }
    }

    /// No agent gets it: it is kept for other controllers, or for later.
    pub fn for_nobody(self) -> Self {
        Self { audience: Audience::Agents(Arc::default()), ..self }
    }

    /// It cannot be without this object: agents apply that one first and remove it last.
    pub fn needs(mut self, key: &ObjectKey) -> Self {
        self.refs.push(Reference::strong(key.clone()));
        self
    }

    /// It mentions this object. That orders nothing and holds nothing back.
    pub fn refers(mut self, key: &ObjectKey) -> Self {
        self.refs.push(Reference::weak(key.clone()));
        self
    }

    /// The publisher counts changes of the spec itself; otherwise the bus does.
    pub fn at_generation(self, generation: Generation) -> Self {
        Self { generation: Some(generation), ..self }
    }

    /// Whether it can be published.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn check(&self) -> Result<(), InvalidDraft> {
        self.key().map(drop)
    }

    /// Checks it and takes it apart.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn into_parts(self) -> Result<DraftParts<K>, InvalidDraft> {
        let key = self.key()?;
        Ok(DraftParts {
            key,
            uid: self.uid,
            generation: self.generation,
            labels: self.labels,
            annotations: Annotations::new(self.annotations).expect("annotations were checked when they were added"),
            audience: self.audience,
            refs: once_each(self.refs),
            owner: self.owner,
            spec: self.spec,
        })
    }

    fn key(&self) -> Result<ObjectKey, InvalidDraft> {
        let key = match &self.name {
            Name::Said { namespace, name } => ObjectKey::new(K::kind(), namespace, name),
            Name::Key(key) => Ok(key.clone()),
        };
        let flaws = match key {
            Ok(key) if self.flaws.is_empty() => return Ok(key),
            Ok(_) => self.flaws.clone(),
            Err(flaw) => std::iter::once(flaw).chain(self.flaws.iter().cloned()).collect(),
        };
        Err(InvalidDraft { kind: K::kind(), name: self.name.texts().1.to_owned(), flaws })
    }

    /// Remembers what is wrong with a field.
    fn note(&mut self, field: &'static str, result: Result<(), Invalid>) {
        self.flaws.extend(result.err().map(|flaw| Invalid { what: field, ..flaw }));
    }
}

// === impl Name ===

impl Name {
    /// Namespace and name.
    fn texts(&self) -> (&str, &str) {
        match self {
            Self::Said { namespace, name } => (namespace, name),
            Self::Key(key) => (key.namespace(), key.name()),
        }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.texts() == other.texts()
    }
}

/// Each referent once, in the order in which they were first named; strong if any of its references is.
fn once_each(refs: Vec<Reference>) -> Arc<[Reference]> {
    if refs.is_empty() {
        return Arc::default();
    }
    let mut places: HashMap<ObjectKey, usize> = HashMap::with_capacity(refs.len());
    let mut kept: Vec<Reference> = Vec::with_capacity(refs.len());
    for reference in refs {
        match places.entry(reference.to.clone()) {
            Entry::Occupied(place) => kept[*place.get()].weak &= reference.weak,
            Entry::Vacant(place) => {
                place.insert(kept.len());
                kept.push(reference);
            }
        }
    }
    kept.into()
}

#[cfg(test)]
mod tests;
