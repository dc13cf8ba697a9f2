//! The bus restarts with its file, and everybody comes back with what it holds.

use std::sync::Arc;

use anyhow::Context as _;
use nimbus_core::{AgentId, Kind, Labels};
use nimbus_store::{Scope, Viewer};
use nimbus_wire::v1;
use serde_json::json;
use tokio::time::Instant;

use crate::{
    crowd::{Begin, Counting, Crowd},
    objects::{KIND, agent, name, object},
    protocol::Settings,
    publisher::Publisher,
    report::{Report, Row, median},
    server::Server,
    storm::{Arguments, PATIENCE, UNLIMITED},
    subscriber::Subscriber,
    system::{Feeder, System, bus_subscription},
    usage::Usage,
};

/// Objects that are changed in one transaction.
const CHANGES: usize = 256;

/// One round.
struct Round {
    seconds: f64,
    cpu: f64,
    peak_mb: f64,
    steady_mb: f64,
    bytes: f64,
    generator: f64,
}

/// Runs all of it.
pub(crate) async fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    report.say("subscribers that come back at once after the bus was killed and started again:");
    for subscribers in arguments.returning.iter().copied() {
        for changed in arguments.changed.iter().copied() {
            let mut rounds = Vec::new();
            for round in 1..=arguments.compared.repeat {
                let outcome = run_once(arguments, subscribers, changed).await?;
                let Round { seconds, bytes, .. } = outcome;
                let what = format!("{subscribers} subscribers, {changed} % changed");
                report.progress(&format!(
                    "{round}/{} {what}: {seconds:.2} s, {bytes:.0} bytes",
                    arguments.compared.repeat
                ));
                rounds.push(outcome);
            }
            let of = |figure: fn(&Round) -> f64| json!(median(rounds.iter().map(figure)));
            let row: Row = vec![
                ("system", json!(System::Nimbus.name())),
                ("version", json!(System::Nimbus.version()?)),
                ("subscribers", json!(subscribers)),
                ("batch", json!(0)),
                ("objects", json!(arguments.objects)),
                ("changed_percent", json!(changed)),
                ("seconds", of(|round| round.seconds)),
                ("bytes_per_agent", of(|round| round.bytes)),
                ("server_cpu_s", of(|round| round.cpu)),
                ("peak_rss_mb", of(|round| round.peak_mb)),
                ("steady_rss_mb", of(|round| round.steady_mb)),
                ("generator_cpu_percent", of(|round| round.generator)),
            ];
            report.measurements(&[row])?;
        }
    }
    Ok(())
}

async fn run_once(arguments: &Arguments, subscribers: u64, changed: u64) -> anyhow::Result<Round> {
    let bytes = arguments.bytes as usize;
    let folder = tempfile::Builder::new().prefix("nimbus-bench-").tempdir()?;
    let file = folder.path().join("store.redb");
    let server = Server::start_durable(&file, &UNLIMITED).await?;
    Feeder::open(System::Nimbus, server.address, bytes, arguments.objects).await?;
    let resume = held(&server).await?;
    server.kill().await?;

    let server = Server::start_durable(&file, &UNLIMITED).await?;
    let publisher = Publisher::open(server.address).await?;
    let numbers: Vec<u64> = (0..(arguments.objects * changed).div_ceil(100)).collect();
    for some in numbers.chunks(CHANGES) {
        publisher
            .update(some.iter().map(|number| object(name(*number), 2, bytes)).collect())
            .await?;
    }
    let steady = server.steady_usage().await?;
    let (own, began) = (Usage::own()?, Instant::now());
    let begin: Begin = Arc::new(move |number| {
        let mut resume = resume.clone();
        if let Some(position) = &mut resume.position {
            position.scope = scope(&agent(number))?;
        }
        bus_subscription(number, Settings::AGENT, Some(resume))
    });
    let at_once = usize::try_from(subscribers)?;
    let crowd = Crowd::begin(server.address, subscribers, at_once, Counting::Everything, &begin);
    let everybody = async {
        if numbers.is_empty() {
            crowd.wait_ready().await
        } else {
            crowd.expect(numbers.len() as u64);
            crowd.wait_for_all().await
        }
    };
    tokio::time::timeout(PATIENCE, everybody).await.context("not everybody came back")??;
    let seconds = began.elapsed().as_secs_f64();
    let (after, own_after) = (server.usage()?, Usage::own()?);
    Ok(Round {
        seconds,
        cpu: (after.cpu - steady.cpu).as_secs_f64(),
        peak_mb: after.peak_kib as f64 / 1024.0,
        steady_mb: steady.rss_kib as f64 / 1024.0,
        bytes: crowd.seen().1 as f64 / subscribers as f64,
        generator: 100.0 * (own_after.cpu - own.cpu).as_secs_f64() / seconds,
    })
}

/// What an agent holds that has everything, as it says when it comes back.
async fn held(server: &Server) -> anyhow::Result<v1::Resume> {
    let mut subscriber = Subscriber::open(server.address, agent(0), 0).await?;
    subscriber.catch_up().await?;
    subscriber.held.resume().context("an agent that has everything has no position")
}

/// What stands for the subscription of an agent: all that differs between those who hold the same.
fn scope(agent: &str) -> anyhow::Result<u64> {
    let viewer = Viewer::Agent { id: AgentId::new(agent)?, labels: Labels::default() };
    let kinds = Some(Arc::new([Kind::new(KIND)?].into_iter().collect()));
    Ok(Scope { kinds, filter: None, viewer }.hash().0)
}
