//! Descriptor sets, as they are registered.

use nimbus_bus::{SchemaLimits, Schemas};

use crate::schema::{KINDS, SET};

/// What is refused changes nothing and says why; what is accepted is there, twice is once, and the next process accepts it.
pub(crate) fn check(bytes: &[u8]) {
    if !registered(&Schemas::default(), bytes) {
        return;
    }
    // And beside others, of which it may replace something.
    let busy = Schemas::new(SchemaLimits { max_kinds: 8, ..SchemaLimits::default() });
    busy.register(&SET, &KINDS.map(str::to_owned)).unwrap();
    registered(&busy, bytes);
}

/// Whether it was.
fn registered(schemas: &Schemas, set: &[u8]) -> bool {
    let before = schemas.kinds();
    let kinds = match schemas.register(set, &[]) {
        Err(error) => {
            assert!(!error.to_string().is_empty(), "refused without a reason");
            assert_eq!(schemas.kinds(), before, "what was refused changed something");
            return false;
        }
        Ok(kinds) => kinds,
    };
    let after = schemas.kinds();
    assert!(before.iter().chain(&kinds).all(|kind| after.contains(kind)), "{before:?} and {kinds:?} are not {after:?}");
    assert_eq!(schemas.register(set, &[]).as_ref(), Ok(&kinds), "again");
    assert_eq!(schemas.register(set, &kinds).as_ref(), Ok(&kinds), "again, by name");
    assert_eq!(schemas.kinds(), after);
    for kind in &kinds {
        assert!(schemas.is_registered(kind));
        // Neither of these may panic; that they say something is for others to test.
        drop(schemas.check(kind, b"\x0a\x01a\x10\x01"));
        drop(schemas.check(kind, set));
        drop(schemas.field(kind, set, &["name"]));
    }
    // What the next process is given.
    if !kinds.is_empty() && before.is_empty() {
        assert_eq!(Schemas::default().register(set, &kinds).as_ref(), Ok(&kinds), "after a restart");
    }
    true
}
