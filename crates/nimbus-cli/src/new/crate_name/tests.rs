//! Names that a project can have, and what is said of the others.

use std::path::Path;

use crate::new::CrateName;

fn check(name: &str, expected: Result<&str, &str>) {
    let parsed = CrateName::parse(name)
        .map(|name| name.identifier())
        .map_err(|failure| failure.to_string());
    assert_eq!(parsed, expected.map(str::to_owned).map_err(str::to_owned), "{name:?}");
}

#[test]
fn names_are_those_that_cargo_takes() {
    check("my-controller", Ok("my_controller"));
    check("routes2", Ok("routes2"));
    check("a", Ok("a"));
    check(&"a".repeat(64), Ok(&"a".repeat(64)));
}

#[test]
fn a_name_of_the_wrong_shape_is_refused_with_one_that_is_not() {
    let shape =
        "cannot be the name of a project: expected a letter, then letters, digits, - or _, in lower case, at most 64";
    let wrong = |name: &str, hint: &str| check(name, Err(&format!("{name:?} {shape} (hint: {hint})")));
    wrong("My Controller", "did you mean my-controller?");
    wrong("MyController", "did you mean my-controller?");
    wrong("2fast", "did you mean fast?");
    wrong("-x", "did you mean x?");
    wrong("café", "did you mean caf?");
    wrong("Tokio", "such as my-controller");
    wrong("12", "such as my-controller");
    wrong("", "such as my-controller");
    wrong(&"a".repeat(65), "such as my-controller");
}

#[test]
fn names_that_are_taken_are_refused() {
    let taken = |name: &str, by: &str, hint: &str| {
        let said = format!("{name:?} cannot be the name of a project: it is {by} (hint: such as {hint})");
        check(name, Err(&said));
    };
    taken("match", "a word of Rust", "match-controller");
    taken("std", "taken by Rust or cargo", "std-controller");
    taken("proc_macro", "taken by Rust or cargo", "proc-macro-controller");
    taken("nimbus_agent", "a crate that the project depends on", "nimbus-agent-controller");
    taken("tokio", "a crate that the project depends on", "tokio-controller");
}

#[test]
fn the_last_part_of_a_path_is_the_name() {
    let of = |path: &str| CrateName::of(Path::new(path)).map(|name| name.as_str().to_owned());
    assert_eq!(of("some/where/my-controller/").unwrap(), "my-controller");
    let said = of("..").unwrap_err().to_string();
    assert_eq!(said, ".. does not end in a name (hint: write the folder to make, such as my-controller)");
}
