use crate::protocol::{Heard, Nats};

#[test]
fn messages_are_counted_and_the_server_is_answered_whatever_the_pieces() {
    let bytes = b"INFO {}\r\nPONG\r\nMSG a 1 4\r\n\r\nxy\r\nPING\r\nMSG a 1 reply 0\r\n\r\n\
        HMSG a 1 $JS.FC.x 14 14\r\nNATS/1.0 100\r\n\r\nHMSG a 1 12 12\r\nNATS/1.0 100\r\nMSG a 1 1\r\nz\r\n";
    for size in 1..=bytes.len() {
        let (mut nats, mut answer, mut total) = (Nats::default(), Vec::new(), Heard::default());
        for piece in bytes.chunks(size) {
            let heard = nats.take(piece, &mut answer).unwrap();
            total.events += heard.events;
            total.ready |= heard.ready;
        }
        assert_eq!(total, Heard { events: 3, ready: true }, "in pieces of {size}");
        assert_eq!(answer, b"PONG\r\nPUB $JS.FC.x 0\r\n\r\n", "in pieces of {size}");
    }
}

#[test]
fn an_error_of_the_server_is_passed_on() {
    let error = Nats::default().take(b"-ERR 'Slow Consumer'\r\n", &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "the server says -ERR 'Slow Consumer'");
}
