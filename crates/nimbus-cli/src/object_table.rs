//! Objects as rows of a table.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use nimbus_wire::v1::{self, ConditionState, audience::To};
use prost::{Message as _, Name as _};

use crate::{
    output::{Cell, Column, Table, Tone},
    schemas::kind_of,
};

/// The condition in which the controller kit says how an object fares.
const READY: &str = "Ready";

/// An empty table of objects.
pub(crate) fn columns() -> Table {
    Table::new([
        Column::optional("KIND"),
        Column::optional("NAMESPACE"),
        Column::new("NAME"),
        Column::new("GENERATION"),
        Column::new("REVISION"),
        Column::new("MANAGER"),
        Column::new("STATE"),
        Column::wide("AUDIENCE"),
        Column::wide("LABELS"),
        Column::wide("REFS"),
        Column::wide("UID"),
    ])
}

/// A row of it. Where all objects are of one kind, it need not be said.
pub(crate) fn row(object: &v1::Object, with_kind: bool) -> [Cell; 11] {
    [
        Cell::from(if with_kind { &object.kind } else { "" }),
        Cell::from(&object.namespace),
        Cell::from(&object.name),
        Cell::from(object.generation),
        Cell::from(object.revision),
        Cell::from(&object.manager),
        state(object),
        Cell::from(audience(object.audience.as_ref())),
        Cell::from(labels(&object.labels)),
        Cell::from(references(&object.refs)),
        Cell::from(&object.uid),
    ]
}

/// The name of an object, as every command takes it.
pub(crate) fn name(object: &v1::Object) -> String {
    key_name(&v1::Key { kind: object.kind.clone(), namespace: object.namespace.clone(), name: object.name.clone() })
}

/// The same for a key.
pub(crate) fn key_name(key: &v1::Key) -> String {
    let v1::Key { kind, namespace, name } = key;
    if namespace.is_empty() { format!("{kind}/{name}") } else { format!("{kind}/{namespace}/{name}") }
}

/// Whom an object is for.
pub(crate) fn audience(audience: Option<&v1::Audience>) -> String {
    match audience.map(|audience| &audience.to) {
        None => "everybody".to_owned(),
        Some(Some(To::Selector(selector))) => selector.clone(),
        Some(Some(To::Agents(agents))) if !agents.ids.is_empty() => format!("agents {}", agents.ids.join(",")),
        Some(_) => "nobody".to_owned(),
    }
}

/// Labels, as a selector would name them.
pub(crate) fn labels(labels: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

fn references(refs: &[v1::Reference]) -> String {
    let name = |reference: &v1::Reference| {
        let v1::Reference { kind, namespace, name, .. } = reference.clone();
        key_name(&v1::Key { kind, namespace, name })
    };
    refs.iter().map(name).collect::<Vec<_>>().join(",")
}

/// How it fares: that it goes, or what its controller says.
fn state(object: &v1::Object) -> Cell {
    if object.deleting {
        return Cell::from(format!("Deleting, waits for {}", object.finalizers.join(","))).tone(Tone::Warning);
    }
    let standing = object.status.as_ref().filter(|status| kind_of(status) == v1::Standing::full_name());
    let standing = standing.and_then(|status| v1::Standing::decode(&*status.value).ok()).unwrap_or_default();
    let Some(ready) = standing.conditions.into_iter().find(|condition| condition.r#type == READY) else {
        return Cell::from("");
    };
    if ready.generation < object.generation {
        return Cell::from(format!("{} (generation {})", ready.code, ready.generation)).tone(Tone::Warning);
    }
    let tone = match ready.state() {
        ConditionState::True => Tone::Good,
        ConditionState::False => Tone::Bad,
        ConditionState::Unspecified => Tone::Warning,
    };
    Cell::from(ready.code).tone(tone)
}
