//! What clients of HTTP/2 send after their greeting, and what they should not.

use crate::corpus::{Files, named};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub(super) fn connections() -> Files {
    // POST, http, a path and an authority that are to be remembered, and a compressed type.
    let fields = [
        &b"\x83\x86\x44\x05/a/bc\x41\x01a\x40\x02te\x08trailers"[..],
        b"\x5f\x8b\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x4d\x65\x64",
    ]
    .concat();
    let known = b"\x83\x86\xc1\xc0\xbf\xbe";
    let number = |value: u32| value.to_be_bytes();
    let files: [(&str, Vec<Vec<u8>>); 14] = [
        (
            "unary",
            vec![frame(HEADERS, 4, 1, &fields), frame(DATA, 1, 1, b"\0\0\0\0\x02hi"), frame(HEADERS, 5, 3, known)],
        ),
        (
            "trailers",
            vec![frame(HEADERS, 4, 1, &fields), frame(DATA, 0, 1, b"data"), frame(HEADERS, 5, 1, b"\0\x01a\x01b")],
        ),
        (
            "in-pieces",
            vec![
                frame(HEADERS, 1, 1, &fields[..9]),
                frame(CONTINUATION, 0, 1, &[]),
                frame(CONTINUATION, 4, 1, &fields[9..]),
            ],
        ),
        (
            "padded-with-a-priority",
            vec![
                frame(HEADERS, 0x2c, 1, &[&[2, 0, 0, 0, 0, 9][..], &fields, &[0; 2]].concat()),
                frame(DATA, 9, 1, b"\x03data\0\0\0"),
            ],
        ),
        (
            "settings",
            vec![
                frame(SETTINGS, 0, 0, b"\0\x03\0\0\0\x01\0\x04\0\x01\0\0\0\x05\0\x10\0\0"),
                frame(SETTINGS, 1, 0, &[]),
            ],
        ),
        (
            "windows",
            vec![
                frame(HEADERS, 4, 1, &fields),
                frame(WINDOW_UPDATE, 0, 0, &number(70_000)),
                frame(WINDOW_UPDATE, 0, 1, &number(70_000)),
                frame(SETTINGS, 0, 0, b"\0\x04\0\0\0\0"),
            ],
        ),
        ("a-window-too-large", vec![frame(WINDOW_UPDATE, 0, 0, &number(u32::MAX))]),
        (
            "too-much-data",
            vec![frame(HEADERS, 4, 1, &fields), frame(DATA, 0, 1, &[0; 4_000]), frame(DATA, 0, 1, &[0; 200])],
        ),
        (
            "given-up",
            vec![
                frame(HEADERS, 4, 1, &fields),
                frame(RST_STREAM, 0, 1, &number(8)),
                frame(WINDOW_UPDATE, 0, 1, &number(1)),
            ],
        ),
        ("malformed", vec![frame(HEADERS, 5, 1, b"\x83\x86\0\x01A\x01b"), frame(HEADERS, 5, 3, &fields)]),
        ("more-than-may-be", (0..10).map(|at| frame(HEADERS, 4, 1 + 2 * at, b"\x83\x86\x84")).collect()),
        (
            "a-bomb",
            vec![frame(
                HEADERS,
                5,
                1,
                &[&b"\x83\x86\x84\x40\x01a\x7f\x81\x1e"[..], &[b'x'; 4_000], &[0xbe; 1_000]].concat(),
            )],
        ),
        (
            "pings-and-a-farewell",
            vec![frame(PING, 0, 0, b"abcdefgh"), frame(PING, 1, 0, b"farewell"), frame(GOAWAY, 0, 0, &[0; 8])],
        ),
        ("unknown", vec![frame(0x16, 0xff, 9, b"anything")]),
    ];
    named(files.map(|(name, frames)| (name, frames.concat())))
}
