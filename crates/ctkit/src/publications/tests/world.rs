//! Owners, children and records by short names.

use std::sync::Arc;

use bytes::Bytes;
use nimbus_core::{Annotations, Audience, Finalizers, Generation, Kind, Labels, ObjectKey, PublisherId, Revision, Uid};
use nimbus_store::{Content, Draft, Op, Record, Slot, Step};
use nimbus_wire::v1;

use crate::{
    few::Few,
    publications::{Collision, Owner, Publications},
};

pub(crate) fn child(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::new("demo.v1.Child").unwrap(), "", name).unwrap()
}

pub(crate) fn owner(name: &str, life: u64) -> Owner {
    let key = ObjectKey::new(Kind::new("demo.v1.Owner").unwrap(), "", name).unwrap();
    Owner { key, uid: Uid::new(&format!("{name}-{life}")).unwrap(), generation: Generation(1) }
}

pub(crate) fn draft(name: &str) -> Draft {
    Draft {
        key: child(name),
        uid: None,
        generation: None,
        labels: Labels::default(),
        refs: Arc::default(),
        owner: None,
        annotations: Annotations::default(),
        audience: Audience::Everyone,
        spec: Bytes::from_static(b"spec"),
    }
}

pub(crate) fn drafts(names: &[&str]) -> Few<Draft> {
    names.iter().map(|name| draft(name)).collect()
}

/// A child as it is on the target.
pub(crate) fn record(name: &str, owner: Option<&str>) -> Arc<Record> {
    let owner =
        owner.map(|name| v1::Owner { kind: "demo.v1.Owner".to_owned(), name: name.to_owned(), ..v1::Owner::default() });
    let content = Content {
        key: child(name),
        uid: Uid::new("u").unwrap(),
        generation: Generation(1),
        labels: Labels::default(),
        refs: Arc::default(),
        owner: owner.map(Into::into),
        manager: PublisherId::new("p").unwrap(),
        annotations: Annotations::default(),
        finalizers: Finalizers::default(),
        deleting: false,
        audience: Audience::Everyone,
        spec: Bytes::from_static(b"spec"),
        status: Bytes::new(),
        observed: Generation(0),
    };
    Arc::new(Record::new(content, Slot { revision: Revision(7), seq: 0 }))
}

/// `+added -removed`, in their order.
pub(crate) fn show(steps: &[Step]) -> String {
    let show = |step: &Step| match &step.op {
        Op::Upsert(draft) => format!("+{}", draft.key.name()),
        Op::Delete(key) => format!("-{}", key.name()),
        other => panic!("unexpected {other:?}"),
    };
    steps.iter().map(show).collect::<Vec<_>>().join(" ")
}

pub(crate) fn names<'a>(keys: impl IntoIterator<Item = &'a ObjectKey>) -> String {
    let mut names: Vec<_> = keys.into_iter().map(ObjectKey::name).collect();
    names.sort_unstable();
    names.join(" ")
}

impl Publications {
    /// As [`Publications::stage`], with all steps in a list.
    pub(crate) fn staged(&mut self, owner: &Owner, drafts: Few<Draft>) -> Result<Vec<Step>, Collision> {
        let mut steps = Vec::new();
        self.stage(owner, drafts, &mut steps).map(|()| steps)
    }
}
