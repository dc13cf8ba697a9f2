//! Whole conversations.

use nimbus_http2::Config;

use crate::{client::*, peer::Peer};

const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;

#[tokio::test]
async fn both_sides_begin_with_their_settings() {
    let peer = Peer::start().await;
    let mut client = Client::open(&peer, &[(INITIAL_WINDOW_SIZE, 10)]).await;
    let frames = client.all().await;
    assert_eq!((frames[0].kind, frames[0].flags), (SETTINGS, 0), "section 3.4: {frames:?}");
    assert!(frames.iter().any(|frame| frame.kind == SETTINGS && frame.flags == ACK), "section 6.5.3: {frames:?}");
    assert_eq!(frames.last().unwrap().payload, LAST, "section 6.7");
}

#[tokio::test]
async fn what_does_not_begin_as_http_2_does_is_closed() {
    let peer = Peer::start().await;
    for greeting in [
        &b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rX",
        b"\x16\x03\x01\x02\x00",
        &[PREFACE, &frame(PING, 0, 0, &[0; 8])].concat(),
        &[PREFACE, &frame(SETTINGS, ACK, 0, &[])].concat(),
    ] {
        let mut client = Client::connect(peer.address).await;
        client.send(greeting).await;
        let mut answer = Vec::new();
        drop(soon("the end", tokio::io::AsyncReadExt::read_to_end(&mut client.stream, &mut answer)).await);
        if greeting.starts_with(b"GET") {
            let answer = String::from_utf8(answer).unwrap();
            assert!(
                answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("HTTP/2 from the first byte.\n"),
                "{answer}"
            );
            let (_, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(answer.contains(&format!("content-length: {}\r\n", body.len())), "{answer}");
        }
    }
}

#[tokio::test]
async fn a_request_is_answered_with_headers_data_and_trailers() {
    let peer = Peer::start().await;
    let mut client = Client::open(&peer, &[]).await;
    let trailers = frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(&[("from", "me")]));
    client
        .send(&[begin(1, "/echo"), frame(DATA, 0, 1, b"hel"), frame(DATA, 0, 1, b"lo"), trailers].concat())
        .await;
    let frames = client.answer(1).await;
    let kinds: Vec<_> = frames.iter().filter(|frame| frame.stream == 1).map(|frame| frame.kind).collect();
    assert_eq!(kinds, [HEADERS, DATA, HEADERS]);
    assert_eq!(data(&frames, 1), b"hello");
    let end = String::from_utf8_lossy(&frames.last().unwrap().payload).into_owned();
    assert!(end.contains("length\u{1}5") && end.contains("me"), "{end:?}");
}

#[tokio::test]
async fn data_comes_as_far_as_there_is_room_and_in_frames_that_the_client_takes() {
    let peer = Peer::start().await;
    let mut client = Client::open(&peer, &[(INITIAL_WINDOW_SIZE, 10), (MAX_FRAME_SIZE, 20_000)]).await;
    client.send(&ask(1, "/bytes/100000")).await;
    let frames = client.until(|frame| frame.kind == DATA).await;
    assert_eq!(data(&frames, 1).len(), 10);
    // Less than nothing: what was sent before counts.
    client.send(&settings(&[(INITIAL_WINDOW_SIZE, 4)])).await;
    assert_eq!(data(&client.all().await, 1), b"");
    client.send(&frame(WINDOW_UPDATE, 0, 1, &6_u32.to_be_bytes())).await;
    assert_eq!(data(&client.all().await, 1), b"");
    client.send(&frame(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes())).await;
    assert_eq!(data(&client.until(|frame| frame.kind == DATA).await, 1).len(), 1);
    client.send(&settings(&[(INITIAL_WINDOW_SIZE, 200_000)])).await;
    let mut seen = 11;
    while seen < 65_535 {
        let frames = client.until(|frame| frame.kind == DATA).await;
        let length = data(&frames, 1).len();
        assert!(length <= 20_000, "a frame of {length}");
        seen += length;
    }
    assert_eq!(seen, 65_535, "the window of the connection");
    assert_eq!(data(&client.all().await, 1), b"");
    client.send(&frame(WINDOW_UPDATE, 0, 0, &100_000_u32.to_be_bytes())).await;
    assert_eq!(data(&client.answer(1).await, 1).len(), 100_000 - 65_535);
}

/// Neither does the one who has asked first take everything, nor does somebody with no room hold up the others.
#[tokio::test]
async fn streams_take_turns() {
    let peer = Peer::start().await;
    let mut client = Client::open(&peer, &[(INITIAL_WINDOW_SIZE, 50_000)]).await;
    client
        .send(&[ask(1, "/bytes/200000"), ask(3, "/bytes/200000"), ask(5, "/bytes/10")].concat())
        .await;
    let (mut first, mut third, mut fifth, mut total) = (0, 0, 0, 0);
    while total < 65_535 {
        let frame = client.next().await.unwrap();
        if frame.kind == DATA {
            total += frame.payload.len();
            *match frame.stream {
                1 => &mut first,
                3 => &mut third,
                _ => &mut fifth,
            } += frame.payload.len();
        }
    }
    assert_eq!((first, third), (50_000, 15_535), "the fifth waits for the connection: {fifth}");
    client.send(&frame(WINDOW_UPDATE, 0, 0, &10_u32.to_be_bytes())).await;
    client.send(&frame(WINDOW_UPDATE, 0, 1, &50_000_u32.to_be_bytes())).await;
    let frames = client.until(|frame| frame.kind == DATA).await;
    assert_eq!(frames.last().unwrap().stream, 3, "it has waited longest of those with room");
    client.send(&frame(WINDOW_UPDATE, 0, 0, &10_u32.to_be_bytes())).await;
    let frames = client.until(|frame| frame.kind == DATA).await;
    assert_eq!(frames.last().unwrap().stream, 5, "then it is the turn of the next");
}

#[tokio::test]
async fn a_call_that_is_given_up_is_dropped() {
    let peer = Peer::start().await;
    let mut client = Client::open(&peer, &[]).await;
    for (stream, path) in [(1, "/hang"), (3, "/slow")] {
        client.send(&ask(stream, path)).await;
        if path == "/slow" {
            client.until(|frame| frame.kind == DATA).await;
        }
        client.send(&frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])).await;
        if path == "/hang" {
            // It may have been given up before it was begun, and then there is nothing to drop.
            client.all().await;
            continue;
        }
        soon("the call to be dropped", peer.dropped.notified()).await;
    }
}

#[tokio::test]
async fn a_connection_that_is_lost_drops_its_calls() {
    let peer = Peer::start().await;
    let mut client = Client::open(&peer, &[]).await;
    client.send(&ask(1, "/slow")).await;
    client.until(|frame| frame.kind == DATA).await;
    drop(client);
    soon("the call to be dropped", peer.dropped.notified()).await;
}

#[tokio::test]
async fn a_call_that_panics_ends_alone() {
    let peer = Peer::start().await;
    let mut client = Client::open(&peer, &[]).await;
    client.send(&[ask(1, "/slow"), ask(3, "/panic"), ask(5, "/bytes/3")].concat()).await;
    let frames = client.answer(5).await;
    let reset = frames.iter().find(|frame| frame.kind == RST_STREAM).unwrap();
    assert_eq!((reset.stream, reset.reason()), (3, Some(2)));
    assert_eq!(data(&frames, 5), b"xxx");
}

#[tokio::test]
async fn an_answer_that_comes_before_the_end_of_its_request_ends_the_request() {
    let peer = Peer::start().await;
    let mut client = Client::open(&peer, &[]).await;
    client.send(&[begin(1, "/early"), frame(DATA, 0, 1, &[0; 10_000])].concat()).await;
    let mut frames = client.answer(1).await;
    frames.extend(client.until(|frame| frame.kind == RST_STREAM).await);
    assert_eq!(data(&frames, 1), b"enough");
    assert_eq!(frames.last().unwrap().reason(), Some(0), "section 8.1");
    // What was on its way is no mistake.
    client.send(&frame(DATA, END_STREAM, 1, b"the rest")).await;
    assert!(client.all().await.iter().all(|frame| frame.kind != GOAWAY));
}

/// Two hundred times the window, on one stream and on the connection: what is read, ignored, padding, or given up makes room again.
#[tokio::test]
async fn room_for_requests_is_given_back() {
    const WINDOW: u32 = 100_000;
    let config = Config { streams: 4, stream_window: WINDOW, connection_window: WINDOW, ..Config::default() };
    let peer = Peer::with(config).await;
    let mut client = Client::open(&peer, &[]).await;
    let mut room = 0_i64;
    // The window of the connection begins with what it has anyway.
    let count = |frames: &[Frame]| -> i64 {
        let windows = frames.iter().filter(|frame| frame.kind == WINDOW_UPDATE && frame.stream == 0);
        windows
            .map(|frame| i64::from(u32::from_be_bytes(frame.payload[..].try_into().unwrap())))
            .sum()
    };
    room += 65_535 + count(&client.all().await);
    assert_eq!(room, i64::from(WINDOW));
    for round in 0..200_u32 {
        let stream = 1 + 2 * round;
        let path = ["/echo", "/early", "/hang", "/echo"][round as usize % 4];
        let body = vec![7; 10_000];
        let data = match round % 4 {
            3 => frame(DATA, PADDED, stream, &[&[200][..], &body, &[0; 200]].concat()),
            _ => frame(DATA, 0, stream, &body),
        };
        let end = match path {
            "/hang" => frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]),
            _ => frame(DATA, END_STREAM, stream, &[]),
        };
        room -= i64::try_from(data.len() - 9).unwrap();
        assert!(room >= 0, "no room is left in round {round}");
        client.send(&[begin(stream, path), data, end].concat()).await;
        let more = [frame(WINDOW_UPDATE, 0, 0, &10_000_u32.to_be_bytes())].concat();
        client.send(&more).await;
        let mut frames = if path == "/hang" { Vec::new() } else { client.answer(stream).await };
        frames.extend(client.all().await);
        room += count(&frames);
    }
}

#[tokio::test]
async fn more_than_there_is_room_for_ends_the_connection() {
    let config = Config { stream_window: 20_000, connection_window: 70_000, ..Config::default() };
    let peer = Peer::with(config).await;
    let mut client = Client::open(&peer, &[]).await;
    let some = |stream| frame(DATA, 0, stream, &[0; 10_000]);
    client.send(&[begin(1, "/hang"), some(1), some(1)].concat()).await;
    assert!(client.all().await.iter().all(|frame| frame.reason().is_none()));
    client.send(&some(1)).await;
    let frames = client.all().await;
    let reset = frames.iter().find(|frame| frame.kind == RST_STREAM).unwrap();
    assert_eq!((reset.stream, reset.reason()), (1, Some(3)), "section 6.9.1");
}

#[tokio::test]
async fn headers_that_are_too_large_are_answered_in_words() {
    let peer = Peer::start().await;
    let mut client = Client::open(&peer, &[]).await;
    let block = [request("/echo"), block(&[("large", &"x".repeat(16_300))])].concat();
    let (first, second) = block.split_at(16_000);
    client
        .send(&[frame(HEADERS, END_STREAM, 1, first), frame(CONTINUATION, END_HEADERS, 1, second)].concat())
        .await;
    let frames = client.answer(1).await;
    let answer = String::from_utf8_lossy(&frames.last().unwrap().payload).into_owned();
    assert!(answer.contains("431"), "{answer:?}");
    client.send(&ask(3, "/bytes/3")).await;
    assert_eq!(data(&client.answer(3).await, 3), b"xxx");
}

#[tokio::test]
async fn a_server_that_stops_finishes_what_was_begun_and_takes_what_was_on_its_way() {
    let peer = Peer::start().await;
    let mut client = Client::open(&peer, &[]).await;
    client.send(&begin(1, "/echo")).await;
    client.all().await;
    peer.drain.drain();
    let frames = client.until(|frame| frame.kind == PING).await;
    let last = |frame: &Frame| u32::from_be_bytes(frame.payload[..4].try_into().unwrap());
    let goaway = frames.iter().find(|frame| frame.kind == GOAWAY).unwrap();
    assert_eq!((last(goaway), goaway.reason()), (u32::MAX >> 1, Some(0)), "section 6.8");
    // Sent before the client knew, so to speak.
    client.send(&ask(3, "/bytes/3")).await;
    client.send(&frame(PING, ACK, 0, &frames.last().unwrap().payload)).await;
    let mut frames = client.until(|frame| frame.kind == GOAWAY).await;
    assert_eq!(last(frames.last().unwrap()), 3);
    // Too late, and of no interest.
    client.send(&[ask(5, "/bytes/3"), frame(DATA, END_STREAM, 1, b"hello")].concat()).await;
    frames.extend(client.until(|_| false).await);
    assert_eq!((data(&frames, 1), data(&frames, 3)), (b"hello".to_vec(), b"xxx".to_vec()));
    assert!(frames.iter().all(|frame| frame.stream != 5), "{frames:?}");
    drop(client);
    soon("the end", peer.drain.ended()).await;
}

#[tokio::test]
async fn a_client_that_leaves_is_answered_first() {
    let peer = Peer::start().await;
    let mut client = Client::open(&peer, &[]).await;
    client.send(&[ask(1, "/bytes/70000"), frame(GOAWAY, 0, 0, &[0; 8])].concat()).await;
    client.send(&frame(WINDOW_UPDATE, 0, 0, &70_000_u32.to_be_bytes())).await;
    client.send(&frame(WINDOW_UPDATE, 0, 1, &70_000_u32.to_be_bytes())).await;
    let frames = client.until(|_| false).await;
    assert_eq!(data(&frames, 1).len(), 70_000);
}
