//! `nimbus.v1.Fleet` as a service: what agents report is sent to watchers here, all other calls are answered by generated code.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body::Frame;
use nimbus_wire::v1::{self, fleet_server::FleetServer};
use prost::Message;
use tokio_stream::Stream;
use tonic::{Status, body::Body, server::NamedService};

use crate::{
    fleet::{FleetService, steps::steps, watch::Watch},
    handmade::{self, Answering},
    inner::Inner,
};

/// `nimbus.v1.Fleet`.
#[derive(Clone)]
pub(crate) struct WatchedFleet {
    inner: Arc<Inner>,
    others: FleetServer<FleetService>,
}

/// The messages of a stream as a body, each in a piece of memory of its size. Generated code has a buffer for each stream that stays
/// as large as the largest message was: an agent may have said sixteen megabytes, and a thousand may watch.
struct Exact<S> {
    messages: Pin<Box<S>>,
    is_over: bool,
}

/// The call that watches, as requests name it.
const PATH: &str = "/nimbus.v1.Fleet/WatchStatus";

/// Before each message: whether it is compressed, and its length.
const PREFIX: usize = 5;

// === impl WatchedFleet ===

impl WatchedFleet {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        let others = FleetServer::new(FleetService(inner.clone()))
            .max_decoding_message_size(inner.config.limits.message_bytes)
            .max_encoding_message_size(usize::MAX);
        Self { inner, others }
    }
}

impl NamedService for WatchedFleet {
    const NAME: &'static str = <FleetServer<FleetService> as NamedService>::NAME;
}

impl tower::Service<http::Request<Body>> for WatchedFleet {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        <FleetServer<FleetService> as tower::Service<http::Request<Body>>>::poll_ready(&mut self.others, cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path() != PATH {
            return self.others.call(request);
        }
        let inner = self.inner.clone();
        Box::pin(async move {
            let asked = handmade::asked::<v1::WatchStatusRequest>(&inner, request).await;
            let watch = asked.and_then(|(_, request)| Watch::begin(inner, &request));
            Ok(watch.map_or_else(Status::into_http, |watch| {
                handmade::answer(Exact { messages: Box::pin(steps(watch, Watch::next)), is_over: false })
            }))
        })
    }
}

// === impl Exact ===

impl<S, M> http_body::Body for Exact<S>
where
    S: Stream<Item = Result<M, Status>>,
    M: Message,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let end = match ready!(self.messages.as_mut().poll_next(cx)) {
            Some(Ok(message)) => match encode(&message) {
                Ok(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Err(status) => status,
            },
            Some(Err(status)) => status,
            None => Status::ok(""),
        };
        self.is_over = true;
        Poll::Ready(Some(handmade::end(&end)))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }
}

fn encode(message: &impl Message) -> Result<Bytes, Status> {
    let length = message.encoded_len();
    let prefix = u32::try_from(length).map_err(|_| Status::resource_exhausted("a message of more than 4 GiB"))?;
    let mut bytes = BytesMut::with_capacity(PREFIX + length);
    bytes.put_u8(0);
    bytes.put_u32(prefix);
    message.encode_raw(&mut bytes);
    Ok(bytes.freeze())
}
