//! The model: every write that was ever begun, what is known of it, and what may therefore be seen.
//!
//! It shares no code with what it judges. Every object has one writer, who never has two writes under way, and raises its
//! fence when it does not know how one ended. So the writes of an object are a list, and whatever is seen of the object
//! moves forward in it.

use std::{collections::BTreeMap, fmt};

use nimbus_wire::v1;

/// The kinds that there are; objects of each may refer to those of the ones before.
pub(crate) const KINDS: [&str; 3] = ["sim.v1.Base", "sim.v1.Part", "sim.v1.Whole"];

/// Says which write an object is of. Nothing else tells two writes of the same spec apart.
pub(crate) const WRITE: &str = "write";

/// The label of objects that filters look at.
pub(crate) const TIER: &str = "tier";

/// The label of agents that audiences look at.
pub(crate) const ZONE: &str = "zone";

/// Every zone.
pub(crate) const ZONES: [&str; 3] = ["a", "b", "c"];

/// The name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// Whom an object is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Audience {
    Everyone,
    Zone(&'static str),
    Agents(Vec<String>),
}

/// An object as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Version {
    pub(crate) uid: String,
    pub(crate) generation: u64,
    pub(crate) content: u64,
    pub(crate) tier: &'static str,
    pub(crate) refs: Vec<Key>,
    pub(crate) audience: Audience,
}

/// A write of one object, or its end.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    /// Rises over all writes of all objects.
    pub(crate) number: u64,
    /// None is a delete.
    pub(crate) version: Option<Version>,
    /// Where it is known to be visible.
    acks: Vec<Ack>,
    /// It was begun, and somebody may see it although nobody was told how it ended.
    in_doubt: bool,
}

/// A write is not visible before `from`, and visible at `by`, unless it was overtaken.
#[derive(Debug, Clone, Copy)]
struct Ack {
    epoch: u64,
    from: u64,
    by: u64,
}

/// All writes of one object, in the order in which they were begun.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writes {
    pub(crate) list: Vec<Write>,
    lives: u64,
}

/// Every write that was ever begun.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) objects: BTreeMap<Key, Writes>,
    last: u64,
}

/// Who looks, and so what there is to see.
#[derive(Debug, Clone)]
pub(crate) struct Viewer {
    /// None sees everything.
    pub(crate) agent: Option<(String, String)>,
    pub(crate) kinds: Vec<&'static str>,
    pub(crate) tier: Option<&'static str>,
}

// === impl Key ===

impl Key {
    pub(crate) fn new(kind: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), name: name.to_owned() }
    }

    pub(crate) fn wire(&self) -> v1::Key {
        v1::Key { kind: self.kind.clone(), namespace: String::new(), name: self.name.clone() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.rsplit('.').next().unwrap_or_default(), self.name)
    }
}

// === impl Audience ===

impl Audience {
    pub(crate) fn includes(&self, agent: &str, zone: &str) -> bool {
        match self {
            Self::Everyone => true,
            Self::Zone(meant) => *meant == zone,
            Self::Agents(agents) => agents.iter().any(|meant| meant == agent),
        }
    }

    fn wire(&self) -> Option<v1::Audience> {
        let to = match self {
            Self::Everyone => return None,
            Self::Zone(zone) => v1::audience::To::Selector(format!("{ZONE}={zone}")),
            Self::Agents(ids) => v1::audience::To::Agents(v1::Agents { ids: ids.clone() }),
        };
        Some(v1::Audience { to: Some(to) })
    }
}

// === impl Version ===

impl Version {
    /// The object as it travels.
    pub(crate) fn wire(&self, key: &Key, number: u64) -> v1::Object {
        let reference =
            |key: &Key| v1::Reference { kind: key.kind.clone(), name: key.name.clone(), ..Default::default() };
        v1::Object {
            kind: key.kind.clone(),
            name: key.name.clone(),
            uid: self.uid.clone(),
            generation: self.generation,
            labels: [(TIER.to_owned(), self.tier.to_owned())].into(),
            refs: self.refs.iter().map(reference).collect(),
            audience: self.audience.wire(),
            annotations: [(WRITE.to_owned(), number.to_string())].into(),
            spec: Some(prost_types::Any {
                type_url: format!("type.googleapis.com/{}", key.kind),
                // A message with one number, as protobuf would encode it.
                value: [0x09].into_iter().chain(self.content.to_le_bytes()).collect(),
            }),
            ..Default::default()
        }
    }
}

// === impl Writes ===

impl Writes {
    /// The last version, if it is not a delete.
    pub(crate) fn now(&self) -> Option<(&Version, u64)> {
        self.list.last().and_then(|write| Some((write.version.as_ref()?, write.number)))
    }

    pub(crate) fn find(&self, number: u64) -> Option<usize> {
        self.list.iter().position(|write| write.number == number)
    }

    /// A uid for the life that begins next.
    fn next_uid(&mut self, key: &Key) -> String {
        self.lives += 1;
        format!("{}.{}.{}", key.kind, key.name, self.lives)
    }
}

// === impl Model ===

impl Model {
    /// Takes note of a write that is about to be made; returns its number.
    pub(crate) fn begin(&mut self, key: &Key, version: Option<Version>) -> u64 {
        self.last += 1;
        let write = Write { number: self.last, version, acks: Vec::new(), in_doubt: true };
        self.objects.entry(key.clone()).or_default().list.push(write);
        self.last
    }

    pub(crate) fn next_uid(&mut self, key: &Key) -> String {
        self.objects.entry(key.clone()).or_default().next_uid(key)
    }

    /// The last write of an object is under way again, as a part of a sync.
    pub(crate) fn doubt(&mut self, key: &Key) {
        if let Some(write) = self.objects.get_mut(key).and_then(|writes| writes.list.last_mut()) {
            write.in_doubt = true;
        }
    }

    /// The last write of an object was acknowledged: it became visible after `from` and until `by`.
    pub(crate) fn acknowledge(&mut self, key: &Key, epoch: u64, from: u64, by: u64) {
        if let Some(write) = self.objects.get_mut(key).and_then(|writes| writes.list.last_mut()) {
            // A sync may repeat a write whose outcome nobody knows, and that may be visible in the history before.
            write.in_doubt &= from == 0;
            write.acks.push(Ack { epoch, from, by });
        }
    }

    /// What is wrong with somebody seeing this write of an object, or none of it, at a position where everything must be
    /// exactly as it was then.
    pub(crate) fn judge(
        &self,
        viewer: &Viewer,
        key: &Key,
        seen: Option<u64>,
        epoch: u64,
        revision: u64,
    ) -> Result<(), String> {
        let Some(writes) = self.objects.get(key) else {
            return if seen.is_none() { Ok(()) } else { Err(format!("{key} was never written")) };
        };
        let known = |write: &Write| write.acks.iter().any(|ack| ack.epoch == epoch && ack.by <= revision);
        // What is known of a write in this history is better than a doubt.
        let may_be = |write: &Write| {
            let mut here = write.acks.iter().filter(|ack| ack.epoch == epoch).peekable();
            match here.peek() {
                None => write.in_doubt,
                Some(_) => here.any(|ack| ack.from < revision && revision < ack.by),
            }
        };
        let base = writes.list.iter().rposition(known);
        let shown =
            |write: &Write| write.version.as_ref().filter(|version| viewer.sees(key, version)).map(|_| write.number);
        let mut allowed = vec![base.and_then(|base| shown(&writes.list[base]))];
        allowed.extend(
            writes.list[base.map_or(0, |base| base + 1)..]
                .iter()
                .filter(|write| may_be(write))
                .map(shown),
        );
        if allowed.contains(&seen) {
            return Ok(());
        }
        Err(format!(
            "{key} is {}, but should be {}",
            told(seen),
            allowed.into_iter().map(told).collect::<Vec<_>>().join(" or ")
        ))
    }

    /// Everybody has everything: only the last write of each object can still be seen.
    pub(crate) fn forget(&mut self) {
        for writes in self.objects.values_mut() {
            writes.list.drain(..writes.list.len().saturating_sub(1));
        }
    }

    /// Writes that are kept.
    pub(crate) fn kept(&self) -> usize {
        self.objects.values().map(|writes| writes.list.len()).sum()
    }

    /// What somebody should have when everything is over.
    pub(crate) fn expected(&self, viewer: &Viewer) -> BTreeMap<Key, u64> {
        let shown = |(key, writes): (&Key, &Writes)| {
            let (version, number) = writes.now()?;
            viewer.sees(key, version).then(|| (key.clone(), number))
        };
        self.objects.iter().filter_map(shown).collect()
    }
}

fn told(seen: Option<u64>) -> String {
    seen.map_or_else(|| "absent".to_owned(), |number| format!("write {number}"))
}

// === impl Viewer ===

impl Viewer {
    /// An observer of everything.
    pub(crate) fn observer() -> Self {
        Self { agent: None, kinds: KINDS.to_vec(), tier: None }
    }

    pub(crate) fn sees(&self, key: &Key, version: &Version) -> bool {
        self.kinds.contains(&key.kind.as_str())
            && self.tier.is_none_or(|tier| tier == version.tier)
            && self.agent.as_ref().is_none_or(|(id, zone)| version.audience.includes(id, zone))
    }
}
