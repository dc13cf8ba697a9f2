//! Objects that refer to others by themselves, whether their reactor reads those or not.

use std::sync::Arc;

use ctkit::{Action, Context, Controller, Draft, Object, Ref, Store, functions};
use nimbus_store::Op;
use protox::{
    Compiler,
    file::{ChainFileResolver, DescriptorSetFileResolver, File, FileResolver, GoogleFileResolver},
};

use crate::{
    kinds::{Policy, Rules, Zone},
    life::Life,
    log::Log,
    world::{apply, key, put, write},
};

/// Notes for which policies it is called, and reads nothing.
fn noting(log: &Log) -> Controller {
    let log = log.clone();
    let reactor = functions().on_apply(move |_: Context, policy: Arc<Object<Policy>>| {
        log.note(policy.name());
        async { Ok(Action::done()) }
    });
    Controller::new(reactor).named("policies").publishes::<Rules>()
}

async fn put_zone(store: &Store, name: &str, text: &str) {
    apply(store, Draft::new(name, Zone { text: text.to_owned() })).await;
}

fn policy(name: &str) -> Draft<Policy> {
    Draft::new(name, Policy::default())
}

#[tokio::test(start_paused = true)]
async fn what_an_object_refers_to_by_itself_wakes_its_reactor() {
    let (store, log) = (Store::in_memory(), Log::default());
    // Some are there before anybody looks, and are looked at for the first time like all others.
    apply(&store, policy("strong").needs(&key::<Zone>("x"))).await;
    apply(&store, policy("weak").refers(&key::<Zone>("x"))).await;
    apply(&store, policy("none")).await;
    let life = Life::new(&store, noting(&log)).await;
    life.settled().await;
    apply(&store, policy("late").needs(&key::<Zone>("y"))).await;
    life.settled().await;
    log.take();
    let woken = async || {
        life.settled().await;
        let mut woken = log.take();
        woken.sort();
        woken
    };
    put_zone(&store, "x", "1").await;
    assert_eq!(woken().await, ["strong", "weak"], "it appeared");
    put_zone(&store, "x", "2").await;
    assert_eq!(woken().await, ["strong", "weak"], "it changed");
    put_zone(&store, "y", "1").await;
    assert_eq!(woken().await, ["late"]);
    write(&store, Op::Delete(key::<Zone>("x"))).await;
    assert_eq!(woken().await, ["strong", "weak"], "it is gone");
    // What it does not refer to any more wakes it no more.
    apply(&store, policy("weak")).await;
    apply(&store, policy("strong").needs(&key::<Zone>("z"))).await;
    assert_eq!(woken().await, ["strong", "weak"]);
    put_zone(&store, "x", "3").await;
    assert_eq!(woken().await, [""; 0]);
    let explained = life.handle.explain("policies", &key::<Policy>("strong")).await.unwrap().unwrap();
    assert_eq!(explained.refers_to, [Ref::to(&key::<Zone>("z"))]);
    life.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_marked_before_it_is_looked_at_follows_as_well() {
    let (store, log) = (Store::in_memory(), Log::default());
    let life = Life::new(&store, noting(&log).finalizer("policies")).await;
    apply(&store, policy("web").needs(&key::<Zone>("x"))).await;
    life.settled().await;
    log.take();
    put_zone(&store, "x", "1").await;
    life.settled().await;
    assert_eq!(log.take(), ["web"]);
    life.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_reactor_that_does_without_is_left_alone() {
    let (store, log) = (Store::in_memory(), Log::default());
    apply(&store, policy("early").needs(&key::<Zone>("x"))).await;
    let life = Life::new(&store, noting(&log).without_refs_of_objects()).await;
    apply(&store, policy("late").needs(&key::<Zone>("x"))).await;
    life.settled().await;
    log.take();
    put_zone(&store, "x", "1").await;
    life.settled().await;
    assert_eq!(log.take(), [""; 0]);
    life.stop().await;
}

/// What the types of these tests would be made of.
struct Source;

impl FileResolver for Source {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let source = r#"syntax = "proto3";
            package kit.v1;
            import "nimbus/v1/options.proto";
            message Policy {
              repeated string zones = 1 [(nimbus.v1.refers) = {kind: "kit.v1.Zone"}];
              string text = 2;
            }"#;
        if name == "kit.proto" { File::from_source(name, source) } else { Err(protox::Error::file_not_found(name)) }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_schema_says_that_an_object_refers_to_wakes_its_reactor() {
    let (store, log) = (Store::in_memory(), Log::default());
    let mut resolver = ChainFileResolver::new();
    resolver.add(Source);
    resolver.add(GoogleFileResolver::new());
    resolver.add(DescriptorSetFileResolver::decode(nimbus_wire::v1::FILE_DESCRIPTOR_SET).unwrap());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).open_file("kit.proto").unwrap();
    store.register_kinds(&compiler.encode_file_descriptor_set()).unwrap();
    let life = Life::new(&store, noting(&log)).await;
    put(&store, "web", &["x", "y"], "").await;
    put(&store, "db", &["y"], "").await;
    life.settled().await;
    log.take();
    put_zone(&store, "x", "1").await;
    life.settled().await;
    assert_eq!(log.take(), ["web"]);
    // And what it does not name any more does not.
    put(&store, "web", &["y"], "").await;
    life.settled().await;
    log.take();
    put_zone(&store, "x", "2").await;
    life.settled().await;
    assert_eq!(log.take(), [""; 0]);
    put_zone(&store, "y", "1").await;
    life.settled().await;
    let mut woken = log.take();
    woken.sort();
    assert_eq!(woken, ["db", "web"]);
    life.stop().await;
}
