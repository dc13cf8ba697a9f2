//! `nimbus edit`, with editors that are scripts.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use nimbus_wire::v1;

use crate::{
    cli::{
        Ended, account,
        files::{Desk, policy},
        run,
    },
    demo,
};

/// The command with an editor that does this to the file `$1`. Its files are in the directory of the test.
fn edit(desk: &Desk, script: &str, arguments: &[&str]) -> Command {
    let editor = desk.folder.path().join("editor");
    fs::write(&editor, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = desk.command(&[&["edit"], arguments].concat());
    command
        .env("EDITOR", "./editor")
        .env("TMPDIR", desk.folder.path())
        .env("PATH", std::env::var_os("PATH").unwrap());
    command
}

fn ended(code: i32, out: &str, err: &str) -> Ended {
    Ended { code, out: out.to_owned(), err: err.to_owned() }
}

/// Files that were left behind by editing.
fn left(desk: &Desk) -> Vec<String> {
    let names = fs::read_dir(desk.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("nimbus-")).collect()
}

#[tokio::test]
async fn an_object_is_changed_in_an_editor() {
    let desk = Desk::new().await;
    desk.write("web.yaml", &policy("web", "a"));
    desk.run(&["apply", "-f", "web.yaml"]);
    let mut command = edit(
        &desk,
        "cp \"$1\" seen; stat -c %a \"$1\" > mode; sed -i 's/zone: a/zone: b/' \"$1\"",
        &["networkpolicy", "web"],
    );
    assert_eq!(run(&mut command), ended(0, "demo.v1.NetworkPolicy/web changed\n", ""));
    let read = |name: &str| fs::read_to_string(desk.folder.path().join(name)).unwrap();
    assert_eq!(
        read("seen"),
        "\
# demo.v1.NetworkPolicy/web as it should be. If nothing is changed, or all is removed, nothing happens.
kind: demo.v1.NetworkPolicy
name: web
spec:
  zone: a
"
    );
    assert_eq!(read("mode"), "600\n");
    assert!(desk.run(&["get", "networkpolicy/web", "-o", "yaml"]).out.contains("  zone: b\n"));
    for script in ["true", ": > \"$1\""] {
        let unchanged = ended(0, "demo.v1.NetworkPolicy/web unchanged\n", "");
        assert_eq!(run(&mut edit(&desk, script, &["networkpolicy/web"])), unchanged, "{script}");
    }
    let failed = run(&mut edit(&desk, "exit 3", &["networkpolicy/web"]));
    let said =
        "nimbus: the editor `./editor` failed (exit status: 3); nothing was changed (hint: EDITOR names another one)\n";
    assert_eq!(failed, ended(1, "", said));
    let missing = run(&mut edit(&desk, "true", &["networkpolicy/nix"]));
    assert_eq!(missing.code, 3, "{missing:?}");
    assert_eq!(left(&desk), Vec::<String>::new());
}

#[tokio::test]
async fn a_mistake_is_shown_in_the_editor_at_its_line() {
    let desk = Desk::new().await;
    desk.write("web.yaml", &policy("web", "a"));
    desk.run(&["apply", "-f", "web.yaml"]);
    let script = "if [ -e second ]; then cp \"$1\" seen; sed -i 's/zoen: a/zone: c/' \"$1\"; \
                  else touch second; sed -i 's/zone: a/zoen: a/' \"$1\"; fi";
    assert_eq!(
        run(&mut edit(&desk, script, &["networkpolicy/web"])),
        ended(0, "demo.v1.NetworkPolicy/web changed\n", "")
    );
    assert_eq!(
        fs::read_to_string(desk.folder.path().join("seen")).unwrap(),
        "\
# demo.v1.NetworkPolicy/web was not changed:
# 7:3: demo.v1.NetworkPolicy has no field `zoen`; did you mean `zone`?
# Correct it, or remove everything to give up.
kind: demo.v1.NetworkPolicy
name: web
spec:
  zoen: a
"
    );
    assert_eq!(left(&desk), Vec::<String>::new());
    let given_up = run(&mut edit(&desk, "sed -i 's/zone: c/zoen: c/' \"$1\"", &["networkpolicy/web"]));
    let kept = left(&desk);
    assert_eq!(kept.len(), 1, "{given_up:?}");
    let path = desk.folder.path().join(&kept[0]);
    let said = format!(
        "nimbus: demo.v1.NetworkPolicy/web: nothing was changed, because it is still not valid; what you wrote is in {}\n",
        path.display()
    );
    assert_eq!(given_up, ended(5, "", &said));
    assert!(fs::read_to_string(path).unwrap().contains("zoen: c"));
    let renamed = run(&mut edit(&desk, "sed -i 's/name: web/name: other/' \"$1\"", &["networkpolicy/web"]));
    assert_eq!(renamed.code, 5, "{renamed:?}");
}

#[tokio::test]
async fn secrets_are_neither_shown_nor_lost() {
    let mut desk = Desk::new().await;
    desk.world.publish(vec![account("root", "admin", "hunter2")]).await;
    let policies = ["account/root", "--publisher", "policies"];
    let changed = ended(0, "demo.v1.Account/root changed\n", "");
    let script = "cp \"$1\" seen; sed -i 's/user: admin/user: boss/' \"$1\"";
    assert_eq!(run(&mut edit(&desk, script, &policies)), changed);
    let seen = fs::read_to_string(desk.folder.path().join("seen")).unwrap();
    assert!(seen.ends_with("  user: admin\n  password: \"<secret 1>\"\n") && !seen.contains("hunter2"), "{seen}");
    let shown = || desk.run(&["get", "account/root", "-o", "yaml", "--show-secrets"]).out;
    assert!(shown().contains("  user: boss\n  password: hunter2\n"), "{}", shown());
    assert_eq!(run(&mut edit(&desk, "sed -i 's/\"<secret 1>\"/new/' \"$1\"", &policies)), changed);
    assert!(shown().contains("  password: new\n"), "{}", shown());
    let moved = run(&mut edit(
        &desk,
        "sed -i 's/user: boss/user: <secret 1>/; s/<secret 1>\"/<secret 7>\"/' \"$1\"",
        &policies,
    ));
    assert_eq!(moved.code, 5, "a placeholder is no text: {moved:?}");
}

/// Of two listeners with a token each, the first is removed: the second keeps its own.
#[tokio::test]
async fn a_secret_moves_with_its_placeholder() {
    let desk = Desk::new().await;
    desk.write(
        "g.yaml",
        "kind: demo.v1.Gateway\nname: g\nspec: {listeners: [{host: a, token: one}, {host: b, token: two}]}\n",
    );
    desk.run(&["apply", "-f", "g.yaml"]);
    let changed = ended(0, "demo.v1.Gateway/g changed\n", "");
    assert_eq!(run(&mut edit(&desk, "sed -i '/host: a/,/secret 1/d' \"$1\"", &["gateway/g"])), changed);
    let shown = desk.run(&["get", "gateway/g", "-o", "yaml", "--show-secrets"]).out;
    assert!(shown.contains("  listeners:\n    - host: b\n      token: two\n"), "{shown}");
}

#[tokio::test]
async fn labels_of_an_object_without_a_schema_can_be_edited() {
    let mut desk = Desk::new().await;
    let spec = demo::pack("x.v1.Unknown", vec![8, 1]);
    let object = v1::Object { name: "u".to_owned(), spec: Some(spec.clone()), ..v1::Object::default() };
    desk.world.publish(vec![object]).await;
    let script = "echo 'labels: {a: b}' >> \"$1\"";
    let edited = run(&mut edit(&desk, script, &["x.v1.Unknown/u", "--publisher", "policies"]));
    assert_eq!(edited, ended(0, "x.v1.Unknown/u changed\n", ""));
    let shown = desk.run(&["get", "x.v1.Unknown/u", "-o", "yaml", "--show-secrets"]).out;
    assert!(shown.contains("labels:\n  a: b\nspecBytes: CAE=\n"), "{shown}");
}

#[tokio::test]
async fn what_somebody_else_changed_meanwhile_is_not_overwritten() {
    let desk = Desk::new().await;
    desk.write("web.yaml", &policy("web", "a"));
    desk.run(&["apply", "-f", "web.yaml"]);
    desk.write("theirs.yaml", &policy("web", "theirs"));
    let nimbus = crate::server::binary();
    let theirs = format!("{} apply -f theirs.yaml; sed -i 's/zone: a/zone: mine/' \"$1\"", nimbus.display());
    let conflict = run(&mut edit(&desk, &theirs, &["networkpolicy/web"]));
    let kept = left(&desk);
    let path = desk.folder.path().join(&kept[0]);
    let said = format!(
        "nimbus: somebody changed it meanwhile: it was at revision 1, and is at 2; what you wrote is in {} (hint: edit it again)\n",
        path.display()
    );
    let theirs = "demo.v1.NetworkPolicy/web changed\n0 created, 1 changed, 0 unchanged\n";
    assert_eq!(conflict, ended(6, theirs, &said));
    assert!(fs::read_to_string(path).unwrap().contains("zone: mine"));
    assert!(desk.run(&["get", "networkpolicy/web", "-o", "yaml"]).out.contains("zone: theirs"));
}

/// A status is written while somebody edits: that is no conflict.
#[tokio::test]
async fn a_status_that_changes_meanwhile_does_not_matter() {
    let mut desk = Desk::new().await;
    desk.write("web.yaml", &policy("web", "a"));
    desk.run(&["apply", "-f", "web.yaml"]);
    let go = "touch open; while [ ! -e go ]; do sleep 0.01; done; sed -i 's/zone: a/zone: b/' \"$1\"";
    let process = edit(&desk, go, &["networkpolicy/web"]).spawn().unwrap();
    let folder = desk.folder.path().to_owned();
    crate::wait::until("the editor", || folder.join("open").exists()).await;
    let status = v1::StatusWrite {
        key: Some(demo::key("web")),
        status: Some(demo::pack("demo.v1.NetworkPolicyStatus", vec![])),
        observed_generation: 1,
    };
    desk.world
        .apply(vec![v1::Op { op: Some(v1::op::Op::Status(status)), ..v1::Op::default() }])
        .await;
    fs::write(folder.join("go"), "").unwrap();
    assert!(process.wait_with_output().unwrap().status.success());
    assert!(desk.run(&["get", "networkpolicy/web", "-o", "yaml"]).out.contains("zone: b"));
}
