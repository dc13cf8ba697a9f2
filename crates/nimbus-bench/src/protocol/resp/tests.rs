use crate::protocol::{Heard, Resp};

#[test]
fn messages_are_counted_whatever_the_pieces() {
    let bytes = b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n\
        *3\r\n$7\r\nmessage\r\n$1\r\na\r\n$4\r\n\r\n$1\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$0\r\n\r\n";
    for size in 1..=bytes.len() {
        let (mut resp, mut total) = (Resp::default(), Heard::default());
        for piece in bytes.chunks(size) {
            let heard = resp.take(piece).unwrap();
            total.events += heard.events;
            total.ready |= heard.ready;
        }
        assert_eq!(total, Heard { events: 2, ready: true }, "in pieces of {size}");
    }
}
