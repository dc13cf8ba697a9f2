//! What a report costs the bus, apart from everything else.

use std::{fmt, time::Duration};

use anyhow::ensure;
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    objects::{name, own_object},
    operator::{self, Operator},
    publisher::Publisher,
    report::{Row, median},
    server::Server,
    session::{Session, failure},
};

/// How agents report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Once,
    Stream,
    OnceFailed,
    StreamFailed,
}

/// All of them; failures come last, because they stay.
pub(crate) const HOWS: [How; 4] = [How::Once, How::Stream, How::OnceFailed, How::StreamFailed];

/// What reports in one way cost.
#[derive(Debug)]
pub(crate) struct Cost {
    how: How,
    reports: u64,
    cpu: Duration,
    time: Duration,
    /// CPU of the bus when nobody reports, as a part of one core.
    idle: f64,
}

/// Reports that are under way at the same time.
const AT_ONCE: usize = 16;

/// Questions about the object, of which the mean is taken.
const QUERIES: u32 = 20;

/// The bus has taken the reports long before this.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl How ===

impl How {
    fn on_stream(self) -> bool {
        matches!(self, Self::Stream | Self::StreamFailed)
    }

    fn with_failure(self) -> bool {
        matches!(self, Self::OnceFailed | Self::StreamFailed)
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Once => "ReportOnce",
            Self::Stream => "Report",
            Self::OnceFailed => "ReportOnce, one failure each",
            Self::StreamFailed => "Report, one failure each",
        })
    }
}

// === impl Cost ===

impl Cost {
    /// In which way.
    pub(crate) fn how(&self) -> How {
        self.how
    }

    /// CPU of the bus for each report, in microseconds.
    pub(crate) fn cpu_micros(&self) -> f64 {
        self.micros(self.cpu.as_secs_f64())
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.reports as f64 / self.time.as_secs_f64()
    }

    /// So many seconds, for each report.
    fn micros(&self, seconds: f64) -> f64 {
        seconds * 1e6 / self.reports as f64
    }
}

/// Lets as many agents report as often in each way, each time that they have applied one revision more. Also says how
/// long it takes to ask how far the object is.
pub(crate) async fn measure(agents: u64, each: u64, bytes: usize) -> anyhow::Result<(Vec<Cost>, Duration)> {
    let server = Server::start(&[]).await?;
    let publisher = Publisher::open(server.address).await?;
    let operator = Operator::open(server.address).await?;
    let [changing, failing] = [0, 1].map(|number| own_object(name(number), 1, bytes));
    let mut applied = publisher.sync([changing, failing].into_iter()).await?;
    let mut sessions = Session::open_all(server.address, agents, None).await?;
    // All that agents will have applied one after the other is there before they begin, so that nothing is sent to them
    // while they report. One more each time: the first report opens the stream, and does not count.
    let updates = (each + 1) * HOWS.len() as u64;
    let mut head = applied;
    for version in 2..2 + updates {
        head = publisher.update(vec![own_object(name(0), version, bytes)]).await?;
    }
    ensure!(head == applied + updates, "{updates} updates lead from revision {applied} to {head}");
    for session in &mut sessions {
        session.read_until(head).await?;
    }
    let idle = server.idle().await?;
    let mut costs = Vec::new();
    for how in HOWS {
        applied += 1;
        sessions = report(sessions, how, applied).await?;
        operator.wait_for(applied, agents, PATIENCE).await?;
        let before = server.steady_usage().await?;
        let began = Instant::now();
        for _ in 0..each {
            applied += 1;
            sessions = report(sessions, how, applied).await?;
            // Otherwise reports on a stream would pile up and be read many at a time, which costs next to nothing.
            operator.wait_for(applied, agents, PATIENCE).await?;
        }
        let (cpu, time) = (server.usage()?.cpu - before.cpu, began.elapsed());
        costs.push(Cost { how, reports: agents * each, cpu, time, idle });
        for session in &mut sessions {
            session.end_stream().await?;
        }
    }
    let began = Instant::now();
    for _ in 0..QUERIES {
        operator.propagation(operator::object(name(0))).await?;
    }
    Ok((costs, began.elapsed() / QUERIES))
}

/// What reports in one way cost in all rounds.
pub(crate) fn row<'a>(how: How, costs: impl Iterator<Item = &'a Cost>) -> Row {
    let costs: Vec<&Cost> = costs.filter(|cost| cost.how == how).collect();
    let of = |figure: fn(&Cost) -> f64| median(costs.iter().map(|cost| figure(cost)));
    vec![
        ("how", json!(how.to_string())),
        ("reports", json!(of(|cost| cost.reports as f64))),
        ("CPU us/report", json!(of(|cost| cost.micros(cost.cpu.as_secs_f64())))),
        ("without idle", json!(of(|cost| cost.micros(cost.cpu.as_secs_f64() - cost.idle * cost.time.as_secs_f64())))),
        ("reports/s", json!(of(|cost| cost.reports as f64 / cost.time.as_secs_f64()).round())),
    ]
}

/// Every agent reports once that it has applied everything up to `revision`.
async fn report(mut sessions: Vec<Session>, how: How, revision: u64) -> anyhow::Result<Vec<Session>> {
    let share = sessions.len().div_ceil(AT_ONCE);
    let attempts = u32::try_from(revision)?;
    let mut reporters = JoinSet::new();
    while !sessions.is_empty() {
        let mut share = sessions.split_off(sessions.len().saturating_sub(share));
        reporters.spawn(async move {
            for session in &mut share {
                // The number of attempts makes the failure news each time.
                let failed = how.with_failure().then(|| failure(name(1), 1, attempts)).into_iter().collect();
                if how.on_stream() {
                    session.report_on_stream(revision, failed).await?;
                } else {
                    session.report_once(revision, failed).await?;
                }
            }
            anyhow::Ok(share)
        });
    }
    let shares = reporters.join_all().await.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    Ok(shares.into_iter().flatten().collect())
}
