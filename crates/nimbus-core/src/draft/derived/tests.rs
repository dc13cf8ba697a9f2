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
    check("", "web", "u1", "zone-a", ["web-zone-a-d8ee394e3f", "f1653cae99bc1da1e2a04e8670f378da"]);
    check("prod", "web", "u1", "zone-a", ["web-zone-a-f760debf8f", "4e02c0c32708637628f3235e966c07fa"]);
    check("prod", "web", "u2", "zone-a", ["web-zone-a-952238d03d", "441ab3345585ad9a1ca5601a9f01061f"]);
    check("prod", "web", "u1", "", ["web-19198c66f1", "497a9c9566feb9c3448527ecffb1b9d3"]);
    check("prod", "web", "u1", "zone a/é", ["web-zone-a---0d7056da4c", "c4b690885f06863d856fc4fa24e6fa86"]);
}

#[test]
fn a_child_lies_with_its_parent_and_belongs_to_it() {
    let draft = child(&parent("prod", "web", "u1"), "zone-a").into_parts().unwrap();
    assert_eq!((draft.key.kind().as_str(), draft.key.namespace()), ("nimbus.v1.Key", "prod"));
    let owner = draft.owner.unwrap();
    assert_eq!((&*owner.kind, &*owner.namespace), ("nimbus.v1.Lease", "prod"));
    assert_eq!((&*owner.name, &*owner.uid), ("web", "u1"));
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
