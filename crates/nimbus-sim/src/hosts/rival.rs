//! Two programs that want the same lease, one of which is always too slow to notice that it has lost it.

use nimbus_wire::v1::{self, leases_client::LeasesClient, op, publisher_client::PublisherClient};
use rand::{RngExt as _, rngs::SmallRng};
use tokio::time::{sleep, timeout};

use crate::{
    hosts::{PATIENCE, connect, endpoint, keep_jumping},
    net::Line,
    setup::pick,
    world::{World, millis},
};

const LEASE: &str = "leader";

/// Both write as the same publisher, as instances of one controller do.
const PUBLISHER: &str = "rivals";

/// Runs until it is killed.
pub(crate) async fn run(world: World, name: &'static str, line: Line) -> turmoil::Result {
    let mut rng = world.rng(name);
    tokio::spawn(keep_jumping(world.clone(), name.to_owned()));
    loop {
        let Err(why) = live(&world, name, &line, &mut rng).await;
        world.note(name, format!("begins again: {why}"));
        sleep(millis(&mut rng, 50, 800)).await;
    }
}

async fn live(world: &World, name: &str, line: &Line, rng: &mut SmallRng) -> Result<std::convert::Infallible, String> {
    let channel = connect(line).await?;
    let uri = endpoint().uri().clone();
    let mut leases = LeasesClient::with_origin(channel.clone(), uri.clone());
    let mut publisher = PublisherClient::with_origin(channel, uri);
    loop {
        let ttl_ms = pick(rng, &[300, 1_500, 4_000]);
        let request = v1::AcquireRequest { name: LEASE.into(), holder: name.to_owned(), ttl_ms };
        let answer = timeout(PATIENCE, leases.acquire(request)).await.map_err(|_| "no answer".to_owned())?;
        let answer = answer.map_err(|status| status.message().to_owned())?.into_inner();
        let token = answer.lease.map(|lease| lease.token).unwrap_or_default();
        if !answer.granted {
            sleep(millis(rng, 50, 600)).await;
            continue;
        }
        world.note(name, format!("has the lease with token {token}"));
        for _ in 0..rng.random_range(1..6) {
            // Sometimes it sleeps for longer than its lease lasts, and does not know.
            let longest = pick(rng, &[50, 500, 5_000]);
            sleep(millis(rng, 0, longest)).await;
            let object = v1::Object {
                kind: "sim.v1.Claim".into(),
                name: "claim".into(),
                annotations: [("claim".to_owned(), rng.random::<u64>().to_string())].into(),
                spec: Some(prost_types::Any { type_url: "type.googleapis.com/sim.v1.Claim".into(), value: Vec::new() }),
                ..Default::default()
            };
            let request = v1::ApplyRequest {
                publisher: PUBLISHER.to_owned(),
                ops: vec![v1::Op { op: Some(op::Op::Upsert(object)), ..Default::default() }],
                leases: vec![v1::LeaseToken { name: LEASE.into(), token }],
                ..Default::default()
            };
            let answer = timeout(PATIENCE, publisher.apply(request)).await.map_err(|_| "no answer".to_owned())?;
            match answer {
                Ok(answer) => claimed(world, name, answer.get_ref(), token),
                Err(status) if status.code() == tonic::Code::FailedPrecondition => break,
                Err(status) => return Err(status.message().to_owned()),
            }
        }
        if rng.random_bool(0.3) {
            let held = vec![v1::LeaseToken { name: LEASE.into(), token }];
            let answer = timeout(PATIENCE, leases.release(v1::ReleaseRequest { leases: held })).await;
            answer
                .map_err(|_| "no answer".to_owned())?
                .map_err(|status| status.message().to_owned())?;
        }
    }
}

/// Nobody writes with an old token after somebody has written with a newer one.
fn claimed(world: &World, name: &str, answer: &v1::ApplyResponse, token: u64) {
    let mut world = world.lock();
    world.note(name, format!("claims with token {token} at {}", answer.revision));
    let (epoch, revision) = (answer.epoch, answer.revision);
    let wrong = (world.claims.iter()).find(|(at, earlier, other)| {
        *at == epoch && ((*earlier < revision && *other > token) || (*earlier > revision && *other < token))
    });
    if let Some((_, at, other)) = wrong.copied() {
        let what = format!("token {token} wrote at {revision}, and token {other} at {at}");
        world.violate(name, "Fenced", &what);
    }
    world.claims.push((epoch, revision, token));
}
