//! Leases over the wire, with paused time.

use std::time::Duration;

use nimbus_bus::Limits;
use nimbus_core::{Kind, PublisherId};
use nimbus_store::{Guard, Refused};
use nimbus_wire::v1::{self, leases_client::LeasesClient, publisher_client::PublisherClient};
use tokio_stream::StreamExt as _;
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt as _;

use crate::scripted::{KIND, Local, config, object};

const TTL: Duration = Duration::from_secs(10);

/// Somebody who holds leases and publishes.
struct Instance {
    holder: &'static str,
    leases: LeasesClient<Channel>,
    publisher: PublisherClient<Channel>,
}

impl Instance {
    async fn new(local: &Local, holder: &'static str) -> Self {
        let channel = local.channel().await;
        Self { holder, leases: LeasesClient::new(channel.clone()), publisher: PublisherClient::new(channel) }
    }

    async fn acquire(&mut self, name: &str) -> v1::AcquireResponse {
        let ttl_ms = u32::try_from(TTL.as_millis()).unwrap();
        let request = v1::AcquireRequest { name: name.into(), holder: self.holder.into(), ttl_ms };
        self.leases.acquire(request).await.unwrap().into_inner()
    }

    async fn renew(&mut self, token: &v1::LeaseToken) -> Vec<String> {
        let request = v1::RenewRequest { leases: vec![token.clone()] };
        self.leases.renew(request).await.unwrap().into_inner().lost
    }

    async fn put(&mut self, name: &str, token: &v1::LeaseToken) -> Result<v1::ApplyResponse, Status> {
        let op = v1::Op { op: Some(v1::op::Op::Upsert(object(name, 10))), ..Default::default() };
        let (ops, leases) = (vec![op], vec![token.clone()]);
        let request = v1::ApplyRequest { publisher: "controller".into(), ops, leases, ..Default::default() };
        self.publisher.apply(request).await.map(tonic::Response::into_inner)
    }
}

fn token(answer: &v1::AcquireResponse) -> v1::LeaseToken {
    let lease = answer.lease.as_ref().unwrap();
    v1::LeaseToken { name: lease.name.clone(), token: lease.token }
}

fn expect_lost(status: &Status, holder: Option<&str>) {
    assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
    let details = status.get_error_details();
    let info = details.error_info().unwrap();
    assert_eq!((&*info.reason, &*info.metadata["lease"]), ("LEASE_LOST", "leader"));
    assert_eq!(info.metadata.get("holder").map(String::as_str), holder);
    let violation = &details.precondition_failure().unwrap().violations[0];
    assert_eq!((&*violation.r#type, &*violation.subject), ("lease", "leader"));
    assert!(status.message().contains(&format!("{} holds it now", holder.unwrap_or("nobody"))), "{status}");
}

/// Scenario 10 (H13).
#[tokio::test(start_paused = true)]
async fn a_leader_that_was_paused_for_longer_than_its_lease_writes_nothing() {
    let local = Local::start(config());
    let (mut old, mut new) = (Instance::new(&local, "a").await, Instance::new(&local, "b").await);
    let first = old.acquire("leader").await;
    assert!(first.granted);
    let lost = token(&first);
    let answer = new.acquire("leader").await;
    assert_eq!((answer.granted, &*answer.lease.unwrap().holder), (false, "a"));
    // It renews, and holds it for longer than it would last by itself.
    for _ in 0..3 {
        tokio::time::sleep(TTL / 2).await;
        assert!(old.renew(&lost).await.is_empty());
    }
    old.put("one", &lost).await.unwrap();
    assert!(local.metric("nimbus_bus_leases 1"));

    // It stalls. A write that was on its way is refused although nobody has taken over.
    tokio::time::sleep(TTL).await;
    expect_lost(&old.put("late", &lost).await.unwrap_err(), None);
    let second = new.acquire("leader").await;
    assert!(second.granted && token(&second).token > lost.token);
    expect_lost(&old.put("late", &lost).await.unwrap_err(), Some("b"));
    assert_eq!(old.renew(&lost).await, ["leader"]);

    // What it gives back is not its own any more.
    old.leases.release(v1::ReleaseRequest { leases: vec![lost.clone()] }).await.unwrap();
    new.put("two", &token(&second)).await.unwrap();
    let names: Vec<_> = ["one", "two", "late"].map(|name| exists(&local, name)).into();
    assert_eq!(names, [true, true, false]);
    assert!(local.metric("nimbus_bus_leases_acquired_total 2"));
    assert!(local.metric("nimbus_bus_leases_lost_total 3"));

    // Who gives it back lets others have it at once.
    new.leases.release(v1::ReleaseRequest { leases: vec![token(&second)] }).await.unwrap();
    assert!(local.metric("nimbus_bus_leases 0"));
    assert!(old.acquire("leader").await.granted);
    // That it has ended is seen by those who count, although nobody says so.
    tokio::time::sleep(TTL * 2).await;
    assert!(local.metric("nimbus_bus_leases 0"));
}

fn exists(local: &Local, name: &str) -> bool {
    let key = nimbus_core::ObjectKey::new(Kind::new(KIND).unwrap(), "", name).unwrap();
    local.bus.store().state().get(&key).is_some()
}

#[tokio::test(start_paused = true)]
async fn a_sync_of_somebody_who_lost_the_lease_sweeps_nothing() {
    let local = Local::start(config());
    local.sync(3, 10).await;
    let (mut old, mut new) = (Instance::new(&local, "a").await, Instance::new(&local, "b").await);
    let lease = token(&old.acquire("leader").await);
    let step = |step| v1::SyncRequest { step: Some(step) };
    let begin = v1::SyncBegin {
        publisher: "controller".into(),
        kinds: vec![KIND.into()],
        leases: vec![lease],
        ..Default::default()
    };
    let (begin, end) = (step(v1::sync_request::Step::Begin(begin)), step(v1::sync_request::Step::End(v1::SyncEnd {})));
    // The end comes when the lease is another's.
    let late =
        tokio_stream::once(begin.clone()).chain(tokio_stream::StreamExt::then(tokio_stream::once(end), |end| async {
            tokio::time::sleep(TTL * 2).await;
            end
        }));
    let successor = async {
        tokio::time::sleep(TTL + TTL / 2).await;
        assert!(new.acquire("leader").await.granted);
    };
    let (done, ()) = tokio::join!(old.publisher.sync(Box::pin(late)), successor);
    expect_lost(&done.unwrap_err(), Some("b"));
    assert_eq!(local.bus.store().state().objects(), 3);
    assert!(local.metric(r#"nimbus_bus_syncs_total{outcome="aborted"} 1"#));
    expect_lost(&old.publisher.sync(tokio_stream::once(begin)).await.unwrap_err(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn leases_are_listed_by_the_beginning_of_their_names() {
    let local = Local::start(config());
    let mut one = Instance::new(&local, "a").await;
    for name in ["x.shard-1", "x.shard-0", "y.shard-0"] {
        one.acquire(name).await;
    }
    tokio::time::sleep(TTL / 2).await;
    let list = v1::ListLeasesRequest { prefix: "x.".into() };
    let listed = one.leases.list_leases(list).await.unwrap().into_inner().leases;
    let listed: Vec<_> = listed.iter().map(|lease| (&*lease.name, &*lease.holder, lease.expires_in_ms)).collect();
    assert_eq!(listed, [("x.shard-0", "a", 5000), ("x.shard-1", "a", 5000)]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_nobody_could_have_is_refused_by_field() {
    let limits = Limits { store: nimbus_store::Limits { leases: 1, ..Default::default() }, ..Limits::default() };
    let local = Local::start(nimbus_bus::Config { limits, ..config() });
    let mut one = Instance::new(&local, "a").await;
    let cases = [
        ("", "a", 1000, "name", "1 to 253"),
        ("a/b", "a", 1000, "name", "1 to 253"),
        ("leader", "", 1000, "holder", "a name of this instance"),
        ("leader", "ü", 1000, "holder", "1 to 253"),
        ("leader", "a", 0, "ttl_ms", "between 100 ms and 3600000 ms, not 0 ms"),
        ("leader", "a", u32::MAX, "ttl_ms", "between 100 ms and 3600000 ms"),
    ];
    for (name, holder, ttl_ms, field, words) in cases {
        let request = v1::AcquireRequest { name: name.into(), holder: holder.into(), ttl_ms };
        let status = one.leases.acquire(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert_eq!(status.get_error_details().bad_request().unwrap().field_violations[0].field, field);
        assert!(status.message().contains(words), "{status}");
    }
    one.acquire("leader").await;
    let request = v1::AcquireRequest { name: "other".into(), holder: "a".into(), ttl_ms: 1000 };
    let status = one.leases.acquire(request).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.get_error_details().error_info().unwrap().metadata["limit"], "leases");
    let tokens = vec![v1::LeaseToken { name: "x".into(), token: 1 }; 2];
    let status = one.leases.renew(v1::RenewRequest { leases: tokens }).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(local.metric(r#"nimbus_bus_refusals_total{limit="leases"} 2"#));
    assert!(local.metric(r#"nimbus_bus_used{limit="leases"} 1"#));
    // What nobody ever had is lost, and no error.
    let unknown = v1::LeaseToken { name: "never".into(), token: 1 };
    assert_eq!(one.renew(&unknown).await, ["never"]);
}

#[tokio::test(start_paused = true)]
async fn nobody_holds_or_gives_back_the_lease_of_another() {
    let local = Local::start(config());
    let mut one = Instance::new(&local, "a").await;
    let lease = token(&one.acquire("leader").await);
    fn claim<T>(message: T, name: &str) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        request.metadata_mut().insert("nimbus-identity", name.parse().unwrap());
        request
    }
    let leases = vec![lease];
    let acquire = |holder: &str| v1::AcquireRequest { name: "leader".into(), holder: holder.into(), ttl_ms: 1000 };
    let denied = [
        one.leases.acquire(claim(acquire("a"), "b")).await.unwrap_err(),
        one.leases
            .renew(claim(v1::RenewRequest { leases: leases.clone() }, "b"))
            .await
            .unwrap_err(),
        one.leases
            .release(claim(v1::ReleaseRequest { leases: leases.clone() }, "b"))
            .await
            .unwrap_err(),
    ];
    for status in denied {
        assert_eq!(status.code(), Code::PermissionDenied, "{status}");
    }
    let own = one.leases.acquire(claim(acquire(""), "a")).await.unwrap().into_inner();
    assert_eq!((own.granted, &*own.lease.unwrap().holder), (true, "a"));
    one.leases.release(claim(v1::ReleaseRequest { leases }, "a")).await.unwrap();
    assert!(local.bus.leases("").await.unwrap().is_empty());
}

/// A token of one life of the bus must not be good in the next, which knows nothing of the first.
#[tokio::test(start_paused = true)]
async fn tokens_of_a_bus_that_forgets_do_not_come_again_after_a_restart() {
    let mut tokens = Vec::new();
    for seed in [0x1111_2222_3333_4444, 0x5555_6666_7777_8888] {
        let local = Local::start(nimbus_bus::Config { seed, ..config() });
        tokens.push(token(&Instance::new(&local, "a").await.acquire("leader").await).token);
    }
    assert_ne!(tokens[0], tokens[1]);
}

#[tokio::test(start_paused = true)]
async fn a_program_holds_leases_without_the_network() {
    let local = Local::start(config());
    let held = local.bus.acquire("leader", "a", TTL).await.unwrap().lease;
    let guards = [Guard { lease: held.name, token: held.token }];
    assert!(!local.bus.acquire("leader", "b", TTL).await.unwrap().granted);
    let (publisher, kinds) = (PublisherId::new("p").unwrap(), [Kind::new(KIND).unwrap()].into());
    let sync = local.bus.begin_sync(&publisher, 0, &kinds, guards.to_vec()).await.unwrap();
    tokio::time::sleep(TTL).await;
    assert!(matches!(sync.end().await, Err(Refused::LeaseLost { .. })));
    assert_eq!(local.bus.renew(&guards), [guards[0].lease.clone()]);
    assert!(local.bus.acquire("leader", "b", TTL).await.unwrap().granted);
    local.bus.release(&guards);
    assert_eq!(local.bus.leases("").await.unwrap().len(), 1);
}
