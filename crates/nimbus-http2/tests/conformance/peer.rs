//! A server to be talked to.

use std::{convert::Infallible, future::pending, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use nimbus_http2::{Config, Connection, Drain, RequestBody};
use tokio::{net::TcpListener, sync::Notify};
use tokio_stream::StreamExt as _;

/// A server that runs until it is dropped.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) drain: Drain,
    /// Told when a call that does not end is dropped.
    pub(crate) dropped: Arc<Notify>,
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Tells when it is dropped.
struct Tell(Arc<Notify>);

// === impl Peer ===

impl Peer {
    pub(crate) async fn start() -> Self {
        Self::with(Config { streams: 4, ..Config::default() }).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (config, drain, dropped) = (Arc::new(config), Drain::default(), Arc::new(Notify::new()));
        let (place, told) = (drain.clone(), dropped.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let told = told.clone();
                let answer = move |request| answer(request, told.clone());
                tokio::spawn(Connection::new(stream, config.clone(), &place, answer));
            }
        });
        Self { address, drain, dropped }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.drain.close();
    }
}

impl Drop for Tell {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// `/echo`: what was sent, and how much in the trailers. `/hang`: nothing. `/bytes/N`: so many. `/early`: an answer before
/// the request was read. `/slow`: an answer that is begun and does not go on.
async fn answer(request: Request<RequestBody>, dropped: Arc<Notify>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    match &*path {
        "/hang" => {
            let _tell = Tell(dropped);
            pending().await
        }
        "/panic" => panic!("as the test asks"),
        "/early" => Response::new(Full::from("enough").boxed_unsync()),
        "/slow" => {
            let tell = Tell(dropped);
            let begun = tokio_stream::once(Ok(Frame::data(Bytes::from_static(b"begun"))));
            let frames = begun.chain(tokio_stream::pending()).map(move |frame| {
                let _kept = &tell;
                frame
            });
            Response::new(StreamBody::new(frames).boxed_unsync())
        }
        _ if path.starts_with("/bytes/") => {
            let length = path["/bytes/".len()..].parse().unwrap();
            Response::new(Full::from(vec![b'x'; length]).boxed_unsync())
        }
        _ => {
            let Ok(body) = request.into_body().collect().await else { return pending().await };
            let trailers = body.trailers().cloned();
            let body = body.to_bytes();
            let mut end = HeaderMap::new();
            end.insert("length", HeaderValue::from(body.len()));
            end.extend(trailers.unwrap_or_default());
            let frames = [Ok(Frame::data(body)), Ok(Frame::trailers(end))];
            Response::new(StreamBody::new(tokio_stream::iter(frames)).boxed_unsync())
        }
    }
}
