//! What words name.

use crate::naming::{Named, Naming};

fn parse(words: &str, namespace: Option<&str>) -> Result<Named, String> {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    Named::parse(&words, namespace).map_err(|failure| failure.to_string())
}

fn objects(names: &[(&str, &str, &str)]) -> Result<Named, String> {
    let naming = |&(kind, namespace, name): &(&str, &str, &str)| Naming {
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    Ok(Named::Objects(names.iter().map(naming).collect()))
}

#[test]
fn objects_are_named_by_words_or_with_slashes() {
    assert_eq!(parse("policy", None), Ok(Named::Kinds(vec!["policy".to_owned()])));
    assert_eq!(parse("policy,zone", None), Ok(Named::Kinds(vec!["policy".to_owned(), "zone".to_owned()])));
    assert_eq!(parse("policy a b", None), objects(&[("policy", "", "a"), ("policy", "", "b")]));
    assert_eq!(parse("policy,zone a", None), objects(&[("policy", "", "a"), ("zone", "", "a")]));
    assert_eq!(parse("policy a", Some("n")), objects(&[("policy", "n", "a")]));
    assert_eq!(parse("policy/a zone/n/b", None), objects(&[("policy", "", "a"), ("zone", "n", "b")]));
    assert_eq!(parse("policy/a zone/n/b", Some("n")), objects(&[("policy", "n", "a"), ("zone", "n", "b")]));
}

#[test]
fn what_names_nothing_is_refused() {
    let hint = "(hint: write KIND NAME..., or KIND/NAME, or KIND/NAMESPACE/NAME)";
    assert_eq!(parse("", None).unwrap_err(), "no kind is named (hint: `nimbus kinds` lists them)");
    for word in ["policy/", "/a", "a/b/c/d"] {
        assert_eq!(parse(word, None).unwrap_err(), format!("{word:?} names no object {hint}"));
    }
    assert_eq!(parse("policy/a b", None).unwrap_err(), format!("\"b\" names no object {hint}"));
    assert_eq!(parse("zone/m/b", Some("n")).unwrap_err(), "zone/m/b is in another namespace than --namespace n says");
    let none = Named::objects(&["policy".to_owned()], None).unwrap_err().to_string();
    assert_eq!(none, format!("policy is named, but no object of it {hint}"));
}

#[test]
fn where_one_object_is_meant_several_are_refused() {
    let object = |text: &str| {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        Named::object(&words, None)
            .map(|naming| naming.name)
            .map_err(|failure| failure.to_string())
    };
    assert_eq!(object("policy web"), Ok("web".to_owned()));
    assert_eq!(object("policy/web"), Ok("web".to_owned()));
    let refused = Err("more than one object is named (hint: write KIND NAME, or KIND/NAME)".to_owned());
    assert_eq!(object("policy web db"), refused);
    assert_eq!(object("policy/web policy/db"), refused);
    assert!(object("policy").is_err());
}
