//! A user, who writes policies one after the other, each until it is taken.

use nimbus_client::Endpoint;
use nimbus_core::Spec as _;
use nimbus_wire::v1::{self, op, publisher_client::PublisherClient};
use rand::{RngExt as _, rngs::SmallRng};
use tokio::time::{sleep, timeout};
use tonic::Code;

use crate::{
    hosts::{API_ADDRESS, PATIENCE, connect_to, keep_jumping},
    net::Line,
    policies::Policy,
    setup::USER,
    world::{Phase, World, millis},
};

/// How many policies there may be.
const POLICIES: u32 = 3;

/// Runs until it is killed. What was not taken by then is written again, by whoever comes after.
pub(crate) async fn run(world: World, line: Line) -> turmoil::Result {
    let mut rng = world.rng(USER);
    tokio::spawn(keep_jumping(world.clone(), USER.to_owned()));
    loop {
        if let Err(why) = live(&world, &line, &mut rng).await {
            world.note(USER, format!("begins again: {why}"));
        }
        world.lock().policies.done = false;
        sleep(millis(&mut rng, 50, 500)).await;
    }
}

async fn live(world: &World, line: &Line, rng: &mut SmallRng) -> Result<(), String> {
    let endpoint = Endpoint::parse(API_ADDRESS)?;
    let channel = connect_to(line, &endpoint).await?;
    let mut client = PublisherClient::with_origin(channel, endpoint.uri().clone());
    let fence = {
        let mut world = world.lock();
        world.policies.fence += 1;
        world.policies.fence
    };
    // Nobody knows which of the last writes were taken.
    let mut open: Vec<String> = (0..POLICIES).map(|number| format!("policy-{number}")).collect();
    loop {
        if let Some(policy) = open.pop() {
            write(world, &mut client, fence, &policy).await?;
            continue;
        }
        let policy = match world.phase() {
            Phase::Chaos => {
                sleep(millis(rng, 20, 1_500)).await;
                Some(format!("policy-{}", rng.random_range(0..POLICIES)))
            }
            Phase::Steady => {
                let all: Vec<_> = (0..POLICIES).map(|number| format!("policy-{number}")).collect();
                world.lock().policies.untouched(all.iter().map(String::as_str)).map(str::to_owned)
            }
            Phase::Settling | Phase::Quiet => None,
        };
        let Some(policy) = policy else {
            world.lock().policies.done = true;
            sleep(millis(rng, 200, 500)).await;
            continue;
        };
        let rules = rng.random_bool(0.75).then(|| rng.random_range(0..4));
        let number = {
            let mut world = world.lock();
            // Nothing may have begun to fail, nor come to rest, in between.
            if world.phase == Phase::Steady {
                world.policies.touch(&policy, rules)
            } else {
                world.policies.change(&policy, rules)
            }
        };
        world.note(USER, format!("writes {policy} as {number}: {rules:?} rules"));
        open.push(policy);
    }
}

/// Writes a policy as it should be.
async fn write(
    world: &World,
    client: &mut PublisherClient<nimbus_client::Channel>,
    fence: u64,
    policy: &str,
) -> Result<(), String> {
    let wanted = world.lock().policies.wanted(policy);
    let Some((number, rules, life)) = wanted else { return Ok(()) };
    let kind = Policy::kind().to_string();
    let op = match rules {
        None => op::Op::Delete(v1::Key { kind, namespace: String::new(), name: policy.to_owned() }),
        Some(rules) => op::Op::Upsert(v1::Object {
            kind,
            name: policy.to_owned(),
            uid: format!("{policy}.{life}"),
            generation: number,
            spec: Some(Policy { rules, number }.pack()),
            ..Default::default()
        }),
    };
    let ops = vec![v1::Op { op: Some(op), ..Default::default() }];
    let request = v1::ApplyRequest { publisher: USER.to_owned(), fence, ops, ..Default::default() };
    let answer = timeout(PATIENCE, client.apply(request)).await.map_err(|_| "no answer".to_owned())?;
    match answer {
        Ok(_) => Ok(()),
        Err(status) => {
            if matches!(status.code(), Code::InvalidArgument | Code::FailedPrecondition) {
                world.violate(USER, "Reliable", &format!("{policy} as {number} was refused: {status}"));
            }
            Err(status.message().to_owned())
        }
    }
}
