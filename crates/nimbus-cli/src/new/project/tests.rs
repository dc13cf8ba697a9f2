//! What is in a project.

use crate::new::{CrateName, KindName, Project, Source};

fn project(name: &str, kind: &str) -> Project {
    Project {
        name: CrateName::parse(name).unwrap(),
        kind: KindName::parse(kind).unwrap(),
        source: Source::Tree("/src/nimbus".to_owned()),
    }
}

#[test]
fn every_word_is_filled_in() {
    let project = project("route-controller", "net.v1.StaticRoute");
    for (path, text) in project.files() {
        assert!(!path.contains("{{") && !text.contains("{{"), "{path}:\n{text}");
        assert!(text.ends_with('\n') && !text.contains("Thing") && !text.contains("my-controller"), "{path}:\n{text}");
    }
    let steps = project.next_steps("some/route-controller".as_ref());
    assert!(!steps.contains("{{") && steps.contains("cd some/route-controller\n"), "{steps}");
}

#[test]
fn the_way_into_a_folder_can_be_typed_whatever_it_is_called() {
    let steps = project("routes", "net.v1.Route").next_steps("it's here/routes".as_ref());
    assert!(steps.contains(r"cd 'it'\''s here/routes'"), "{steps}");
}

#[test]
fn files_are_where_cargo_and_the_build_script_look_for_them() {
    let paths: Vec<_> = project("routes", "net.v1.StaticRoute").files().map(|(path, _)| path).collect();
    let expected = [
        ".gitignore",
        "Cargo.toml",
        "README.md",
        "build.rs",
        "proto/net/v1/static_route.proto",
        "proto/nimbus/v1/options.proto",
        "src/bin/agent.rs",
        "src/bin/controller.rs",
        "src/handler.rs",
        "src/kinds.rs",
        "src/lib.rs",
        "src/reactor.rs",
        "tests/story.rs",
    ];
    assert_eq!(paths, expected);
}

/// People read them before they change them.
#[test]
fn every_source_file_is_short() {
    for (path, text) in project("routes", "net.v1.Route").files() {
        let lines = text.lines().count();
        assert!(lines < 90, "{path} has {lines} lines");
    }
}
