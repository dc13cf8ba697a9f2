use std::{ffi::OsString, fs};

use clap::{Arg, Command, value_parser};

use crate::{configuration::Configuration, options};

fn program() -> Command {
    let args = [
        Arg::new("listen").long("listen").default_value("here").help("Where to listen"),
        Arg::new("max-objects")
            .long("max-objects")
            .value_parser(value_parser!(usize))
            .default_value("7"),
        Arg::new("drain").long("drain").value_parser(value_parser!(f64)).default_value("5"),
        Arg::new("key").long("key"),
    ];
    Command::new("nimbus").subcommand(Command::new("serve").args(args))
}

fn read(file: Option<&str>, arguments: &[&str]) -> Configuration {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.toml");
    fs::write(&path, file.unwrap_or_default()).unwrap();
    let arguments = ["nimbus", "serve"].iter().chain(arguments).map(OsString::from);
    Configuration::read(program(), "serve", arguments, file.is_some().then_some(&path)).unwrap()
}

fn value(configuration: &Configuration, option: &str) -> String {
    let raw = configuration.matches.get_raw(option).unwrap();
    raw.map(|value| value.to_string_lossy()).collect()
}

#[test]
fn a_flag_goes_before_the_file_and_the_file_before_the_default() {
    let with_file = read(Some("listen = 'there'\nmax-objects = 9"), &["--listen", "elsewhere"]);
    assert_eq!(value(&with_file, "listen"), "elsewhere");
    assert_eq!(value(&with_file, "max-objects"), "9");
    assert_eq!(value(&with_file, "drain"), "5");
    assert_eq!(with_file.name("listen"), "--listen");
    assert!(with_file.name("max-objects").ends_with("a.toml:2:15: max-objects"), "{}", with_file.name("max-objects"));
}

#[test]
fn what_is_printed_is_a_file_that_means_the_same() {
    let printed = read(Some("max-objects = 0x10"), &["--listen", "a \"b\"\\"]).to_toml();
    assert!(printed.contains("\n# Where to listen\nlisten = 'a \"b\"\\' # --listen\n"), "{printed}");
    assert!(printed.contains("\nmax-objects = 16 # "), "{printed}");
    assert!(printed.contains("\ndrain = 5.0 # default\n"), "{printed}");
    assert!(printed.contains("\n# key = # not set\n"), "{printed}");
    let again = read(Some(&printed), &[]);
    for (option, said) in [("listen", "a \"b\"\\"), ("max-objects", "16"), ("drain", "5.0")] {
        assert_eq!(value(&again, option), said);
    }
}

#[test]
fn every_option_has_a_variable_of_its_own() {
    let arg = options::from_environment(Arg::new("max-objects").long("max-objects"));
    assert_eq!(arg.get_env().unwrap(), "NIMBUS_MAX_OBJECTS");
    assert_eq!(options::from_environment(Arg::new("help").long("help")).get_env(), None);
}
