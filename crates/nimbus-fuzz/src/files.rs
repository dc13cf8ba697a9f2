//! Files to damage, and how inputs say what is damaged.
//!
//! A file of redb is large and mostly empty, so that an input is not a file: it says what is different from one that was
//! really written.

use std::{fs, path::Path, sync::LazyLock};

use nimbus_core::{AgentId, Epoch, PublisherId};
use nimbus_store::{Collection, Config, Content, Draft, Op, Step, Txn, fuzzing};
use nimbus_wire::v1;
use prost_types::Any;

use crate::{cache::AGENT, requests, script};

/// Replaces bytes: four of an offset, and what is written there.
pub(crate) const WRITE: u8 = 0;
/// Cuts the file off: four bytes of its new length.
pub(crate) const CUT: u8 = 1;
/// The bytes are the whole file.
pub(crate) const WHOLE: u8 = 2;

/// The history of the file of a bus.
pub(crate) const EPOCH: Epoch = Epoch(7);

/// The file of a bus that was closed.
pub(crate) static STORE: LazyLock<Vec<u8>> = LazyLock::new(|| written(write_store));

/// The number of the last group of writes in it.
pub(crate) static COMMITS: LazyLock<u64> = LazyLock::new(|| fuzzing::load(&STORE, &[]).unwrap().commit);

/// The log beside it when that bus had gone on, and was killed.
pub(crate) static LOG: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.redb");
    fs::write(&path, &*STORE).unwrap();
    let store = Collection::open(&path, Config::new(EPOCH)).unwrap();
    change(&store);
    let mut log = fs::read(folder.path().join("file.redb.log")).unwrap();
    let end = log.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    log.truncate(end.next_multiple_of(8));
    log
});

/// The file of an agent that was closed.
pub(crate) static CACHE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    written(|path| {
        let agent = AgentId::new(AGENT).unwrap();
        requests::runtime()
            .block_on(nimbus_agent::fuzzing::write(path, &agent, objects()))
            .unwrap();
    })
});

/// A file after what an input does to it.
pub(crate) fn damaged(file: &[u8], input: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    for part in script::read(input) {
        let number = part.body.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize);
        match (part.tag, number) {
            (WRITE, Some(at)) => {
                let with = &part.body[4..];
                let at = at % (file.len() + 1);
                let end = (at + with.len()).min(file.len());
                file[at..end].copy_from_slice(&with[..end - at]);
            }
            (CUT, Some(length)) => file.truncate(length),
            (WHOLE, _) => file = part.body.to_vec(),
            _ => {}
        }
    }
    file
}

fn written(write: impl FnOnce(&Path)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.redb");
    write(&path);
    fs::read(path).unwrap()
}

fn write_store(path: &Path) {
    change(&Collection::open(path, Config::new(EPOCH)).unwrap());
}

/// Changes of every sort.
fn change(store: &Collection) {
    let publisher = PublisherId::new("p").unwrap();
    let commit = |ops: Vec<Op>| {
        let steps = ops.into_iter().map(Step::from).collect();
        store
            .commit(&Txn { publisher: publisher.clone(), fence: 0, leases: Vec::new(), steps })
            .unwrap();
    };
    let drafts = || objects().into_iter().map(|object| draft(&object));
    commit(drafts().map(Op::Upsert).collect());
    commit(drafts().take(1).map(|draft| Op::Delete(draft.key)).collect());
    let kinds = [draft(&objects()[0]).key.kind().clone()].into();
    let sync = store.begin_sync(&PublisherId::new("q").unwrap(), 3, kinds).unwrap();
    store.end_sync(&sync).unwrap();
    store.set_extra("name", Some(b"value"[..].into())).wait().unwrap();
}

fn draft(object: &v1::Object) -> Draft {
    let Content { key, uid, generation, labels, refs, owner, annotations, audience, spec, .. } =
        Content::from_wire(object).unwrap();
    Draft { key, uid: Some(uid), generation: Some(generation), labels, refs, owner, annotations, audience, spec }
}

/// Objects with everything that an object can have.
pub(crate) fn objects() -> Vec<v1::Object> {
    let audiences = [
        None,
        Some(v1::audience::To::Selector("zone in (a,b),!canary".to_owned())),
        Some(v1::audience::To::Agents(v1::Agents { ids: vec!["edge-1".to_owned(), "edge-2".to_owned()] })),
    ];
    let object = |(at, to): (usize, Option<v1::audience::To>)| v1::Object {
        kind: "fuzz.Policy".to_owned(),
        namespace: if at == 1 { "prod".to_owned() } else { String::new() },
        name: format!("web-{at}"),
        uid: format!("uid-{at}"),
        generation: 1,
        revision: 1,
        manager: "p".to_owned(),
        labels: [("zone".to_owned(), "a".to_owned())].into(),
        annotations: [("note".to_owned(), "by hand".to_owned())].into(),
        owner: Some(v1::Owner {
            kind: "fuzz.Old".to_owned(),
            name: "o".to_owned(),
            uid: "u".to_owned(),
            ..v1::Owner::default()
        }),
        refs: vec![v1::Reference {
            kind: "fuzz.Zone".to_owned(),
            name: "a".to_owned(),
            weak: true,
            ..v1::Reference::default()
        }],
        audience: to.map(|to| v1::Audience { to: Some(to) }),
        spec: Some(Any {
            type_url: "type.googleapis.com/fuzz.Policy".to_owned(),
            value: b"\x0a\x01a\x10\x07\x1a\x05allow".to_vec(),
        }),
        ..v1::Object::default()
    };
    audiences.into_iter().enumerate().map(object).collect()
}
