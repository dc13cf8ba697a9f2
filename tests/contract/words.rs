//! The project speaks of itself only: no paths of one machine, no package hosts, no documents that it does not have.

use std::{fs, process::Command};

use crate::tree;

/// Written by cargo, not by people.
const EXEMPT: [&str; 1] = ["Cargo.lock"];

/// What no file may contain, in halves, so that this file does not contain it either.
const UNWANTED: [(&str, &str); 17] = [
    // Paths of one machine.
    ("/wo", "rk"),
    ("/ro", "ot"),
    ("/ho", "me"),
    ("/Us", "ers"),
    ("/opt/wh", "eels"),
    // Package hosts: which one is used is everybody's own configuration.
    ("index.crat", "es.io"),
    ("static.crat", "es.io"),
    ("py", "pi.org"),
    ("files.python", "hosted.org"),
    ("registry.np", "mjs.org"),
    ("deb.deb", "ian.org"),
    ("proxy.gol", "ang.org"),
    // Documents that are not part of the project.
    ("../sha", "red"),
    ("REQUIRE", "MENTS.md"),
    ("DES", "IGN.md"),
    ("STY", "LE.md"),
    ("ENVIRON", "MENT.md"),
];

fn is_part_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Whether `line` has `words` in it as words of their own: `net/worker` or `bucket/root` are no paths of a machine.
fn contains(line: &str, words: &str) -> bool {
    line.match_indices(words).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + words.len()..].chars().next();
        !before.is_some_and(|c| is_part_of_a_word(c) || c == '.') && !after.is_some_and(is_part_of_a_word)
    })
}

/// The files that are tracked, or would be with `git add`.
fn tracked_files() -> Vec<String> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(arguments).current_dir(tree::root()).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git ls-files failed (hint: is this a clone?): {complaint}");
    let names = String::from_utf8(output.stdout).unwrap();
    names.split_terminator('\0').map(str::to_owned).collect()
}

#[test]
fn no_file_names_a_machine_a_package_host_or_a_foreign_document() {
    let files = tracked_files();
    assert!(files.iter().any(|name| name == "Cargo.toml"), "git ls-files does not list the project");
    let unwanted = UNWANTED.map(|(head, tail)| format!("{head}{tail}"));

    let mut found = Vec::new();
    for name in files.iter().filter(|name| !EXEMPT.contains(&name.as_str())) {
        // A file that was removed but not yet with git, or a link to a folder, has no text.
        let Ok(bytes) = fs::read(tree::root().join(name)) else { continue };
        for (number, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
            let words = unwanted.iter().filter(|words| contains(line, words));
            found.extend(words.map(|words| format!("{name}:{}: `{words}`", number + 1)));
        }
    }
    assert!(found.is_empty(), "not to be mentioned in the project:\n  {}", found.join("\n  "));
}

#[test]
fn only_whole_words_count() {
    let (head, tail) = UNWANTED[0];
    let path = format!("{head}{tail}");
    for line in [path.clone(), format!("see {path}/x"), format!("`{path}`"), format!("\"{path}\"")] {
        assert!(contains(&line, &path), "{line}");
    }
    for line in [format!("net{path}er"), format!("{path}er"), format!("a{path}"), format!("{path}_1")] {
        assert!(!contains(&line, &path), "{line}");
    }
}
