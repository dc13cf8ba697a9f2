//! Validation before, and reload after.

use std::{fs, time::Duration};

use crate::{
    file::File,
    handler::tests::{Machine, counted_reload, expect, file, key, shell},
};

#[tokio::test]
async fn a_file_that_does_not_pass_is_not_put_in_place_and_the_words_of_the_command_are_kept() {
    let machine = Machine::new();
    let files = machine.start();
    let checked = |text: &str| File {
        validate: shell("grep -q good \"$1\" || { echo \"[emerg] no good in $1\" >&2; exit 1; }"),
        reload: counted_reload(),
        ..file("conf.d/a", text)
    };
    expect(files.put(&key("a"), &checked("bad")).await, "VALIDATION", true, "exit status: 1: [emerg] no good in");
    assert!(machine.tree().is_empty(), "{:?}", machine.tree());
    assert_eq!((machine.pages(), machine.reloads()), (0, 0));

    files.put(&key("a"), &checked("good")).await.unwrap();
    let identity = machine.identity("conf.d/a");
    expect(files.put(&key("a"), &checked("bad")).await, "VALIDATION", true, "conf.d/.a.nimbus-new");
    assert_eq!(machine.identity("conf.d/a"), identity);
    assert_eq!(machine.tree(), ["conf.d/", "conf.d/a"]);
    assert_eq!(machine.reloads(), 1);
    files.put(&key("a"), &checked("good")).await.unwrap();
    assert_eq!(machine.reloads(), 1, "the old file was there all the time");
}

#[tokio::test]
async fn what_is_validated_is_complete_hidden_and_beside_the_file() {
    let machine = Machine::new();
    let script = "test \"$(cat \"$1\")\" = all && test \"$(stat -c %a \"$1\")\" = 600 && echo \"$1\" && exit 1";
    let wanted = File { validate: shell(script), mode: "0600".to_owned(), ..file("d/a.conf", "all") };
    let path = machine.at("d/.a.conf.nimbus-new").display().to_string();
    expect(machine.start().put(&key("a"), &wanted).await, "VALIDATION", true, &path);
}

#[tokio::test]
async fn a_validation_that_comes_to_no_end_is_tried_again() {
    let machine = Machine::new();
    let wanted = File { validate: shell("sleep 1000"), validate_timeout_ms: 50, ..file("a", "x") };
    expect(machine.start().put(&key("a"), &wanted).await, "VALIDATION", false, "took longer than 50ms and was killed");
    assert!(machine.tree().is_empty());
}

#[tokio::test]
async fn a_file_that_the_validation_changes_is_not_put_in_place() {
    let scripts = ["echo more >> \"$1\"", "chmod 777 \"$1\"", "cp \"$1\" ../x; mv ../x \"$1\""];
    for script in scripts {
        let machine = Machine::new();
        let wanted = File { validate: shell(script), ..file("a", "x") };
        let put = machine.start().put(&key("a"), &wanted).await;
        expect(put, "VALIDATION", true, "it changed while it was validated");
        assert!(machine.tree().is_empty(), "{script}");
    }
}

#[tokio::test]
async fn a_reload_that_fails_is_repeated_until_it_succeeds_once_also_after_a_restart() {
    let machine = Machine::new();
    let script = "echo reload >> ../reloads; test -e ../ready || { echo not yet; exit 7; }";
    let wanted = File { reload: shell(script), ..file("a", "new") };
    let files = machine.start();
    for attempt in 1..=2 {
        let put = files.put(&key("a"), &wanted).await;
        expect(
            put,
            "RELOAD",
            false,
            "a is in place, but the reload failed: /bin/sh ended with exit status: 7: not yet",
        );
        assert_eq!((machine.read("a").as_str(), machine.reloads()), ("new", attempt));
    }
    let identity = machine.identity("a");
    drop(files);
    let files = machine.start();
    expect(files.put(&key("a"), &wanted).await, "RELOAD", false, "not yet");
    fs::write(machine.root.parent().unwrap().join("ready"), "").unwrap();
    files.put(&key("a"), &wanted).await.unwrap();
    files.put(&key("a"), &wanted).await.unwrap();
    assert_eq!((machine.identity("a"), machine.reloads()), (identity, 4));
}

#[tokio::test]
async fn a_pending_reload_is_forgotten_when_the_object_no_longer_has_one() {
    let machine = Machine::new();
    let files = machine.start();
    let wanted = File { reload: shell("exit 1"), ..file("a", "x") };
    expect(files.put(&key("a"), &wanted).await, "RELOAD", false, "");
    files.put(&key("a"), &file("a", "x")).await.unwrap();
    files.put(&key("a"), &wanted).await.expect("nothing changed since");
}

#[tokio::test]
async fn a_removal_is_followed_by_a_reload_which_is_given_up_after_a_while() {
    let machine = Machine::new();
    let files = machine.start();
    let wanted = File { reload: counted_reload(), ..file("a", "x") };
    files.put(&key("a"), &wanted).await.unwrap();
    files.take(&key("a"), &wanted, 0).await.unwrap();
    assert_eq!((machine.reloads(), machine.pages()), (2, 0));
    files.take(&key("a"), &wanted, 0).await.unwrap();
    assert_eq!(machine.reloads(), 2, "there was nothing to remove");

    let needs_the_file = File { reload: shell("cat a"), ..file("a", "x") };
    files.put(&key("a"), &needs_the_file).await.unwrap();
    for attempt in 0..5 {
        let take = files.take(&key("a"), &needs_the_file, attempt).await;
        expect(take, "RELOAD", false, "a is removed, but the reload failed");
        assert!(machine.tree().is_empty());
    }
    files.take(&key("a"), &needs_the_file, 5).await.unwrap();
    assert_eq!(machine.pages(), 0);
}

#[tokio::test]
async fn a_slow_validation_holds_back_no_other_object() {
    let machine = Machine::new();
    let files = machine.start();
    let slow = File { validate: shell("until test -e b; do sleep 0.01; done"), ..file("a", "x") };
    let (slow_key, other_key, other) = (key("a"), key("b"), file("b", "x"));
    let both = async { tokio::join!(files.put(&slow_key, &slow), files.put(&other_key, &other)) };
    let (slow, other) = tokio::time::timeout(Duration::from_secs(30), both)
        .await
        .expect("they wait for each other");
    slow.and(other).unwrap();
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_nothing_behind_that_disturbs_the_next() {
    let machine = Machine::new();
    let files = machine.start();
    let hangs = File { validate: shell("touch ../validating; sleep 1000"), ..file("new/a", "one") };
    let mark = machine.root.parent().unwrap().join("validating");
    let is_validating = async {
        while !mark.exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let key = key("a");
    tokio::select! {
        put = files.put(&key, &hangs) => panic!("{put:?}"),
        () = is_validating => {}
    }
    assert_eq!(machine.tree(), ["new/"], "the staged file went with the call");
    files.put(&key, &file("new/a", "two")).await.unwrap();
    assert_eq!(machine.read("new/a"), "two");
    files.take(&key, &file("new/a", "two"), 0).await.unwrap();
    assert!(machine.tree().is_empty());
}
