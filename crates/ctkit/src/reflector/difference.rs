//! What differs between two lists.

use std::{cmp::Ordering, sync::Arc};

use nimbus_core::ObjectKey;
use nimbus_store::Record;

/// The names that are in one list only, or mean something else in each. Both are in the order of their names.
pub(crate) fn difference<'a>(
    old: impl Iterator<Item = &'a Arc<Record>>,
    new: impl Iterator<Item = &'a Arc<Record>>,
    same: impl Fn(&Record, &Record) -> bool,
) -> Vec<ObjectKey> {
    let (mut old, mut new) = (old.peekable(), new.peekable());
    let mut keys = Vec::new();
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return keys,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.key().cmp(new.key()),
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        match (before, after) {
            (Some(before), Some(after)) if Arc::ptr_eq(before, after) || same(before, after) => {}
            (before, after) => keys.extend(after.or(before).map(|record| record.key().clone())),
        }
    }
}
