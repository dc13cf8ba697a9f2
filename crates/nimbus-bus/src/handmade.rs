//! Calls that are answered here and not by generated code, because of how their answers lie in memory.

use std::{convert::Infallible, future::Future, pin::Pin};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header::CONTENT_TYPE};
use prost::Message;
use tonic::{
    Status,
    body::Body,
    codec::{Codec as _, Streaming},
};
use tonic_prost::ProstCodec;

use crate::inner::Inner;

/// What a service answers.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// The one message of a request, and what was said before it.
pub(crate) async fn asked<M>(inner: &Inner, request: Request<Body>) -> Result<(HeaderMap, M), Status>
where
    M: Message + Default + 'static,
{
    let (head, body) = request.into_parts();
    if let Some(encoding) = head.headers.get("grpc-encoding").filter(|encoding| *encoding != "identity") {
        return Err(Status::unimplemented(format!("grpc-encoding {encoding:?}: only identity is supported")));
    }
    let decoder = ProstCodec::<M, M>::default().decoder();
    let mut messages = Streaming::<M>::new_request(decoder, body, None, Some(inner.config.limits.message_bytes));
    let message = tokio::time::timeout(inner.config.handshake_timeout, messages.message()).await;
    let message = message
        .map_err(|_| Status::deadline_exceeded("no request came after the headers"))??
        .ok_or_else(|| Status::invalid_argument("a call needs one request message"))?;
    Ok((head.headers, message))
}

/// An answer with a body of our own.
pub(crate) fn answer(body: impl http_body::Body<Data = Bytes, Error = Status> + Send + 'static) -> Response<Body> {
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

/// The end of an answer.
pub(crate) fn end(status: &Status) -> Result<http_body::Frame<Bytes>, Status> {
    let mut trailers = HeaderMap::new();
    status.add_header(&mut trailers).map(|()| http_body::Frame::trailers(trailers))
}
