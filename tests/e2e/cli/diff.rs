//! `nimbus diff`.

use crate::cli::{
    files::{Desk, policy},
    nimbus, run,
};

#[tokio::test]
async fn what_would_change_is_shown_as_a_difference_of_manifests() {
    let desk = Desk::new().await;
    desk.write("all.yaml", &format!("{}  priority: 1\n---\n{}", policy("web", "a"), policy("db", "b")));
    desk.run(&["apply", "-f", "all.yaml"]);
    desk.prints(&["diff", "-f", "all.yaml"], "");
    desk.write("all.yaml", &format!("{}  priority: 1\n---\n{}", policy("web", "c"), policy("new", "b")));
    let diff = "\
--- bus/demo.v1.NetworkPolicy/web
+++ all.yaml:1:1
@@ -1,5 +1,5 @@
 kind: demo.v1.NetworkPolicy
 name: web
 spec:
-  zone: a
+  zone: c
   priority: 1
--- /dev/null
+++ all.yaml:7:1
@@ -0,0 +1,4 @@
+kind: demo.v1.NetworkPolicy
+name: new
+spec:
+  zone: b
";
    desk.ends(&["diff", "-f", "all.yaml"], 1, diff, "");
    let colored = desk.run(&["diff", "-f", "all.yaml", "--color", "always"]).out;
    assert!(colored.contains("\u{1b}[31m-  zone: a\u{1b}[0m\n\u{1b}[32m+  zone: c\u{1b}[0m\n"), "{colored}");
}

#[tokio::test]
async fn the_order_of_what_has_none_is_no_difference() {
    let desk = Desk::new().await;
    let with = |rest: &str| format!("kind: demo.v1.Gateway\nname: g\nspec: {{weights: {{b: 2, a: 1}}}}\n{rest}");
    let refs = "refs:\n- {kind: x.Z, name: z}\n- {kind: x.A, name: b, weak: true}\n- {kind: x.A, name: a}\n";
    for audience in ["audience: {agents: [b, a, b]}\n", "audience: {selector: 'tier!=db , zone in (b,a)'}\n"] {
        desk.write("g.yaml", &with(&format!("{refs}{audience}")));
        assert_eq!(desk.run(&["apply", "-f", "g.yaml"]).code, 0);
        desk.prints(&["diff", "-f", "g.yaml"], "");
        let again = "demo.v1.Gateway/g unchanged\n0 created, 0 changed, 1 unchanged\n";
        desk.prints(&["apply", "-f", "g.yaml"], again);
    }
}

#[tokio::test]
async fn of_secrets_only_that_they_differ_is_shown() {
    let desk = Desk::new().await;
    let account = |user: &str, password: &str| {
        format!("kind: demo.v1.Account\nname: root\nspec:\n  user: {user}\n  password: {password}\n")
    };
    desk.write("root.yaml", &account("a", "hunter2"));
    let created = desk.run(&["diff", "-f", "root.yaml"]);
    assert!(
        created.code == 1 && !created.out.contains("hunter2") && created.out.contains("+  password: \"<secret>\"\n")
    );
    desk.run(&["apply", "-f", "root.yaml"]);
    desk.prints(&["diff", "-f", "root.yaml"], "");
    desk.write("root.yaml", &account("a", "hunter3"));
    let diff = "\
--- bus/demo.v1.Account/root
+++ root.yaml:1:1
@@ -2,4 +2,4 @@
 name: root
 spec:
   user: a
-  password: \"<secret>\"
+  password: \"<secret, another one>\"
";
    desk.ends(&["diff", "-f", "root.yaml"], 1, diff, "");
}

#[tokio::test]
async fn an_error_is_no_difference() {
    let desk = Desk::new().await;
    desk.write("bad.yaml", "kind: demo.v1.NetworkPolicy\nname: a\nspec: {zoen: a}\n");
    desk.ends(
        &["diff", "-f", "bad.yaml"],
        5,
        "",
        "bad.yaml:3:8: demo.v1.NetworkPolicy has no field `zoen`; did you mean `zone`?\n\
         nimbus: 1 problem, nothing was sent\n",
    );
    assert_eq!(run(&mut nimbus(&["diff"])).code, 2);
}
