//! NATS: its text protocol, and the calls that make a key-value bucket.

use std::{fs, net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::Command,
};

use crate::objects::{name, payload};

/// Somebody who asks the server for something, one thing after the other.
#[derive(Debug)]
pub(crate) struct Control(BufReader<TcpStream>);

const CONNECT: &str = r#"CONNECT {"verbose":false,"pedantic":false,"headers":true,"lang":"bench","version":"1"}"#;

/// A subscriber is not given up because it was slow for a moment.
const CONFIGURATION: &str = "max_payload: 8MB\nmax_pending: 1GB\nwrite_deadline: \"60s\"\n";

/// How often the server is asked how far it is.
const LOOK: Duration = Duration::from_millis(50);

// === impl Control ===

impl Control {
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        stream.write_all(format!("{CONNECT}\r\nSUB _INBOX.control 1\r\n").as_bytes()).await?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Makes an empty bucket in memory, as the clients of NATS do.
    pub(crate) async fn make_bucket(&mut self) -> anyhow::Result<()> {
        let stream = json!({
            "name": "KV_bench", "subjects": ["$KV.bench.>"], "storage": "memory", "max_msgs_per_subject": 1,
            "discard": "new", "allow_rollup_hdrs": true, "deny_delete": true, "allow_direct": true, "num_replicas": 1,
            "retention": "limits", "max_consumers": -1,
        });
        self.ask("$JS.API.STREAM.CREATE.KV_bench", &stream).await.map(drop)
    }

    /// Makes the consumer that a watcher has, for the subscriber of this number.
    pub(crate) async fn watch(&mut self, number: u64, everything: bool) -> anyhow::Result<()> {
        let consumer = json!({
            "deliver_subject": inbox(number), "deliver_policy": if everything { "last_per_subject" } else { "new" },
            "ack_policy": "none", "max_deliver": 1, "mem_storage": true, "num_replicas": 1, "flow_control": true,
            "idle_heartbeat": 5_000_000_000_u64, "inactive_threshold": 600_000_000_000_u64,
            "filter_subject": "$KV.bench.>", "name": inbox(number),
        });
        let subject = format!("$JS.API.CONSUMER.CREATE.KV_bench.{}.$KV.bench.>", inbox(number));
        self.ask(&subject, &json!({ "stream_name": "KV_bench", "config": consumer }))
            .await
            .map(drop)
    }

    /// Waits until there are as many messages in the bucket.
    pub(crate) async fn wait_for_messages(&mut self, count: u64) -> anyhow::Result<()> {
        loop {
            let info = self.ask("$JS.API.STREAM.INFO.KV_bench", &json!({})).await?;
            if info["state"]["messages"].as_u64().context("a stream without a count")? >= count {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn ask(&mut self, subject: &str, request: &Value) -> anyhow::Result<Value> {
        let request = request.to_string();
        let text = format!("PUB {subject} _INBOX.control {}\r\n{request}\r\n", request.len());
        self.0.get_mut().write_all(text.as_bytes()).await?;
        let mut line = String::new();
        loop {
            line.clear();
            ensure!(self.0.read_line(&mut line).await? > 0, "NATS closed the connection");
            if line.starts_with("PING") {
                self.0.get_mut().write_all(b"PONG\r\n").await?;
            } else if line.starts_with("-ERR") {
                bail!("NATS says {line}");
            } else if line.starts_with("MSG") {
                break;
            }
        }
        let length: usize = line.trim_end().rsplit(' ').next().unwrap_or_default().parse()?;
        let mut answer = vec![0; length + 2];
        self.0.read_exact(&mut answer).await?;
        let answer: Value = serde_json::from_slice(&answer).context("NATS did not answer with JSON")?;
        ensure!(answer.get("error").is_none(), "NATS says {}", answer["error"]);
        Ok(answer)
    }
}

pub(crate) fn configure(command: &mut Command, address: SocketAddr, folder: &Path) -> anyhow::Result<()> {
    let (configuration, store) = (folder.join("nats.conf"), folder.join("nats"));
    let text = format!("{CONFIGURATION}jetstream {{ store_dir: {store:?}, max_mem: 16GB }}\n");
    fs::write(&configuration, text)?;
    command.args(["--addr", "127.0.0.1", "--port", &address.port().to_string()]);
    command.arg("--config").arg(configuration);
    Ok(())
}

/// Where the consumer of a watcher delivers.
pub(crate) fn inbox(number: u64) -> String {
    format!("watch-{number}")
}

/// How a connection begins that subscribes to a subject; the answer to `PING` says that it has.
pub(crate) fn subscription(subject: &str) -> Vec<u8> {
    format!("{CONNECT}\r\nSUB {subject} 1\r\nPING\r\n").into_bytes()
}

/// How a connection begins that publishes.
pub(crate) fn hello() -> Vec<u8> {
    format!("{CONNECT}\r\n").into_bytes()
}

/// Publishes these objects; what is written to a bucket is acknowledged.
pub(crate) fn publish(bucket: bool, numbers: &[u64], version: u64, bytes: usize) -> Vec<u8> {
    let (mut all, payload) = (Vec::new(), payload(version, bytes));
    for number in numbers {
        let subject = if bucket { format!("$KV.bench.{} _INBOX.acks", name(*number)) } else { "bench".to_owned() };
        all.extend_from_slice(format!("PUB {subject} {bytes}\r\n").as_bytes());
        all.extend_from_slice(&payload);
        all.extend_from_slice(b"\r\n");
    }
    all
}
