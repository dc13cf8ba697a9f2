//! What was dealt with by earlier processes, and by other instances.

use std::sync::Arc;

use nimbus_core::{Kind, ObjectKey, Spec as _};
use nimbus_store::{Content, Record, Slot};
use nimbus_wire::v1;

use crate::{
    engine::{Engine, publishing::Phase, station::StationId, writeback::memory_key},
    reflector::Batch,
    typed::typed,
};

/// The kind of the objects in which versions are kept that were dealt with.
pub(crate) fn kind() -> Kind {
    v1::Acknowledged::kind()
}

// === impl Engine ===

impl Engine {
    /// Somebody has dealt with objects: this instance, which knows, or another.
    pub(crate) fn recall(&mut self, batch: &Batch, records: &[Arc<Record>]) {
        let snapshot = self.snapshot(&kind());
        let listed = records.iter().map(|record| record.key());
        for key in batch.keys.iter().map(|woken| &woken.key).chain(listed) {
            match snapshot.get(key).and_then(|record| self.read_memory(&record)) {
                Some((station, version, published)) => {
                    let of = version.key().clone();
                    if self.is_anothers(station, &of) {
                        let at = &mut self.stations[station.0];
                        let shard = at.shard_of(&of);
                        at.shards[shard].ledger.lock().publications.recall(&published);
                        at.known.entry(of.clone()).or_default().acked = Some(version);
                    }
                    self.memories.insert(key.clone(), (station, of));
                }
                None => {
                    let Some((station, key)) = self.memories.remove(key) else { continue };
                    if self.is_anothers(station, &key) {
                        self.stations[station.0].known.remove(&key);
                    }
                }
            }
        }
        if batch.listed.is_some() {
            for index in 0..self.stations.len() {
                if !std::mem::replace(&mut self.stations[index].remembered, true) {
                    self.open_all(StationId(index));
                }
            }
        }
    }

    /// These are gone, and that was dealt with, but it may not have been written. If they are still remembered, they are
    /// dealt with once more by whoever has the shard next, which may be this instance.
    pub(crate) fn recall_gone(&mut self, station: StationId, gone: impl IntoIterator<Item = ObjectKey>) {
        let snapshot = self.snapshot(&kind());
        for key in gone {
            let memory = snapshot.get(&memory_key(&self.stations[station.0].name, &key));
            let Some((_, version, published)) = memory.and_then(|record| self.read_memory(&record)) else { continue };
            let at = &mut self.stations[station.0];
            let shard = at.shard_of(&key);
            at.shards[shard].ledger.lock().publications.recall(&published);
            at.known.entry(key).or_default().acked.get_or_insert(version);
        }
    }

    /// What was published for an object, as far as it is remembered.
    pub(crate) fn remembered_children(&self, station: StationId, key: &ObjectKey) -> Vec<ObjectKey> {
        self.recollection(station, key).unwrap_or_default()
    }

    /// The same; none if nothing is remembered of the object.
    pub(crate) fn recollection(&self, station: StationId, key: &ObjectKey) -> Option<Vec<ObjectKey>> {
        let memory = self.snapshot(&kind()).get(&memory_key(&self.stations[station.0].name, key));
        let published = memory.and_then(|record| self.read_memory(&record)).map(|(_, _, published)| published);
        let at = &self.stations[station.0];
        // What could not be written yet is newer.
        let unwritten = at.shards[at.shard_of(key)].writeback.unwritten(key);
        let key = |one: &v1::Published| ObjectKey::try_from(one.key.as_ref()?).ok();
        Some(unwritten.or(published.as_deref())?.iter().filter_map(key).collect())
    }

    /// What this instance deals with itself it knows better.
    fn is_anothers(&self, station: StationId, key: &ObjectKey) -> bool {
        let at = &self.stations[station.0];
        matches!(at.shards[at.shard_of(key)].phase, Phase::Absent | Phase::Opening)
    }

    fn read_memory(&self, record: &Record) -> Option<(StationId, Arc<Record>, Vec<v1::Published>)> {
        let memory = typed::<v1::Acknowledged>(record).ok()?.spec;
        let at = self.stations.iter().find(|at| *at.name == *memory.controller && at.remembers)?;
        let object = memory.object.as_ref()?;
        let content = Content::from_wire(object).ok()?;
        // Somebody else's object under our name would be taken for ours.
        if memory_key(&at.name, &content.key) != *record.key() {
            return None;
        }
        let slot = Slot { revision: nimbus_core::Revision(object.revision), seq: 0 };
        Some((at.id, Arc::new(Record::new(content, slot)), memory.published))
    }
}
