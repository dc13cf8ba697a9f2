//! Filters on objects, compiled once, and the index that finds those that an object may pass.

use std::{
    cmp::Ordering,
    collections::BTreeSet,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use imbl::{OrdMap, OrdSet};
use nimbus_core::{Digest, Invalid, Kind, LeafHasher, Selector, is_name};
use nimbus_wire::v1;

use crate::record::Record;

/// Reads fields of specs; given by whoever knows the schemas.
pub trait Fields: Send + Sync {
    /// The value at `path` inside an encoded `Any` of that kind, as text.
    fn field(&self, kind: &Kind, spec: &[u8], path: &str) -> Option<String>;
}

/// Knows no schemas: no field has a value.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFields;

/// Which objects of a kind. Equal filters are written equally, however they were asked for.
#[derive(Debug, Clone)]
pub struct Filter {
    /// Stands for all the rest: filters are looked up on every write, and may be long.
    id: Digest,
    namespaces: BTreeSet<Box<str>>,
    names: BTreeSet<Box<str>>,
    selector: Selector,
    fields: BTreeSet<FieldTest>,
}

/// A condition on a field of the spec: `spec.zone=a` or `spec.zone!=a`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct FieldTest {
    path: Box<str>,
    equal: bool,
    value: Box<str>,
}

/// Something that an object must have in order to pass a filter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Pivot {
    Name(Box<str>),
    Field(Box<str>, Box<str>),
    Label(Box<str>, Box<str>),
    Namespace(Box<str>),
}

/// Finds the filters that an object may pass, without looking at the others.
#[derive(Debug, Clone, Default)]
pub(crate) struct FilterIndex {
    pivots: OrdMap<Pivot, OrdSet<Arc<Filter>>>,
    /// Paths that pivots look at.
    paths: OrdMap<Box<str>, usize>,
    /// Filters that demand nothing in particular, such as `!legacy`.
    rest: OrdMap<Arc<Filter>, ()>,
}

const FIELD_RULE: &str = "a field test such as spec.zone=a or spec.zone!=a, of at most 1024 bytes";

/// Values that filters compare with are words.
const MAX_FIELD_TEST: usize = 1024;

fn checked(what: &'static str, names: &[String]) -> Result<BTreeSet<Box<str>>, Invalid> {
    let name = |name: &String| match name.as_str() {
        "" if what == "namespaces" => Ok(Box::from("")),
        name if is_name(name) => Ok(Box::from(name)),
        name => Err(Invalid::new(what, name, "names that objects can have")),
    };
    names.iter().map(name).collect()
}

// === impl NoFields ===

impl Fields for NoFields {
    fn field(&self, _: &Kind, _: &[u8], _: &str) -> Option<String> {
        None
    }
}

// === impl Filter ===

impl Filter {
    /// Compiles a filter; `None` if it lets everything pass.
    ///
    /// # Errors
    /// If a part of it does not parse.
    pub fn compile(filter: Option<&v1::Filter>) -> Result<Option<Self>, Invalid> {
        let Some(filter) = filter else { return Ok(None) };
        let mut compiled = Self {
            id: Digest::ZERO,
            namespaces: checked("namespaces", &filter.namespaces)?,
            names: checked("names", &filter.names)?,
            selector: Selector::parse(&filter.selector)?,
            fields: filter.fields.iter().map(|text| FieldTest::parse(text)).collect::<Result<_, _>>()?,
        };
        let Self { namespaces, names, selector, fields, .. } = &compiled;
        if namespaces.is_empty() && names.is_empty() && selector.is_empty() && fields.is_empty() {
            return Ok(None);
        }
        let mut hasher = LeafHasher::extra();
        hasher.part(compiled.to_string().as_bytes());
        compiled.id = hasher.finish();
        Ok(Some(compiled))
    }

    /// Paths inside the spec that the filter reads.
    pub fn field_paths(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|test| &*test.path)
    }

    /// Whether an object passes.
    pub fn passes(&self, record: &Record, fields: &dyn Fields) -> bool {
        self.passes_names(record)
            && self.selector.matches(record.labels())
            && (self.fields.is_empty() || {
                let (kind, spec) = (record.kind(), record.spec_bytes());
                self.fields
                    .iter()
                    .all(|test| test.holds(fields.field(kind, &spec, &test.path).as_deref()))
            })
    }

    /// The part of the filter that an object does not pass, and what was found instead; `None` if it passes.
    pub fn refusal(&self, record: &Record, fields: &dyn Fields) -> Option<String> {
        let list = |names: &BTreeSet<Box<str>>| names.iter().map(|name| &**name).collect::<Vec<_>>().join(",");
        if !self.namespaces.is_empty() && !self.namespaces.contains(record.namespace()) {
            return Some(format!("namespace in ({}), found {:?}", list(&self.namespaces), record.namespace()));
        }
        if !self.names.is_empty() && !self.names.contains(record.name()) {
            return Some(format!("name in ({}), found {:?}", list(&self.names), record.name()));
        }
        if !self.selector.matches(record.labels()) {
            let labels: Vec<_> = record.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
            let labels = if labels.is_empty() { "none".to_owned() } else { labels.join(",") };
            return Some(format!("selector {}, the object's labels are {labels}", self.selector));
        }
        let found = |test: &FieldTest| fields.field(record.kind(), &record.spec_bytes(), &test.path);
        let test = self.fields.iter().find(|test| !test.holds(found(test).as_deref()))?;
        let found = found(test).map_or_else(|| "nothing".to_owned(), |found| format!("{found:?}"));
        Some(format!("field {test}, found {found}"))
    }

    /// The filter as it travels.
    pub fn to_wire(&self) -> v1::Filter {
        let strings = |names: &BTreeSet<Box<str>>| names.iter().map(ToString::to_string).collect();
        v1::Filter {
            namespaces: strings(&self.namespaces),
            names: strings(&self.names),
            selector: self.selector.to_string(),
            fields: self.fields.iter().map(ToString::to_string).collect(),
        }
    }

    fn passes_names(&self, record: &Record) -> bool {
        (self.namespaces.is_empty() || self.namespaces.contains(record.namespace()))
            && (self.names.is_empty() || self.names.contains(record.name()))
    }

    /// Things of which an object that passes has at least one.
    fn pivots(&self) -> Option<Vec<Pivot>> {
        if !self.names.is_empty() {
            return Some(self.names.iter().cloned().map(Pivot::Name).collect());
        }
        if let Some(test) = self.fields.iter().find(|test| test.equal) {
            return Some(vec![Pivot::Field(test.path.clone(), test.value.clone())]);
        }
        if let Some(terms) = self.selector.pivots().next() {
            return Some(terms.into_iter().map(|(key, value)| Pivot::Label(key, value)).collect());
        }
        (!self.namespaces.is_empty()).then(|| self.namespaces.iter().cloned().map(Pivot::Namespace).collect())
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Filter {}

impl PartialOrd for Filter {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Filter {
    fn cmp(&self, other: &Self) -> Ordering {
        self.id.as_bytes().cmp(other.id.as_bytes())
    }
}

impl Hash for Filter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "namespaces={:?} names={:?} selector={}", self.namespaces, self.names, self.selector)?;
        // Quoted: a value may look like one more test.
        self.fields.iter().try_for_each(|test| {
            write!(f, " spec.{}{}{:?}", test.path, if test.equal { "=" } else { "!=" }, test.value)
        })
    }
}

// === impl FieldTest ===

impl FieldTest {
    fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("field", text, FIELD_RULE);
        if text.len() > MAX_FIELD_TEST {
            return Err(invalid());
        }
        let (left, right, equal) = match text.split_once("!=") {
            Some((left, right)) => (left, right, false),
            None => text.split_once('=').map(|(left, right)| (left, right, true)).ok_or_else(invalid)?,
        };
        let path = left.trim().strip_prefix("spec.").filter(|path| !path.is_empty()).ok_or_else(invalid)?;
        Ok(Self { path: path.into(), equal, value: right.trim().into() })
    }

    fn holds(&self, value: Option<&str>) -> bool {
        (value == Some(&*self.value)) == self.equal
    }
}

impl fmt::Display for FieldTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spec.{}{}{}", self.path, if self.equal { "=" } else { "!=" }, self.value)
    }
}

// === impl FilterIndex ===

impl FilterIndex {
    pub(crate) fn insert(&mut self, filter: &Arc<Filter>) {
        let Some(pivots) = filter.pivots() else {
            self.rest.insert(filter.clone(), ());
            return;
        };
        for pivot in pivots {
            if let Pivot::Field(path, _) = &pivot {
                *self.paths.entry(path.clone()).or_insert(0) += 1;
            }
            self.pivots.entry(pivot).or_default().insert(filter.clone());
        }
    }

    pub(crate) fn remove(&mut self, filter: &Arc<Filter>) {
        self.rest.remove(filter);
        for pivot in filter.pivots().into_iter().flatten() {
            if let Some(filters) = self.pivots.get_mut(&pivot) {
                filters.remove(filter);
                if filters.is_empty() {
                    self.pivots.remove(&pivot);
                }
            }
            if let Pivot::Field(path, _) = pivot {
                let users = self.paths.get(&path).copied().unwrap_or_default();
                if users > 1 {
                    self.paths.insert(path, users - 1)
                } else {
                    self.paths.remove(&path)
                };
            }
        }
    }

    /// Filters that the object may pass; each must still be asked.
    pub(crate) fn candidates(&self, record: &Record, fields: &dyn Fields, into: &mut BTreeSet<Arc<Filter>>) {
        into.extend(self.rest.keys().cloned());
        if self.pivots.is_empty() {
            return;
        }
        let mut look = |pivot: &Pivot| {
            if let Some(filters) = self.pivots.get(pivot) {
                into.extend(filters.iter().cloned());
            }
        };
        look(&Pivot::Name(record.name().into()));
        look(&Pivot::Namespace(record.namespace().into()));
        for (label, value) in record.labels().iter() {
            look(&Pivot::Label(label.into(), value.into()));
        }
        for path in self.paths.keys() {
            if let Some(value) = fields.field(record.kind(), &record.spec_bytes(), path) {
                look(&Pivot::Field(path.clone(), value.into()));
            }
        }
    }
}
