//! What stands for an API server behind the client of kube-runtime's side.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube_client::client::Body;
use parking_lot::Mutex;
use tower::Service;

/// What stands for an API server: keeps every object that is applied, as it was sent, and answers with that.
///
/// A real one would read it, and add to it; here, whoever sends it pays for the client alone.
#[derive(Clone)]
pub(crate) struct ApiServer {
    objects: Arc<Mutex<HashMap<String, Bytes>>>,
}

// === impl ApiServer ===

impl ApiServer {
    /// With room for so many.
    pub(crate) fn new(objects: usize) -> Self {
        Self { objects: Arc::new(Mutex::new(HashMap::with_capacity(objects))) }
    }

    /// How many objects there are.
    pub(crate) fn len(&self) -> usize {
        self.objects.lock().len()
    }
}

impl Service<Request<Body>> for ApiServer {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let objects = self.objects.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let name = head.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
            let (status, answer) = match (head.method, body.collect().await) {
                (Method::PATCH, Ok(body)) => {
                    let body = body.to_bytes();
                    objects.lock().insert(name, body.clone());
                    (StatusCode::OK, body)
                }
                _ => (StatusCode::METHOD_NOT_ALLOWED, Bytes::new()),
            };
            let mut response = Response::new(Body::from(answer));
            *response.status_mut() = status;
            Ok(response)
        })
    }
}
