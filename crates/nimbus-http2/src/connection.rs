//! A connection over a socket: one future that does everything.

mod call;
mod clock;
mod inbox;
mod request;
mod spare;
mod wakes;

use std::{
    collections::VecDeque,
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

pub use self::request::{Interrupted, RequestBody};
pub(crate) use self::wakes::{Order, Wakes};
use self::{
    call::{Call, ENOUGH, Lacks, Step},
    clock::{Clock, Due},
    inbox::Inbox,
};
use crate::{
    config::Config,
    core::Core,
    drain::{Drain, Place},
    output::Output,
    reason::{Fatal, Reason},
    streams::Streams,
};

/// A connection over a socket: a future that ends with it, and serves its calls until then.
#[must_use = "a connection does nothing unless it is polled"]
pub struct Connection<IO, A, F, B> {
    io: IO,
    config: Arc<Config>,
    core: Core,
    answer: A,
    calls: Streams<Call<F, B>>,
    /// Calls whose turn it is.
    ready: VecDeque<u32>,
    /// Calls that wait for room on the connection, in line.
    blocked: VecDeque<u32>,
    /// What the socket has not taken. While there is nothing, it is a thread's.
    out: Option<Box<Output>>,
    clock: Clock,
    /// There may be something to read.
    is_readable: bool,
    /// The socket may take something.
    is_writable: bool,
    order: Order,
    ending: Option<Ending>,
    wakes: Arc<Wakes>,
    waker: Waker,
    _place: Place,
}

/// How a connection has ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ended {
    /// In peace: the peer closed it, or was asked to go.
    Closed,
    /// The peer never said hello.
    Silent,
    /// The peer did not answer any more.
    Gone,
    /// The peer did what nobody may do, and was told so.
    Failed(Fatal),
    /// It was lost.
    Lost(io::Error),
}

/// A connection whose peer has been told everything.
#[derive(Debug)]
struct Ending {
    how: Option<Ended>,
    /// Nothing more is written.
    is_shut: bool,
    /// What it may still send before it reads what it was told.
    left: usize,
}

/// What is done in one turn, before other connections have theirs: calls that are polled count more than bodies, because
/// most of what a call takes is between its beginning and its answer. A thousand lists that are asked for at once are not
/// answered at once. So many bytes that are read or written count as one body, and so do those of an answer that is complete when it
/// begins, because they have just been put together: a turn is a quarter of a megabyte, or one such answer, which takes a
/// millisecond or less.
const TURN: usize = 128;
const CALL: usize = 32;
const BYTES: usize = 2 << 10;

/// When so many answers to what leads nowhere wait to be written, nothing is read: whoever asks must read the answers.
const UNREAD: usize = 16 << 10;

/// Slices in one system call.
const SLICES: usize = 32;

/// A peer that was told why its connection ends may be in the middle of sending something. Were the socket closed at
/// once, what it was told would be lost.
const LINGER: usize = 4 << 20;

// === impl Connection ===

impl<IO, A, F, B> Connection<IO, A, F, B>
where
    A: Fn(Request<RequestBody>) -> F,
    F: Future<Output = Response<B>>,
{
    /// Serves a connection: each request is given to `answer`. It is one of those of `drain`.
    pub fn new(io: IO, config: Arc<Config>, drain: &Drain, answer: A) -> Self {
        let now = Instant::now();
        let place = drain.join();
        let wakes = place.wakes().clone();
        Self {
            io,
            core: Core::new(config.clone(), now),
            answer,
            calls: Streams::default(),
            ready: VecDeque::new(),
            blocked: VecDeque::new(),
            out: None,
            clock: Clock::new(&config, now),
            config,
            is_readable: true,
            is_writable: true,
            order: Order::Serve,
            ending: None,
            waker: wakes.clone().into(),
            wakes,
            _place: place,
        }
    }
}

impl<IO, A, F, B> Connection<IO, A, F, B>
where
    IO: AsyncRead + AsyncWrite + Unpin,
    A: Fn(Request<RequestBody>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes> + Unpin,
{
    fn drive(&mut self, out: &mut Output) -> Poll<Ended> {
        let mut turn = TURN;
        while turn > 0 {
            turn -= 1;
            let woken = self.wakes.take(&mut self.ready);
            if woken.is_io {
                if woken.order > self.order {
                    self.order = woken.order;
                    match woken.order {
                        Order::Close => return Poll::Ready(Ended::Closed),
                        _ => self.begin_to_drain(out),
                    }
                }
                (self.is_readable, self.is_writable) = (true, true);
                if let Some(how) = self.on_time(out) {
                    return Poll::Ready(how);
                }
            }
            if self.may_read(out)
                && let Some(how) = self.read(&mut turn, out)
            {
                return Poll::Ready(how);
            }
            self.answer_calls(&mut turn, out);
            let unwritten = out.len();
            let written = self.write(out);
            turn = turn.saturating_sub((unwritten - out.len()) / BYTES);
            if let Err(error) = written {
                return Poll::Ready(self.how_it_ends(Ended::Lost(error)));
            }
            if self.core.is_done() && self.ending.is_none() {
                self.end(Ended::Closed);
            }
            if let Some(how) = self.poll_ending(out) {
                return Poll::Ready(how);
            }
            let has_calls = !self.ready.is_empty() || (!self.blocked.is_empty() && self.core.has_room());
            let has_more = self.may_read(out) || (has_calls && out.len() < ENOUGH);
            if !has_more && self.wakes.rest() {
                self.wakes.free();
                return Poll::Pending;
            }
        }
        self.wakes.lines().again(&self.wakes);
        Poll::Pending
    }

    fn begin_to_drain(&mut self, out: &mut Output) {
        self.core.drain(out);
        self.clock.wait_for_requests(Instant::now() + self.config.grace);
    }

    /// Does what it is time for.
    fn on_time(&mut self, out: &mut Output) -> Option<Ended> {
        let mut cx = Context::from_waker(&self.waker);
        let now = Instant::now();
        while let Some(due) = self.clock.poll(&self.config, now, &mut cx) {
            match due {
                Due::Ping => self.core.ping(out),
                Due::Grace => self.core.finish_drain(out),
                Due::Silent => return Some(Ended::Silent),
                Due::Gone => return Some(Ended::Gone),
                Due::Over => {
                    return Some(self.ending.as_mut().and_then(|ending| ending.how.take()).unwrap_or(Ended::Closed));
                }
            }
        }
        None
    }

    fn may_read(&self, out: &Output) -> bool {
        self.is_readable && (out.own_len() < UNREAD || self.ending.is_some())
    }

    /// Reads what there is, but not more than fits into a buffer: others want to be read, too.
    fn read(&mut self, turn: &mut usize, out: &mut Output) -> Option<Ended> {
        let mut buffer = spare::take_buffer();
        let mut read = ReadBuf::new(&mut buffer);
        let polled = Pin::new(&mut self.io).poll_read(&mut Context::from_waker(&self.waker), &mut read);
        let how = match polled {
            Poll::Pending => {
                self.is_readable = false;
                None
            }
            Poll::Ready(Err(error)) => Some(self.how_it_ends(Ended::Lost(error))),
            Poll::Ready(Ok(())) if read.filled().is_empty() => Some(self.how_it_ends(Ended::Closed)),
            Poll::Ready(Ok(())) => {
                let bytes = read.filled();
                *turn = turn.saturating_sub(bytes.len() / BYTES);
                match &mut self.ending {
                    Some(ending) => {
                        ending.left = ending.left.saturating_sub(bytes.len());
                        if ending.left == 0 { ending.how.take() } else { None }
                    }
                    None => {
                        self.receive(bytes, out);
                        None
                    }
                }
            }
        };
        spare::put_buffer(buffer);
        how
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Output) {
        let now = Instant::now();
        let mut inbox = Inbox {
            config: &self.config,
            wakes: &self.wakes,
            calls: &mut self.calls,
            ready: &mut self.ready,
            blocked: &mut self.blocked,
        };
        let received = self.core.receive(bytes, now, out, &mut inbox);
        self.clock.hear(now, self.core.is_open());
        if let Err(fatal) = received {
            self.core.fail(fatal, out);
            self.end(Ended::Failed(fatal));
        }
    }

    /// Has calls that were woken go on, until there is enough to write or the turn is over.
    fn answer_calls(&mut self, turn: &mut usize, out: &mut Output) {
        while out.len() < ENOUGH
            && *turn > 0
            && let Some(stream) = self.next_call()
        {
            let Some(call) = self.calls.get_mut(stream) else { continue };
            let was_answered = call.is_answered();
            *turn = turn.saturating_sub(if was_answered { 1 } else { CALL });
            call.side.unqueue();
            self.core.give_back(stream, call.side.take_read(), out);
            let step = catch_unwind(AssertUnwindSafe(|| call.step(stream, &self.answer, &mut self.core, out)));
            let step = step.unwrap_or_else(|_| {
                tracing::error!(stream, "a call panicked");
                self.core.reset(stream, Reason::INTERNAL_ERROR, out);
                Step::Done
            });
            // Also what is too little to wake the call for: the rest of many streams would add up to all room on the connection.
            self.core.give_back(stream, call.side.take_read(), out);
            if !was_answered {
                *turn = turn.saturating_sub(call.answer_bytes() / BYTES);
            }
            match step {
                Step::Waits => {}
                // It keeps its place.
                Step::Blocked if call.lacks == Lacks::Connection => {}
                Step::Blocked if self.core.has_room() => call.lacks = Lacks::Stream,
                Step::Blocked => {
                    call.lacks = Lacks::Connection;
                    self.blocked.push_back(stream);
                }
                Step::Again => {
                    if call.side.queue() {
                        self.ready.push_back(stream);
                    }
                }
                Step::Done => {
                    let unread = call.side.interrupt(Interrupted::Lost);
                    self.core.give_back(stream, unread, out);
                    self.calls.remove(stream);
                }
            }
        }
    }

    /// Whose turn it is: those who wait for room on the connection have waited longest, once there is some.
    fn next_call(&mut self) -> Option<u32> {
        if self.core.has_room()
            && let Some(stream) = self.blocked.pop_front()
        {
            if let Some(call) = self.calls.get_mut(stream) {
                call.lacks = Lacks::Nothing;
            }
            return Some(stream);
        }
        self.ready.pop_front()
    }

    /// Writes as much as the socket takes.
    fn write(&mut self, out: &mut Output) -> io::Result<()> {
        let mut cx = Context::from_waker(&self.waker);
        while self.is_writable && !out.is_empty() {
            let mut slices = [io::IoSlice::new(&[]); SLICES];
            let polled = match out.slices(&mut slices) {
                1 => Pin::new(&mut self.io).poll_write(&mut cx, &slices[0]),
                count => Pin::new(&mut self.io).poll_write_vectored(&mut cx, &slices[..count]),
            };
            match polled? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(written) => out.advance(written),
                Poll::Pending => self.is_writable = false,
            }
        }
        if self.is_writable && Pin::new(&mut self.io).poll_flush(&mut cx)?.is_pending() {
            self.is_writable = false;
        }
        Ok(())
    }

    /// Everything was said: what is left is that the peer reads it.
    fn end(&mut self, how: Ended) {
        for (_, call) in self.calls.drain() {
            drop(call);
        }
        self.ready.clear();
        self.blocked.clear();
        self.clock.wait_for_end(Instant::now() + self.config.grace);
        self.ending = Some(Ending { how: Some(how), is_shut: false, left: LINGER });
        // Its timer is to be set, and what was read before is of no interest.
        Waker::wake_by_ref(&self.waker);
    }

    fn poll_ending(&mut self, out: &Output) -> Option<Ended> {
        let ending = self.ending.as_mut()?;
        if !ending.is_shut && out.is_empty() {
            match Pin::new(&mut self.io).poll_shutdown(&mut Context::from_waker(&self.waker)) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => ending.is_shut = true,
                Poll::Ready(Err(_)) => return ending.how.take(),
            }
        }
        None
    }

    /// How it ends now that nothing more can be read.
    fn how_it_ends(&mut self, otherwise: Ended) -> Ended {
        self.ending.as_mut().and_then(|ending| ending.how.take()).unwrap_or(otherwise)
    }
}

/// Futures and bodies are pinned or need not be.
impl<IO: Unpin, A, F, B> Unpin for Connection<IO, A, F, B> {}

impl<IO, A, F, B> Future for Connection<IO, A, F, B>
where
    IO: AsyncRead + AsyncWrite + Unpin,
    A: Fn(Request<RequestBody>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes> + Unpin,
{
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        let this = &mut *self;
        if !this.wakes.begin(cx.waker()) {
            return Poll::Pending;
        }
        let mut out = this.out.take().unwrap_or_else(spare::take_output);
        let polled = this.drive(&mut out);
        this.out = spare::put_output(out);
        polled
    }
}

impl<IO, A, F, B> fmt::Debug for Connection<IO, A, F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("core", &self.core)
            .field("calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}
