//! What is printed as YAML is read back as what it was.

use proptest::{collection::vec, prelude::*};
use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Value, json};

use crate::output::yaml::document;

/// Reads one document.
fn read(text: &str) -> Value {
    let documents = Yaml::load_from_str(text).unwrap_or_else(|error| panic!("{error} in\n{text}"));
    assert_eq!(documents.len(), 1, "{text}");
    value(&documents[0])
}

fn value(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(value)) => json!(value),
        Yaml::Value(Scalar::Integer(value)) => json!(value),
        Yaml::Value(Scalar::FloatingPoint(value)) => json!(value.into_inner()),
        Yaml::Value(Scalar::String(value)) => json!(value),
        Yaml::Sequence(values) => values.iter().map(value).collect(),
        Yaml::Mapping(entries) => {
            let entry = |(name, inner): (&Yaml<'_>, &Yaml<'_>)| (name.as_str().unwrap().to_owned(), value(inner));
            Value::Object(entries.iter().map(entry).collect::<Map<_, _>>())
        }
        other => panic!("{other:?} is not JSON"),
    }
}

/// Texts that look like something else, or that YAML writes in another way.
#[rustfmt::skip]
const ODD: &[&str] = &[
    "", " ", "a ", "- a", "a: b", "#", "true", "no", "null", "~", "10", "1e3", ".5", "0x1f", "2020-01-01", "<secret>",
    "---", "...", "a\nb", "a\nb\n", "\n", "\na", "a\n\n", " a\nb", "a\n---\nb", "\t", "a\r\nb", "\u{85}", "\u{2028}",
    "\u{feff}", "\u{1b}", "'", "\"", "\\", "!tag", "&a", "*a", "%x", "@x", "`", "{", "[", "|", ">", "?", ":", ",",
    "=",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![proptest::sample::select(ODD).prop_map(str::to_owned), "\\PC{0,8}", "[a \n:#-]{0,8}"]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has no others", |value| value.is_finite())
            .prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((text(), inner), 0..4).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_printed_as_yaml_is_read_back_as_it_was(inner in any_json()) {
        let whole = json!({"spec": inner});
        let text = document(&whole);
        prop_assert_eq!(read(&text), whole, "in\n{}", text);
    }
}

#[test]
fn a_document_looks_as_people_write_it() {
    let value = json!({"kind": "demo.v1.X", "list": ["a", {"b": 1, "c": []}], "text": "one\ntwo\n", "none": {}});
    let expected = "\
kind: demo.v1.X
list:
  - a
  - b: 1
    c: []
text: |
  one
  two
none: {}
";
    assert_eq!(document(&value), expected);
}
