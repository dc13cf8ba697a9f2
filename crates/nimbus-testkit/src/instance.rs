//! `nimbus-testkit controller`: an instance of a controller that writes down what it does, for tests of whole systems.
//!
//! For each `testkit.v1.Order` it publishes a `testkit.v1.Task` with the same text, and stands by while another instance has
//! the lease.

use std::{
    fmt,
    fs::{File, OpenOptions},
    future::Future,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use ctkit::{
    Action, Backoff, Context, Controller, Draft, Failure, InstanceId, Instances, Manager, Object, Reactor, Remote,
};
use tokio::time::sleep;

/// Runs an instance of a controller that writes down what it does.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where the bus is.
    #[arg(long, value_name = "URL")]
    connect: String,

    /// What this instance is called.
    #[arg(long, value_name = "NAME")]
    instance: String,

    /// Where it writes, after what is there: `begin`, `end` or `drop`, the instance, the object, its generation and text. All
    /// instances may write to the same file.
    #[arg(long, value_name = "FILE")]
    journal: PathBuf,

    /// Seconds for which a lease lasts.
    #[arg(long, default_value_t = 15.0, value_name = "SECONDS")]
    lease: f64,

    /// Seconds that a reaction takes.
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    takes: f64,
}

/// What users write.
#[derive(Clone, PartialEq, prost::Message)]
struct Order {
    #[prost(string, tag = "1")]
    text: String,
}

/// What agents get.
#[derive(Clone, PartialEq, prost::Message)]
struct Task {
    #[prost(string, tag = "1")]
    text: String,
}

impl prost::Name for Order {
    const NAME: &'static str = "Order";
    const PACKAGE: &'static str = "testkit.v1";
}

impl prost::Name for Task {
    const NAME: &'static str = "Task";
    const PACKAGE: &'static str = "testkit.v1";
}

struct Clerk {
    journal: Journal,
    takes: Duration,
}

/// Where reactions are written down.
struct Journal {
    file: File,
    instance: String,
}

/// A reaction under way.
struct UnderWay<'a> {
    journal: &'a Journal,
    about: String,
    is_over: bool,
}

/// What a name is in the lease table.
const LEASE: &str = "testkit-orders";

/// A bus that is being restarted is back in a moment.
const RECONNECT: Backoff = Backoff { base: Duration::from_millis(20), max: Duration::from_millis(200) };

pub(crate) async fn run(arguments: Arguments, shutdown: impl Future<Output = ()> + Send) -> anyhow::Result<ExitCode> {
    let Arguments { connect, instance, journal, lease, takes } = arguments;
    let [ttl, takes] = [lease, takes].map(Duration::try_from_secs_f64);
    let (ttl, takes) = (ttl.context("--lease")?, takes.context("--takes")?);
    let journal = Journal::open(&journal, &instance).with_context(|| format!("cannot write {}", journal.display()))?;
    let daemon = Remote::builder(&connect).reconnect(RECONNECT).build()?;
    let instances = Instances::leader(LEASE).instance(InstanceId::new(&instance)).ttl(ttl);
    let controller = Controller::new(Clerk { journal, takes }).named("testkit").publishes::<Task>();
    let manager = Manager::builder(daemon).instances(instances).controller(controller);
    manager.run_until(shutdown).await?;
    Ok(ExitCode::SUCCESS)
}

impl Reactor<Order> for Clerk {
    async fn on_apply(&self, cx: &Context, order: Arc<Object<Order>>) -> Result<Action, Failure> {
        let under_way = self.journal.begin(&order)?;
        sleep(self.takes).await;
        let task = Task { text: order.spec.text.clone() };
        cx.publish(Draft::new(order.name(), task)).await?;
        under_way.end()?;
        Ok(Action::done())
    }
}

// === impl Journal ===

impl Journal {
    fn open(path: &Path, instance: &str) -> std::io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, instance: instance.to_owned() })
    }

    fn begin(&self, order: &Object<Order>) -> std::io::Result<UnderWay<'_>> {
        let about = format!("{} {} {}", order.name(), order.meta.generation, order.spec.text);
        self.write("begin", &about)?;
        Ok(UnderWay { journal: self, about, is_over: false })
    }

    /// One call, so that lines of several instances do not mix.
    fn write(&self, what: &str, about: impl fmt::Display) -> std::io::Result<()> {
        (&self.file).write_all(format!("{what} {} {about}\n", self.instance).as_bytes())
    }
}

// === impl UnderWay ===

impl UnderWay<'_> {
    fn end(mut self) -> std::io::Result<()> {
        self.is_over = true;
        self.journal.write("end", &self.about)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // Whoever reads it misses a line, and says so.
            drop(self.journal.write("drop", &self.about));
        }
    }
}
