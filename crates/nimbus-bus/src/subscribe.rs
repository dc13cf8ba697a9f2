//! Subscriptions: how each is answered, and the response body that sends its frames.
//!
//! The body hands the transport bytes that many subscribers share. It is asked for more only when the transport has
//! room, and then gives what has accumulated since; a subscriber that does not read is a cursor that does not move.

mod answer;
mod stream;

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use nimbus_wire::v1::{self, bus_server::BusServer};
use tonic::{
    Status,
    body::Body,
    codec::{Codec as _, Streaming},
    metadata::MetadataMap,
    server::NamedService,
};
use tonic_prost::ProstCodec;

use self::{answer::Answer, stream::FrameStream};
use crate::{identity::Identity, inner::Inner, outgoing::Shared, reading::Reading};

/// `nimbus.v1.Bus`: subscriptions are answered here, all other calls by generated code.
#[derive(Clone)]
pub(crate) struct BusService {
    inner: Arc<Inner>,
    others: BusServer<Reading>,
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = Result<T, Infallible>> + Send>>;

/// Subscriptions, as requests name them.
pub(crate) const PATH: &str = "/nimbus.v1.Bus/Subscribe";

// === impl BusService ===

impl BusService {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        let others = BusServer::new(Reading(inner.clone()))
            .max_decoding_message_size(inner.config.limits.message_bytes)
            .max_encoding_message_size(usize::MAX);
        Self { inner, others }
    }
}

impl NamedService for BusService {
    const NAME: &'static str = <BusServer<Reading> as NamedService>::NAME;
}

impl tower::Service<http::Request<Body>> for BusService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        <BusServer<Reading> as tower::Service<http::Request<Body>>>::poll_ready(&mut self.others, cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path() != PATH {
            return self.others.call(request);
        }
        let inner = self.inner.clone();
        Box::pin(async move {
            let stream = match open(inner, request).await {
                Ok(stream) => stream,
                Err(status) => return Ok(status.into_http()),
            };
            let mut response = http::Response::new(Body::new(stream));
            let grpc = http::HeaderValue::from_static("application/grpc");
            response.headers_mut().insert(http::header::CONTENT_TYPE, grpc);
            response.extensions_mut().insert(Shared);
            Ok(response)
        })
    }
}

/// Reads the one message of the request and answers it.
async fn open(inner: Arc<Inner>, request: http::Request<Body>) -> Result<FrameStream, Status> {
    let (head, body) = request.into_parts();
    if let Some(encoding) = head.headers.get("grpc-encoding").filter(|encoding| *encoding != "identity") {
        return Err(Status::unimplemented(format!("grpc-encoding {encoding:?}: only identity is supported")));
    }
    let decoder = ProstCodec::<v1::Frame, v1::SubscribeRequest>::default().decoder();
    let max = inner.config.limits.message_bytes;
    let mut messages = Streaming::<v1::SubscribeRequest>::new_request(decoder, body, None, Some(max));
    let message = tokio::time::timeout(inner.config.handshake_timeout, messages.message()).await;
    let request = message
        .map_err(|_| Status::deadline_exceeded("no request came after the headers"))??
        .ok_or_else(|| Status::invalid_argument("a subscription needs one request message"))?;
    let identity = Identity::of(&MetadataMap::from_headers(head.headers));
    Answer::to(inner, &identity, &request).map(FrameStream::new)
}

#[cfg(test)]
mod tests;
