//! Valkey: publish and subscribe in its text protocol.

use std::{net::SocketAddr, path::Path};

use tokio::process::Command;

use crate::objects::payload;

/// How a subscriber begins.
pub(crate) const SUBSCRIPTION: &[u8] = b"*2\r\n$9\r\nSUBSCRIBE\r\n$5\r\nbench\r\n";

pub(crate) fn configure(command: &mut Command, address: SocketAddr, folder: &Path) {
    command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
    // Nothing is kept, and a subscriber is not given up because it was slow for a moment.
    command.args(["--save", "", "--appendonly", "no", "--maxclients", "50000"]);
    command.args(["--client-output-buffer-limit", "pubsub 1gb 1gb 60"]);
    command.arg("--dir").arg(folder);
}

/// Publishes as many objects.
pub(crate) fn publish(count: usize, version: u64, bytes: usize) -> Vec<u8> {
    let mut one = format!("*3\r\n$7\r\nPUBLISH\r\n$5\r\nbench\r\n${bytes}\r\n").into_bytes();
    one.extend_from_slice(&payload(version, bytes));
    one.extend_from_slice(b"\r\n");
    one.repeat(count)
}
