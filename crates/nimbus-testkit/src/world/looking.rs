//! What there is in a world.

use std::sync::Arc;

use ctkit::{Object, Propagation, Record, Snapshot, Spec, Store, Target as _};
use nimbus_core::{Generation, ObjectKey};
use nimbus_wire::v1::{self, ConditionState};
use prost::Message as _;
use prost_types::Any;

use crate::world::World;

/// Whether an object is as it should be, as its controller says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ready {
    /// Whether it is.
    pub is_ready: bool,
    /// Why, in a word: `Reconciled`, `Failed`, `Waiting`, …
    pub code: String,
    /// Why, for people.
    pub message: String,
    /// The generation that this is about.
    pub generation: Generation,
}

// === impl World ===

impl World {
    /// Everything of a kind that is on the bus, in the order of names.
    ///
    /// # Panics
    /// If a spec is not what its kind says.
    pub fn published<K: Spec>(&self) -> Vec<Object<K>> {
        list(&self.published_now())
    }

    /// Everything of a kind that users have written, in the order of names.
    ///
    /// # Panics
    /// If a spec is not what its kind says.
    pub fn objects<K: Spec>(&self) -> Vec<Object<K>> {
        list(&self.api.snapshot())
    }

    /// What a reactor says of an object; `None` if it has not said anything of this type.
    pub fn status<S: Spec>(&self, key: &ObjectKey) -> Option<S> {
        let detail = self.standing(key)?.detail?;
        let is_one = detail.type_url.rsplit('/').next() == Some(&S::full_name());
        S::decode(&*detail.value).ok().filter(|_| is_one)
    }

    /// Whether an object is as it should be; `None` if no controller has said so yet.
    pub fn ready(&self, key: &ObjectKey) -> Option<Ready> {
        let conditions = self.standing(key)?.conditions;
        let ready = conditions.into_iter().find(|condition| condition.r#type == "Ready")?;
        Some(Ready {
            is_ready: ready.state() == ConditionState::True,
            generation: Generation(ready.generation),
            code: ready.code,
            message: ready.message,
        })
    }

    /// How far what was published has come: under this key, or for the object of this key.
    pub async fn propagation(&self, key: &ObjectKey) -> Propagation {
        let state = self.serving.bus.store().state();
        let is_ours =
            |record: &&Arc<Record>| record.key() == key || record.owner().is_some_and(|owner| is_key(&owner, key));
        let records = state.kinds().flat_map(|(_, kind)| kind.all().iter(None));
        let found: Vec<_> = records.filter(is_ours).cloned().collect();
        let bus = Store::from_bus(self.serving.bus.clone());
        let mut sum = Propagation::default();
        for record in found {
            if let Ok(of) = bus.propagation(record.key()).await {
                sum.add(record.key(), &of);
            }
        }
        sum
    }

    fn published_now(&self) -> Snapshot {
        self.serving.bus.store().state().into()
    }

    fn standing(&self, key: &ObjectKey) -> Option<v1::Standing> {
        let status = self.api.snapshot().get(key)?.status();
        v1::Standing::decode(&*Any::decode(status).ok()?.value).ok()
    }
}

/// The key of the object of kind `K` with that name, in no namespace.
///
/// # Panics
/// If it is not a name.
pub fn key<K: Spec>(name: &str) -> ObjectKey {
    ObjectKey::new(K::kind(), "", name).unwrap_or_else(|error| panic!("{error}"))
}

fn list<K: Spec>(snapshot: &Snapshot) -> Vec<Object<K>> {
    let kind = K::kind();
    let objects = snapshot.list(&kind).map(|record| Object::from_wire(&record.to_wire()));
    objects.map(|object| object.unwrap_or_else(|error| panic!("{error}"))).collect()
}

fn is_key(owner: &v1::Owner, key: &ObjectKey) -> bool {
    owner.kind == key.kind().as_str() && owner.namespace == key.namespace() && owner.name == key.name()
}
