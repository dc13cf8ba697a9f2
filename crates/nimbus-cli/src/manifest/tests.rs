//! From objects to manifests.

use std::collections::BTreeMap;

use nimbus_wire::v1::{self, audience::To};
use serde_json::json;

use crate::{
    manifest::Manifest,
    schemas::{
        Secrets,
        tests::{demo, pack},
    },
};

#[test]
fn an_object_is_shown_with_everything_in_it() {
    let schemas = demo();
    let standing = v1::Standing {
        conditions: vec![v1::Condition { r#type: "Ready".to_owned(), generation: 2, ..v1::Condition::default() }],
        detail: Some(pack(&schemas, "demo.Account", &json!({"user": "u", "pin": 1}))),
    };
    let object = v1::Object {
        kind: "demo.Account".to_owned(),
        namespace: "n".to_owned(),
        name: "a".to_owned(),
        uid: "u-1".to_owned(),
        generation: 2,
        revision: 7,
        labels: BTreeMap::from([("b".to_owned(), "2".to_owned()), ("a".to_owned(), "1".to_owned())]),
        annotations: BTreeMap::from([("note".to_owned(), "x".to_owned())]),
        refs: vec![
            v1::Reference { kind: "demo.Zone".to_owned(), name: "z".to_owned(), weak: true, ..Default::default() },
            v1::Reference { kind: "demo.Zone".to_owned(), name: "y".to_owned(), ..Default::default() },
            v1::Reference { kind: "demo.Zone".to_owned(), name: "x".to_owned(), declared: true, ..Default::default() },
        ],
        owner: Some(v1::Owner { kind: "demo.Policy".to_owned(), name: "p".to_owned(), ..Default::default() }),
        manager: "m".to_owned(),
        spec: Some(pack(&schemas, "demo.Account", &json!({"user": "u", "password": "p"}))),
        status: Some(prost_types::Any::from_msg(&standing).unwrap()),
        observed_generation: 2,
        audience: Some(v1::Audience { to: Some(To::Selector("zone=a".to_owned())) }),
        finalizers: vec!["f".to_owned()],
        deleting: true,
    };
    let manifest = Manifest::new(&object, &schemas, Secrets::Hidden);
    let expected = json!({
        "kind": "demo.Account",
        "namespace": "n",
        "name": "a",
        "labels": {"a": "1", "b": "2"},
        "annotations": {"note": "x"},
        "owner": {"kind": "demo.Policy", "name": "p"},
        "refs": [{"kind": "demo.Zone", "name": "z", "weak": true}, {"kind": "demo.Zone", "name": "y"}],
        "audience": {"selector": "zone=a"},
        "spec": {"user": "u", "password": "<secret>"},
        "status": {
            "@type": "/nimbus.v1.Standing",
            "conditions": [{"type": "Ready", "generation": "2"}],
            "detail": {"@type": "type.googleapis.com/demo.Account", "user": "u", "pin": "<secret>"},
        },
        "bus": {
            "uid": "u-1", "generation": 2, "revision": 7, "manager": "m", "observedGeneration": 2,
            "finalizers": ["f"], "deleting": true, "refs": [{"kind": "demo.Zone", "name": "x"}],
        },
    });
    assert_eq!(manifest.to_json().to_string(), expected.to_string(), "in this order");
    assert_eq!(serde_json::from_value::<Manifest>(expected).unwrap(), manifest);
}

#[test]
fn what_is_empty_is_left_out_and_nobody_is_not_everybody() {
    let schemas = demo();
    let shown = |audience| {
        let object = v1::Object { kind: "k".to_owned(), name: "n".to_owned(), audience, ..v1::Object::default() };
        let mut json = Manifest::new(&object, &schemas, Secrets::Hidden).to_json();
        json.as_object_mut().unwrap().remove("bus");
        json
    };
    let agents = |ids: &[&str]| To::Agents(v1::Agents { ids: ids.iter().map(|id| (*id).to_owned()).collect() });
    let with = |audience| json!({"kind": "k", "name": "n", "audience": audience});
    assert_eq!(shown(None), json!({"kind": "k", "name": "n"}));
    assert_eq!(shown(Some(v1::Audience { to: None })), with(json!({"agents": []})));
    assert_eq!(shown(Some(v1::Audience { to: Some(agents(&[])) })), with(json!({"agents": []})));
    assert_eq!(shown(Some(v1::Audience { to: Some(agents(&["a", "b"])) })), with(json!({"agents": ["a", "b"]})));
}

#[test]
fn bytes_are_secret_where_no_schema_says_otherwise() {
    let schemas = demo();
    let unknown = prost_types::Any { type_url: "type.googleapis.com/x.Y".to_owned(), value: b"abc".to_vec() };
    let object = v1::Object { spec: Some(unknown.clone()), status: Some(unknown), ..v1::Object::default() };
    let shown = |secrets| {
        let manifest = Manifest::new(&object, &schemas, secrets);
        (manifest.spec, manifest.spec_bytes, manifest.status)
    };
    let status = |bytes: &str| Some(json!({"@type": "type.googleapis.com/x.Y", "@bytes": bytes}));
    assert_eq!(shown(Secrets::Hidden), (None, Some("<secret>".to_owned()), status("<secret>")));
    assert_eq!(shown(Secrets::Shown), (None, Some("YWJj".to_owned()), status("YWJj")));
}

#[test]
fn a_field_that_no_manifest_has_is_refused() {
    let read = serde_json::from_value::<Manifest>(json!({"kind": "k", "name": "n", "sepc": {}}));
    assert!(read.unwrap_err().to_string().starts_with("unknown field `sepc`"));
}
