//! Whose a file is.

use std::fs;

use crate::{
    file::File,
    handler::tests::{Machine, counted_reload, expect, file, key},
    steps::{Step, Steps},
};

#[tokio::test]
async fn a_file_of_somebody_else_is_left_alone() {
    let machine = Machine::new();
    machine.write("a", "theirs");
    let files = machine.start();
    let wanted = file("a", "ours");
    expect(files.put(&key("a"), &wanted).await, "NOT_OWNED", true, "hint: set adopt");
    files.take(&key("a"), &wanted, 0).await.unwrap();
    assert_eq!(machine.read("a"), "theirs");
    assert_eq!(machine.pages(), 0);
}

#[tokio::test]
async fn a_file_of_somebody_else_is_taken_over_with_adopt_and_is_ours_from_then_on() {
    let machine = Machine::new();
    machine.write("a", "theirs");
    let files = machine.start();
    files.put(&key("a"), &File { adopt: true, ..file("a", "ours") }).await.unwrap();
    assert_eq!(machine.read("a"), "ours");
    let later = file("a", "later");
    files.put(&key("a"), &later).await.expect("it is ours now");
    files.take(&key("a"), &later, 0).await.unwrap();
    assert!(machine.tree().is_empty());
}

#[tokio::test]
async fn a_file_that_is_exactly_as_wanted_is_taken_without_being_touched() {
    let machine = Machine::new();
    machine.write("a", "same");
    let identity = machine.identity("a");
    let files = machine.start();
    let wanted = File { reload: counted_reload(), ..file("a", "same") };
    let stricter = File { mode: "0600".to_owned(), ..wanted.clone() };
    expect(files.put(&key("a"), &stricter).await, "NOT_OWNED", true, "");
    files.put(&key("a"), &wanted).await.unwrap();
    assert_eq!((machine.identity("a"), machine.reloads()), (identity, 0));
    files.put(&key("a"), &stricter).await.expect("it is ours now");
}

#[tokio::test]
async fn of_two_objects_for_one_path_the_second_waits_until_the_first_is_gone() {
    let machine = Machine::new();
    let files = machine.start();
    let (first, second) = (file("a", "first"), File { adopt: true, ..file("a", "second") });
    files.put(&key("first"), &first).await.unwrap();
    expect(files.put(&key("second"), &second).await, "CONFLICT", false, "belongs to nimbus.file.v1.File/first");
    files.take(&key("second"), &second, 0).await.unwrap();
    assert_eq!(machine.read("a"), "first");
    drop(files);

    let files = machine.start();
    for other in [&first, &file("a", "other")] {
        let put = files.put(&key("second"), other).await;
        expect(put, "CONFLICT", false, "hint: two objects name the same path");
    }
    files.take(&key("first"), &first, 0).await.unwrap();
    files.put(&key("second"), &second).await.unwrap();
    assert_eq!(machine.read("a"), "second");
}

#[tokio::test]
async fn of_two_objects_that_come_at_the_same_time_one_gets_the_path() {
    let machine = Machine::new();
    let files = machine.start();
    let (a, b) = (file("x", "a"), file("x", "b"));
    let (key_a, key_b) = (key("a"), key("b"));
    for _ in 0..50 {
        let (put_a, put_b) = tokio::join!(files.put(&key_a, &a), files.put(&key_b, &b));
        let (winner, loser) = if put_a.is_ok() { ("a", put_b) } else { ("b", put_a) };
        expect(loser, "CONFLICT", false, "belongs to");
        assert_eq!(machine.read("x"), winner);
        files.take(&key_a, &a, 0).await.unwrap();
        files.take(&key_b, &b, 0).await.unwrap();
        assert!(machine.tree().is_empty());
    }
}

#[tokio::test]
async fn what_is_ours_stays_ours_after_a_restart() {
    let machine = Machine::new();
    machine.start().put(&key("a"), &file("a", "one")).await.unwrap();
    machine.write("a", "somebody meddled");
    let files = machine.start();
    files.put(&key("a"), &file("a", "two")).await.unwrap();
    assert_eq!(machine.read("a"), "two");
    drop(files);
    machine.start().take(&key("a"), &file("a", "two"), 0).await.unwrap();
    assert!(machine.tree().is_empty());
}

#[tokio::test]
async fn a_file_that_appears_while_ours_is_written_is_not_overwritten() {
    let machine = Machine::new();
    let theirs = machine.at("new/a");
    let files =
        machine.start_with(move |step| if step == Step::Staged { fs::write(&theirs, "theirs") } else { Ok(()) });
    expect(files.put(&key("a"), &file("new/a", "ours")).await, "NOT_OWNED", true, "");
    assert_eq!(machine.read("new/a"), "theirs");
    assert_eq!(machine.tree(), ["new/", "new/a"]);
    files.take(&key("a"), &file("new/a", "ours"), 0).await.unwrap();
    assert_eq!(machine.read("new/a"), "theirs");
}

#[tokio::test]
async fn a_state_belongs_to_one_agent_at_a_time() {
    let machine = Machine::new();
    let first = machine.start();
    let error = machine.try_open(Steps::default()).err().expect("two agents with one state");
    assert!(error.to_string().contains("hint: is another agent running with the same --state?"), "{error}");
    drop(first);
    machine.start();
}

#[tokio::test]
async fn an_agent_with_a_broken_ledger_does_not_start() {
    let machine = Machine::new();
    machine.start().put(&key("a"), &file("a", "one")).await.unwrap();
    let page = fs::read_dir(machine.state.join("files")).unwrap().next().unwrap().unwrap().path();
    fs::write(&page, "{").unwrap();
    let error = machine.try_open(Steps::default()).err().expect("a broken ledger").to_string();
    assert!(error.contains(page.to_str().unwrap()) && error.contains("is not a record"), "{error}");
}

#[tokio::test]
async fn what_was_being_written_to_the_ledger_when_the_agent_died_is_forgotten() {
    let machine = Machine::new();
    machine.start().put(&key("a"), &file("a", "one")).await.unwrap();
    fs::write(machine.state.join("files/half.json.tmp"), "{\"na").unwrap();
    machine.start();
    assert_eq!(machine.pages(), 1);
}

#[tokio::test]
async fn a_root_that_does_not_exist_is_said_with_a_hint() {
    let mut machine = Machine::new();
    machine.root = machine.at("missing");
    let error = machine.try_open(Steps::default()).err().expect("no root").to_string();
    assert!(error.contains("hint: --root is a directory that exists"), "{error}");
}
