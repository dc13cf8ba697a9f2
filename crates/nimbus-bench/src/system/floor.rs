//! The floor: a server that writes what is published to all sockets, and does nothing else.

#![allow(clippy::print_stdout, reason = "the program that started it reads the address from the first line")]

use std::{io, sync::Arc};

use anyhow::{Context as _, bail};
use bytes::{Bytes, BytesMut};
use nimbus_wire::v1::{self, event::Change};
use parking_lot::Mutex;
use prost::Message as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, tcp::OwnedWriteHalf},
    process::Command,
    sync::mpsc,
};

use crate::objects::{name, own_object};

/// Everybody who is to be written to.
type Subscribers = Arc<Mutex<Vec<Subscriber>>>;

/// Somebody who is to be written to.
struct Subscriber {
    socket: Arc<OwnedWriteHalf>,
    /// What the socket had no room for, in its order; while there is some, all goes this way.
    rest: mpsc::Sender<Bytes>,
    waiting: Arc<Mutex<usize>>,
}

/// Room for a minute at a thousand per second: who does not read for longer ends the measurement.
const WAITING: usize = 65_536;

/// Runs the server.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let subscribers = Subscribers::default();
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let subscribers = subscribers.clone();
        // A connection ends alone.
        tokio::spawn(async move { drop(take(socket, subscribers).await) });
    }
}

/// How the server is started.
pub(crate) fn configure(command: &mut Command) {
    command.arg("floor");
}

/// What the bus would send of an object, so that both send as much.
pub(crate) fn record(number: u64, version: u64, bytes: usize) -> Vec<u8> {
    let object = v1::Object {
        kind: crate::objects::KIND.to_owned(),
        revision: 1,
        manager: "bench".to_owned(),
        generation: 1,
        ..own_object(name(number), version, bytes)
    };
    let event = v1::Event { change: Some(Change::Put(object)), digest: vec![0; 16].into() };
    v1::Batch { events: vec![event], revision: 0 }.encode_to_vec()
}

/// Publishes these objects: the length of all records, and the records.
pub(crate) fn publish(numbers: &[u64], version: u64, bytes: usize) -> anyhow::Result<Vec<u8>> {
    let mut all = vec![0; 4];
    for number in numbers {
        all.extend_from_slice(&record(*number, version, bytes));
    }
    let length = u32::try_from(all.len() - 4)?;
    all[..4].copy_from_slice(&length.to_be_bytes());
    Ok(all)
}

async fn take(mut socket: TcpStream, subscribers: Subscribers) -> anyhow::Result<()> {
    match socket.read_u8().await? {
        b's' => {
            let size = socket.read_u32().await?;
            let (mut reader, writer) = socket.into_split();
            let (rest, mut queue) = mpsc::channel(WAITING);
            let (socket, waiting) = (Arc::new(writer), Arc::new(Mutex::new(0)));
            let subscriber = Subscriber { socket: socket.clone(), rest, waiting: waiting.clone() };
            subscriber.send(&Bytes::from(vec![0; size as usize]))?;
            subscribers.lock().push(subscriber);
            while let Some(bytes) = queue.recv().await {
                write_all(&socket, &bytes).await?;
                *waiting.lock() -= 1;
            }
            drop(reader.read_u8().await);
            Ok(())
        }
        b'p' => loop {
            let length = socket.read_u32().await? as usize;
            let mut bytes = BytesMut::zeroed(length);
            socket.read_exact(&mut bytes).await?;
            let bytes = bytes.freeze();
            for subscriber in subscribers.lock().iter() {
                subscriber.send(&bytes)?;
            }
            socket.write_u8(0).await?;
        },
        other => bail!("a connection begins with {other}"),
    }
}

async fn write_all(socket: &OwnedWriteHalf, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        socket.writable().await?;
        match socket.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

// === impl Subscriber ===

impl Subscriber {
    /// Writes what the socket has room for, and leaves the rest to its task.
    fn send(&self, bytes: &Bytes) -> anyhow::Result<()> {
        let mut waiting = self.waiting.lock();
        let written = match *waiting {
            0 => self.socket.try_write(bytes).or_else(|error| match error.kind() {
                io::ErrorKind::WouldBlock => Ok(0),
                // Who has gone is written to no more, and does not keep the others from it.
                _ => Ok::<_, io::Error>(bytes.len()),
            })?,
            _ => 0,
        };
        if written < bytes.len() {
            *waiting += 1;
            self.rest.try_send(bytes.slice(written..)).context("a subscriber does not read")?;
        }
        Ok(())
    }
}
