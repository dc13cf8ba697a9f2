//! One thing after the greeting, and what it leads to.

use crate::{client::*, peer::Peer};

const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE_ERROR: u32 = 6;
const REFUSED_STREAM: u32 = 7;
const COMPRESSION_ERROR: u32 = 9;
const ENHANCE_YOUR_CALM: u32 = 11;

/// What something leads to.
#[derive(Debug, Clone, Copy)]
enum Leads {
    /// The connection ends, and says why.
    Ends(u32),
    /// The stream ends, the connection goes on.
    Resets(u32, u32),
    /// Nothing ends.
    Nothing,
}

async fn check(peer: &Peer, section: &str, frames: &[Vec<u8>], leads: Leads) {
    let mut client = Client::open(peer, &[]).await;
    client.send(&frames.concat()).await;
    let seen = client.all().await;
    let said: Vec<_> = seen
        .iter()
        .filter_map(|frame| Some((frame.kind, frame.stream, frame.reason()?)))
        .collect();
    let expected = match leads {
        Leads::Ends(reason) => vec![(GOAWAY, 0, reason)],
        Leads::Resets(stream, reason) => vec![(RST_STREAM, stream, reason)],
        Leads::Nothing => vec![],
    };
    assert_eq!(said, expected, "section {section}: {seen:?}");
    let goes_on = seen.last().is_some_and(|frame| frame.kind == PING);
    assert_eq!(goes_on, !matches!(leads, Leads::Ends(_)), "section {section}: {seen:?}");
}

async fn check_all(cases: &[(&str, Vec<Vec<u8>>, Leads)]) {
    let peer = Peer::start().await;
    for (section, frames, leads) in cases {
        check(&peer, section, frames, *leads).await;
    }
}

fn with(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(fields))
}

const METHOD: (&str, &str) = (":method", "POST");
const SCHEME: (&str, &str) = (":scheme", "http");
const PATH: (&str, &str) = (":path", "/hang");

#[tokio::test]
async fn frames_have_the_size_and_the_place_that_sections_4_and_6_give_them() {
    let hang = || begin(1, "/hang");
    check_all(&[
        ("4.1, unknown frames", vec![frame(0x16, 0xff, 0, &[1; 100]), frame(0xff, 0, 7, &[])], Leads::Nothing),
        ("4.1, a reserved bit", vec![frame(PING, 0, 1 << 31, &[0; 8])], Leads::Nothing),
        (
            "4.2, a frame that is too large",
            vec![hang(), frame(DATA, 0, 1, &[0; 16_385])],
            Leads::Ends(FRAME_SIZE_ERROR),
        ),
        ("4.2, the largest frame", vec![hang(), frame(DATA, 0, 1, &[0; 16_384])], Leads::Nothing),
        ("4.3, no header block", vec![frame(HEADERS, END_HEADERS, 1, &[0x80])], Leads::Ends(COMPRESSION_ERROR)),
        (
            "4.3, another frame in the middle of headers",
            vec![frame(HEADERS, 0, 1, &request("/hang")), frame(PING, 0, 0, &[0; 8])],
            Leads::Ends(PROTOCOL_ERROR),
        ),
        (
            "4.3, an unknown frame in the middle of headers",
            vec![frame(HEADERS, 0, 1, &request("/hang")), frame(0x16, 0, 0, &[])],
            Leads::Ends(PROTOCOL_ERROR),
        ),
        (
            "4.3, headers of another stream in the middle of headers",
            vec![frame(HEADERS, 0, 1, &request("/hang")), frame(CONTINUATION, END_HEADERS, 3, &[])],
            Leads::Ends(PROTOCOL_ERROR),
        ),
        ("6.1, data on no stream", vec![frame(DATA, 0, 0, b"x")], Leads::Ends(PROTOCOL_ERROR)),
        ("6.1, padding", vec![hang(), frame(DATA, PADDED, 1, &[3, b'x', 0, 0, 0])], Leads::Nothing),
        ("6.1, only padding", vec![hang(), frame(DATA, PADDED, 1, &[0])], Leads::Nothing),
        ("6.1, too much padding", vec![hang(), frame(DATA, PADDED, 1, &[2, b'x'])], Leads::Ends(PROTOCOL_ERROR)),
        ("6.1, no length of padding", vec![hang(), frame(DATA, PADDED, 1, &[])], Leads::Ends(FRAME_SIZE_ERROR)),
        ("6.2, headers on no stream", vec![frame(HEADERS, END_HEADERS, 0, &request("/"))], Leads::Ends(PROTOCOL_ERROR)),
        (
            "6.2, padded headers with a priority",
            vec![frame(
                HEADERS,
                END_HEADERS | PADDED | WITH_PRIORITY,
                1,
                &[&[2, 0, 0, 0, 0, 9][..], &request("/hang"), &[0, 0]].concat(),
            )],
            Leads::Nothing,
        ),
        ("6.2, too much padding", vec![frame(HEADERS, END_HEADERS | PADDED, 1, &[1])], Leads::Ends(PROTOCOL_ERROR)),
        (
            "6.2, half a priority",
            vec![frame(HEADERS, END_HEADERS | WITH_PRIORITY, 1, &[0; 4])],
            Leads::Ends(FRAME_SIZE_ERROR),
        ),
        ("6.3, a priority", vec![frame(PRIORITY, 0, 5, &[0; 5])], Leads::Nothing),
        ("6.3, a priority of no stream", vec![frame(PRIORITY, 0, 0, &[0; 5])], Leads::Ends(PROTOCOL_ERROR)),
        ("6.3, half a priority", vec![hang(), frame(PRIORITY, 0, 1, &[0; 4])], Leads::Resets(1, FRAME_SIZE_ERROR)),
        ("6.4, a reset of no stream", vec![frame(RST_STREAM, 0, 0, &[0; 4])], Leads::Ends(PROTOCOL_ERROR)),
        ("6.4, a reset of an idle stream", vec![frame(RST_STREAM, 0, 1, &[0; 4])], Leads::Ends(PROTOCOL_ERROR)),
        ("6.4, half a reset", vec![hang(), frame(RST_STREAM, 0, 1, &[0; 3])], Leads::Ends(FRAME_SIZE_ERROR)),
        ("6.4, a reset", vec![hang(), frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])], Leads::Nothing),
        ("6.5, settings of a stream", vec![frame(SETTINGS, 0, 1, &[])], Leads::Ends(PROTOCOL_ERROR)),
        ("6.5, half a setting", vec![frame(SETTINGS, 0, 0, &[0; 7])], Leads::Ends(FRAME_SIZE_ERROR)),
        (
            "6.5, an acknowledgement with settings",
            vec![frame(SETTINGS, ACK, 0, &[0; 6])],
            Leads::Ends(FRAME_SIZE_ERROR),
        ),
        ("6.5.2, ENABLE_PUSH", vec![settings(&[(2, 2)])], Leads::Ends(PROTOCOL_ERROR)),
        ("6.5.2, INITIAL_WINDOW_SIZE", vec![settings(&[(4, 1 << 31)])], Leads::Ends(FLOW_CONTROL_ERROR)),
        ("6.5.2, a small MAX_FRAME_SIZE", vec![settings(&[(5, 16_383)])], Leads::Ends(PROTOCOL_ERROR)),
        ("6.5.2, a large MAX_FRAME_SIZE", vec![settings(&[(5, 1 << 24)])], Leads::Ends(PROTOCOL_ERROR)),
        ("6.5.2, unknown settings", vec![settings(&[(0xabcd, u32::MAX), (0, 0)])], Leads::Nothing),
        ("6.6, a promise of a client", vec![frame(PUSH_PROMISE, END_HEADERS, 1, &[0; 4])], Leads::Ends(PROTOCOL_ERROR)),
        ("6.7, a ping of a stream", vec![frame(PING, 0, 1, &[0; 8])], Leads::Ends(PROTOCOL_ERROR)),
        ("6.7, half a ping", vec![frame(PING, 0, 0, &[0; 6])], Leads::Ends(FRAME_SIZE_ERROR)),
        ("6.7, an answer that nobody has asked for", vec![frame(PING, ACK, 0, &[7; 8])], Leads::Nothing),
        ("6.8, a farewell of a stream", vec![frame(GOAWAY, 0, 1, &[0; 8])], Leads::Ends(PROTOCOL_ERROR)),
        ("6.8, half a farewell", vec![frame(GOAWAY, 0, 0, &[0; 7])], Leads::Ends(FRAME_SIZE_ERROR)),
        ("6.9, half a window", vec![frame(WINDOW_UPDATE, 0, 0, &[0; 3])], Leads::Ends(FRAME_SIZE_ERROR)),
        ("6.9, a window of nothing", vec![frame(WINDOW_UPDATE, 0, 0, &[0; 4])], Leads::Ends(PROTOCOL_ERROR)),
        (
            "6.9, a window of nothing for a stream",
            vec![hang(), frame(WINDOW_UPDATE, 0, 1, &[0; 4])],
            Leads::Resets(1, PROTOCOL_ERROR),
        ),
        (
            "6.9, a window of an idle stream",
            vec![frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])],
            Leads::Ends(PROTOCOL_ERROR),
        ),
        (
            "6.9.1, a window that is too large",
            vec![frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])],
            Leads::Ends(FLOW_CONTROL_ERROR),
        ),
        (
            "6.9.1, a window of a stream that is too large",
            vec![hang(), frame(WINDOW_UPDATE, 0, 1, &[0x7f, 0xff, 0xff, 0xff])],
            Leads::Resets(1, FLOW_CONTROL_ERROR),
        ),
        (
            "6.9.2, settings that make a window too large",
            vec![hang(), frame(WINDOW_UPDATE, 0, 1, &[0x40, 0, 0, 0]), settings(&[(4, 0x4000_0000)])],
            Leads::Ends(FLOW_CONTROL_ERROR),
        ),
        (
            "6.10, a continuation of nothing",
            vec![frame(CONTINUATION, END_HEADERS, 1, &[])],
            Leads::Ends(PROTOCOL_ERROR),
        ),
        (
            "6.10, a continuation of headers that have ended",
            vec![hang(), frame(CONTINUATION, END_HEADERS, 1, &[])],
            Leads::Ends(PROTOCOL_ERROR),
        ),
        (
            "6.10, headers in pieces",
            vec![
                frame(HEADERS, END_STREAM, 1, &request("/hang")[..9]),
                frame(CONTINUATION, 0, 1, &[]),
                frame(CONTINUATION, END_HEADERS, 1, &request("/hang")[9..]),
            ],
            Leads::Nothing,
        ),
    ])
    .await;
}

#[tokio::test]
async fn streams_go_through_the_states_of_section_5() {
    let hang = || begin(1, "/hang");
    let (done, late) = (|| ask(1, "/hang"), || frame(DATA, 0, 1, b"late"));
    let given_up = || frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]);
    check_all(&[
        ("5.1, data on an idle stream", vec![frame(DATA, END_STREAM, 1, b"x")], Leads::Ends(PROTOCOL_ERROR)),
        ("5.1, data after the end", vec![done(), late()], Leads::Resets(1, STREAM_CLOSED)),
        ("5.1, headers after the end", vec![done(), ask(1, "/hang")], Leads::Resets(1, STREAM_CLOSED)),
        ("5.1, data after a reset", vec![hang(), given_up(), late()], Leads::Ends(STREAM_CLOSED)),
        ("5.1, headers after a reset", vec![hang(), given_up(), hang()], Leads::Ends(STREAM_CLOSED)),
        ("5.1, a second reset", vec![hang(), given_up(), given_up()], Leads::Nothing),
        (
            "5.1, a window after a reset",
            vec![hang(), given_up(), frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])],
            Leads::Nothing,
        ),
        ("5.1.1, an even number", vec![ask(2, "/hang")], Leads::Ends(PROTOCOL_ERROR)),
        ("5.1.1, a lower number", vec![ask(5, "/hang"), ask(3, "/hang")], Leads::Ends(PROTOCOL_ERROR)),
        ("5.1.1, numbers with gaps", vec![ask(5, "/hang"), ask(77, "/hang")], Leads::Nothing),
        (
            "5.1.2, more streams than may be",
            (0..5).map(|at| ask(1 + 2 * at, "/hang")).collect(),
            Leads::Resets(9, REFUSED_STREAM),
        ),
        (
            "5.4.1, what comes after a reset of ours",
            vec![
                begin(1, "/hang"),
                frame(WINDOW_UPDATE, 0, 1, &[0; 4]),
                late(),
                frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
                frame(RST_STREAM, 0, 1, &[0; 4]),
            ],
            Leads::Resets(1, PROTOCOL_ERROR),
        ),
    ])
    .await;
}

#[tokio::test]
async fn requests_are_what_section_8_says() {
    let malformed = Leads::Resets(1, PROTOCOL_ERROR);
    let one = |fields: &[(&str, &str)]| vec![with(fields)];
    check_all(&[
        ("8.2.1, upper case", one(&[METHOD, SCHEME, PATH, ("Name", "x")]), malformed),
        ("8.2.1, a name that is none", one(&[METHOD, SCHEME, PATH, ("na me", "x")]), malformed),
        ("8.2.1, no name", one(&[METHOD, SCHEME, PATH, ("", "x")]), malformed),
        ("8.2.1, a value of two lines", one(&[METHOD, SCHEME, PATH, ("name", "x\ny")]), malformed),
        ("8.2.2, connection", one(&[METHOD, SCHEME, PATH, ("connection", "close")]), malformed),
        ("8.2.2, keep-alive", one(&[METHOD, SCHEME, PATH, ("keep-alive", "1")]), malformed),
        ("8.2.2, proxy-connection", one(&[METHOD, SCHEME, PATH, ("proxy-connection", "1")]), malformed),
        ("8.2.2, transfer-encoding", one(&[METHOD, SCHEME, PATH, ("transfer-encoding", "chunked")]), malformed),
        ("8.2.2, upgrade", one(&[METHOD, SCHEME, PATH, ("upgrade", "h2c")]), malformed),
        ("8.2.2, te", one(&[METHOD, SCHEME, PATH, ("te", "trailers, deflate")]), malformed),
        ("8.2.2, te: trailers", one(&[METHOD, SCHEME, PATH, ("te", "trailers")]), Leads::Nothing),
        ("8.3, an unknown pseudo-header", one(&[METHOD, SCHEME, PATH, (":what", "x")]), malformed),
        ("8.3, a pseudo-header of answers", one(&[METHOD, SCHEME, PATH, (":status", "200")]), malformed),
        ("8.3, a pseudo-header after others", one(&[METHOD, SCHEME, ("name", "x"), PATH]), malformed),
        ("8.3.1, no method", one(&[SCHEME, PATH]), malformed),
        ("8.3.1, no scheme", one(&[METHOD, PATH]), malformed),
        ("8.3.1, no path", one(&[METHOD, SCHEME]), malformed),
        ("8.3.1, an empty path", one(&[METHOD, SCHEME, (":path", "")]), malformed),
        ("8.3.1, a path that is none", one(&[METHOD, SCHEME, (":path", "hang")]), malformed),
        ("8.3.1, two methods", one(&[METHOD, METHOD, SCHEME, PATH]), malformed),
        ("8.3.1, two paths", one(&[METHOD, SCHEME, PATH, PATH]), malformed),
        ("8.3.1, an authority that is none", one(&[METHOD, SCHEME, PATH, (":authority", "a b")]), malformed),
        ("8.5, CONNECT with a path", one(&[(":method", "CONNECT"), (":authority", "a:1"), PATH]), malformed),
        ("8.5, CONNECT", one(&[(":method", "CONNECT"), (":authority", "a:1")]), Leads::Nothing),
        ("8.1.1, a length without a body", one(&[METHOD, SCHEME, PATH, ("content-length", "1")]), malformed),
        ("8.1.1, a length that is none", one(&[METHOD, SCHEME, PATH, ("content-length", "x")]), malformed),
        (
            "8.1.1, less than was said",
            vec![
                frame(HEADERS, END_HEADERS, 1, &block(&[METHOD, SCHEME, PATH, ("content-length", "3")])),
                frame(DATA, END_STREAM, 1, b"12"),
            ],
            malformed,
        ),
        (
            "8.1.1, more than was said",
            vec![
                frame(HEADERS, END_HEADERS, 1, &block(&[METHOD, SCHEME, PATH, ("content-length", "1")])),
                frame(DATA, 0, 1, b"12"),
            ],
            malformed,
        ),
        (
            "8.1, trailers that do not end",
            vec![begin(1, "/hang"), frame(HEADERS, END_HEADERS, 1, &block(&[("name", "x")]))],
            malformed,
        ),
        (
            "8.1, trailers with a pseudo-header",
            vec![begin(1, "/hang"), frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(&[METHOD]))],
            malformed,
        ),
    ])
    .await;
}

#[tokio::test]
async fn who_floods_is_told_to_calm_down() {
    let peer = Peer::start().await;
    let calm = Leads::Ends(ENHANCE_YOUR_CALM);
    let fields = request("/hang");
    let first = || frame(HEADERS, END_STREAM, 1, &fields);
    let many = |frame: Vec<u8>, count: usize| frame.repeat(count);
    let large = frame(CONTINUATION, 0, 1, &block(&[("x", &"y".repeat(16_000))]));
    check(&peer, "headers that do not end", &[first(), many(large, 5)], calm).await;
    check(&peer, "empty continuations", &[first(), many(frame(CONTINUATION, 0, 1, &[]), 64)], calm).await;
    // Somebody who reads the answers, and goes on.
    for (what, frame) in [
        ("pings", frame(PING, 0, 0, &[0; 8])),
        ("settings", settings(&[(4, 1)])),
        ("priorities", frame(PRIORITY, 0, 1, &[0; 5])),
        ("unknown frames", frame(0x16, 0, 0, &[])),
        ("empty data", frame(DATA, 0, 1, &[])),
    ] {
        let mut client = Client::open(&peer, &[]).await;
        client.send(&begin(1, "/hang")).await;
        let (mut reading, mut writing) = client.stream.into_split();
        let flood = frame.repeat(1_000);
        let writing =
            tokio::spawn(
                async move { while tokio::io::AsyncWriteExt::write_all(&mut writing, &flood).await.is_ok() {} },
            );
        let mut read = Vec::new();
        drop(soon(what, tokio::io::AsyncReadExt::read_to_end(&mut reading, &mut read)).await);
        let goaway = [0, 0, 0, 1, 0, 0, 0, 11];
        assert!(read.windows(8).any(|window| window == goaway), "{what}");
        writing.abort();
    }
    let resets: Vec<_> = (0..2_000)
        .map(|at| [ask(1 + 2 * at, "/hang"), frame(RST_STREAM, 0, 1 + 2 * at, &[0, 0, 0, 8])].concat())
        .collect();
    check(&peer, "streams that are given up at once", &resets, calm).await;
    let nonsense: Vec<_> = (0..2_000)
        .map(|at| frame(HEADERS, END_HEADERS | END_STREAM, 1 + 2 * at, &[0x82]))
        .collect();
    let mut client = Client::open(&peer, &[]).await;
    client.send(&nonsense.concat()).await;
    let seen = client.all().await;
    assert_eq!(seen.last().and_then(Frame::reason), Some(ENHANCE_YOUR_CALM), "requests that are none");
}
