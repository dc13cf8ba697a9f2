//! A server in a process of its own, whichever it is.

use std::{
    net::{SocketAddr, TcpListener},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, bail};
use nimbus_wire::v1;
use prost::Message as _;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    process::{Child, Command},
    time::Instant,
};

use crate::{
    crowd::Begin,
    objects::{KIND, agent},
    protocol::{Counted, Grpc, Nats, Protocol, Raw, Resp, Settings},
    server::Server,
    system::{Feeder, System, etcd, floor, nats, valkey},
    usage::Usage,
};

/// A server in a process of its own; it dies with this value.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) system: System,
    pub(crate) address: SocketAddr,
    /// Bytes of each object.
    pub(crate) bytes: usize,
    process: Process,
    /// Where it keeps what it must.
    _folder: TempDir,
}

#[derive(Debug)]
enum Process {
    Bus(Server),
    Peer(Child),
}

/// A server that does not answer by then never does.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often it is asked.
const LOOK: Duration = Duration::from_millis(20);

/// Of a frame: batches have events, and with the end of a snapshot or a bookmark everything is there.
const FRAMES: Counted = Counted { enter: Some(3), event: 1, ready: &[4, 5] };

// === impl Host ===

impl Host {
    /// Starts a server for objects of so many bytes.
    pub(crate) async fn start(system: System, bytes: usize) -> anyhow::Result<Self> {
        // Only durable writes wait for the disk.
        let flags: &[&str] =
            if matches!(system, System::Etcd | System::EtcdTxn) { &["--unsafe-no-fsync"] } else { &[] };
        Self::start_with(system, bytes, flags).await
    }

    /// The same with more flags.
    pub(crate) async fn start_with(system: System, bytes: usize, flags: &[&str]) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("nimbus-bench-").tempdir()?;
        let mut command = Command::new(system.program()?);
        let mut address = free_address()?;
        match system {
            System::Nimbus | System::NimbusForeign | System::NimbusSingle => {
                let threads: &[&str] = if system == System::NimbusSingle { &["--threads", "1"] } else { &[] };
                let server = Server::start(&[flags, threads].concat()).await?;
                let address = server.address;
                return Ok(Self { system, address, bytes, process: Process::Bus(server), _folder: folder });
            }
            System::Etcd | System::EtcdTxn => etcd::configure(&mut command, address, free_address()?, folder.path()),
            System::Nats | System::NatsKv => nats::configure(&mut command, address, folder.path())?,
            System::Valkey => valkey::configure(&mut command, address, folder.path()),
            System::Tcp => floor::configure(&mut command),
        }
        let mut child = command
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {system}"))?;
        let stdout = child.stdout.take().context("a server without output")?;
        let mut lines = BufReader::new(stdout).lines();
        if system == System::Tcp {
            let line = lines.next_line().await?.context("the floor says nothing")?;
            address = line.parse().with_context(|| format!("the floor says {line:?}"))?;
        }
        // Whatever it says later must not fill the pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let host = Self { system, address, bytes, process: Process::Peer(child), _folder: folder };
        host.wait_until_it_listens().await?;
        Ok(host)
    }

    /// Starts a server that has every write on a disk before it answers.
    pub(crate) async fn start_durable(system: System, bytes: usize) -> anyhow::Result<Self> {
        if system != System::Nimbus {
            return Self::start_with(system, bytes, &[]).await;
        }
        let folder = tempfile::Builder::new().prefix("nimbus-bench-").tempdir()?;
        let server = Server::start_durable(&folder.path().join("store.redb"), &[]).await?;
        let address = server.address;
        Ok(Self { system, address, bytes, process: Process::Bus(server), _folder: folder })
    }

    async fn wait_until_it_listens(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        while TcpStream::connect(self.address).await.is_err() {
            self.usage().with_context(|| format!("{} ended as soon as it was started", self.system))?;
            if began.elapsed() > PATIENCE {
                bail!("{} does not listen on {}", self.system, self.address);
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// What it has used so far.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        match &self.process {
            Process::Bus(server) => server.usage(),
            Process::Peer(child) => Usage::of(child.id().context("the server has ended")?),
        }
    }

    /// Memory, once it no longer moves.
    pub(crate) async fn steady_usage(&self) -> anyhow::Result<Usage> {
        Usage::once_steady(|| self.usage()).await
    }

    /// Somebody who publishes, with so many objects there from the beginning if the system keeps them.
    pub(crate) async fn feeder(&self, objects: u64) -> anyhow::Result<Feeder> {
        Feeder::open(self.system, self.address, self.bytes, objects).await
    }

    /// Makes what a subscriber needs on the server beside its connection; `everything` that is there is sent to it first.
    pub(crate) async fn watch(&self, subscribers: u64, everything: bool) -> anyhow::Result<()> {
        if self.system == System::NatsKv {
            let mut control = nats::Control::open(self.address).await?;
            for number in 0..subscribers {
                control.watch(number, everything).await?;
            }
        }
        Ok(())
    }

    /// How subscribers begin.
    pub(crate) fn begin(&self) -> Begin {
        let (system, bytes) = (self.system, self.bytes);
        Arc::new(move |number| subscription(system, bytes, number))
    }
}

/// How the subscriber of this number begins, and how it reads what comes.
fn subscription(system: System, bytes: usize, number: u64) -> anyhow::Result<(Protocol, Vec<u8>)> {
    match system {
        System::Nimbus | System::NimbusSingle => bus_subscription(number, Settings::AGENT, None),
        System::NimbusForeign => bus_subscription(number, Settings::DEFAULT, None),
        System::Etcd | System::EtcdTxn => etcd::watch(),
        System::Nats => Ok((Protocol::Nats(Nats::default()), nats::subscription("bench"))),
        System::NatsKv => Ok((Protocol::Nats(Nats::default()), nats::subscription(&nats::inbox(number)))),
        System::Valkey => Ok((Protocol::Resp(Resp::default()), valkey::SUBSCRIPTION.to_vec())),
        System::Tcp => {
            let size = floor::record(0, 1, bytes).len();
            let hello = [&b"s"[..], &u32::try_from(size)?.to_be_bytes()].concat();
            Ok((Protocol::Raw(Raw { size, received: 0 }), hello))
        }
    }
}

/// How a subscriber of the bus begins, with what it holds already.
pub(crate) fn bus_subscription(
    number: u64,
    settings: Settings,
    resume: Option<v1::Resume>,
) -> anyhow::Result<(Protocol, Vec<u8>)> {
    let request = v1::SubscribeRequest {
        kinds: vec![KIND.to_owned()],
        agent: agent(number),
        resume,
        ..v1::SubscribeRequest::default()
    };
    let (path, request) = ("/nimbus.v1.Bus/Subscribe", request.encode_to_vec());
    let (grpc, hello) = Grpc::call(settings, FRAMES, path, &request, false)?;
    Ok((Protocol::Grpc(Box::new(grpc)), hello))
}

/// An address that nobody listens on. Somebody else might take it, but then the server says so and ends.
fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
