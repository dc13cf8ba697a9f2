//! The body of a request, between the connection that receives it and whoever reads it.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use parking_lot::Mutex;

use crate::{connection::Wakes, line::Errand, reason::Reason};

/// The body of a request. What is read makes room for as much.
pub struct RequestBody(Arc<Side>);

/// Why the rest of a request will not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Interrupted {
    /// Its stream was given up.
    #[error("the request was given up: {0:?}")]
    Reset(Reason),
    /// The connection has ended.
    #[error("the connection has ended")]
    Lost,
}

/// What a connection and the one who reads a request share. As a waker, it is that of the call.
#[derive(Debug)]
pub(crate) struct Side {
    wakes: Arc<Wakes>,
    stream: u32,
    /// As much must have been read to be worth telling at once.
    worth: u32,
    /// It waits for its turn already.
    is_queued: AtomicBool,
    /// What wakes it is news for an answer that has begun, and stands in line.
    is_answered: AtomicBool,
    /// The last piece of its answer was large.
    is_large: AtomicBool,
    /// Bytes that were read, and are to be given back to the peer.
    read: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Came, and was not read.
    bytes: Vec<u8>,
    end: Option<Result<Option<Box<HeaderMap>>, Interrupted>>,
    /// Nobody reads it any more.
    is_dropped: bool,
    reader: Option<Waker>,
}

/// Pieces of this size are put together for one reader, in more time than is left to others: what many share is smaller.
const LARGE: usize = 512 << 10;

// === impl Side ===

impl Side {
    pub(crate) fn new(wakes: Arc<Wakes>, stream: u32, worth: u32) -> Arc<Self> {
        let (is_queued, is_answered, is_large) = (AtomicBool::default(), AtomicBool::default(), AtomicBool::default());
        let (read, state) = (AtomicU32::new(0), Mutex::default());
        Arc::new(Self { wakes, stream, worth, is_queued, is_answered, is_large, read, state })
    }

    pub(crate) fn body(self: &Arc<Self>) -> RequestBody {
        RequestBody(self.clone())
    }

    /// Says that it waits for its turn. `false`: it did so already.
    pub(crate) fn queue(&self) -> bool {
        !self.is_queued.swap(true, Ordering::AcqRel)
    }

    /// It is its turn: what wakes it from here on makes it wait for another.
    pub(crate) fn unqueue(&self) {
        self.is_queued.store(false, Ordering::Release);
    }

    /// Its answer has begun.
    pub(crate) fn answered(&self) {
        self.is_answered.store(true, Ordering::Release);
    }

    /// A piece of its answer has so many bytes; the next one is likely to be as large.
    pub(crate) fn produced(&self, bytes: usize) {
        self.is_large.store(bytes >= LARGE, Ordering::Release);
    }

    /// What was read since this was last asked.
    pub(crate) fn take_read(&self) -> u32 {
        self.read.swap(0, Ordering::AcqRel)
    }

    /// More has come. `false`: nobody wants it.
    pub(crate) fn data(&self, bytes: &[u8]) -> bool {
        self.change(|state| {
            if !state.is_dropped {
                state.bytes.extend_from_slice(bytes);
            }
            !state.is_dropped
        })
    }

    pub(crate) fn end(&self, trailers: Option<HeaderMap>) {
        self.change(|state| state.end = Some(Ok(trailers.map(Box::new))));
    }

    /// The rest will not come, and what came is of no use. Returns how much nobody has read.
    pub(crate) fn interrupt(&self, why: Interrupted) -> u32 {
        let unread = self.change(|state| {
            if !matches!(state.end, Some(Ok(_))) || !state.bytes.is_empty() {
                state.end = Some(Err(why));
            }
            std::mem::take(&mut state.bytes).len()
        });
        // What is read after the stream has ended is nobody's business any more.
        length(unread) + self.take_read()
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let changed = change(&mut state);
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
        changed
    }

    fn give_back(&self, bytes: usize) {
        let bytes = length(bytes);
        let read = self.read.fetch_add(bytes, Ordering::AcqRel) + bytes;
        if bytes > 0 && read >= self.worth {
            self.wake();
        }
    }

    fn wake(&self) {
        if self.queue() {
            if self.is_answered.load(Ordering::Acquire) {
                let is_large = self.is_large.load(Ordering::Acquire);
                self.wakes.wake_in_line(self.stream, if is_large { Errand::Much } else { Errand::News });
            } else {
                self.wakes.wake_stream(self.stream);
            }
        }
    }
}

impl Wake for Side {
    fn wake(self: Arc<Self>) {
        Self::wake(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        Self::wake(self);
    }
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("windows are smaller")
}

// === impl RequestBody ===

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = Interrupted;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Interrupted>>> {
        let mut state = self.0.state.lock();
        if !state.bytes.is_empty() {
            let bytes = Bytes::from(std::mem::take(&mut state.bytes));
            drop(state);
            self.0.give_back(bytes.len());
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        match &mut state.end {
            Some(Ok(trailers)) => Poll::Ready(trailers.take().map(|trailers| Ok(Frame::trailers(*trailers)))),
            Some(Err(why)) => Poll::Ready(Some(Err(*why))),
            None => {
                if !state.reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker())) {
                    state.reader = Some(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let state = self.0.state.lock();
        state.bytes.is_empty() && matches!(state.end, Some(Ok(None)))
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestBody").field(&self.0.stream).finish()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_dropped = true;
        state.reader = None;
        let unread = std::mem::take(&mut state.bytes).len();
        drop(state);
        self.0.give_back(unread);
    }
}
