//! An agent that is killed between any two steps, and started again.
//!
//! At every step the machine is copied. A process that is killed there leaves exactly what is in the copy, so a new agent
//! is started on it.

use std::{fs, mem, sync::Arc};

use nimbus_agent::Observation;
use parking_lot::Mutex;

use crate::{
    file::File,
    handler::tests::{Machine, counted_reload, expect, file, key},
    steps::Step,
};

const PUT: [Step; 6] = [Step::Intended, Step::Created, Step::Staged, Step::Switched, Step::Tidied, Step::Reloaded];

fn with_reload(path: &str, text: &str) -> File {
    File { reload: counted_reload(), ..file(path, text) }
}

/// What the machine is like at each step of a put, or of a removal if there is nothing new.
async fn kill_at_every_step(old: Option<&File>, new: Option<&File>) -> Vec<(Step, Machine)> {
    let machine = Arc::new(Machine::new());
    machine.write("theirs", "theirs");
    if let Some(old) = old {
        machine.start().put(&key("a"), old).await.unwrap();
    }
    let copies = Arc::new(Mutex::new(Vec::new()));
    let (source, kept) = (Arc::clone(&machine), Arc::clone(&copies));
    let files = machine.start_with(move |step| {
        kept.lock().push((step, source.copy()));
        Ok(())
    });
    match new {
        Some(new) => files.put(&key("a"), new).await.unwrap(),
        None => files.take(&key("a"), old.unwrap(), 0).await.unwrap(),
    }
    mem::take(&mut *copies.lock())
}

/// Nothing is there but what should be, the ledger says so, and nothing more has to be done.
async fn is_settled(machine: &Machine, wanted: &File, step: Step) {
    let directories = wanted.path.match_indices('/').map(|(end, _)| format!("{}/", &wanted.path[..end]));
    let mut tree: Vec<_> = directories.chain([wanted.path.clone(), "theirs".to_owned()]).collect();
    tree.sort();
    assert_eq!(machine.tree(), tree, "killed at {step:?}");
    let content = wanted.content.as_ref().unwrap().as_bytes();
    assert_eq!(machine.read(&wanted.path).as_bytes(), content, "killed at {step:?}");
    let (identity, reloads) = (machine.identity(&wanted.path), machine.reloads());
    let files = machine.start();
    assert_eq!(files.look(&key("a")).await.unwrap(), Observation::InSync, "killed at {step:?}");
    files.put(&key("a"), wanted).await.unwrap();
    assert_eq!((machine.identity(&wanted.path), machine.reloads()), (identity, reloads), "killed at {step:?}");
}

async fn is_gone(machine: &Machine, step: Step) {
    assert_eq!(machine.tree(), ["theirs"], "killed at {step:?}");
    assert_eq!(machine.pages(), 0, "killed at {step:?}");
}

/// From every copy on: the same again, the old version again, and the end of the object.
async fn check(old: Option<File>, new: File) {
    let copies = kill_at_every_step(old.as_ref(), Some(&new)).await;
    assert_eq!(copies.iter().map(|(step, _)| *step).collect::<Vec<_>>(), PUT);
    for (step, machine) in &copies {
        let again = machine.copy();
        again.start().put(&key("a"), &new).await.unwrap();
        assert_eq!(again.reloads(), machine.reloads() + 1, "the reload is still to be done at {step:?}");
        is_settled(&again, &new, *step).await;

        if let Some(old) = &old {
            let back = machine.copy();
            back.start().put(&key("a"), old).await.unwrap();
            is_settled(&back, old, *step).await;
        }

        let end = machine.copy();
        end.start().take(&key("a"), &new, 0).await.unwrap();
        is_gone(&end, *step).await;
    }
}

#[tokio::test]
async fn an_agent_that_is_killed_while_it_makes_a_file_comes_to_a_good_end() {
    check(None, with_reload("new/deep/a", "one")).await;
}

#[tokio::test]
async fn an_agent_that_is_killed_while_it_replaces_a_file_comes_to_a_good_end() {
    check(Some(with_reload("a", "one")), with_reload("a", "two")).await;
}

#[tokio::test]
async fn an_agent_that_is_killed_while_it_moves_a_file_comes_to_a_good_end() {
    check(Some(with_reload("old/a", "one")), with_reload("new/deep/a", "two")).await;
}

#[tokio::test]
async fn an_agent_that_is_killed_while_it_removes_a_file_comes_to_a_good_end() {
    let wanted = with_reload("new/deep/a", "one");
    let copies = kill_at_every_step(Some(&wanted), None).await;
    assert_eq!(copies.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [Step::Removed, Step::Reloaded]);
    for (step, machine) in &copies {
        let again = machine.copy();
        again.start().take(&key("a"), &wanted, 0).await.unwrap();
        assert_eq!(again.reloads(), machine.reloads() + 1, "the reload is still to be done at {step:?}");
        is_gone(&again, *step).await;

        let back = machine.copy();
        back.start().put(&key("a"), &wanted).await.unwrap();
        is_settled(&back, &wanted, *step).await;
    }
}

#[tokio::test]
async fn a_file_that_somebody_made_while_the_agent_was_dead_is_theirs() {
    let new = with_reload("a", "ours");
    for (step, machine) in kill_at_every_step(None, Some(&new)).await {
        if !matches!(step, Step::Intended | Step::Created | Step::Staged) {
            continue;
        }
        machine.write("a", "theirs");
        let files = machine.start();
        expect(files.put(&key("a"), &new).await, "NOT_OWNED", true, "");
        files.take(&key("a"), &new, 0).await.unwrap();
        assert_eq!(machine.read("a"), "theirs", "killed at {step:?}");
        assert_eq!(machine.tree(), ["a", "theirs"], "killed at {step:?}");
    }
}

/// The ledger is the only thing that says what is whose. Without it, files are foreign, and nothing is lost.
#[tokio::test]
async fn an_agent_that_has_lost_its_ledger_takes_back_what_is_as_it_should_be() {
    let machine = Machine::new();
    let (same, changed) = (file("same", "one"), file("changed", "one"));
    let files = machine.start();
    files.put(&key("same"), &same).await.unwrap();
    files.put(&key("changed"), &changed).await.unwrap();
    drop(files);
    fs::remove_dir_all(&machine.state).unwrap();
    let files = machine.start();
    files.put(&key("same"), &same).await.unwrap();
    expect(files.put(&key("changed"), &file("changed", "two")).await, "NOT_OWNED", true, "hint: set adopt");
}
