//! How long the server waits. Time stands still where nothing else is left to do.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use nimbus_http2::{Config, Connection, Drain, Ended, RequestBody};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    time::Instant,
};

use crate::client::*;

async fn answer(_: Request<RequestBody>) -> Response<Full<Bytes>> {
    std::future::pending().await
}

/// A connection, and how it ends.
fn serve(drain: &Drain, bytes: usize) -> (DuplexStream, tokio::task::JoinHandle<Ended>) {
    let (ours, theirs) = tokio::io::duplex(bytes);
    let config = Config {
        handshake: Duration::from_secs(3),
        keepalive: Duration::from_secs(10),
        grace: Duration::from_secs(1),
        ..Config::default()
    };
    (ours, tokio::spawn(Connection::new(theirs, Arc::new(config), drain, answer)))
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_or_half_a_hello_is_sent_away() {
    for greeting in [&b""[..], &PREFACE[..20], PREFACE, &[PREFACE, &[0, 0, 6, 4]].concat()] {
        let began = Instant::now();
        let (mut client, ended) = serve(&Drain::default(), 1_000);
        client.write_all(greeting).await.unwrap();
        assert!(matches!(ended.await.unwrap(), Ended::Silent));
        assert_eq!(began.elapsed().as_secs(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_asked_and_sent_away_if_it_does_not_answer() {
    let began = Instant::now();
    let (mut client, ended) = serve(&Drain::default(), 1_000);
    client.write_all(&[PREFACE, &settings(&[])].concat()).await.unwrap();
    let mut pings = 0;
    while pings < 3 {
        let mut head = [0; 9];
        client.read_exact(&mut head).await.unwrap();
        let mut payload = vec![0; usize::from(head[2])];
        client.read_exact(&mut payload).await.unwrap();
        if head[3] == PING {
            pings += 1;
            assert_eq!(began.elapsed().as_secs(), 10 * pings);
            if pings < 3 {
                client.write_all(&frame(PING, ACK, 0, &payload)).await.unwrap();
            }
        }
    }
    assert!(matches!(ended.await.unwrap(), Ended::Gone));
    assert_eq!(began.elapsed().as_secs(), 40);
}

/// Answers take memory until they are written.
#[tokio::test(start_paused = true)]
async fn who_does_not_read_the_answers_is_not_heard() {
    let (mut client, ended) = serve(&Drain::default(), 1_000);
    client.write_all(&[PREFACE, &settings(&[])].concat()).await.unwrap();
    let flood = async {
        let mut sent = 0;
        while client.write_all(&frame(PING, 0, 0, &[0; 8])).await.is_ok() {
            sent += 1;
        }
        sent
    };
    let (sent, ended) = tokio::join!(flood, ended);
    assert!(sent < 5_000, "{sent} were taken");
    assert!(matches!(ended.unwrap(), Ended::Gone));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_go_when_it_is_asked_to_is_left() {
    let drain = Drain::default();
    let (mut client, ended) = serve(&drain, 1_000);
    client.write_all(&[PREFACE, &settings(&[])].concat()).await.unwrap();
    // It has read its settings, so that it was heard.
    client.read_exact(&mut [0; 9]).await.unwrap();
    let began = Instant::now();
    drain.drain();
    assert!(matches!(ended.await.unwrap(), Ended::Closed));
    assert_eq!(began.elapsed().as_secs(), 2, "once for requests on their way, and once to read the last word");
    drain.ended().await;

    // Who comes later goes at once, and who is closed goes without a word.
    let (client, ended) = serve(&drain, 1_000);
    drop(client);
    assert!(matches!(ended.await.unwrap(), Ended::Closed));
    drain.close();
    let (_client, ended) = serve(&drain, 1_000);
    assert!(matches!(ended.await.unwrap(), Ended::Closed));
}

/// A thousand calls that were made at once had one turn of the task together, in which nobody else was served.
#[tokio::test]
async fn many_calls_that_are_made_at_once_leave_others_their_turns() {
    const CALLS: u32 = 1_000;
    let begun = Arc::new(AtomicU32::new(0));
    let (mut client, theirs) = tokio::io::duplex(1 << 20);
    let counted = begun.clone();
    let answer = move |_: Request<RequestBody>| {
        counted.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<Response<Full<Bytes>>>()
    };
    let calls: Vec<u8> = (0..CALLS).flat_map(|at| ask(1 + 2 * at, "/hang")).collect();
    client.write_all(&[PREFACE, &settings(&[]), &calls].concat()).await.unwrap();
    tokio::spawn(Connection::new(theirs, Arc::new(Config::default()), &Drain::default(), answer));
    // A task like the connection's: one that is woken is behind all others.
    let watching = tokio::spawn(async move {
        let (mut before, mut most) = (0, 0);
        while before < CALLS {
            let mut is_woken = false;
            poll_fn(|cx| {
                if std::mem::replace(&mut is_woken, true) {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
            let now = begun.load(Ordering::Relaxed);
            most = most.max(now - before);
            before = now;
        }
        most
    });
    let most = soon("all calls", watching).await.unwrap();
    assert!((1..10).contains(&most), "{most} calls were begun in one turn");
}
