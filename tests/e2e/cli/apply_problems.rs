//! `nimbus apply`: what is wrong with files is said, all of it, and nothing is sent.

use std::{fs, os::unix::fs::PermissionsExt as _};

use nimbus_wire::v1;
use prost::Message as _;

use crate::{
    cli::{
        ACCOUNT, Account,
        files::{Desk, policy},
        nimbus, run,
    },
    demo,
};

/// One file, and what is said of it; nothing is on the bus afterwards.
fn check(desk: &Desk, text: &str, said: &str) {
    desk.write("web.yaml", text);
    let lines = said.lines().count();
    let problems = if lines == 1 { "1 problem".to_owned() } else { format!("{lines} problems") };
    desk.ends(&["apply", "-f", "web.yaml"], 5, "", &format!("{said}nimbus: {problems}, nothing was sent\n"));
    assert_eq!(desk.run(&["list", "--all-kinds", "-o", "name"]).out, "");
}

#[tokio::test]
async fn a_mistake_in_a_manifest_is_said_with_its_place() {
    let desk = Desk::new().await;
    check(
        &desk,
        "kind: demo.v1.NetworkPolicy\nname: web\nspec:\n  zoen: a\n  priority: 5000000000\n  rules: allow\n",
        "\
web.yaml:4:3: demo.v1.NetworkPolicy has no field `zoen`; did you mean `zone`?
web.yaml:5:13: `priority` is uint32, and `5000000000` is out of its range (0 to 4294967295)
web.yaml:6:10: `rules` is a list, found text
",
    );
    check(
        &desk,
        "\
kind: demo.v1.Gateway
name: g
spec:
  mode: MODE_OPNE
  port: -1
  budget: much
  enabled: 1
  seal: '*'
  listeners:
    - hots: a
    - b
  weights:
    a: x
  since: yesterday
  extra: {user: u}
  host: 10
  pool: p
---
kind: demo.v1.Gateway
name: h
spec: {host: a, pool: b, extra: {'@type': demo.v1.Nothing}}
",
        "\
web.yaml:4:9: demo.v1.Mode has no value `MODE_OPNE`; did you mean `MODE_OPEN`?
web.yaml:5:9: `port` is uint32, and `-1` is out of its range (0 to 4294967295)
web.yaml:6:11: `budget` is int64, found text
web.yaml:7:12: `enabled` is bool, found a number
web.yaml:8:9: `seal` is bytes, and this is no base64
web.yaml:10:7: demo.v1.Listener has no field `hots`; did you mean `host`?
web.yaml:11:7: expected a demo.v1.Listener as a map, found text
web.yaml:13:8: `a` is uint32, found text
web.yaml:14:10: this is no google.protobuf.Timestamp: invalid rfc3339 timestamp: invalid date
web.yaml:15:10: a packed message says what it is in `@type`, and this does not
web.yaml:16:9: `host` is text, found a number (hint: put it in quotes)
web.yaml:17:3: `pool` and `host` exclude each other
web.yaml:21:17: `pool` and `host` exclude each other
web.yaml:21:33: nobody has registered demo.v1.Nothing, so it cannot be packed
",
    );
    check(
        &desk,
        "\
kind: demo.v1.NetworkPolice
name: a b
namespace: x/y
labels: {'a b': c, ok: 10}
audience: {selector: zone in a}
refs: [{name: x}]
sepc: {}
spec: {}
",
        "\
web.yaml:1:7: kind `demo.v1.NetworkPolice` is not known to the bus; did you mean `demo.v1.NetworkPolicy`?
web.yaml:2:7: name \"a b\": expected 1 to 253 of the characters A-Z a-z 0-9 - _ . : @ + ~ =
web.yaml:3:12: namespace \"x/y\": expected 1 to 253 of the characters A-Z a-z 0-9 - _ . : @ + ~ =
web.yaml:4:10: label \"a b\": expected a label key of 1 to 253 of the characters A-Z a-z 0-9 - _ . /
web.yaml:4:24: `ok` is text, found a number (hint: put it in quotes)
web.yaml:5:22: selector \"zone in a\": expected a selector such as `zone in (a,b),role=edge,tier!=db,gpu,!canary`
web.yaml:6:8: a reference needs `kind`
web.yaml:7:1: a manifest has no field `sepc`; did you mean `spec`?
",
    );
    check(
        &desk,
        "kind: demo.v1.NetworkPolicy\nname: a\nname: b\nspec: {zone: a, zone: b}\n---\nname: c\n---\ntext\n",
        "\
web.yaml:3:1: `name` is there twice
web.yaml:4:17: `zone` is there twice
web.yaml:6:1: a manifest needs `kind`
web.yaml:8:1: a manifest is a map, found text
",
    );
    let twice = format!("{}---\n{}", policy("web", "a"), policy("web", "b"));
    check(&desk, &twice, "web.yaml:6:1: demo.v1.NetworkPolicy/web is also in web.yaml:1:1\n");
    check(
        &desk,
        "kind: demo.v1.NetworkPolicy\nname: x\n",
        "web.yaml:1:1: a manifest needs `spec` (hint: one without any fields is `spec: {}`)\n",
    );
    check(&desk, "a: b\n  c: d\n", "web.yaml:2:4: mapping values are not allowed in this context\n");
    check(&desk, "{\"items\": [1,\n  2", "web.yaml:2:4: expected a comma or `]`, but the file ends\n");
    check(&desk, "# nothing\n", "web.yaml: there is nothing in it\n");
}

#[tokio::test]
async fn bombs_are_refused_before_they_go_off() {
    let desk = Desk::new().await;
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let alias = format!("*a{}", n - 1);
        laughs.push_str(&format!("a{n}: &a{n} [{}]\n", vec![alias; 10].join(", ")));
    }
    check(&desk, &laughs, "web.yaml:5:45: the aliases of this file stand for more than 100000 values\n");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    check(&desk, &deep, "web.yaml:1:65: more than 64 lists and maps are nested in one another\n");
    let deep = (0..80).map(|n| format!("{}a:\n", " ".repeat(n))).collect::<String>();
    check(&desk, &deep, "web.yaml:65:65: more than 64 lists and maps are nested in one another\n");
    check(&desk, "a: &a [*a]\n", "web.yaml:1:8: the alias stands for something that contains it\n");
}

#[tokio::test]
async fn files_that_cannot_be_read_are_named() {
    let desk = Desk::new().await;
    fs::create_dir(desk.folder.path().join("empty")).unwrap();
    desk.write("good.yaml", &policy("web", "a"));
    fs::write(desk.folder.path().join("latin.yaml"), b"kind: a\nname: \xe9\n").unwrap();
    desk.ends(
        &["apply", "-f", "missing.yaml", "-f", "good.yaml", "-f", "latin.yaml"],
        5,
        "",
        "missing.yaml: there is no such file\nlatin.yaml:2:7: this is no UTF-8\nnimbus: 2 problems, nothing was sent\n",
    );
    desk.ends(
        &["apply", "-f", "empty"],
        5,
        "",
        "empty: there are no .yaml, .yml or .json files in this directory\nnimbus: 1 problem, nothing was sent\n",
    );
    let forbidden = desk.folder.path().join("good.yaml");
    fs::set_permissions(&forbidden, fs::Permissions::from_mode(0o000)).unwrap();
    // Who runs the tests as root may read everything.
    if fs::read(&forbidden).is_err() {
        desk.ends(
            &["apply", "-f", "good.yaml"],
            5,
            "",
            "good.yaml: it may not be read (hint: check its permissions)\nnimbus: 1 problem, nothing was sent\n",
        );
    }
    let ended = run(nimbus(&["apply"]).stdin(std::process::Stdio::null()));
    assert_eq!(ended.code, 2);
}

#[tokio::test]
async fn of_many_problems_the_first_are_said() {
    let desk = Desk::new().await;
    for file in 0..5 {
        let bad = |n: usize| policy(&format!("p{file}-{n}"), "[]");
        desk.write(&format!("all/{file}.yaml"), &(0..6).map(bad).collect::<Vec<_>>().join("---\n"));
    }
    let ended = desk.run(&["apply", "-f", "all"]);
    let lines: Vec<&str> = ended.err.lines().collect();
    assert_eq!((ended.code, lines.len()), (5, 22), "{}", ended.err);
    assert_eq!(lines[0], "all/0.yaml:4:9: `zone` is text, found a list");
    assert_eq!(lines[19], "all/3.yaml:9:9: `zone` is text, found a list");
    assert_eq!(lines[20..], ["and 10 more", "nimbus: 30 problems, nothing was sent"]);
}

#[tokio::test]
async fn secrets_that_are_hidden_cannot_be_published_and_bad_ones_are_not_repeated() {
    let desk = Desk::new().await;
    let hidden =
        "`<secret>` says that a secret was there, and not which (hint: write the secret, or use `nimbus edit`)";
    check(
        &desk,
        "kind: demo.v1.Account\nname: root\nspec:\n  user: a\n  password: <secret>\n---\nkind: x.Y\nname: z\nspecBytes: <secret>\n",
        &format!("web.yaml:5:13: {hidden}\nweb.yaml:9:12: {hidden}\n"),
    );
    check(
        &desk,
        "kind: demo.v1.Gateway\nname: g\nspec: {pin: 99999999999}\n",
        "web.yaml:3:13: `pin` is uint32, and this is out of its range (0 to 4294967295)\n",
    );
}

/// A publisher with a newer schema wrote a field that the registered one does not have.
#[tokio::test]
async fn fields_that_the_schema_does_not_know_are_not_lost_without_a_word() {
    let mut desk = Desk::new().await;
    let mut bytes = Account { user: "admin".to_owned(), password: "p".to_owned() }.encode_to_vec();
    bytes.extend_from_slice(&[0x48, 0x01]);
    let object =
        v1::Object { name: "root".to_owned(), spec: Some(demo::pack(ACCOUNT, bytes)), ..v1::Object::default() };
    desk.world.publish(vec![object]).await;
    let shown = desk.run(&["get", "account/root", "-o", "yaml", "--show-secrets"]).out;
    assert!(shown.ends_with("  manager: policies\n  unknownFields:\n    - \"9\"\n"), "{shown}");
    desk.write("root.yaml", &shown);
    desk.ends(
        &["apply", "-f", "root.yaml", "--publisher", "policies"],
        5,
        "",
        "root.yaml:12:7: the spec lacks fields that the schema does not know, and publishing it would remove them \
         (hint: register the schema that has them and get the object again, or remove `unknownFields`)\n\
         nimbus: 1 problem, nothing was sent\n",
    );
    desk.ends(
        &["edit", "account", "root"],
        6,
        "",
        "nimbus: its schema does not know all fields of the spec (9), and they would be lost \
         (hint: register the schema that has them)\n",
    );
    let (known, _) = shown.split_once("  unknownFields").unwrap();
    desk.write("root.yaml", known);
    desk.ends(
        &["diff", "-f", "root.yaml"],
        1,
        "",
        "nimbus: demo.v1.Account/root has fields that its schema does not know, and that the file would remove: 9\n",
    );
}
