//! What becomes of a typed draft.

use nimbus_core::{Audience, Generation, Kind, Meta, Object, ObjectKey, Reference, Revision, Uid};
use nimbus_wire::v1;
use prost::Message as _;

use crate::txn::Draft;

fn lease(name: &str, token: u64) -> v1::LeaseToken {
    v1::LeaseToken { name: name.to_owned(), token }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::new("demo.v1.Thing").unwrap(), "", name).unwrap()
}

#[test]
fn a_packed_draft_is_what_was_drafted() {
    let typed = nimbus_core::Draft::new("one", lease("lease", 7))
        .in_namespace("here")
        .label("tier", "edge")
        .annotation("note", "by hand")
        .for_agents(["a"])
        .needs(&key("strong"))
        .refers(&key("weak"))
        .at_generation(Generation(3));
    let packed = Draft::try_from(typed).unwrap();
    assert_eq!(packed.key.to_string(), "nimbus.v1.LeaseToken/here/one");
    assert_eq!((packed.uid, packed.owner, packed.generation), (None, None, Some(Generation(3))));
    assert_eq!((packed.labels.get("tier"), packed.annotations.get("note")), (Some("edge"), Some("by hand")));
    let Audience::Agents(agents) = packed.audience else { panic!("for {:?}", packed.audience) };
    assert_eq!(agents.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a"]);
    assert_eq!(*packed.refs, [Reference::strong(key("strong")), Reference::weak(key("weak"))]);
    let any = prost_types::Any::decode(packed.spec).unwrap();
    assert_eq!(any.to_msg::<v1::LeaseToken>().unwrap(), lease("lease", 7));
}

#[test]
fn a_packed_child_knows_its_life_and_its_owner() {
    let meta = Meta::new(key("parent"), Uid::new("u-1").unwrap(), Generation(1), Revision(1));
    let parent = Object::new(meta, lease("lease", 7));
    let child = || Object::derived(&parent, "role", v1::Key::default());
    let expected = child().into_parts().unwrap();
    let packed = Draft::try_from(child()).unwrap();
    assert!(packed.uid.is_some() && packed.owner.is_some());
    assert_eq!((packed.key, packed.uid, packed.owner), (expected.key, expected.uid, expected.owner));
}

#[test]
fn a_draft_with_flaws_is_not_packed() {
    let flawed = nimbus_core::Draft::new("no spaces", v1::Key::default()).label("two words", "");
    assert_eq!(Draft::try_from(flawed).unwrap_err().flaws.len(), 2, "all of them are named");
}
