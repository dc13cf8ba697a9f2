//! Durability: what is acknowledged is there, what is not is not shown, and damage is named.

mod crash;
mod damage;
pub(crate) mod disk;
mod failure;
mod format;
mod opening;
mod reopen;
mod threads;
mod unsettled;

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use nimbus_core::{AgentId, Annotations, Audience, Epoch, Kind, Labels, ObjectKey, PublisherId, Selector};
use prost::Message as _;
use tempfile::TempDir;

use crate::{
    collection::{Collection, Config},
    durable::{error::OpenError, tests::disk::TestDisk},
    txn::{Draft, Op, Step, Txn},
};

/// A directory of its own, and a path in it.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
    pub(crate) path: PathBuf,
}

pub(crate) fn place() -> Place {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("collection");
    Place { directory, path }
}

pub(crate) fn config() -> Config {
    Config::new(Epoch(7))
}

/// Opens on a disk that loses nothing, and never waits for it.
pub(crate) fn open(place: &Place) -> Result<Collection, OpenError> {
    Collection::open_on(&TestDisk::default(), &place.path, config())
}

pub(crate) fn kind() -> Kind {
    Kind::new("test.v1.Alpha").unwrap()
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::new(kind(), "", name).unwrap()
}

pub(crate) fn publisher(name: &str) -> PublisherId {
    PublisherId::new(name).unwrap()
}

pub(crate) fn agents(names: &[&str]) -> Audience {
    Audience::Agents(Arc::new(names.iter().map(|name| AgentId::new(name).unwrap()).collect()))
}

pub(crate) fn selected(selector: &str) -> Audience {
    Audience::Selector(Selector::parse(selector).unwrap())
}

pub(crate) fn spec(value: u64, pad: usize) -> Bytes {
    let value = value.to_be_bytes().into_iter().chain(std::iter::repeat_n(7, pad)).collect();
    prost_types::Any { type_url: format!("t/{}", kind()), value }.encode_to_vec().into()
}

pub(crate) fn draft(name: &str, value: u64, audience: Audience) -> Draft {
    let (uid, generation, labels, refs, owner) = (None, None, Labels::default(), Arc::default(), None);
    Draft {
        key: key(name),
        uid,
        generation,
        labels,
        refs,
        owner,
        annotations: Annotations::default(),
        audience,
        spec: spec(value, 8),
    }
}

pub(crate) fn put(name: &str, value: u64) -> Step {
    Op::Upsert(draft(name, value, Audience::Everyone)).into()
}

pub(crate) fn delete(name: &str) -> Step {
    Op::Delete(key(name)).into()
}

pub(crate) fn txn(steps: Vec<Step>) -> Txn {
    Txn { publisher: publisher("p"), fence: 0, leases: Vec::new(), steps }
}

/// The names of all objects with their values.
pub(crate) fn contents(store: &Collection) -> Vec<(String, Bytes)> {
    let state = store.state();
    let all = state.kinds().flat_map(|(_, kind)| kind.all().iter(None));
    all.map(|record| (record.key().name().to_owned(), record.spec())).collect()
}
