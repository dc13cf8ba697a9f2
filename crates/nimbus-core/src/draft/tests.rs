//! Drafts as publishers write them.

use nimbus_wire::v1;

use crate::{Audience, Draft, InvalidDraft, Kind, ObjectKey, Reference};

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::new("demo.v1.Thing").unwrap(), "", name).unwrap()
}

fn draft() -> Draft<v1::Key> {
    Draft::new("one", v1::Key::default())
}

/// The audience of a draft, as it travels.
fn audience(draft: Draft<v1::Key>) -> String {
    match draft.into_parts().unwrap().audience {
        Audience::Everyone => "everyone".to_owned(),
        Audience::Selector(selector) => selector.to_string(),
        Audience::Agents(ids) => format!("{ids:?}"),
    }
}

#[test]
fn a_draft_is_for_those_that_it_names() {
    assert_eq!(audience(draft()), "everyone");
    assert_eq!(audience(draft().for_label("zone", "a")), "zone=a");
    assert_eq!(audience(draft().for_label("zone", "a").for_label("role", "edge")), "role=edge,zone=a");
    assert_eq!(audience(draft().for_selector("").for_selector("zone in (a,b)")), "zone in (a,b)");
    assert_eq!(audience(draft().for_selector("!canary").for_selector("")), "!canary");
    assert_eq!(audience(draft().for_agents(["b", "a"])), "{a, b}");
    assert_eq!(audience(draft().for_agents([String::from("a")]).for_label("zone", "a")), "zone=a");
    assert_eq!(audience(draft().for_label("zone", "a").for_nobody()), "{}");
    assert_eq!(audience(draft().for_nobody().for_everyone()), "everyone");
}

#[test]
fn no_agents_are_nobody_and_not_everybody() {
    assert_eq!(audience(draft().for_agents(Vec::<String>::new())), "{}");
}

#[test]
fn a_referent_that_is_named_twice_is_one_reference_and_strong_if_any_is() {
    let draft = draft()
        .refers(&key("a"))
        .needs(&key("b"))
        .needs(&key("a"))
        .refers(&key("b"))
        .refers(&key("c"));
    let refs = draft.into_parts().unwrap().refs;
    let weak = Reference::weak(key("c"));
    assert_eq!(*refs, [Reference::strong(key("a")), Reference::strong(key("b")), weak]);
}

#[test]
fn everything_that_is_wrong_is_said_at_the_end_and_names_its_field() {
    let draft = Draft::new("no spaces", v1::Key::default())
        .in_namespace("here")
        .label("two words", "x")
        .label("zone", "a,b")
        .annotation("", "anything at all")
        .for_label("zone", "a,role=edge")
        .for_selector("zone in (a")
        .for_agents(["a/b"]);
    let InvalidDraft { kind, name, flaws } = draft.into_parts().unwrap_err();
    assert_eq!((kind.as_str(), &*name), ("nimbus.v1.Key", "no spaces"));
    let fields: Vec<_> = flaws.iter().map(|flaw| (flaw.what, &*flaw.value)).collect();
    let expected = [
        ("name", "no spaces"),
        ("label", "two words"),
        ("label", "a,b"),
        ("annotation", ""),
        ("audience", "a,role=edge"),
        ("audience", "zone in (a"),
        ("audience", "a/b"),
    ];
    assert_eq!(fields, expected);
}

#[test]
fn an_error_reads_as_a_sentence_about_the_draft() {
    let error = draft().label("two words", "").check().unwrap_err();
    let expected = "nimbus.v1.Key \"one\": label \"two words\": expected a label key of 1 to 253 of the characters \
                    A-Z a-z 0-9 - _ . /";
    assert_eq!(error.to_string(), expected);
}
