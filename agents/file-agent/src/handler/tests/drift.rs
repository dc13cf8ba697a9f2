//! What `observe` finds when others meddle.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use nimbus_agent::Observation;

use crate::{
    file::File,
    handler::tests::{Machine, expect, file, key, shell},
};

#[tokio::test]
async fn every_kind_of_meddling_is_seen_and_put_right() {
    async fn check(words: &str, meddle: impl FnOnce(&Machine)) {
        let machine = Machine::new();
        let files = machine.start();
        let wanted = file("d/a", "ours");
        files.put(&key("a"), &wanted).await.unwrap();
        assert_eq!(files.look(&key("a")).await.unwrap(), Observation::InSync);
        meddle(&machine);
        let Observation::Drifted(reason) = files.look(&key("a")).await.unwrap() else { panic!("not seen: {words}") };
        assert!(reason.contains(words), "expected {words:?} in {reason:?}");
        assert!(!reason.contains("secret"), "{reason}");
        if words != "a directory" && words != "symbolic link, and is left alone" {
            files.put(&key("a"), &wanted).await.unwrap();
            assert_eq!(files.look(&key("a")).await.unwrap(), Observation::InSync);
            assert_eq!(machine.read("d/a"), "ours");
        }
    }

    check("d/a: other content", |machine| machine.write("d/a", "secret")).await;
    check("d/a: other content", |machine| machine.write("d/a", "OURS")).await;
    check("mode 0600 instead of 0644", |machine| {
        fs::set_permissions(machine.at("d/a"), fs::Permissions::from_mode(0o600)).unwrap();
    })
    .await;
    check("d/a: missing", |machine| fs::remove_file(machine.at("d/a")).unwrap()).await;
    check("d/a: missing", |machine| fs::remove_dir_all(machine.at("d")).unwrap()).await;
    check("d/a: a symbolic link", |machine| {
        fs::rename(machine.at("d/a"), machine.at("d/b")).unwrap();
        symlink("b", machine.at("d/a")).unwrap();
    })
    .await;
    check("a directory", |machine| {
        fs::remove_file(machine.at("d/a")).unwrap();
        fs::create_dir(machine.at("d/a")).unwrap();
    })
    .await;
    check("symbolic link, and is left alone", |machine| {
        fs::rename(machine.at("d"), machine.at("e")).unwrap();
        symlink("e", machine.at("d")).unwrap();
    })
    .await;
    // As large as nothing that comes from the bus; it is not even read.
    check("d/a: other content", |machine| {
        fs::File::options().write(true).open(machine.at("d/a")).unwrap().set_len(1 << 40).unwrap();
    })
    .await;
}

#[tokio::test]
async fn an_owner_that_was_changed_is_seen() {
    let machine = Machine::new();
    let files = machine.start();
    files.put(&key("a"), &file("a", "ours")).await.unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(machine.at("a"), Some(12345), None).unwrap();
        let Observation::Drifted(reason) = files.look(&key("a")).await.unwrap() else { panic!("not seen") };
        assert!(reason.contains("owner 12345:"), "{reason}");
    } else {
        std::os::unix::fs::chown(machine.at("a"), Some(12345), None).expect_err("only root may");
    }
}

#[tokio::test]
async fn a_version_that_was_refused_is_no_drift_of_the_one_that_is_in_place() {
    let machine = Machine::new();
    let files = machine.start();
    files.put(&key("a"), &file("a", "ours")).await.unwrap();
    let refused = File { validate: shell("exit 1"), ..file("a", "other") };
    expect(files.put(&key("a"), &refused).await, "VALIDATION", true, "");
    assert_eq!(files.look(&key("a")).await.unwrap(), Observation::InSync);
}

#[tokio::test]
async fn a_reload_that_is_still_to_be_done_counts_as_drift() {
    let machine = Machine::new();
    let files = machine.start();
    let wanted = File { reload: shell("exit 1"), ..file("a", "ours") };
    expect(files.put(&key("a"), &wanted).await, "RELOAD", false, "");
    let observed = files.look(&key("a")).await.unwrap();
    assert_eq!(observed, Observation::Drifted("the reload is still to be done".to_owned()));
}

#[tokio::test]
async fn a_file_that_the_ledger_does_not_know_is_looked_at_again_by_applying_it() {
    let machine = Machine::new();
    let files = machine.start();
    assert!(matches!(files.look(&key("a")).await.unwrap(), Observation::Drifted(_)));
}
