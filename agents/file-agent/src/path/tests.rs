//! Paths that are taken, and paths that are not.

use crate::path::FilePath;

#[test]
fn a_path_that_could_mean_something_else_is_refused_for_good() {
    fn check(path: &str, words: &str) {
        let failure = FilePath::new(path).expect_err(path);
        assert!(failure.is_permanent() && failure.code() == "INVALID", "{path:?}: {failure:?}");
        assert!(failure.message().contains(words), "{path:?}: {failure:?}");
    }

    check("", "expected a path relative to the root");
    check("/etc/passwd", "absolute");
    check("..", "`..`");
    check("../secret", "`..`");
    check("a/../../secret", "`..`");
    check("a/./b", "`..`");
    check("a//b", "empty");
    check("a/", "empty");
    check("a\0b", "NUL");
    check(&"x".repeat(241), "too long");
    check(&"x/".repeat(1100), "too long");
    check("conf.d/.site.conf.nimbus-new", "kept for files that are being written");
    check(".d.nimbus-new/site.conf", "kept for files that are being written");
}

#[test]
fn a_plain_path_is_taken_as_it_is() {
    let path = FilePath::new("sites/a b/..x.conf").unwrap();
    assert_eq!(path.to_string(), "sites/a b/..x.conf");
    assert_eq!(path.name(), "..x.conf");
    assert_eq!(path.staged(), "sites/a b/...x.conf.nimbus-new");
    assert_eq!(path.directories().collect::<Vec<_>>(), ["sites", "sites/a b"]);
    let top = FilePath::new("nginx.conf").unwrap();
    assert_eq!((top.name(), top.staged().as_str()), ("nginx.conf", ".nginx.conf.nimbus-new"));
    assert_eq!(top.directories().count(), 0);
}
