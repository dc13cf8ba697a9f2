//! Tests of the agent's memory on disk.

mod aside;
mod crash;
mod damage;
mod failure;
mod faults;
mod opening;
mod saving;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use nimbus_client::Item;
use nimbus_core::{AgentId, Backoff, Digest, Epoch, LeafHasher, ObjectKey, Position, Revision, ScopeHash};
use nimbus_disk::{Disk, RealDisk};
use nimbus_wire::v1;
use prost_types::Any;
use tempfile::TempDir;

use crate::cache::{
    aside::Aside,
    boot::BootId,
    keeper::{Keeper, Settings},
    memory::{Delta, Memory},
};

/// A directory with a path in it.
struct Place {
    directory: TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("memory.db");
    Place { directory, path }
}

fn agent() -> AgentId {
    AgentId::new("edge-1").unwrap()
}

fn boot(name: &str) -> Option<BootId> {
    BootId::new(name)
}

fn settings<D: Disk>(disk: D) -> Settings<D> {
    let backoff = Backoff { base: Duration::from_secs(1), max: Duration::from_secs(30) };
    let wall = || SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    Settings { disk, backoff, boot: boot("boot-1"), wall, inline: false }
}

fn open(path: &Path) -> (Keeper, Memory, Option<Aside>) {
    Keeper::open_with(path, &agent(), settings(RealDisk)).unwrap()
}

/// Opens what must be good, and closes it again.
async fn reload(path: &Path) -> Memory {
    let (keeper, memory, aside) = open(path);
    assert_eq!(aside, None);
    keeper.close().await;
    memory
}

/// Makes a file with one delta after another, each in a commit of its own, and closes it.
async fn file_with(path: &Path, deltas: impl IntoIterator<Item = Delta>) {
    let (keeper, ..) = open(path);
    for delta in deltas {
        keeper.save(delta);
        keeper.barrier().await.unwrap();
    }
    keeper.close().await;
}

/// An object whose spec is as long as it should be, and tells one generation from another.
fn sized(name: &str, generation: u64, len: usize) -> Arc<Item> {
    let value = generation.to_le_bytes().iter().copied().cycle().take(len).collect::<Vec<_>>();
    let object = v1::Object {
        kind: "demo.v1.Port".into(),
        namespace: "shop".into(),
        name: name.into(),
        uid: format!("uid-of-{name}"),
        generation,
        revision: generation,
        labels: [("tier".to_owned(), "web".to_owned())].into(),
        spec: Some(Any { type_url: "type.googleapis.com/demo.v1.Port".into(), value }),
        ..v1::Object::default()
    };
    let key = ObjectKey::try_from(&v1::Key {
        kind: object.kind.clone(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    });
    Item::new(object, digest(&key.unwrap(), generation)).unwrap()
}

fn item(name: &str, generation: u64) -> Arc<Item> {
    sized(name, generation, 100)
}

fn digest(key: &ObjectKey, generation: u64) -> Digest {
    let mut hasher = LeafHasher::new(key);
    hasher.part(&generation.to_le_bytes());
    hasher.finish()
}

fn at(revision: u64) -> Option<Position> {
    Some(Position { epoch: Epoch(7), revision: Revision(revision), scope: ScopeHash(9) })
}

fn put(revision: u64, items: &[Arc<Item>]) -> Delta {
    Delta { position: Some(at(revision)), puts: items.to_vec(), ..Delta::default() }
}

fn applied(item: &Arc<Item>) -> Delta {
    Delta { applied: vec![(item.key().clone(), Some(item.clone()))], ..Delta::default() }
}

fn started(item: &Arc<Item>) -> Delta {
    Delta { started: vec![(item.key().clone(), Some(item.clone()))], ..Delta::default() }
}

fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
