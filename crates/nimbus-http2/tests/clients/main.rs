//! The clients of h2 and of hyper: what most of those that connect are built on.

#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use nimbus_http2::{Config, Connection, Drain, Ended, RequestBody};
use tokio::{
    io::{DuplexStream, duplex},
    task::{JoinHandle, JoinSet},
};

/// Sends back what it gets, piece by piece, with the path and the number of bytes in the trailers.
async fn echo(request: Request<RequestBody>) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
    let path = HeaderValue::from_str(request.uri().path()).unwrap();
    let mut body = request.into_body();
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        let (mut bytes, mut trailers) = (0, HeaderMap::new());
        while let Some(Ok(frame)) = body.frame().await {
            match frame.into_data() {
                Ok(data) => {
                    bytes += data.len();
                    if sender.send(Ok(Frame::data(data))).await.is_err() {
                        return;
                    }
                }
                Err(frame) => trailers = frame.into_trailers().unwrap_or_default(),
            }
        }
        trailers.insert("bytes", HeaderValue::from(bytes));
        trailers.insert("path", path);
        drop(sender.send(Ok(Frame::trailers(trailers))).await);
    });
    Response::new(StreamBody::new(tokio_stream::wrappers::ReceiverStream::new(receiver)).boxed_unsync())
}

/// A connection over a pipe that takes so much at once.
fn serve(pipe: usize) -> (DuplexStream, Drain, JoinHandle<Ended>) {
    let (ours, theirs) = duplex(pipe);
    let (config, drain) = (Arc::new(Config::default()), Drain::default());
    let serving = tokio::spawn(Connection::new(theirs, config, &drain, echo));
    (ours, drain, serving)
}

fn numbers(length: usize) -> Bytes {
    (0..length).map(|at| (at % 251) as u8).collect()
}

#[tokio::test]
async fn a_client_of_hyper_has_a_hundred_requests_answered_at_once() {
    for (pipe, window, frame) in [(100, 1_000, 16_384), (10_000, 65_535, 16_384), (1 << 20, 1 << 20, 1 << 20)] {
        let (stream, drain, serving) = serve(pipe);
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window)
            .initial_connection_window_size(window)
            .max_frame_size(frame)
            .handshake(TokioIo::new(stream))
            .await
            .unwrap();
        let connection = tokio::spawn(connection);
        let mut requests = JoinSet::new();
        for at in 0..100 {
            let mut sender = sender.clone();
            requests.spawn(async move {
                let body = numbers(at * 1_000);
                let request = Request::post(format!("http://test/{at}")).body(Full::new(body.clone())).unwrap();
                let response = sender.send_request(request).await.unwrap();
                assert_eq!(response.status(), StatusCode::OK);
                let answer = response.into_body().collect().await.unwrap();
                let trailers = answer.trailers().unwrap();
                assert_eq!(trailers["bytes"], body.len().to_string());
                assert_eq!(trailers["path"], format!("/{at}"));
                assert!(answer.to_bytes() == body, "the answer to {at} is another");
            });
        }
        requests.join_all().await;
        drain.drain();
        connection.await.unwrap().unwrap();
        // It may be gone before it has read the last word.
        assert!(matches!(serving.await.unwrap(), Ended::Closed | Ended::Lost(_)));
    }
}

#[tokio::test]
async fn a_client_of_h2_sends_and_gets_data_and_trailers_both_ways() {
    let (stream, _drain, _serving) = serve(1_000);
    let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post("http://test/both").header("cookie", "a=b").body(()).unwrap();
    let (response, mut body) = sender.send_request(request, false).unwrap();
    let mut answer = response.await.unwrap().into_body();
    // One after the other: neither side waits for the end of what the other sends.
    for round in 0..20_u8 {
        body.send_data(Bytes::from(vec![round; 1_000]), false).unwrap();
        let mut got = Vec::new();
        while got.len() < 1_000 {
            let data = answer.data().await.unwrap().unwrap();
            answer.flow_control().release_capacity(data.len()).unwrap();
            got.extend(data);
        }
        assert_eq!(got, vec![round; 1_000]);
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("mine", HeaderValue::from_static("kept"));
    body.send_trailers(trailers).unwrap();
    assert!(answer.data().await.is_none());
    let trailers = answer.trailers().await.unwrap().unwrap();
    assert_eq!(
        (&trailers["mine"], &trailers["bytes"]),
        (&HeaderValue::from_static("kept"), &HeaderValue::from(20_000))
    );
}

#[tokio::test]
async fn a_client_that_gives_up_gives_up_one_stream() {
    let (stream, _drain, _serving) = serve(10_000);
    let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = |path: &str| Request::post(format!("http://test{path}")).body(()).unwrap();
    let (first, mut first_body) = sender.send_request(request("/first"), false).unwrap();
    let (second, mut second_body) = sender.send_request(request("/second"), false).unwrap();
    let (mut first, mut second) = (first.await.unwrap().into_body(), second.await.unwrap().into_body());
    first_body.send_reset(h2::Reason::CANCEL);
    assert!(first.data().await.unwrap().is_err());
    second_body.send_data(Bytes::from_static(b"still there"), true).unwrap();
    assert_eq!(second.data().await.unwrap().unwrap(), "still there");
    assert_eq!(second.trailers().await.unwrap().unwrap()["bytes"], "11");
}

/// The settings of h2 make it remember what it has said, and name it by numbers after that.
#[tokio::test]
async fn headers_that_a_client_remembers_are_understood() {
    let (stream, _drain, _serving) = serve(10_000);
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    for round in 0..50 {
        let mut sender = sender.clone().ready().await.unwrap();
        let request = Request::post(format!("http://test/path/{}", round % 7))
            .header("user-agent", "a client that says a lot of itself")
            .header("numbered", round.to_string())
            .header("large", "x".repeat(round * 50));
        let (response, _) = sender.send_request(request.body(()).unwrap(), true).unwrap();
        let mut body = response.await.unwrap().into_body();
        assert!(body.data().await.is_none());
        assert_eq!(body.trailers().await.unwrap().unwrap()["path"], format!("/path/{}", round % 7));
    }
}
