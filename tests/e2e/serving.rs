//! How `nimbus serve` is configured, and what it says when it cannot be.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Read as _},
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::server::{Server, binary};

/// Runs the command with a file `nimbus.toml` in its working directory, and with nothing else in its environment.
fn serve(file: &str, environment: &[(&str, &str)], arguments: &[&str]) -> (i32, String, String) {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("nimbus.toml"), file).unwrap();
    serve_in(directory.path(), environment, arguments)
}

fn serve_in(directory: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(binary())
        .arg("serve")
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The options in a printed configuration, and their values with what is said of their origin.
fn printed(text: &str) -> Vec<(&str, &str)> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(" = "))
        .collect()
}

fn option<'a>(text: &'a str, name: &str) -> &'a str {
    let found = printed(text).into_iter().find(|(other, _)| *other == name);
    found.unwrap_or_else(|| panic!("{name} is not in {text}")).1
}

const CONFIG: [&str; 2] = ["--config", "nimbus.toml"];

#[test]
fn a_flag_goes_before_the_environment_and_that_before_the_file_and_that_before_the_default() {
    let file = "max-objects = 1\nmax-kinds = 2\nmax-bytes = 3\nassume-complete = true\ndrain = 1";
    let environment = [("NIMBUS_MAX_OBJECTS", "10"), ("NIMBUS_MAX_KINDS", "20"), ("NIMBUS_CONFIG", "nimbus.toml")];
    let flags = ["--print-config", "--max-objects", "100", "--assume-complete=false"];
    let (code, printed, said) = serve(file, &environment, &flags);
    assert_eq!(code, 0, "{said}");
    for (name, value) in [
        ("max-objects", "100 # --max-objects"),
        ("max-kinds", "20 # NIMBUS_MAX_KINDS"),
        ("max-bytes", "3 # nimbus.toml:3:13"),
        ("assume-complete", "false # --assume-complete"),
        ("drain", "1.0 # nimbus.toml:5:9"),
        ("admin", "\"127.0.0.1:7401\" # default"),
        ("listen", "\"127.0.0.1:7400\" # default"),
        ("log", "\"info\" # default"),
    ] {
        assert_eq!(option(&printed, name), value);
    }
}

/// Threads of a process that serve connections.
fn serving_threads(pid: u32) -> usize {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    // One that has just ended has no name any more.
    let name = |task: &fs::DirEntry| fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    tasks.filter(|task| name(task.as_ref().unwrap()).starts_with("tokio-")).count()
}

#[test]
fn a_bus_serves_with_as_many_threads_as_it_is_told() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("nimbus.toml");
    fs::write(&file, "threads = 5").unwrap();
    let config = file.to_str().unwrap();
    for (flags, threads) in
        [(&["--threads", "1"][..], 1), (&["--config", config], 5), (&["--config", config, "--threads", "3"], 3)]
    {
        let server = Server::start(flags);
        assert_eq!(serving_threads(server.pid()), threads, "{flags:?}");
    }
    let (code, _, said) = serve("threads = 5000", &[], &CONFIG);
    assert_eq!(code, 1);
    assert!(said.contains("nimbus.toml:1:11") && said.contains("1024"), "{said}");
}

#[test]
fn what_is_printed_can_be_given_back_and_means_the_same() {
    let environment = [("NIMBUS_LOG", "warn,nimbus_bus=debug"), ("NIMBUS_ASSUME_COMPLETE", "yes")];
    let flags = ["--print-config", "--store", "redb:a \"strange\" \\path"];
    let (code, first, said) = serve("max-status-bytes = 0xff", &environment, &[&flags[..], &CONFIG[..]].concat());
    assert_eq!(code, 0, "{said}");
    let (code, second, said) = serve(&first, &[], &["--print-config", "--config", "nimbus.toml"]);
    assert_eq!(code, 0, "{said}");
    let values = |text: &str| -> Vec<(String, String)> {
        let value = |value: &str| value.rsplit_once(" # ").map_or(value, |(value, _)| value).to_owned();
        printed(text).into_iter().map(|(name, of)| (name.to_owned(), value(of))).collect()
    };
    assert_eq!(values(&first), values(&second));
    assert_eq!(option(&first, "assume-complete"), "true # NIMBUS_ASSUME_COMPLETE");
    assert!(option(&first, "max-status-bytes").starts_with("255 # "));
    assert!(second.lines().all(|line| !line.ends_with("# default")), "everything is from the file: {second}");
}

#[test]
fn every_flag_is_an_option_of_the_file_and_of_the_environment() {
    let (_, help, _) = serve("", &[], &["--help"]);
    let flags: BTreeSet<&str> = (help.lines())
        .filter_map(|line| {
            line.trim_start()
                .strip_prefix("--")
                .or_else(|| line.split_once(", --").map(|(_, flag)| flag))
        })
        .filter_map(|flag| flag.split([' ', '[']).next())
        .filter(|flag| !["help", "config", "print-config", "verbose..."].contains(flag))
        .collect();
    let (_, config, _) = serve("", &[], &["--print-config"]);
    let options: BTreeSet<&str> = printed(&config).into_iter().map(|(name, _)| name).collect();
    assert_eq!(flags, options);
    assert!(flags.len() > 45, "{flags:?}");
    for flag in flags {
        let variable = format!("[env: NIMBUS_{}=]", flag.to_uppercase().replace('-', "_"));
        assert!(help.contains(&variable), "{variable} is not in the help");
    }
}

#[test]
fn what_is_wrong_in_a_file_is_said_with_its_place_and_what_is_expected() {
    for (file, message) in [
        ("\nmax-object = 1", "nimbus.toml:2:1: there is no option max-object (hint: did you mean max-objects?)"),
        ("max_sessions = 1", "nimbus.toml:1:1: there is no option max_sessions (hint: did you mean max-sessions?)"),
        (
            "[limits]\nobjects = 1",
            "nimbus.toml:1:2: there is no option limits (hint: options stand alone, without tables)",
        ),
        ("max-objects = 'many'", "nimbus.toml:1:15: max-objects: expected a whole number, 0 or more, found a string"),
        ("max-streams = 5000000000", "nimbus.toml:1:15: max-streams: 5000000000 is not in 0..=4294967295"),
        ("drain = 0", "nimbus.toml:1:9: drain: expected seconds between 0.01 and 86400"),
        ("drain = true", "nimbus.toml:1:9: drain: expected a number, found true"),
        ("assume-complete = 'yes'", "nimbus.toml:1:19: assume-complete: expected true or false, found a string"),
        (
            "listen = 'nowhere'",
            "nimbus.toml:1:10: listen: expected an address and a port, such as 127.0.0.1:7400 or [::]:7400",
        ),
        ("admin = 'off'", "nimbus.toml:1:9: admin: expected an address and a port, such as 127.0.0.1:7401, or none"),
        (
            "store = 'disk'",
            "nimbus.toml:1:9: store: expected redb:PATH, such as redb:/var/lib/nimbus/store.redb, or memory",
        ),
        ("log-format = 'xml'", "nimbus.toml:1:14: log-format: expected one of auto, human, json"),
        (
            "log = 'inof'",
            "nimbus.toml:1:7: log: `inof` is no level: expected a level (off, error, warn, info, debug, trace), or levels \
             of parts, such as info,nimbus_bus=debug",
        ),
        (
            "max-object-bytes = 2_000_000",
            "nimbus.toml:1:20: max-object-bytes: expected a number between 1 and 1044480, so that an object fits into a \
             frame",
        ),
        (
            "max-kinds = 1\nmax-message-bytes = 10",
            "nimbus.toml:2:21: max-message-bytes: expected at least 262144, as max-object-bytes is, or no object can be \
             published",
        ),
    ] {
        let (code, out, said) = serve(file, &[], &CONFIG);
        assert_eq!((code, &*out, &*said), (1, "", &*format!("nimbus: {message}\n")), "{file}");
    }
    let (code, _, said) = serve("listen 'here'", &[], &CONFIG);
    assert!(code == 1 && said.starts_with("nimbus: nimbus.toml:1:8: "), "{said}");
    let (code, _, said) = serve("", &[], &["--config", "nowhere.toml"]);
    let message = "nimbus: cannot read nowhere.toml: No such file or directory (os error 2) (hint: --config names a TOML \
                   file)\n";
    assert_eq!((code, &*said), (1, message));
}

#[test]
fn what_is_wrong_elsewhere_is_said_by_the_name_that_it_has_there() {
    let bad_filter = ("NIMBUS_LOG", "inof");
    for (environment, flags, code, words) in [
        (&[bad_filter][..], &[][..], 2, "invalid value 'inof' for '--log <FILTER>': `inof` is no level"),
        (&[], &["--log", "nimbus_bus=loud"], 2, "expected a level (off, error, warn, info, debug, trace)"),
        (&[], &["--log-format", "xml"], 2, "[possible values: auto, human, json]"),
        (&[], &["--admin", "off"], 2, "expected an address and a port, such as 127.0.0.1:7401, or none"),
        (&[("NIMBUS_MAX_LEASES", "few")], &[], 2, "invalid value 'few' for '--max-leases <N>'"),
        (&[("NIMBUS_MAX_MESSAGE_BYTES", "1")], &[], 1, "nimbus: NIMBUS_MAX_MESSAGE_BYTES: expected at least 262144"),
        (&[], &["--max-message-bytes", "1"], 1, "nimbus: --max-message-bytes: expected at least 262144"),
    ] {
        let (found, out, said) = serve("", environment, flags);
        assert_eq!((found, &*out), (code, ""), "{flags:?}: {said}");
        assert!(said.contains(words), "{flags:?}: {said}");
    }
}

#[test]
fn an_address_that_is_taken_is_said_with_a_hint() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let free = "127.0.0.1:0";
    let (code, out, said) = serve("", &[], &["--store", "memory", "--listen", &address, "--admin", "none"]);
    let why = "Address already in use (os error 98)";
    let message = format!("nimbus: cannot listen on {address}: {why} (hint: is another bus running there?)\n");
    assert_eq!((code, &*out, &*said), (1, "", &*message));
    let (code, out, said) = serve("", &[], &["--store", "memory", "--listen", free, "--admin", &address]);
    let message = format!(
        "nimbus: cannot listen on {address} for health and metrics: {why} (hint: --admin takes another address, port 0 any \
         free one, and none does without)\n"
    );
    assert_eq!((code, &*out, &*said), (1, "", &*message));
}

#[test]
fn a_place_where_nothing_can_be_stored_is_said_with_a_hint() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("text"), "a file that somebody else wrote, and that must stay as it is").unwrap();
    fs::write(path("empty"), "").unwrap();
    fs::create_dir(path("folder")).unwrap();
    let hint = "(hint: is the path right?)";
    for (store, message) in [
        (path("folder"), format!("{} is not a collection: it is a directory {hint}", path("folder"))),
        (path("text"), format!("{} is not a collection: it does not begin like one {hint}", path("text"))),
        (path("empty"), format!("{} is not a collection: it is empty {hint}", path("empty"))),
        (
            path("absent/x"),
            format!("{}: No such file or directory (os error 2) (hint: does the directory exist?)", path("absent/x")),
        ),
    ] {
        let store = format!("redb:{store}");
        let flags = ["--listen", "127.0.0.1:0", "--admin", "none", "--store", &store, "--log", "off"];
        let (code, out, said) = serve_in(directory.path(), &[], &flags);
        assert_eq!((code, &*out, &*said), (1, "", &*format!("nimbus: {message}\n")));
    }
    assert!(fs::read_to_string(path("text")).unwrap().ends_with("must stay as it is"));

    // Where not even the administrator may write.
    let flags = ["--listen", "127.0.0.1:0", "--admin", "none", "--store", "redb:/sys/nimbus.redb", "--log", "off"];
    let (code, _, said) = serve_in(directory.path(), &[], &flags);
    assert_eq!(code, 1, "{said}");
    assert!(said.starts_with("nimbus: /sys/nimbus.redb: "), "{said}");
    assert!(said.ends_with(" (hint: may this user write there?)\n"), "{said}");
}

/// Starts a bus, stops it when it has said where it is, and returns its output and its log.
fn start_and_stop(flags: &[&str]) -> (String, String) {
    let mut process = Command::new(binary())
        .args(["serve", "--store", "memory", "--listen", "127.0.0.1:0"])
        .args(flags)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(process.stdout.take().unwrap());
    let mut text = String::new();
    out.read_line(&mut text).unwrap();
    let pid = process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let mut log = String::new();
    process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    out.read_to_string(&mut text).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0), "{log}");
    (text, log)
}

#[test]
fn the_first_lines_of_output_say_where_the_bus_and_its_health_are() {
    let (out, _) = start_and_stop(&["--admin", "127.0.0.1:0"]);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines.len() == 2, "{out}");
    assert!(lines[0].starts_with("listening on 127.0.0.1:") && lines[1].starts_with("admin on 127.0.0.1:"), "{out}");
    let (out, _) = start_and_stop(&["--admin", "none"]);
    assert_eq!(out.lines().count(), 1, "{out}");
}

#[test]
fn logs_look_as_they_are_asked_for() {
    let is_json = |log: &str| log.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok());
    for (format, json) in [("human", false), ("json", true), ("auto", true)] {
        let (_, log) = start_and_stop(&["--admin", "none", "--log-format", format]);
        assert!(log.contains("bus started"), "{log}");
        assert_eq!(is_json(&log), json, "{format}: {log}");
        assert!(!log.contains('\u{1b}'), "nothing is coloured that is no terminal: {log}");
    }
}
