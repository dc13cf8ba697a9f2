//! Where a project has nimbus from, and what is said if it is not there.

use std::path::Path;

use crate::new::Source;

/// The sources of this test.
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn sources_are_named_by_a_path_that_holds_from_everywhere() {
    let Source::Tree(tree) = Source::built_from(Path::new(HERE)).unwrap() else { panic!("it is no repository") };
    assert!(Path::new(&tree).is_absolute() && !tree.contains(".."), "{tree}");
    assert!(Path::new(&tree).join("crates/nimbus-cli/Cargo.toml").exists());
}

#[test]
fn sources_that_are_not_there_are_asked_for() {
    let said = Source::built_from(Path::new("/nowhere")).unwrap_err().to_string();
    assert_eq!(
        said,
        "the sources that this command was built from are not on this machine \
         (hint: say where there are some: --nimbus PATH, or --git URL)"
    );
    let said = Source::tree(Path::new("/nowhere")).unwrap_err().to_string();
    assert_eq!(
        said,
        "--nimbus /nowhere: no sources of nimbus there (hint: name the top of a clone, which has crates/ctkit in it)"
    );
}

#[test]
fn a_repository_is_named_by_a_url() {
    let hint = "(hint: such as https://example.org/nimbus.git, or ssh://git@example.org/nimbus.git)";
    for url in ["", "nimbus", "://x", "git@example.org:nimbus.git", "https://example.org/a b"] {
        let said = Source::git(url).unwrap_err().to_string();
        assert_eq!(said, format!("--git {url:?}: expected a URL {hint}"));
    }
    let source = Source::git("https://example.org/nimbus.git").unwrap();
    assert_eq!(source.dependency("ctkit"), r#"ctkit = { git = "https://example.org/nimbus.git" }"#);
}

#[test]
fn paths_are_strings_of_toml() {
    let check = |tree: &str, expected: &str| {
        assert_eq!(Source::Tree(tree.to_owned()).dependency("ctkit"), format!("ctkit = {{ path = {expected} }}"));
    };
    check("/src/nimbus", r#""/src/nimbus/crates/ctkit""#);
    check("/a \"b\"\\c", r#""/a \"b\"\\c/crates/ctkit""#);
    check("/a\nb", r#""/a\u000Ab/crates/ctkit""#);
}
