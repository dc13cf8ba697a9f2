//! The same reactor in the process of its store, and on the other side of a network (H06).

use ctkit::{Leases, Manager, Source, Store, Target};

use crate::{
    life::Life,
    lives::diary::Diary,
    net::Daemon,
    world::{delete, head, published, put, quiet, ready, texts},
};

/// A life of a controller on any source; `store` is what is behind it.
async fn live<S: Source + Target + Leases>(store: &Store, connect: impl Fn() -> S) {
    let diary = Diary::default();
    let manager = || Manager::builder(connect()).controller(diary.controller().finalizer("cleanup")).seed(7);
    put(&connect(), "web", &["a", "b"], "one").await;
    let life = Life::begin(manager()).await;
    assert_eq!(published(store), texts(&[("a", "one"), ("b", "one")]));
    assert_eq!(ready(store, "web").0, "Reconciled");

    put(&connect(), "web", &["b", "c"], "two").await;
    put(&connect(), "db", &["d"], "one").await;
    quiet().await;
    assert_eq!(published(store), texts(&[("b", "two"), ("c", "two"), ("d", "one")]));
    diary.fail("db", true);
    put(&connect(), "db", &[], "two").await;
    quiet().await;
    assert_eq!(published(store), texts(&[("b", "two"), ("c", "two"), ("d", "one")]), "the last good version stays");
    assert_eq!(ready(store, "db").0, "Failed");
    diary.fail("db", false);
    quiet().await;
    assert_eq!(published(store), texts(&[("b", "two"), ("c", "two")]));
    life.stop().await;
    diary.take();

    delete(&connect(), "web").await;
    put(&connect(), "db", &["d"], "three").await;
    let life = Life::begin(manager()).await;
    assert_eq!(diary.take(), ["delete web=two", "update db=two>three"]);
    assert_eq!(published(store), texts(&[("d", "three")]));
    life.stop().await;
    let before = head(store);
    Life::begin(manager()).await.stop().await;
    assert_eq!(head(store), before);
}

#[tokio::test(start_paused = true)]
async fn a_reactor_runs_beside_its_store() {
    let store = Store::in_memory();
    live(&store, || store.clone()).await;
}

#[tokio::test(start_paused = true)]
async fn the_same_reactor_runs_on_the_other_side_of_a_network() {
    // What users write one by one, nobody ever syncs.
    let daemon = Daemon::start(|config| config.assume_complete = true);
    live(&daemon.store, || daemon.remote()).await;
}
