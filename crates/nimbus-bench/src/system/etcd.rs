//! etcd: the few messages that are needed of it.

use std::{net::SocketAddr, path::Path};

use anyhow::Context as _;
use prost::Message as _;
use tokio::{process::Command, task::JoinSet};

use crate::{
    client::Connection,
    objects::{name, payload},
    protocol::{Counted, Grpc, Protocol, Settings},
};

/// Somebody who publishes.
#[derive(Debug, Clone)]
pub(crate) struct Client(Connection);

#[derive(Clone, PartialEq, prost::Message)]
struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    create_request: Option<WatchCreateRequest>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct WatchCreateRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RequestOp {
    #[prost(message, optional, tag = "2")]
    request_put: Option<PutRequest>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TxnRequest {
    #[prost(message, repeated, tag = "2")]
    success: Vec<RequestOp>,
}

/// The answer to a write, of which nothing matters here.
#[derive(Clone, PartialEq, prost::Message)]
struct Written {}

#[derive(Clone, PartialEq, prost::Message)]
struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    limit: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RangeResponse {
    #[prost(message, repeated, tag = "2")]
    kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    more: bool,
}

/// The value is skipped.
#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

/// All keys begin with this, and are before that.
const PREFIX: &str = "items/";
const PREFIX_END: &str = "items0";

/// Of an answer to a watch: events, and that the watch was created.
const ANSWERS: Counted = Counted { enter: None, event: 11, ready: &[3] };

/// Objects on one page: as many as Kubernetes asks for by default are half of this.
const PAGE: i64 = 1_000;

// === impl Client ===

impl Client {
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        Connection::open_wide(address).await.context("cannot connect to etcd").map(Self)
    }

    /// Writes these objects, in one transaction if there are several.
    pub(crate) async fn put(&self, numbers: &[u64], version: u64, bytes: usize) -> anyhow::Result<()> {
        let put = |number: &u64| PutRequest {
            key: format!("{PREFIX}{}", name(*number)).into_bytes(),
            value: payload(version, bytes),
        };
        let written: Result<Written, _> = if let [number] = numbers {
            self.0.unary("/etcdserverpb.KV/Put", put(number)).await
        } else {
            let success = numbers.iter().map(|number| RequestOp { request_put: Some(put(number)) }).collect();
            self.0.unary("/etcdserverpb.KV/Txn", TxnRequest { success }).await
        };
        written.map(|_| ()).context("etcd did not take a write")
    }

    /// Writes these objects, each by a call of its own, all at the same time.
    pub(crate) async fn put_each(&self, numbers: &[u64], version: u64, bytes: usize) -> anyhow::Result<()> {
        if let [number] = numbers {
            return self.put(&[*number], version, bytes).await;
        }
        let mut calls = JoinSet::new();
        for number in numbers.iter().copied() {
            let client = self.clone();
            calls.spawn(async move { client.put(&[number], version, bytes).await });
        }
        calls.join_all().await.into_iter().collect()
    }

    /// Reads everything, page by page, and counts it.
    pub(crate) async fn read_all(&self) -> anyhow::Result<u64> {
        let (mut key, mut count) = (PREFIX.as_bytes().to_vec(), 0);
        loop {
            let request = RangeRequest { key: key.clone(), range_end: PREFIX_END.into(), limit: PAGE };
            let page: RangeResponse = self.0.unary("/etcdserverpb.KV/Range", request).await?;
            count += page.kvs.len() as u64;
            let Some(last) = page.kvs.last().filter(|_| page.more) else { return Ok(count) };
            key.clone_from(&last.key);
            key.push(0);
        }
    }

    pub(crate) fn received(&self) -> u64 {
        self.0.received()
    }
}

/// One node without peers.
pub(crate) fn configure(command: &mut Command, address: SocketAddr, peer: SocketAddr, folder: &Path) {
    command.arg("--data-dir").arg(folder.join("etcd"));
    for (flag, value) in [
        ("--listen-client-urls", format!("http://{address}")),
        ("--advertise-client-urls", format!("http://{address}")),
        ("--listen-peer-urls", format!("http://{peer}")),
        ("--initial-advertise-peer-urls", format!("http://{peer}")),
        ("--initial-cluster", format!("default=http://{peer}")),
        ("--log-level", "error".to_owned()),
        ("--max-txn-ops", "4096".to_owned()),
        ("--max-request-bytes", (16 << 20).to_string()),
        ("--quota-backend-bytes", (8_u64 << 30).to_string()),
    ] {
        command.args([flag, &value]);
    }
}

/// A watch of everything, as a client begins it that never lets etcd wait.
pub(crate) fn watch() -> anyhow::Result<(Protocol, Vec<u8>)> {
    let create = WatchCreateRequest { key: PREFIX.into(), range_end: PREFIX_END.into() };
    let request = WatchRequest { create_request: Some(create) }.encode_to_vec();
    let (grpc, hello) = Grpc::call(Settings::WIDE, ANSWERS, "/etcdserverpb.Watch/Watch", &request, true)?;
    Ok((Protocol::Grpc(Box::new(grpc)), hello))
}
