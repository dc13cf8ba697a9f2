//! The bus inside a program: what it writes is what clients would have written.

use std::{collections::BTreeSet, sync::Arc};

use nimbus_bus::{Config, Limits};
use nimbus_core::{Annotations, Audience, Kind, Labels, ObjectKey, PublisherId};
use nimbus_store::{Draft, Effect, Op, Refused, Txn};
use nimbus_wire::v1::{self, fleet_server::Fleet as _};
use prost::Message as _;
use tonic::{Code, Request};
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};

use crate::scripted::{KIND, Local, agent, config, object, until_bookmark};

fn kinds() -> BTreeSet<Kind> {
    [Kind::new(KIND).unwrap()].into()
}

fn publisher(name: &str) -> PublisherId {
    PublisherId::new(name).unwrap()
}

fn draft(name: &str) -> Draft {
    Draft {
        key: ObjectKey::new(Kind::new(KIND).unwrap(), "", name).unwrap(),
        uid: None,
        generation: None,
        labels: Labels::default(),
        refs: Arc::default(),
        owner: None,
        annotations: Annotations::default(),
        audience: Audience::Everyone,
        spec: object(name, 10).spec.unwrap().encode_to_vec().into(),
    }
}

fn txn(name: &str) -> Txn {
    let steps = vec![Op::Upsert(draft(name)).into()];
    Txn { publisher: publisher("inside"), fence: 0, leases: Vec::new(), steps }
}

async fn is_ready(local: &Local) -> bool {
    let request = HealthCheckRequest { service: "nimbus.ready".into() };
    let answer = HealthClient::new(local.channel().await).check(request).await.unwrap();
    answer.into_inner().status() == ServingStatus::Serving
}

#[tokio::test(start_paused = true)]
async fn what_a_program_syncs_completes_its_kinds_and_reaches_agents() {
    let local = Local::start(config());
    assert!(is_ready(&local).await, "there is nothing that could be incomplete");
    // A write of a kind that nobody has synced.
    local.bus.submit(&txn("early")).await.unwrap();
    assert!(!is_ready(&local).await);

    let mut sync = local.bus.begin_sync(&publisher("inside"), 0, &kinds(), Vec::new()).await.unwrap();
    let items = sync.items(vec![draft("kept")]).await.unwrap();
    assert_eq!(items.outcomes[0].effect, Effect::Created);
    drop(sync);
    assert!(local.metric(r#"nimbus_bus_syncs_total{outcome="aborted"} 1"#));
    assert_eq!(local.bus.store().state().objects(), 2, "a sync that is given up deletes nothing");
    assert!(!is_ready(&local).await);

    let mut sync = local.bus.begin_sync(&publisher("inside"), 0, &kinds(), Vec::new()).await.unwrap();
    sync.items(vec![draft("kept")]).await.unwrap();
    let (_, summary) = sync.end().await.unwrap();
    assert_eq!((summary.unchanged, summary.deleted), (1, 1));
    assert!(is_ready(&local).await);
    assert!(local.metric(r#"nimbus_bus_syncs_total{outcome="ended"} 1"#));
    assert!(local.metric(r#"nimbus_bus_used{limit="objects"} 1"#));

    let mut frames = local.bus().await.subscribe(agent("a")).await.unwrap().into_inner();
    let bookmark = until_bookmark(&mut frames).await;
    assert_eq!((bookmark.objects, &*bookmark.publishers[0].publisher), (1, "inside"));
}

#[tokio::test(start_paused = true)]
async fn a_program_is_counted_and_refused_as_clients_are() {
    let local = Local::start(Config { limits: Limits { publishers: 1, ..Limits::default() }, ..config() });
    local.bus.submit(&txn("a")).await.unwrap();
    assert!(local.metric(r#"nimbus_bus_transactions_total{outcome="committed"} 1"#));
    let other = Txn { publisher: publisher("other"), ..txn("b") };
    let refused = local.bus.submit(&other).await.unwrap_err();
    assert!(matches!(refused, Refused::Full { limit: "publishers", max: 1 }), "{refused}");
    assert!(local.bus.begin_sync(&publisher("other"), 0, &kinds(), Vec::new()).await.is_err());
    assert!(local.metric(r#"nimbus_bus_refusals_total{limit="publishers"} 2"#));
    assert!(local.metric(r#"nimbus_bus_transactions_total{outcome="refused"} 2"#));
}

#[tokio::test(start_paused = true)]
async fn a_program_asks_about_agents_without_the_network() {
    let local = Local::start(config());
    local
        .bus
        .begin_sync(&publisher("inside"), 0, &kinds(), Vec::new())
        .await
        .unwrap()
        .end()
        .await
        .unwrap();
    let mut frames = local.bus().await.subscribe(agent("a")).await.unwrap().into_inner();
    until_bookmark(&mut frames).await;
    local.bus.submit(&txn("x")).await.unwrap();
    let fleet = local.bus.fleet_service();
    let key = v1::Key { kind: KIND.into(), name: "x".into(), ..Default::default() };
    let target = Some(v1::Target { target: Some(v1::target::Target::Object(key)) });
    let request = v1::GetPropagationRequest { target, ..Default::default() };
    let answer = fleet.clone().get_propagation(Request::new(request)).await.unwrap().into_inner();
    let propagation = answer.propagation.unwrap();
    assert_eq!((propagation.agents, propagation.pending), (1, 1));
    let status = fleet
        .get_propagation(Request::new(v1::GetPropagationRequest::default()))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
}
