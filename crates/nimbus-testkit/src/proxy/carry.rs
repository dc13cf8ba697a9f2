//! One connection on its line.

use std::{
    future::{Future, pending},
    io,
    pin::pin,
};

use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::{mpsc, watch},
    time::{Instant, sleep, sleep_until},
};

use crate::proxy::{
    Traffic,
    line::{Cut, Line, Toward},
    pace::Pace,
};

/// What connections are told.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) line: Line,
    /// How often all connections were cut, and how the last time.
    pub(crate) cuts: u64,
    pub(crate) how: Cut,
}

/// Bytes on their way, or the end of what is sent: none, or an error.
struct Piece {
    arrives: Instant,
    bytes: io::Result<Vec<u8>>,
}

/// Why a direction does not go on.
enum Stop {
    /// Everything was carried, and its end.
    Ended,
    /// As much was carried as the line lets through.
    Cut,
}

/// One piece. Small, so that a slow line does not come in lumps.
const PIECE: usize = 16 << 10;

/// Pieces on their way in one direction; whoever sends more waits, as for the window of TCP.
const IN_FLIGHT: usize = 16;

/// Carries a connection until both sides have ended it, one has broken it, or the line has. Says how, if it was broken.
pub(crate) async fn carry(
    near: &mut (impl AsyncRead + AsyncWrite + Unpin),
    far: &mut (impl AsyncRead + AsyncWrite + Unpin),
    state: watch::Receiver<State>,
    traffic: &watch::Sender<Traffic>,
    mut rng: SmallRng,
) -> Option<Cut> {
    let (near_read, near_write) = tokio::io::split(near);
    let (far_read, far_write) = tokio::io::split(far);
    let pace = |rng: &mut SmallRng| Pace::new(SmallRng::from_rng(rng));
    let (up, down) = (pace(&mut rng), pace(&mut rng));
    let up = one_way(near_read, far_write, Toward::Server, state.clone(), up, |bytes| {
        traffic.send_modify(|traffic| traffic.up += bytes);
    });
    let down = one_way(far_read, near_write, Toward::Client, state.clone(), down, |bytes| {
        traffic.send_modify(|traffic| traffic.down += bytes);
    });
    let both = async { tokio::try_join!(goes_on(up), goes_on(down)).is_err() };
    tokio::select! {
        biased;
        how = cut(state.clone()) => Some(how),
        how = chance(state.clone(), rng) => Some(how),
        broken = both => broken.then(|| state.borrow().line.cut_by),
    }
}

/// What one side has broken is broken for the other, too.
async fn goes_on(way: impl Future<Output = io::Result<Stop>>) -> Result<(), ()> {
    match way.await {
        Ok(Stop::Ended) => Ok(()),
        Ok(Stop::Cut) | Err(_) => Err(()),
    }
}

/// Waits until somebody cuts all connections.
async fn cut(mut state: watch::Receiver<State>) -> Cut {
    let before = state.borrow().cuts;
    if let Ok(state) = state.wait_for(|state| state.cuts > before).await {
        return state.how;
    }
    pending().await
}

/// Waits until the line breaks by itself.
async fn chance(mut state: watch::Receiver<State>, mut rng: SmallRng) -> Cut {
    loop {
        let every = state.borrow_and_update().line.cut_every;
        // However long it has held: the chance is the same at every moment.
        let time = every.map(|every| every.mul_f64(-f64::ln(1.0 - rng.random::<f64>())));
        let broken = async {
            match time {
                Some(time) => sleep(time).await,
                None => pending().await,
            }
        };
        let is_over = tokio::select! {
            biased;
            changed = state.changed() => changed.is_err(),
            () = broken => return state.borrow().line.cut_by,
        };
        if is_over {
            return pending().await;
        }
    }
}

/// Carries one direction.
async fn one_way(
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin,
    toward: Toward,
    state: watch::Receiver<State>,
    pace: Pace,
    arrived: impl Fn(u64),
) -> io::Result<Stop> {
    let (sender, receiver) = mpsc::channel(IN_FLIGHT);
    let take = take(from, sender, state.clone(), pace);
    let mut give = pin!(give(to, receiver, toward, state, arrived));
    tokio::select! {
        stop = &mut give => stop,
        () = take => give.await,
    }
}

/// Takes what is sent, and says when it arrives.
async fn take(
    mut from: impl AsyncRead + Unpin,
    pieces: mpsc::Sender<Piece>,
    state: watch::Receiver<State>,
    mut pace: Pace,
) {
    let mut buffer = vec![0; PIECE];
    loop {
        let read = from.read(&mut buffer).await;
        let bytes = read.map(|read| buffer[..read].to_vec());
        let length = bytes.as_ref().map_or(0, Vec::len);
        let arrives = pace.arrival(length, &state.borrow().line, Instant::now());
        let sent = pieces.send(Piece { arrives, bytes }).await;
        if length == 0 || sent.is_err() {
            return;
        }
    }
}

/// Gives what was sent to whom it is for, when its time has come.
async fn give(
    mut to: impl AsyncWrite + Unpin,
    mut pieces: mpsc::Receiver<Piece>,
    toward: Toward,
    mut state: watch::Receiver<State>,
    arrived: impl Fn(u64),
) -> io::Result<Stop> {
    let (mut carried, mut has_lost) = (0, false);
    while let Some(Piece { arrives, bytes }) = pieces.recv().await {
        sleep_until(arrives).await;
        let Ok(line) = state.wait_for(|state| !state.line.holds).await.map(|state| state.line.clone()) else { break };
        has_lost = has_lost || line.loses.is_some_and(|loses| loses.includes(toward));
        if has_lost {
            continue;
        }
        let mut bytes = bytes?;
        if bytes.is_empty() {
            to.shutdown().await?;
            return Ok(Stop::Ended);
        }
        let limit = line.cut_after.filter(|_| toward == Toward::Client);
        let left = limit.map_or(u64::MAX, |limit| limit.saturating_sub(carried));
        bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        to.write_all(&bytes).await?;
        carried += bytes.len() as u64;
        arrived(bytes.len() as u64);
        if limit.is_some_and(|limit| carried >= limit) {
            return Ok(Stop::Cut);
        }
    }
    // The end was lost, too.
    pending().await
}
