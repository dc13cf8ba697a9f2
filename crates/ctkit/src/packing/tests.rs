//! What becomes of a draft.

use nimbus_core::{Draft, Generation};
use nimbus_wire::v1;
use prost::Message as _;

use crate::packing::pack;

#[test]
fn a_packed_draft_is_what_was_drafted() {
    let spec = v1::LeaseToken { name: "lease".to_owned(), token: 7 };
    let draft = Draft::new("one", spec.clone())
        .in_namespace("here")
        .label("tier", "edge")
        .for_agents(["a"]);
    let packed = pack(draft.annotation("note", "by hand").at_generation(Generation(3))).unwrap();
    assert_eq!(packed.key.to_string(), "nimbus.v1.LeaseToken/here/one");
    assert_eq!((packed.uid, packed.owner, packed.generation), (None, None, Some(Generation(3))));
    assert_eq!((packed.labels.get("tier"), packed.annotations.get("note")), (Some("edge"), Some("by hand")));
    let any = prost_types::Any::decode(packed.spec).unwrap();
    assert_eq!(any.to_msg::<v1::LeaseToken>().unwrap(), spec);
}

#[test]
fn a_draft_with_flaws_is_not_packed() {
    assert!(pack(Draft::new("no spaces", v1::Key::default())).is_err());
}
