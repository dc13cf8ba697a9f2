//! How files are written, moved and removed.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    file::{Content, File},
    handler::tests::{Machine, counted_reload, expect, file, key},
    steps::Step,
};

#[tokio::test]
async fn a_new_file_has_its_content_and_mode_and_its_directories_are_made() {
    let machine = Machine::new();
    let files = machine.start();
    let secret = File { mode: "0600".to_owned(), ..file("conf.d/sites/a.conf", "listen 80;\n") };
    files.put(&key("a"), &secret).await.unwrap();
    assert_eq!(machine.read("conf.d/sites/a.conf"), "listen 80;\n");
    assert_eq!(machine.tree(), ["conf.d/", "conf.d/sites/", "conf.d/sites/a.conf"]);
    let mode = |path: &str| fs::metadata(machine.at(path)).unwrap().mode() & 0o7777;
    assert_eq!((mode("conf.d/sites/a.conf"), mode("conf.d"), mode("conf.d/sites")), (0o600, 0o755, 0o755));

    let bytes = File { content: Some(Content::Data(vec![0, 255, 10].into())), ..file("raw", "") };
    files.put(&key("raw"), &bytes).await.unwrap();
    assert_eq!(fs::read(machine.at("raw")).unwrap(), [0, 255, 10]);
    files.put(&key("empty"), &file("empty", "")).await.unwrap();
    assert_eq!(machine.read("empty"), "");
}

#[tokio::test]
async fn a_file_is_given_to_its_owner_or_it_is_said_who_could() {
    let machine = Machine::new();
    let owned = File { owner: "12345".to_owned(), group: "54321".to_owned(), ..file("a", "x") };
    let put = machine.start().put(&key("a"), &owned).await;
    if geteuid().is_root() {
        put.unwrap();
        let metadata = fs::metadata(machine.at("a")).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (12345, 54321));
    } else {
        expect(put, "IO", false, "hint: only root may give files to others");
        assert!(machine.tree().is_empty());
    }
}

#[tokio::test]
async fn what_is_as_it_should_be_is_neither_written_nor_reloaded() {
    let machine = Machine::new();
    let wanted = File { reload: counted_reload(), ..file("a", "one") };
    let files = machine.start();
    files.put(&key("a"), &wanted).await.unwrap();
    let (identity, page) = (machine.identity("a"), machine.state.join("files"));
    let written = fs::metadata(&page).unwrap().modified().unwrap();
    files.put(&key("a"), &wanted).await.unwrap();
    drop(files);
    machine.start().put(&key("a"), &wanted).await.unwrap();
    assert_eq!(machine.identity("a"), identity);
    assert_eq!(machine.reloads(), 1);
    assert_eq!(fs::metadata(&page).unwrap().modified().unwrap(), written, "the ledger was written for nothing");
}

#[tokio::test]
async fn a_change_of_the_mode_alone_replaces_the_file() {
    let machine = Machine::new();
    let files = machine.start();
    let wanted = File { reload: counted_reload(), ..file("a", "one") };
    files.put(&key("a"), &wanted).await.unwrap();
    let before = machine.identity("a");
    files.put(&key("a"), &File { mode: "0640".to_owned(), ..wanted }).await.unwrap();
    assert_ne!(machine.identity("a"), before);
    assert_eq!(fs::metadata(machine.at("a")).unwrap().mode() & 0o7777, 0o640);
    assert_eq!(machine.reloads(), 2);
}

#[tokio::test]
async fn readers_see_the_old_file_or_the_new_one_and_never_a_part() {
    let machine = Machine::new();
    let files = machine.start();
    let versions = ["a".repeat(100_000), "b".repeat(70_000)];
    files.put(&key("a"), &file("a", &versions[0])).await.unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !is_over.load(Ordering::Relaxed) {
                let text = machine.read("a");
                assert!(versions.contains(&text), "{} bytes", text.len());
                reads += 1;
            }
            reads
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let writer = scope.spawn(move || {
            for round in 0..50 {
                runtime.block_on(files.put(&key("a"), &file("a", &versions_of(round)))).unwrap();
            }
        });
        let written = writer.join();
        is_over.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
        written.unwrap();
    });

    fn versions_of(round: u32) -> String {
        if round.is_multiple_of(2) { "b".repeat(70_000) } else { "a".repeat(100_000) }
    }
}

#[tokio::test]
async fn a_file_that_moves_is_written_at_its_new_place_before_the_old_one_goes() {
    let machine = Machine::new();
    machine.start().put(&key("a"), &file("old/a", "one")).await.unwrap();
    let (old, new) = (machine.at("old/a"), machine.at("new/a"));
    let files = machine.start_with(move |step| {
        assert!(step != Step::Switched || new.exists());
        assert!(new.exists() || old.exists());
        assert!(step != Step::Switched || old.exists());
        Ok(())
    });
    files
        .put(&key("a"), &File { reload: counted_reload(), ..file("new/a", "one") })
        .await
        .unwrap();
    assert_eq!(machine.tree(), ["new/", "new/a"]);
    assert_eq!(machine.reloads(), 1);
    files.put(&key("b"), &file("old/a", "the old path is free again")).await.unwrap();
}

#[tokio::test]
async fn a_removed_object_takes_its_file_and_the_directories_that_were_made_for_it() {
    let machine = Machine::new();
    fs::create_dir(machine.at("there")).unwrap();
    let files = machine.start();
    let wanted = file("there/made/too/a", "one");
    files.put(&key("a"), &wanted).await.unwrap();
    files.take(&key("a"), &wanted, 0).await.unwrap();
    assert_eq!(machine.tree(), ["there/"]);
    assert_eq!(machine.pages(), 0);
    files.take(&key("a"), &wanted, 0).await.expect("nothing there is success");
}

#[tokio::test]
async fn a_directory_goes_with_the_last_file_whoever_made_it() {
    let machine = Machine::new();
    let files = machine.start();
    let (a, b) = (file("made/a", "a"), file("made/b", "b"));
    files.put(&key("a"), &a).await.unwrap();
    files.put(&key("b"), &b).await.unwrap();
    files.take(&key("a"), &a, 0).await.unwrap();
    assert_eq!(machine.tree(), ["made/", "made/b"]);
    drop(files);
    let files = machine.start();
    machine.write("made/foreign", "");
    files.take(&key("b"), &b, 0).await.unwrap();
    assert_eq!(machine.tree(), ["made/", "made/foreign"], "what others put there stays");
}

#[tokio::test]
async fn a_full_disk_leaves_everything_as_it_was() {
    for moment in [Step::Intended, Step::Created, Step::Staged] {
        let machine = Machine::new();
        let before = file("a", "one");
        machine.start().put(&key("a"), &before).await.unwrap();
        let (identity, pages) = (machine.identity("a"), machine.pages());
        let full = move |step| if step == moment { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) };
        let files = machine.start_with(full);
        expect(files.put(&key("a"), &file("a", "two")).await, "IO", false, "cannot write a: no storage space");
        expect(files.put(&key("b"), &file("new/b", "two")).await, "IO", false, "cannot write new/b");
        assert_eq!((machine.tree(), machine.identity("a")), (vec!["a".to_owned()], identity), "{moment:?}");
        assert_eq!(machine.pages(), pages);
        drop(files);
        machine.start().put(&key("a"), &file("a", "two")).await.unwrap();
        assert_eq!(machine.read("a"), "two");
    }
}

/// The system itself refuses to write more: not on a full disk, which takes a disk, but at a limit of the process.
#[tokio::test]
async fn a_write_that_the_system_cuts_short_leaves_everything_as_it_was() {
    const LIMIT: u64 = 100_000;
    let machine = Machine::new();
    let files = machine.start();
    files.put(&key("a"), &file("a", "one")).await.unwrap();
    let identity = machine.identity("a");
    // Whoever listens for the signal is not killed by it.
    let _signals = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).unwrap();
    let usual = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(LIMIT), ..usual }).unwrap();
    let put = files.put(&key("a"), &file("a", &"x".repeat(200_000))).await;
    setrlimit(Resource::Fsize, usual).unwrap();
    expect(put, "IO", false, "cannot write a: File too large");
    assert_eq!((machine.tree(), machine.identity("a")), (vec!["a".to_owned()], identity));
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_said_by_name() {
    let machine = Machine::new();
    machine.write("conf.d", "a file");
    let put = machine.start().put(&key("a"), &file("conf.d/a", "x")).await;
    expect(put, "UNSAFE_PATH", true, "conf.d is no directory");
    fs::set_permissions(machine.at("conf.d"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(machine.read("conf.d"), "a file");
}
