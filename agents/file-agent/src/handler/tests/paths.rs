//! Where paths may lead.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use crate::{
    file::File,
    handler::tests::{Machine, expect, file, key},
    steps::Step,
};

#[tokio::test]
async fn a_path_over_a_symbolic_link_is_refused_wherever_it_leads() {
    let machine = Machine::new();
    fs::create_dir(machine.at("inside")).unwrap();
    symlink(&machine.outside, machine.at("out")).unwrap();
    symlink("inside", machine.at("in")).unwrap();
    symlink("nowhere", machine.at("dangling")).unwrap();
    let files = machine.start();
    for path in ["out/a", "in/a", "dangling/a", "out/deep/er/a"] {
        let wanted = File { adopt: true, ..file(path, "x") };
        expect(files.put(&key("a"), &wanted).await, "UNSAFE_PATH", true, "is a symbolic link, and is left alone");
        files.take(&key("a"), &wanted, 0).await.unwrap();
    }
    assert_eq!(fs::read_dir(&machine.outside).unwrap().count(), 0);
    assert_eq!(machine.tree(), ["dangling", "in", "inside/", "out"]);
}

#[tokio::test]
async fn what_is_no_file_is_never_replaced() {
    let machine = Machine::new();
    fs::create_dir(machine.at("directory")).unwrap();
    fs::write(machine.outside.join("target"), "theirs").unwrap();
    symlink(machine.outside.join("target"), machine.at("link")).unwrap();
    let pipe = Command::new("mkfifo").arg(machine.at("pipe")).status().unwrap();
    assert!(pipe.success());
    let _socket = std::os::unix::net::UnixListener::bind(machine.at("socket")).unwrap();
    let before = machine.tree();
    let files = machine.start();
    let cases = [("directory", "a directory"), ("link", "a symbolic link"), ("pipe", "a pipe"), ("socket", "a socket")];
    for (path, words) in cases {
        let wanted = File { adopt: true, ..file(path, "x") };
        expect(files.put(&key("a"), &wanted).await, "UNSAFE_PATH", true, words);
        files.take(&key("a"), &wanted, 0).await.unwrap();
    }
    assert_eq!(machine.tree(), before);
    assert_eq!(fs::read_to_string(machine.outside.join("target")).unwrap(), "theirs");
}

#[tokio::test]
async fn a_link_in_the_place_of_our_file_is_replaced_and_not_followed() {
    let machine = Machine::new();
    let target = machine.outside.join("target");
    fs::write(&target, "theirs").unwrap();
    let files = machine.start();
    let wanted = file("a", "ours");
    files.put(&key("a"), &wanted).await.unwrap();
    let swap = || {
        fs::remove_file(machine.at("a")).unwrap();
        symlink(&target, machine.at("a")).unwrap();
    };
    swap();
    files.put(&key("a"), &wanted).await.unwrap();
    assert!(fs::symlink_metadata(machine.at("a")).unwrap().is_file());
    swap();
    files.take(&key("a"), &wanted, 0).await.unwrap();
    assert!(machine.tree().is_empty());
    assert_eq!(fs::read_to_string(&target).unwrap(), "theirs");
}

#[tokio::test]
async fn a_directory_in_the_place_of_our_file_stays_and_is_tried_again() {
    let machine = Machine::new();
    let files = machine.start();
    let wanted = file("a", "ours");
    files.put(&key("a"), &wanted).await.unwrap();
    fs::remove_file(machine.at("a")).unwrap();
    fs::create_dir(machine.at("a")).unwrap();
    expect(files.put(&key("a"), &wanted).await, "IO", false, "a directory");
    files.take(&key("a"), &wanted, 0).await.unwrap();
    assert_eq!(machine.tree(), ["a/"]);
}

/// Whoever can write to a directory on the way may swap it for a link at any moment. The agent holds on to the directory
/// that it has checked, and finds out that the file is not where it should be.
#[tokio::test]
async fn a_directory_that_is_swapped_for_a_link_while_writing_is_not_followed() {
    for moment in [Step::Intended, Step::Created, Step::Staged] {
        let machine = Machine::new();
        fs::create_dir(machine.at("d")).unwrap();
        let (directory, aside, outside) = (machine.at("d"), machine.at("aside"), machine.outside.clone());
        let files = machine.start_with(move |step| {
            if step == moment {
                fs::rename(&directory, &aside)?;
                symlink(&outside, &directory)?;
            }
            Ok(())
        });
        let put = files.put(&key("a"), &file("d/a", "ours")).await;
        expect(put, "UNSAFE_PATH", true, "d is a symbolic link");
        assert_eq!(fs::read_dir(&machine.outside).unwrap().count(), 0, "{moment:?}");
        files.take(&key("a"), &file("d/a", "ours"), 0).await.unwrap();
        assert_eq!(fs::read_link(machine.at("d")).unwrap(), machine.outside);
    }
}

#[tokio::test]
async fn a_link_with_the_name_of_the_staged_file_is_not_written_through() {
    let machine = Machine::new();
    let target = machine.outside.join("target");
    fs::write(&target, "theirs").unwrap();
    symlink(&target, machine.at(".a.nimbus-new")).unwrap();
    machine.start().put(&key("a"), &file("a", "ours")).await.unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "theirs");
    assert_eq!(machine.tree(), ["a"]);
}

#[tokio::test]
async fn the_state_of_the_agent_is_out_of_reach_also_if_it_is_below_the_root() {
    let mut machine = Machine::new();
    machine.state = machine.at("var/state");
    let files = machine.start();
    let wanted = File { adopt: true, ..file("var/state/directories.json", "[]") };
    expect(files.put(&key("a"), &wanted).await, "UNSAFE_PATH", true, "where the agent keeps its own state");
    let deeper = file("var/state/files/new.json", "{}");
    expect(files.put(&key("a"), &deeper).await, "UNSAFE_PATH", true, "var/state is where");
    files.put(&key("a"), &file("var/a", "x")).await.unwrap();
    files.take(&key("a"), &file("var/a", "x"), 0).await.unwrap();
    assert!(Path::new(&machine.state).exists());
}
