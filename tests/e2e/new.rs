//! `nimbus new`: the project that it writes is built, tested and run, and what it cannot do is said.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::{outside, server::binary, wait, walkthrough::Walkthrough};

/// Runs `nimbus new` in a folder; its code, and what it printed.
fn new(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(binary());
    command.arg("new").args(arguments).current_dir(folder).env_clear().stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// It ends with this code, says exactly this, and prints and writes nothing.
fn fails(folder: &Path, arguments: &[&str], code: i32, said: &str) {
    let before = names(folder);
    assert_eq!(new(folder, arguments), (code, String::new(), format!("nimbus: {said}\n")), "{arguments:?}");
    assert_eq!(names(folder), before, "{arguments:?}");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    names
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Runs cargo in a project, with what is on this machine; it must find nothing to complain about.
fn cargo(project: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("cargo");
    let output = outside::surround(&mut command).args(arguments).current_dir(project).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && !err.contains("warning"), "cargo {arguments:?}:\n{out}\n{err}");
    out.into_owned()
}

/// What its README says is done step by step: the test is run; a bus, the controller and the agent are started; an object is
/// written, read and deleted.
#[tokio::test]
async fn a_new_project_passes_its_test_and_does_what_its_readme_says() {
    let folder = folder();
    let (code, out, err) = new(folder.path(), &["my-controller"]);
    let steps = "\
made my-controller: kind demo.v1.Thing, a controller, an agent, and a test of both

  cd my-controller
  cargo test        # the controller, a bus and agents in one process

In three terminals, there:

  nimbus serve
  cargo run
  cargo run --bin my-controller-agent -- --id a-1 --zone a --folder files

README.md says how to write an object, and what to change first.
";
    assert_eq!((code, &*out, &*err), (0, steps, ""));

    let project = folder.path().join("my-controller");
    let mut person = Walkthrough::begin(&project);
    cargo(&project, &["fmt", "--check"]);
    cargo(&project, &["build", "--offline"]);
    let tested = cargo(&project, &["test", "--offline"]);
    assert!(tested.contains("test result: ok. 2 passed"), "{tested}");

    let readme = fs::read_to_string(project.join("README.md")).unwrap();
    person.follow(&readme).await;
    let files = project.join("files");
    let is_text = |name: &String| name.ends_with(".txt");
    wait::until("the file to go with its object", || !names(&files).iter().any(is_text)).await;
}

#[test]
fn a_project_has_the_name_the_kind_and_the_sources_that_were_asked_for() {
    let folder = folder();
    let at = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();

    // An empty folder is as good as none, and so is one that is not there, wherever it is.
    fs::create_dir(folder.path().join("routes")).unwrap();
    let root = outside::root();
    let arguments = ["routes", "--kind", "net.v1.StaticRoute", "--nimbus", root.to_str().unwrap()];
    let (code, out, err) = new(folder.path(), &arguments);
    assert_eq!((code, &*err), (0, ""));
    assert!(out.starts_with("made routes: kind net.v1.StaticRoute, "), "{out}");
    let manifest = at("routes/Cargo.toml");
    assert!(manifest.contains("name = \"routes\"") && manifest.ends_with("[workspace]\n"), "{manifest}");
    let path = format!("ctkit = {{ path = \"{}/crates/ctkit\" }}", root.display());
    assert!(manifest.contains(&path), "{manifest}");
    assert!(at("routes/proto/net/v1/static_route.proto").contains("message StaticRoute {"));

    let url = "https://example.org/nimbus.git";
    let (code, ..) = new(folder.path(), &["some/where/my_routes", "--git", url]);
    let manifest = at("some/where/my_routes/Cargo.toml");
    assert_eq!(code, 0);
    assert!(manifest.contains(&format!("nimbus-testkit = {{ git = \"{url}\" }}")), "{manifest}");
    assert!(at("some/where/my_routes/src/bin/agent.rs").contains("use my_routes::handler::Folder;"));
}

#[test]
fn what_cannot_be_made_is_said_with_a_hint() {
    let folder = folder();
    let at = |path: &str| folder.path().join(path).display().to_string();
    fs::create_dir(folder.path().join("full")).unwrap();
    fs::write(folder.path().join("full/mine"), "precious").unwrap();
    fs::write(folder.path().join("file"), "precious").unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
    let fails = |arguments: &[&str], code, said: &str| fails(folder.path(), arguments, code, said);

    fails(
        &["My Controller"],
        5,
        "\"My Controller\" cannot be the name of a project: expected a letter, then letters, digits, - or _, in lower case, \
         at most 64 (hint: did you mean my-controller?)",
    );
    fails(
        &["tokio"],
        5,
        "\"tokio\" cannot be the name of a project: it is a crate that the project depends on (hint: such as tokio-controller)",
    );
    fails(&["."], 5, ". does not end in a name (hint: write the folder to make, such as my-controller)");
    fails(
        &["x", "--kind", "thing"],
        5,
        "\"thing\" cannot be a kind here: a kind has a package and a name (hint: such as demo.v1.Thing)",
    );
    fails(&["full"], 1, "full is there already, and not empty (hint: choose another name, or move it out of the way)");
    fails(&["file"], 1, "file is there already, and no folder (hint: choose another name, or move it out of the way)");
    fails(&["file/x"], 1, "cannot write file/x: Not a directory (os error 20) (hint: may this user write there?)");
    fails(
        &["x", "--nimbus", &at("full")],
        5,
        &format!(
            "--nimbus {}: no sources of nimbus there (hint: name the top of a clone, which has crates/ctkit in it)",
            at("full")
        ),
    );
    fails(
        &["x", "--git", "nimbus"],
        5,
        "--git \"nimbus\": expected a URL (hint: such as https://example.org/nimbus.git, or ssh://git@example.org/nimbus.git)",
    );
    assert_eq!(fs::read_to_string(folder.path().join("full/mine")).unwrap(), "precious");

    // Nobody can make a folder there, not even a user who may do everything; why differs from machine to machine.
    let (code, out, err) = new(folder.path(), &["/sys/my-controller"]);
    assert_eq!((code, &*out), (1, ""), "{err}");
    let is_said = err.starts_with("nimbus: cannot write /sys/my-controller/.gitignore: ")
        && err.ends_with(" (hint: may this user write there?)\n");
    assert!(is_said, "{err}");
}

#[test]
fn wrong_usage_is_told_by_its_code() {
    let folder = folder();
    for (arguments, words) in [
        (&[][..], "required arguments were not provided"),
        (&["x", "--git", "https://example.org/x", "--nimbus", "."], "cannot be used with"),
    ] {
        let (code, out, err) = new(folder.path(), arguments);
        assert_eq!((code, &*out), (2, ""), "{arguments:?}");
        assert!(err.contains(words), "{arguments:?}: {err}");
    }
}
