use std::path::Path;

use clap::{Arg, ArgAction, Command, builder::RangedU64ValueParser, value_parser};

use crate::file::ConfigFile;

fn command() -> Command {
    let seconds = |text: &str| match text.parse::<f64>() {
        Ok(seconds) if seconds >= 1.0 => Ok(seconds),
        _ => Err("expected 1 second or more".to_owned()),
    };
    Command::new("serve").args([
        Arg::new("listen").long("listen").default_value("here"),
        Arg::new("max-objects").long("max-objects").value_parser(value_parser!(usize)),
        Arg::new("port")
            .long("port")
            .value_parser(RangedU64ValueParser::<u32>::new().range(1..=9)),
        Arg::new("drain").long("drain").value_parser(seconds),
        Arg::new("assume-complete").long("assume-complete").value_parser(value_parser!(bool)),
        Arg::new("format").long("format").value_parser(["human", "json"]),
        Arg::new("peer").long("peer").action(ArgAction::Append),
        Arg::new("config").long("config"),
    ])
}

fn check(text: &str, expected: Result<&[(&str, &[&str])], &str>) {
    let file = ConfigFile::parse(Path::new("a.toml"), text, &command());
    match (file, expected) {
        (Ok(file), Ok(expected)) => {
            for (name, values) in expected {
                assert_eq!(file.get(name).unwrap_or_else(|| panic!("{name} in {text:?}")).values, *values, "{text}");
            }
        }
        (Err(said), Err(expected)) => assert_eq!(said, expected, "{text}"),
        (found, expected) => panic!("{text}: {found:?} is not {expected:?}"),
    }
}

#[test]
fn options_are_read_as_their_flags_would_be() {
    check("", Ok(&[]));
    check("listen = 'there'", Ok(&[("listen", &["there"])]));
    check("max-objects = 1_000 # many", Ok(&[("max-objects", &["1000"])]));
    check("max-objects = 0x10", Ok(&[("max-objects", &["16"])]));
    check("drain = 2\nassume-complete = true", Ok(&[("drain", &["2"]), ("assume-complete", &["true"])]));
    check("drain = 2.5", Ok(&[("drain", &["2.5"])]));
    check("peer = ['a', 'b']", Ok(&[("peer", &["a", "b"])]));
    check("peer = 'a'", Ok(&[("peer", &["a"])]));
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_what_is_expected() {
    for (text, said) in [
        ("\nmax-object = 1", "a.toml:2:1: there is no option max-object (hint: did you mean max-objects?)"),
        ("max_objects = 1", "a.toml:1:1: there is no option max_objects (hint: did you mean max-objects?)"),
        ("colour = 1", "a.toml:1:1: there is no option colour (hint: --print-config shows all of them)"),
        ("[limits]\nport = 1", "a.toml:1:2: there is no option limits (hint: options stand alone, without tables)"),
        ("config = 'b.toml'", "a.toml:1:1: config cannot be set in a file (hint: say --config)"),
        ("max-objects = 'many'", "a.toml:1:15: max-objects: expected a whole number, 0 or more, found a string"),
        ("max-objects = 1.5", "a.toml:1:15: max-objects: expected a whole number, 0 or more, found 1.5"),
        ("max-objects = -1", "a.toml:1:15: max-objects: expected a whole number, 0 or more, found -1"),
        ("port = 10", "a.toml:1:8: port: 10 is not in 1..=9"),
        ("# ä\ndrain = 0.5", "a.toml:2:9: drain: expected 1 second or more"),
        ("drain = 'x'", "a.toml:1:9: drain: expected a number, found a string"),
        ("assume-complete = 1", "a.toml:1:19: assume-complete: expected true or false, found 1"),
        ("listen = 7", "a.toml:1:10: listen: expected a string, found 7"),
        ("listen = ['a']", "a.toml:1:10: listen: expected a string, found a list"),
        ("format = 'xml'", "a.toml:1:10: format: expected one of human, json"),
        // Of two mistakes, the first.
        ("port = 10\nlisten = 1", "a.toml:1:8: port: 10 is not in 1..=9"),
    ] {
        check(text, Err(said));
    }
}

#[test]
fn what_is_no_toml_is_said_with_its_place() {
    for (text, place) in
        [("listen 'a'", "a.toml:1:"), ("listen = 'a'\nlisten = 'b'", "a.toml:2:1: "), ("x = ", "a.toml:1:")]
    {
        let said = ConfigFile::parse(Path::new("a.toml"), text, &command()).unwrap_err();
        assert!(said.starts_with(place) && !said.contains('\n'), "{said}");
    }
}
