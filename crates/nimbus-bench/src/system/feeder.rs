//! Somebody who publishes, whatever the system.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, tcp::OwnedWriteHalf},
    sync::Mutex,
};

use crate::{
    objects::{name, object},
    publisher::Publisher,
    system::{System, etcd, floor, nats, valkey},
};

/// Somebody who publishes. Cheap to clone; all clones use one connection.
#[derive(Debug, Clone)]
pub(crate) struct Feeder {
    bytes: usize,
    link: Link,
}

#[derive(Debug, Clone)]
enum Link {
    Bus(Publisher),
    Etcd(System, etcd::Client),
    /// What is written is answered, but nobody waits for the answer.
    Text(System, Arc<Mutex<OwnedWriteHalf>>),
}

/// etcd elects itself first; it is asked as often, with a pause of 100 ms.
const ATTEMPTS: u32 = 100;

// === impl Feeder ===

impl Feeder {
    /// Connects, and publishes as many objects if the system keeps them.
    pub(crate) async fn open(system: System, address: SocketAddr, bytes: usize, objects: u64) -> anyhow::Result<Self> {
        if system == System::NatsKv {
            nats::Control::open(address).await?.make_bucket().await?;
        }
        let feeder = Self::connect(system, address, bytes).await?;
        feeder.fill(objects).await?;
        Ok(feeder)
    }

    /// Only connects.
    pub(crate) async fn connect(system: System, address: SocketAddr, bytes: usize) -> anyhow::Result<Self> {
        let link = match system {
            System::Nimbus | System::NimbusForeign | System::NimbusSingle => Link::Bus(Publisher::open(address).await?),
            System::Etcd | System::EtcdTxn => Link::Etcd(system, etcd::Client::open(address).await?),
            System::Nats | System::NatsKv => Link::Text(system, connect(address, &nats::hello()).await?),
            System::Valkey => Link::Text(system, connect(address, &[]).await?),
            System::Tcp => Link::Text(system, connect(address, b"p").await?),
        };
        Ok(Self { bytes, link })
    }

    async fn fill(&self, objects: u64) -> anyhow::Result<()> {
        let bytes = self.bytes;
        match &self.link {
            Link::Bus(publisher) => {
                publisher
                    .sync_lazily((0..objects).map(move |number| object(name(number), 1, bytes)))
                    .await?;
            }
            Link::Etcd(_, client) => {
                let mut attempts = 0;
                while let Err(error) = client.put(&[0], 1, bytes).await {
                    attempts += 1;
                    anyhow::ensure!(attempts < ATTEMPTS, "etcd does not come up: {error:#}");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
                let all: Vec<u64> = (0..objects).collect();
                for some in all.chunks(256) {
                    client.put(some, 1, bytes).await?;
                }
            }
            Link::Text(System::NatsKv, _) => {
                let all: Vec<u64> = (0..objects).collect();
                for some in all.chunks(256) {
                    self.publish(some, 1).await?;
                }
            }
            Link::Text(..) => {}
        }
        Ok(())
    }

    /// Waits until the server has everything that was published.
    pub(crate) async fn settled(&self, address: SocketAddr, objects: u64) -> anyhow::Result<()> {
        match self.link {
            Link::Text(System::NatsKv, _) => nats::Control::open(address).await?.wait_for_messages(objects).await,
            _ => Ok(()),
        }
    }

    /// Publishes these objects, at once as far as the system can. Returns when the server has them, or before.
    pub(crate) async fn publish(&self, numbers: &[u64], version: u64) -> anyhow::Result<()> {
        let bytes = self.bytes;
        let (system, socket) = match &self.link {
            Link::Bus(publisher) => {
                let objects = numbers.iter().map(|number| object(name(*number), version, bytes)).collect();
                return publisher.update(objects).await.map(drop);
            }
            Link::Etcd(System::EtcdTxn, client) => return client.put(numbers, version, bytes).await,
            Link::Etcd(_, client) => return client.put_each(numbers, version, bytes).await,
            Link::Text(system, socket) => (*system, socket),
        };
        let text = match system {
            System::Nats | System::NatsKv => nats::publish(system == System::NatsKv, numbers, version, bytes),
            System::Valkey => valkey::publish(numbers.len(), version, bytes),
            _ => floor::publish(numbers, version, bytes)?,
        };
        socket.lock().await.write_all(&text).await.context("the server takes no more")
    }
}

/// Connects, says hello, and reads whatever comes.
async fn connect(address: SocketAddr, hello: &[u8]) -> anyhow::Result<Arc<Mutex<OwnedWriteHalf>>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut reader, mut writer) = stream.into_split();
    writer.write_all(hello).await?;
    let writer = Arc::new(Mutex::new(writer));
    let answers = Arc::downgrade(&writer);
    tokio::spawn(async move {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(1..) = reader.read(&mut buffer).await {
            // NATS asks every two minutes whether somebody is there; nothing else that it says has this in it.
            if buffer.starts_with(b"PING")
                && let Some(writer) = answers.upgrade()
            {
                drop(writer.lock().await.write_all(b"PONG\r\n").await);
            }
        }
    });
    Ok(writer)
}
