//! Frames, as an agent gets them from whatever claims to be a bus.

use std::{collections::BTreeMap, sync::Arc};

use nimbus_client::{Effect, Item, Mirror};
use nimbus_core::{Digest, ObjectKey};
use nimbus_wire::v1;
use prost::Message as _;

use crate::script;

/// A script of frames. What a mirror holds always adds up to what it says of itself; nonsense changes nothing; and where it
/// says that it is exact, it holds as much as the bus says.
pub(crate) fn check(bytes: &[u8]) {
    let mut mirror: Mirror = Mirror::default();
    for part in script::read(bytes) {
        let Ok(frame) = v1::Frame::decode(part.body) else { continue };
        if part.tag == u8::MAX {
            mirror.disconnect();
        }
        let before = held(&mirror);
        let bookmark = match &frame.frame {
            Some(v1::frame::Frame::Bookmark(bookmark)) => Some(bookmark.clone()),
            _ => None,
        };
        match mirror.take(frame) {
            Err(nonsense) => {
                assert!(!nonsense.to_string().is_empty(), "refused without a reason");
                assert_eq!(held(&mirror), before, "{nonsense}, and something changed");
            }
            Ok(Effect::Exact { position, .. }) => {
                let bookmark = bookmark.expect("nothing else says so");
                assert_eq!(mirror.len() as u64, bookmark.objects);
                assert_eq!((mirror.position(), mirror.reached()), (Some(position), position.revision));
            }
            Ok(Effect::Mismatch { mismatch, .. }) => {
                assert_eq!(mirror.position(), None, "{mismatch}, and its position is believed");
            }
            Ok(_) => {}
        }
        adds_up(&mirror);
    }
}

fn held(mirror: &Mirror) -> BTreeMap<ObjectKey, Arc<Item>> {
    mirror.items().map(|item| (item.key().clone(), item.clone())).collect()
}

fn adds_up(mirror: &Mirror) {
    let mut root = Digest::ZERO;
    mirror.items().for_each(|item| root.toggle(item.digest));
    assert_eq!(held(mirror).len(), mirror.len());
    match mirror.resume() {
        None => assert!(mirror.is_empty()),
        Some(resume) => assert_eq!(*resume.root, root.as_bytes()[..], "the root is not that of what is held"),
    }
}
