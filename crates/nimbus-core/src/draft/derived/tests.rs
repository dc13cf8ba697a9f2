//! Names that must be the same in every version, and different for different things.

use nimbus_wire::v1;
use proptest::prelude::*;

use crate::{Draft, Object, is_name};

fn parent(namespace: &str, name: &str, uid: &str) -> Object<v1::Lease> {
    let lease = v1::Lease::default();
    let object = v1::Object {
        kind: "nimbus.v1.Lease".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        spec: Some(crate::Spec::pack(&lease)),
        ..v1::Object::default()
    };
    Object::from_wire(&object).unwrap()
}

fn child(parent: &Object<v1::Lease>, role: &str) -> Draft<v1::Key> {
    Object::derived(parent, role, v1::Key::default())
}

/// Derived names and uids are on buses and on disks: if this fails, every child in the field would be replaced.
#[test]
fn names_and_uids_never_change_between_versions() {
    let check = |namespace: &str, name: &str, uid: &str, role: &str, expected: [&str; 2]| {
        let draft = child(&parent(namespace, name, uid), role).into_parts().unwrap();
        assert_eq!([draft.key.name(), draft.uid.unwrap().as_str()], expected, "{namespace}/{name} {uid} {role}");
    };
    check("", "web", "u1", "zone-a", ["web-zone-a-75c6814a80", "a65a9a2a2e6c34649feedd157e09b11b"]);
    check("prod", "web", "u1", "zone-a", ["web-zone-a-a3e893e294", "7bf865ebfec8eec26faeb1558a639c43"]);
    check("prod", "web", "u2", "zone-a", ["web-zone-a-5724eeb0ef", "26acf620a0ef15f3ffa23e54cf412899"]);
    check("prod", "web", "u1", "", ["web-1f8a3c0630", "d1af03ee5b806b51b4767724e0d686d9"]);
    check("prod", "web", "u1", "zone a/é", ["web-zone-a---698ff72f85", "e2e3e194bfe24fef43b913ba47bc2fea"]);
}

#[test]
fn a_child_lies_with_its_parent_and_belongs_to_it() {
    let draft = child(&parent("prod", "web", "u1"), "zone-a").into_parts().unwrap();
    assert_eq!((draft.key.kind().as_str(), draft.key.namespace()), ("nimbus.v1.Key", "prod"));
    let owner = draft.owner.unwrap();
    assert_eq!(owner.texts(), ["nimbus.v1.Lease", "prod", "web", "u1"]);
}

#[test]
fn children_of_different_kinds_in_one_role_have_one_name_and_different_uids() {
    let parent = parent("", "web", "u1");
    let key = child(&parent, "r").into_parts().unwrap();
    let agents = Object::derived(&parent, "r", v1::Agents::default()).into_parts().unwrap();
    assert_eq!(key.key.name(), agents.key.name());
    assert_ne!(key.uid, agents.uid);
}

#[test]
fn roles_that_look_alike_have_different_names() {
    let parent = parent("", "web", "u1");
    let roles = ["a/b", "a b", "a-b", "a-b-", "a\u{2f}b ", "é", "è", "", "-"];
    let names: std::collections::HashSet<_> =
        roles.iter().map(|role| child(&parent, role).into_parts().unwrap().key).collect();
    assert_eq!(names.len(), roles.len());
}

/// As users write it: the parent is shared.
#[test]
fn a_shared_parent_is_a_parent() {
    let policy = std::sync::Arc::new(parent("", "web", "u1"));
    let zone = String::from("a");
    let draft = Object::derived(&policy, &zone, v1::Key::default()).for_label("zone", &zone);
    assert!(draft.check().is_ok());
}

proptest! {
    #[test]
    fn a_derived_name_is_a_name_and_is_different_for_different_parents_and_roles(
        name in "[A-Za-z0-9._~=+@:-]{1,253}",
        uids in ("[a-z0-9]{1,40}", "[a-z0-9]{1,40}"),
        roles in (".{0,300}", ".{0,300}"),
    ) {
        let drafts = [(&uids.0, &roles.0), (&uids.0, &roles.1), (&uids.1, &roles.0), (&uids.1, &roles.1)]
            .map(|(uid, role)| ((uid, role), child(&parent("ns", &name, uid), role).into_parts().unwrap()));
        for (what, draft) in &drafts {
            prop_assert!(is_name(draft.key.name()));
            for (other, theirs) in &drafts {
                prop_assert_eq!(what == other, draft.key == theirs.key);
                prop_assert_eq!(what == other, draft.uid == theirs.uid);
            }
        }
    }
}
