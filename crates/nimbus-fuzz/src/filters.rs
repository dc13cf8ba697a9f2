//! Filters, as they travel.

use std::sync::LazyLock;

use nimbus_core::{Kind, Revision};
use nimbus_store::{Content, Fields, Filter, Record, Slot};
use nimbus_wire::v1;
use prost::Message as _;
use prost_types::Any;

use crate::selectors;

/// Every field that is called like a label of the object has its value.
struct Echo;

impl Fields for Echo {
    fn field(&self, _: &Kind, spec: &[u8], path: &str) -> Option<String> {
        let any = Any::decode(spec).ok()?;
        String::from_utf8(any.value).ok().filter(|value| !value.is_empty() && !path.contains('?'))
    }
}

static RECORDS: LazyLock<Vec<Record>> = LazyLock::new(|| {
    let names = [("", "a"), ("", "web"), ("ns", "a"), ("prod", "web-1")];
    let labels: [&[(&str, &str)]; 4] =
        [&[], &[("zone", "a")], &[("zone", "b"), ("role", "edge")], &[("gpu", ""), ("tier", "db"), ("zone", "a")]];
    let values = ["", "a", "b!=c", "a=b"];
    let mut records = Vec::new();
    for (namespace, name) in names {
        for labels in labels {
            for value in values {
                records.push(record(namespace, name, labels.iter().copied(), value));
            }
        }
    }
    records
});

fn record<'a>(namespace: &str, name: &str, labels: impl Iterator<Item = (&'a str, &'a str)>, value: &str) -> Record {
    let object = v1::Object {
        kind: "fuzz.Policy".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: "uid".to_owned(),
        generation: 1,
        manager: "m".to_owned(),
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        spec: Some(Any { type_url: "type.googleapis.com/fuzz.Policy".to_owned(), value: value.as_bytes().to_vec() }),
        ..v1::Object::default()
    };
    Record::new(Content::from_wire(&object).unwrap(), Slot { revision: Revision(1), seq: 0 })
}

/// A filter that is accepted travels on so that it means the same, and says why it refuses exactly what it refuses.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(wire) = v1::Filter::decode(bytes) else { return };
    let filter = match Filter::compile(Some(&wire)) {
        Ok(Some(filter)) => filter,
        Ok(None) => return,
        Err(error) => return assert!(!error.to_string().is_empty(), "refused without a reason"),
    };
    let travels = filter.to_wire();
    let again = Filter::compile(Some(&travels)).unwrap_or_else(|error| panic!("{travels:?}: {error}"));
    let again = again.unwrap_or_else(|| panic!("{travels:?} lets everything pass, {wire:?} does not"));
    assert_eq!((filter.to_string(), &travels), (again.to_string(), &again.to_wire()));
    assert_eq!(filter, again);
    let named = selectors::sets(&wire.selector).into_iter().map(|labels| {
        let name = wire.names.first().map_or("a", String::as_str);
        let namespace = wire.namespaces.first().map_or("", String::as_str);
        record(namespace, name, labels.iter(), "a")
    });
    for record in RECORDS.iter().chain(&named.collect::<Vec<_>>()) {
        let passes = filter.passes(record, &Echo);
        assert_eq!(passes, again.passes(record, &Echo), "{wire:?} and {travels:?} differ on {record:?}");
        let refusal = filter.refusal(record, &Echo);
        assert_eq!(passes, refusal.is_none(), "{wire:?} passes {record:?}: {passes}, refuses it: {refusal:?}");
    }
}
