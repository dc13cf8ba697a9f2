//! A call: a request, the future that answers it, and the body of the answer.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;

use crate::{
    connection::{Interrupted, RequestBody, request::Side},
    core::Core,
    output::Output,
    reason::Reason,
};

/// A call, until its answer is complete.
pub(crate) struct Call<F, B> {
    pub(crate) side: Arc<Side>,
    waker: Waker,
    stage: Stage<F, B>,
    pub(crate) lacks: Lacks,
}

/// Where the peer must make room before a call can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lacks {
    Nothing,
    /// Room on its stream.
    Stream,
    /// Room on the connection, for which it waits in line.
    Connection,
}

enum Stage<F, B> {
    Begun(Option<Box<Request<()>>>),
    Answering(Pin<Box<F>>),
    /// `rest`: what the peer had no room for.
    Sending {
        body: B,
        rest: Bytes,
    },
}

/// What came of driving a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It will be woken.
    Waits,
    /// The peer must make room first.
    Blocked,
    /// There is more, when what there is has been written.
    Again,
    Done,
}

/// When so much waits to be written, nobody is asked for more.
pub(crate) const ENOUGH: usize = 64 << 10;

// === impl Call ===

impl<F, B> Call<F, B> {
    pub(crate) fn new(side: Arc<Side>, request: Request<()>) -> Self {
        let waker = side.clone().into();
        Self { side, waker, stage: Stage::Begun(Some(Box::new(request))), lacks: Lacks::Nothing }
    }

    /// Whether its answer has begun.
    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.stage, Stage::Sending { .. })
    }
}

impl<F, B> Call<F, B>
where
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes> + Unpin,
{
    /// Bytes of its answer that are there already, as far as the body says so.
    pub(crate) fn answer_bytes(&self) -> usize {
        let Stage::Sending { body, rest } = &self.stage else { return 0 };
        rest.len() + usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX)
    }

    /// Goes on as far as possible.
    pub(crate) fn step(
        &mut self,
        stream: u32,
        answer: &impl Fn(Request<RequestBody>) -> F,
        core: &mut Core,
        out: &mut Output,
    ) -> Step {
        let mut cx = Context::from_waker(&self.waker);
        loop {
            match &mut self.stage {
                Stage::Begun(request) => {
                    let request = request.take().expect("it is taken once").map(|()| self.side.body());
                    self.stage = Stage::Answering(Box::pin(answer(request)));
                }
                Stage::Answering(future) => {
                    let Poll::Ready(response) = future.as_mut().poll(&mut cx) else { return Step::Waits };
                    let (head, body) = response.into_parts();
                    let ends = body.is_end_stream();
                    core.respond(stream, head.status, &head.headers, ends, out);
                    if ends {
                        return Step::Done;
                    }
                    self.side.answered();
                    self.stage = Stage::Sending { body, rest: Bytes::new() };
                }
                Stage::Sending { body, rest } => {
                    if !rest.is_empty() {
                        core.send(stream, rest, out);
                        if !rest.is_empty() {
                            return Step::Blocked;
                        }
                    }
                    if out.len() >= ENOUGH {
                        return Step::Again;
                    }
                    if core.room(stream) == 0 {
                        return Step::Blocked;
                    }
                    let Poll::Ready(frame) = Pin::new(body).poll_frame(&mut cx) else { return Step::Waits };
                    match frame {
                        None => core.end(stream, None, out),
                        Some(Err(_)) => core.reset(stream, Reason::INTERNAL_ERROR, out),
                        Some(Ok(frame)) => match frame.into_data() {
                            Ok(data) => {
                                self.side.produced(data.len());
                                *rest = data;
                                continue;
                            }
                            Err(frame) => core.end(stream, frame.trailers_ref(), out),
                        },
                    }
                    return Step::Done;
                }
            }
        }
    }
}

impl<F, B> Drop for Call<F, B> {
    /// Whoever still reads the request learns that nobody wants it any more.
    fn drop(&mut self) {
        self.side.interrupt(Interrupted::Lost);
    }
}
