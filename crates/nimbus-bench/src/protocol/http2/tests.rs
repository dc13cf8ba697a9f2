use crate::protocol::{
    Counted, Heard,
    http2::{ACK, DATA, END_STREAM, Grpc, HEADERS, PING, SETTINGS, STREAM, Settings, WINDOW_UPDATE, frame},
};

/// Field 11 is an event, field 3 says that everything is there.
const WATCH: Counted = Counted { enter: None, event: 11, ready: &[3] };

fn call(settings: Settings) -> Grpc {
    Grpc::call(settings, WATCH, "/a.B/C", b"request", false).unwrap().0
}

fn message(content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend_from_slice(&u32::try_from(content.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(content);
    bytes
}

/// What a server sends: settings, headers, a ping, and two messages that share one frame and begin another.
fn stream() -> Vec<u8> {
    let mut bytes = Vec::new();
    frame(&mut bytes, SETTINGS, 0, 0, &[0; 6]).unwrap();
    frame(&mut bytes, HEADERS, 4, STREAM, b"headers").unwrap();
    frame(&mut bytes, PING, 0, 0, b"12345678").unwrap();
    let first = message(&[0x18, 1]);
    let second = message(&[0x5a, 2, 9, 9, 0x5a, 1, 7]);
    let (begin, end) = second.split_at(8);
    frame(&mut bytes, DATA, 0, STREAM, &[&first, begin].concat()).unwrap();
    frame(&mut bytes, DATA, 0, STREAM, end).unwrap();
    bytes
}

#[test]
fn messages_are_counted_and_the_server_is_answered_whatever_the_pieces() {
    let bytes = stream();
    let mut expected = Vec::new();
    frame(&mut expected, SETTINGS, ACK, 0, &[]).unwrap();
    frame(&mut expected, PING, ACK, 0, b"12345678").unwrap();
    for size in 1..=bytes.len() {
        let (mut grpc, mut answer, mut total) = (call(Settings::DEFAULT), Vec::new(), Heard::default());
        for piece in bytes.chunks(size) {
            let heard = grpc.take(piece, &mut answer).unwrap();
            total.events += heard.events;
            total.ready |= heard.ready;
        }
        assert_eq!(total, Heard { events: 2, ready: true }, "in pieces of {size}");
        assert_eq!(answer, expected, "in pieces of {size}");
    }
}

#[test]
fn the_windows_are_enlarged_when_half_of_them_is_used() {
    let mut grpc = call(Settings { max_frame: 16_384, window: 100 });
    let (mut bytes, mut answer) = (Vec::new(), Vec::new());
    frame(&mut bytes, DATA, 0, STREAM, &message(&[0x5a, 32].into_iter().chain([1; 32]).collect::<Vec<_>>())).unwrap();
    grpc.take(&bytes, &mut answer).unwrap();
    assert!(answer.is_empty());
    grpc.take(&bytes, &mut answer).unwrap();
    let mut expected = Vec::new();
    for stream in [0, STREAM] {
        frame(&mut expected, WINDOW_UPDATE, 0, stream, &78_u32.to_be_bytes()).unwrap();
    }
    assert_eq!(answer, expected);
}

#[test]
fn the_end_of_the_call_is_an_error() {
    let mut bytes = Vec::new();
    frame(&mut bytes, HEADERS, 4 | END_STREAM, STREAM, b"trailers").unwrap();
    let error = call(Settings::DEFAULT).take(&bytes, &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "the server ended the call");
}
