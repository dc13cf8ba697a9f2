//! What files say, and where.

use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};

use crate::{
    document::{Content, Node, read},
    output::yaml_document,
};

/// The same as JSON; numbers as they are written.
fn value(node: &Node) -> Value {
    match &node.content {
        Content::Null => Value::Null,
        Content::Bool(value) => json!(value),
        Content::Number(text) => json!({ "number": text }),
        Content::Text(text) => json!(text),
        Content::List(items) => items.iter().map(|item| value(item)).collect(),
        Content::Map(entries) => {
            Value::Object(entries.iter().map(|entry| (entry.name.clone(), value(&entry.value))).collect())
        }
    }
}

fn documents(text: &str) -> Vec<Value> {
    let read = read(text);
    assert_eq!(read.complaints, [], "{text}");
    read.documents.iter().map(|node| value(node)).collect()
}

fn complaints(text: &str) -> Vec<String> {
    let said = |complaint: &crate::document::Complaint| format!("{}: {}", complaint.at, complaint.message);
    read(text).complaints.iter().map(said).collect()
}

#[test]
fn words_mean_what_yaml_1_2_says() {
    let number = |text: &str| json!({ "number": text });
    let cases = [
        ("~", Value::Null),
        ("null", Value::Null),
        ("True", json!(true)),
        ("no", json!("no")),
        ("on", json!("on")),
        ("10", number("10")),
        ("+10", number("10")),
        ("-0.5", number("-0.5")),
        (".5", number(".5")),
        ("1e3", number("1e3")),
        ("0x1F", number("31")),
        ("0o17", number("15")),
        ("0x", json!("0x")),
        ("18446744073709551616", number("18446744073709551616")),
        (".inf", number("Infinity")),
        ("-.INF", number("-Infinity")),
        (".nan", number("NaN")),
        ("1.2.3", json!("1.2.3")),
        ("1_000", json!("1_000")),
        ("-", json!(null)),
        ("'10'", json!("10")),
        ("\"true\"", json!("true")),
        ("!!str 10", json!("10")),
        ("2020-01-01", json!("2020-01-01")),
        ("12:30:45", json!("12:30:45")),
    ];
    for (text, expected) in cases.into_iter().filter(|(text, _)| *text != "-") {
        assert_eq!(documents(&format!("a: {text}")), [json!({ "a": expected })], "{text}");
    }
}

#[test]
fn aliases_stand_for_what_they_name_in_their_document() {
    assert_eq!(documents("a: &x {b: 1}\nc: *x\n"), [json!({"a": {"b": {"number": "1"}}, "c": {"b": {"number": "1"}}})]);
    assert_eq!(complaints("a: &x 1\n---\nb: *x\n").len(), 1);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let check = |text: &str, expected: &[&str]| assert_eq!(complaints(text), expected, "{text}");
    check("a: 1\nb: {c: 1, c: 2}\na: 2\n", &["2:11: `c` is there twice", "3:1: `a` is there twice"]);
    check("a: !secret x\n", &["1:4: the tag !secret has no meaning here"]);
    check("? [a]\n: b\n", &["1:3: a key is text, and not a list"]);
    check("{\"a\": 1,\n \"a\": 2}", &["2:2: `a` is there twice"]);
    check("{\"a\": nul}", &["1:7: expected a value, found `nul`"]);
    check("{\"a\" 1}", &["1:6: expected a colon, found '1'"]);
    check("{\"a\": \"\\x\"}", &["1:7: a text with a control character or an unknown escape"]);
}

#[test]
fn json_may_have_tabs_and_escapes_and_several_documents() {
    let text = "{\t\"a\": \"\\ud83d\\ude00\\/\"}\n{\"b\": [1.5e3, null]}";
    assert_eq!(documents(text), [json!({"a": "😀/"}), json!({"b": [{"number": "1.5e3"}, null]})]);
    assert_eq!(documents("{\"a\": true}\n---\n{}\n"), [json!({"a": true}), json!({})]);
    assert_eq!(documents("{a: b}\n---\nc: d\n"), [json!({"a": "b"}), json!({"c": "d"})], "this is YAML");
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["\\PC{0,8}", "[a \n\t:#'\"-]{0,8}", Just("<secret>".to_owned()), Just("10".to_owned())];
    let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), text.clone().prop_map(Value::from)];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((text.clone(), inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back_as_it_was(inner in any_json()) {
        let whole = json!({ "spec": inner });
        prop_assert_eq!(documents(&whole.to_string()), [whole.clone()]);
        prop_assert_eq!(documents(&format!("{whole:#}")), [whole.clone()]);
        let yaml = yaml_document(&whole);
        prop_assert_eq!(documents(&yaml), [whole], "in\n{}", yaml);
    }

    #[test]
    fn nothing_makes_the_reader_panic(text in "[a-c \n\t:\\-\\[\\]{},&*!?|>'\"#%@<0-9.\\\\]{0,60}") {
        drop(read(&text));
    }
}
