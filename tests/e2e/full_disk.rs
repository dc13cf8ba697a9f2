//! A bus whose disk is full.

use std::{collections::BTreeMap, fs};

use tonic::Code;

use crate::{
    http_client,
    machine::Machine,
    namespace::Namespace,
    server::{Server, binary},
    user::{User, spec},
};

const KIND: &str = "demo.v1.Blob";

/// Readers go on, writers are told why not; and when there is room, and it was started again, everything that was acknowledged
/// is there, and agents go on where they were.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bus_whose_disk_is_full_serves_what_it_has_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let namespace = Namespace::new(&["--mount"]);
    namespace.mount("8m", &disk);
    let start = |listen: &str| {
        let store = format!("redb:{}", disk.join("store.redb").display());
        let mut command = namespace.command(binary());
        command.args(["serve", "--listen", listen, "--admin", "127.0.0.1:0", "--bookmark-interval", "0.3"]);
        Server::spawn(command.args(["--store", &store]))
    };
    let bus = start("127.0.0.1:0");
    let address = bus.address.clone();
    let mut user = User::of(&bus.url(), KIND);
    user.begin().await;
    let mut machine = Machine::start("m", &bus.url(), KIND);
    let text = |n: usize| format!("{n} {}", "x".repeat(100_000));
    let mut number = 0;
    let refused = loop {
        match user.try_put(&format!("o{number}"), &text(number)).await {
            Ok(()) => number += 1,
            Err(status) => break status,
        }
        assert!(number < 1_000, "a disk of eight megabytes takes everything");
    };
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    assert!(refused.message().contains("is the disk full"), "{refused}");
    assert!(number > 10, "{number}");

    // Who reads notices nothing, and who comes now is served.
    machine.comes_to(&user).await;
    assert_eq!(user.list(KIND).await, user.wanted());
    let mut late = Machine::start("late", &bus.url(), KIND);
    late.comes_to(&user).await;
    let again = user.try_put("small", "").await.unwrap_err();
    assert_eq!((again.code(), again.message()), (refused.code(), refused.message()));
    let ready = http_client::get(&bus.admin, "/readyz").await;
    assert!(ready.status == 503 && ready.body.contains("is the disk full"), "{ready:?}");

    // A restart alone does not help: it says so, and harms nothing.
    namespace.sh(&format!("mount -o remount,size=64m {}", disk.display()));
    let still = user.try_put("small", "").await.unwrap_err();
    assert_eq!(still.code(), Code::Unavailable, "only a restart helps");
    bus.signal("KILL");
    drop(bus);
    let _bus = start(&address);
    user.put([("after".to_owned(), "room".to_owned())]).await;
    // Of what was refused, nobody knew whether it is there.
    let listed = user.list(KIND).await;
    let extra: BTreeMap<_, _> = listed.into_iter().filter(|(name, _)| !user.wanted().contains_key(name)).collect();
    let doubtful = BTreeMap::from([(format!("o{number}"), spec(&text(number)))]);
    assert!(extra.is_empty() || extra == doubtful, "{:?}", extra.keys());
    user.put(
        extra
            .is_empty()
            .then(Vec::new)
            .unwrap_or_else(|| vec![(format!("o{number}"), text(number))]),
    )
    .await;
    machine.comes_to(&user).await;
    late.comes_to(&user).await;
    assert_eq!(user.list(KIND).await, user.wanted());
}
