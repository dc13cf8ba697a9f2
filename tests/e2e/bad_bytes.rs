//! Connections that do not speak the protocol, or stop in the middle of it.

use std::time::Duration;

use http::StatusCode;
use nimbus_wire::v1;
use tonic::Code;

use crate::{
    honest::{World, expect_refusal},
    raw, wait,
};

const SUBSCRIBE: &str = "/nimbus.v1.Bus/Subscribe";
const LIST: &str = "/nimbus.v1.Bus/List";
const SYNC: &str = "/nimbus.v1.Publisher/Sync";

/// What every HTTP/2 connection begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A world in which a connection must be quick to say something, but not so quick that an honest one on a busy machine
/// could be late.
async fn impatient() -> World {
    World::with(|config| {
        config.handshake_timeout = Duration::from_secs(1);
        config.keepalive = Duration::from_secs(2);
    })
    .await
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    let mut world = impatient().await;
    raw::talk(world.bus.address, b"").await;
    world.goes_on().await;
}

#[tokio::test]
async fn a_connection_that_stops_in_its_greeting_is_closed() {
    let mut world = impatient().await;
    for length in [1, PREFACE.len() - 1, PREFACE.len()] {
        raw::talk(world.bus.address, &PREFACE[..length]).await;
        world.goes_on().await;
    }
}

#[tokio::test]
async fn a_connection_that_speaks_something_else_is_closed() {
    let mut world = World::new().await;
    for greeting in [
        &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        b"POST /nimbus.v1.Bus/List HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n\0\0\0\0\0",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a client hello of TLS, more or less",
        b"SSH-2.0-OpenSSH_9.2\r\n",
    ] {
        raw::talk(world.bus.address, greeting).await;
        world.goes_on().await;
    }
}

#[tokio::test]
async fn random_bytes_end_only_their_own_connection() {
    let mut world = World::new().await;
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..50 {
        let noise: Vec<u8> = (0..512).flat_map(|_| random().to_le_bytes()).collect();
        // Every other time it gets past the preface, so that the noise is read as frames.
        let greeting = if round % 2 == 0 { noise } else { [PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0], &noise].concat() };
        raw::talk(world.bus.address, &greeting).await;
    }
    world.goes_on().await;
}

#[tokio::test]
async fn half_a_message_is_refused() {
    let mut world = World::new().await;
    for path in [SUBSCRIBE, LIST, SYNC] {
        let mut call = raw::open(world.bus.address, path, &[], false).await;
        call.body.send_data(raw::message(100, b"only this"), true).unwrap();
        expect_refusal(call.outcome().await, Code::Internal, &["Unexpected EOF"]);
        world.goes_on().await;
    }
}

#[tokio::test]
async fn a_message_that_is_not_a_message_is_refused() {
    let mut world = World::new().await;
    let garbage = [0xff; 20];
    for path in [SUBSCRIBE, LIST, SYNC] {
        let mut call = raw::open(world.bus.address, path, &[], false).await;
        call.body.send_data(raw::message(20, &garbage), true).unwrap();
        expect_refusal(call.outcome().await, Code::Internal, &["failed to decode Protobuf message"]);

        let mut call = raw::open(world.bus.address, path, &[], false).await;
        call.body.send_data(garbage.to_vec().into(), true).unwrap();
        expect_refusal(call.outcome().await, Code::Internal, &["invalid compression flag"]);
        world.goes_on().await;
    }
}

#[tokio::test]
async fn a_message_that_claims_to_be_huge_is_refused_before_it_comes() {
    let mut world = World::new().await;
    for path in [SUBSCRIBE, LIST, SYNC] {
        let mut call = raw::open(world.bus.address, path, &[], false).await;
        call.body.send_data(raw::message(u32::MAX, b""), false).unwrap();
        expect_refusal(call.outcome().await, Code::ResourceExhausted, &["found 4294967295 bytes"]);
        world.goes_on().await;
    }
}

#[tokio::test]
async fn a_subscription_without_a_request_is_refused() {
    let mut world = impatient().await;
    let call = raw::open(world.bus.address, SUBSCRIBE, &[], true).await;
    expect_refusal(call.outcome().await, Code::InvalidArgument, &["needs one request message"]);

    let call = raw::open(world.bus.address, SUBSCRIBE, &[], false).await;
    expect_refusal(call.outcome().await, Code::DeadlineExceeded, &["no request came after the headers"]);

    let mut call = raw::open(world.bus.address, SUBSCRIBE, &[], false).await;
    call.body.send_data(raw::message(100, b"only this, and it stays open"), false).unwrap();
    expect_refusal(call.outcome().await, Code::DeadlineExceeded, &["no request came after the headers"]);
    world.goes_on().await;
}

#[tokio::test]
async fn headers_that_are_too_large_are_refused() {
    let mut world = World::new().await;
    let large = [("nimbus-identity", "x".repeat(20 << 10))];
    let call = raw::open(world.bus.address, SUBSCRIBE, &large, true).await;
    assert_eq!(call.http_outcome().await.unwrap(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    world.goes_on().await;
    // Headers that are far too large are not even read to their end, so that the connection cannot go on.
    let giant = [("nimbus-identity", "x".repeat(256 << 10))];
    let call = raw::open(world.bus.address, SUBSCRIBE, &giant, true).await;
    assert_eq!(call.http_outcome().await.unwrap_err().reason(), Some(h2::Reason::ENHANCE_YOUR_CALM));
    world.goes_on().await;
}

#[tokio::test]
async fn a_call_that_does_not_exist_is_unimplemented() {
    let mut world = World::new().await;
    for path in ["/nimbus.v1.Bus/Sing", "/nimbus.v2.Bus/List", "/"] {
        let call = raw::open(world.bus.address, path, &[], true).await;
        expect_refusal(call.outcome().await, Code::Unimplemented, &[]);
    }
    let compressed = [("grpc-encoding", "gzip".to_owned())];
    for path in [SUBSCRIBE, LIST] {
        let mut call = raw::open(world.bus.address, path, &compressed, false).await;
        call.body.send_data(raw::message(0, b""), true).unwrap();
        expect_refusal(call.outcome().await, Code::Unimplemented, &["gzip"]);
    }
    world.goes_on().await;
}

#[tokio::test]
async fn a_subscriber_that_vanishes_leaves_no_session() {
    let mut world = World::new().await;
    let (mut reader, _) = world.bus.clients().await;
    let frames = reader.subscribe(v1::SubscribeRequest::default()).await.unwrap();
    let bus = &world.bus;
    wait::until("the second session", || bus.metric("nimbus_bus_sessions") == 2).await;
    drop((frames, reader));
    wait::until("the second session to end", || bus.metric("nimbus_bus_sessions") == 1).await;
    world.goes_on().await;
}
