//! Samples of `object.proto`.

use nimbus_wire::v1::{Agents, Audience, Key, Object, Owner, Reference, audience};

use crate::{
    golden::Case,
    samples::{any, labels, strings},
};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::whole(key()),
        Case::whole(object()),
        Case::part("annotations", Object { annotations: labels([("owner", "team a"), ("ticket", "42")]), ..object() }),
        Case::part("finalizers", Object { finalizers: strings(["dns", "firewall"]), ..object() }),
        Case::part("deleting", Object { deleting: true, ..object() }),
        Case::whole(reference()),
        Case::part("declared", Reference { declared: true, ..reference() }),
        Case::whole(owner()),
        Case::part("selector", audience()),
        Case::part("agents", Audience { to: Some(audience::To::Agents(agents())) }),
        Case::part("nobody", Audience { to: None }),
        Case::whole(agents()),
    ]
}

pub(super) fn key() -> Key {
    Key { kind: "demo.v1.Policy".into(), namespace: "prod".into(), name: "web".into() }
}

pub(super) fn object() -> Object {
    Object {
        kind: "demo.v1.Policy".into(),
        namespace: "prod".into(),
        name: "web".into(),
        uid: "0195f3a2".into(),
        generation: 3,
        revision: 300,
        labels: labels([("tier", "web"), ("zone", "a")]),
        refs: vec![reference()],
        owner: Some(owner()),
        manager: "policies".into(),
        spec: Some(any("demo.v1.Policy")),
        status: Some(any("demo.v1.PolicyStatus")),
        observed_generation: 2,
        audience: Some(audience()),
        annotations: labels([]),
        finalizers: Vec::new(),
        deleting: false,
    }
}

fn reference() -> Reference {
    Reference { kind: "demo.v1.Zone".into(), namespace: "prod".into(), name: "a".into(), weak: true, declared: false }
}

fn owner() -> Owner {
    Owner { kind: "demo.v1.Tenant".into(), namespace: "prod".into(), name: "acme".into(), uid: "0195f3a1".into() }
}

fn audience() -> Audience {
    Audience { to: Some(audience::To::Selector("zone in (a,b),!canary".into())) }
}

fn agents() -> Agents {
    Agents { ids: strings(["switch-1", "switch-2"]) }
}
