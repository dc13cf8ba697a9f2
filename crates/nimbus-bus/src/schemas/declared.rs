//! References that specs state by themselves, because their schemas say so of fields.

mod rule;
mod walk;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap, HashSet, btree_map::Entry},
    sync::Arc,
};

use nimbus_core::{ObjectKey, Reference};
use nimbus_store::Reason;
use prost_reflect::{DescriptorPool, ExtensionDescriptor, FieldDescriptor, Kind as Type, MessageDescriptor};

use crate::schemas::{declared::rule::Rule, error::SchemaError, field::is_secret};

/// The fields of all kinds that name other objects, and the ways to them.
///
/// Messages from which no such field can be reached are not in it, so that whatever they are made of is skipped.
#[derive(Clone, Default)]
pub(crate) struct Declared {
    /// Where the messages of kinds are.
    kinds: HashMap<Arc<str>, usize>,
    messages: Vec<Message>,
}

/// What is to be looked at in messages of one type, by the numbers of fields: those that lead somewhere, and whatever else
/// is in a oneof with one of them.
#[derive(Clone)]
struct Message {
    parts: BTreeMap<u32, Part>,
}

/// What an occurrence of a field means.
#[derive(Clone)]
struct Part {
    /// The oneof that it is in. Of all fields in it, only the last one on the wire counts.
    oneof: Option<usize>,
    /// Where it leads.
    step: Option<Step>,
}

/// A field with names, or on the way to them.
#[derive(Clone)]
struct Step {
    name: Arc<str>,
    count: Count,
    to: To,
}

/// How many values a field has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    One,
    List,
    Map(Keys),
}

/// What the keys of a map are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    Text,
    Bool,
    Bits32,
    Bits64,
}

/// Where a field leads.
#[derive(Clone)]
enum To {
    Names(Arc<Rule>),
    Message(usize),
}

/// A field of a spec that cannot be taken as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// Where it is, from the spec on; empty for the whole of it.
    pub(crate) field: String,
    /// What is wrong with it.
    pub(crate) reason: Reason,
}

/// A message that was met on the search for names.
struct Met {
    message: MessageDescriptor,
    rules: HashMap<u32, Arc<Rule>>,
    /// Fields with messages, and which.
    inner: Vec<(FieldDescriptor, usize)>,
}

/// All of them, in no particular order.
#[derive(Default)]
struct Search {
    places: HashMap<String, usize>,
    met: Vec<Met>,
}

/// The option of fields with which schemas say it, and the file that has it.
const OPTION: &str = "nimbus.v1.refers";
const FILE: &str = "nimbus/v1/options.proto";

// === impl Declared ===

impl Declared {
    /// Looks which fields of these kinds name others.
    ///
    /// # Errors
    /// If a field says so that cannot, or one that is secret: what it names would be shown.
    pub(super) fn new<'a>(
        pool: &DescriptorPool,
        kinds: impl Iterator<Item = (&'a str, &'a MessageDescriptor)>,
    ) -> Result<Self, SchemaError> {
        // Options of fields take time to decode; most schemas have none of ours.
        let users = pool.files().filter(|file| file.dependencies().any(|import| import.name() == FILE));
        let users: HashSet<String> = users.map(|file| file.name().to_owned()).collect();
        let Some(option) = pool.get_extension_by_name(OPTION).filter(|_| !users.is_empty()) else {
            return Ok(Self::default());
        };
        let mut search = Search::default();
        let kinds: Vec<_> = kinds.map(|(kind, message)| (kind, search.place(message))).collect();
        let mut next = 0;
        while next < search.met.len() {
            search.look(next, &option, &users)?;
            next += 1;
        }
        // Where those are that lead somewhere, when all others are left out.
        let mut kept: HashMap<usize, usize> = HashMap::new();
        for at in search.leading() {
            kept.insert(at, kept.len());
        }
        let mut messages = vec![Message { parts: BTreeMap::new() }; kept.len()];
        for (at, place) in &kept {
            messages[*place] = Message::new(&search.met[*at], &kept)?;
        }
        let kinds = kinds.into_iter().filter_map(|(kind, at)| Some((kind.into(), *kept.get(&at)?)));
        Ok(Self { kinds: kinds.collect(), messages })
    }

    /// Whether specs of this kind may name others.
    pub(crate) fn covers(&self, kind: &str) -> bool {
        self.kinds.contains_key(kind)
    }

    /// What an object refers to: what its publisher states, and what its spec names, if it is of a kind that is covered.
    /// What is said twice is there once, and strong if anybody says so.
    ///
    /// # Errors
    /// If a field names what no object can be called, or one more than an object may refer to.
    pub(crate) fn complete(
        &self,
        key: &ObjectKey,
        spec: &[u8],
        stated: Arc<[Reference]>,
        max: usize,
    ) -> Result<Arc<[Reference]>, Flaw> {
        let mut named: BTreeMap<ObjectKey, bool> = BTreeMap::new();
        let others: HashSet<&ObjectKey> = stated.iter().map(|reference| &reference.to).collect();
        let mut count = others.len();
        self.each(key, spec, |to, weak| {
            count += usize::from(!others.contains(&to) && !named.contains_key(&to));
            if count > max {
                return Err(Reason::TooLarge { limit: "refs", size: count, max });
            }
            *named.entry(to).or_insert(true) &= weak;
            Ok(())
        })?;
        if named.is_empty() {
            return Ok(stated);
        }
        let mut all: BTreeMap<ObjectKey, Reference> = BTreeMap::new();
        for Reference { to, weak, .. } in stated.iter().cloned() {
            all.entry(to.clone()).or_insert_with(|| Reference::weak(to)).weak &= weak;
        }
        for (to, weak) in named {
            match all.entry(to.clone()) {
                // What is stated stays when the spec does not name it any more, unless the spec says more.
                Entry::Occupied(stated) if weak || !stated.get().weak => {}
                entry => drop(entry.insert_entry(Reference { to, weak, declared: true })),
            }
        }
        Ok(all.into_values().collect())
    }

    /// The field of a spec that needs this object.
    pub(crate) fn field_with(&self, key: &ObjectKey, spec: &[u8], needed: &ObjectKey) -> Option<String> {
        // The first one ends the search, as if something were wrong with it.
        let sought = |to, weak: bool| if !weak && to == *needed { Err(Reason::Twice) } else { Ok(()) };
        self.each(key, spec, sought).err().map(|flaw| flaw.field)
    }

    /// Calls with each object that a spec names, and whether it does so weakly.
    fn each(
        &self,
        key: &ObjectKey,
        spec: &[u8],
        mut named: impl FnMut(ObjectKey, bool) -> Result<(), Reason>,
    ) -> Result<(), Flaw> {
        let Some(start) = self.kinds.get(key.kind().as_str()) else { return Ok(()) };
        walk::walk(&self.messages, *start, spec, &mut |rule, text| match rule
            .named(key.namespace(), text)
            .map_err(Reason::Invalid)?
        {
            Some(to) => named(to, rule.weak),
            None => Ok(()),
        })
    }
}

// === impl Search ===

impl Search {
    fn place(&mut self, message: &MessageDescriptor) -> usize {
        let next = self.met.len();
        let place = *self.places.entry(message.full_name().to_owned()).or_insert(next);
        if place == next {
            self.met.push(Met { message: message.clone(), rules: HashMap::new(), inner: Vec::new() });
        }
        place
    }

    /// Looks at the fields of one message. What is in them is looked at later: there may be very long chains.
    fn look(&mut self, at: usize, option: &ExtensionDescriptor, users: &HashSet<String>) -> Result<(), SchemaError> {
        let message = self.met[at].message.clone();
        let says = users.contains(message.parent_file().name());
        for field in message.fields() {
            if let Some(rule) = says.then(|| Rule::of(&field, option)).transpose()?.flatten() {
                self.met[at].rules.insert(field.number(), Arc::new(rule));
            } else if let Type::Message(inner) = value_of(&field).kind() {
                let inner = self.place(&inner);
                self.met[at].inner.push((field, inner));
            }
        }
        Ok(())
    }

    /// The messages from which names can be reached.
    fn leading(&self) -> Vec<usize> {
        let mut around: Vec<Vec<usize>> = vec![Vec::new(); self.met.len()];
        for (at, met) in self.met.iter().enumerate() {
            met.inner.iter().for_each(|(_, inner)| around[*inner].push(at));
        }
        let mut found: Vec<usize> = (0..self.met.len()).filter(|at| !self.met[*at].rules.is_empty()).collect();
        let mut seen: HashSet<usize> = found.iter().copied().collect();
        let mut next = 0;
        while let Some(at) = found.get(next) {
            found.extend(around[*at].iter().filter(|at| seen.insert(**at)).copied().collect::<Vec<_>>());
            next += 1;
        }
        found
    }
}

// === impl Message ===

impl Message {
    fn new(met: &Met, kept: &HashMap<usize, usize>) -> Result<Self, SchemaError> {
        let mut steps: BTreeMap<u32, Step> = BTreeMap::new();
        for (number, rule) in &met.rules {
            if let Some(field) = met.message.get_field(*number) {
                steps.insert(*number, Step::new(&field, To::Names(rule.clone())));
            }
        }
        for (field, inner) in &met.inner {
            let Some(place) = kept.get(inner) else { continue };
            if is_secret(field) {
                return Err(rule::refused(
                    field,
                    "it is secret (debug_redact), and what fields in it name would be shown",
                ));
            }
            steps.insert(field.number(), Step::new(field, To::Message(*place)));
        }
        let mut parts = BTreeMap::new();
        for (at, oneof) in met.message.oneofs().enumerate() {
            if oneof.fields().any(|field| steps.contains_key(&field.number())) {
                parts.extend(oneof.fields().map(|field| (field.number(), Part { oneof: Some(at), step: None })));
            }
        }
        for (number, step) in steps {
            parts.entry(number).or_insert(Part { oneof: None, step: None }).step = Some(step);
        }
        Ok(Self { parts })
    }
}

// === impl Step ===

impl Step {
    fn new(field: &FieldDescriptor, to: To) -> Self {
        let count = match field.kind() {
            Type::Message(entry) if field.is_map() => Count::Map(match entry.map_entry_key_field().kind() {
                Type::String => Keys::Text,
                Type::Bool => Keys::Bool,
                Type::Int64 | Type::Uint64 | Type::Sint64 | Type::Fixed64 | Type::Sfixed64 => Keys::Bits64,
                _ => Keys::Bits32,
            }),
            _ if field.is_list() => Count::List,
            _ => Count::One,
        };
        Self { name: field.name().into(), count, to }
    }
}

/// The field itself; of a map, that of its values.
fn value_of(field: &FieldDescriptor) -> FieldDescriptor {
    match field.kind() {
        Type::Message(entry) if field.is_map() => entry.map_entry_value_field(),
        _ => field.clone(),
    }
}
