//! How long the server waits. Time stands still where nothing else is left to do.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Full};
use nimbus_http2::{Config, Connection, Drain, Ended, RequestBody};
use parking_lot::Mutex;
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
    let watching = tokio::spawn(most_in_one_turn(begun, CALLS));
    let most = soon("all calls", watching).await.unwrap();
    assert!((1..10).contains(&most), "{most} calls were begun in one turn");
}

/// The most that is counted while a task like a connection's, which is woken behind all others, waits for its turn.
async fn most_in_one_turn(counted: Arc<AtomicU32>, all: u32) -> u32 {
    let (mut before, mut most) = (0, 0);
    while before < all {
        pass().await;
        let now = counted.load(Ordering::Relaxed);
        most = most.max(now - before);
        before = now;
    }
    most
}

/// Lets everybody else go first, once.
async fn pass() {
    let mut is_woken = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut is_woken, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Whatever a socket had was read in one turn, however long that took: a megabyte, at the least.
#[tokio::test]
async fn large_requests_leave_others_their_turns() {
    const FRAMES: usize = 60;
    const FRAME: usize = 16 << 10;
    let (read, (mut client, theirs)) = (Arc::new(AtomicU32::new(0)), tokio::io::duplex(2 << 20));
    let counted = read.clone();
    let answer = move |request: Request<RequestBody>| {
        let (counted, mut body) = (counted.clone(), request.into_body());
        async move {
            while let Some(Ok(frame)) = body.frame().await {
                counted.fetch_add(frame.into_data().map_or(0, |data| data.len() as u32), Ordering::Relaxed);
            }
            std::future::pending::<Response<Full<Bytes>>>().await
        }
    };
    let data = frame(DATA, 0, 1, &[7; FRAME]).repeat(FRAMES);
    client
        .write_all(&[PREFACE, &settings(&[]), &begin(1, "/large"), &data].concat())
        .await
        .unwrap();
    tokio::spawn(Connection::new(theirs, Arc::new(Config::default()), &Drain::default(), answer));
    let watching = tokio::spawn(most_in_one_turn(read, (FRAMES * FRAME) as u32));
    let most = soon("all data", watching).await.unwrap();
    assert!((1..=256 << 10).contains(&most), "{most} bytes were read in one turn");
}

/// What a call had read was told to the client when there was much of it, or when the call went on. Requests that waited for
/// more, each with less than that, left no room on the connection, and nothing ever came of any of them.
#[tokio::test]
async fn requests_that_wait_for_more_leave_room_on_the_connection() {
    const FRAME: usize = 10 << 10;
    let (mut client, theirs) = tokio::io::duplex(2 << 20);
    let answer = move |request: Request<RequestBody>| {
        let mut body = request.into_body();
        async move {
            while let Some(Ok(_)) = body.frame().await {}
            std::future::pending::<Response<Full<Bytes>>>().await
        }
    };
    tokio::spawn(Connection::new(theirs, Arc::new(Config::default()), &Drain::default(), answer));
    client.write_all(&[PREFACE, &settings(&[])].concat()).await.unwrap();
    for at in 0..16 {
        let data = frame(DATA, 0, 1 + 2 * at, &[7; FRAME]).repeat(6);
        client.write_all(&[begin(1 + 2 * at, "/half"), data].concat()).await.unwrap();
        // Each is read before the next one comes.
        for _ in 0..10 {
            pass().await;
        }
    }
    let mut room = 65_535;
    let regained = async {
        while room < (1 << 20) + (1 << 19) {
            let mut head = [0; 9];
            client.read_exact(&mut head).await.unwrap();
            let mut payload = vec![0; usize::from(head[2])];
            client.read_exact(&mut payload).await.unwrap();
            if head[3] == WINDOW_UPDATE && head[5..] == [0; 4] {
                room += u32::from_be_bytes(payload.try_into().unwrap());
            }
        }
    };
    soon("room on the connection", regained).await;
}

/// Lists of a megabyte counted as little as answers of a few bytes: four of them were put together in one turn.
#[tokio::test]
async fn large_answers_leave_others_their_turns() {
    const CALLS: u32 = 100;
    let (begun, (mut client, theirs)) = (Arc::new(AtomicU32::new(0)), tokio::io::duplex(1 << 20));
    let counted = begun.clone();
    let answer = move |_: Request<RequestBody>| {
        counted.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Response::new(Full::new(Bytes::from_static(&[7; 1 << 20]))))
    };
    let calls: Vec<u8> = (0..CALLS).flat_map(|at| ask(1 + 2 * at, "/large")).collect();
    client.write_all(&[PREFACE, &settings(&[]), &calls].concat()).await.unwrap();
    tokio::spawn(Connection::new(theirs, Arc::new(Config::default()), &Drain::default(), answer));
    let watching = tokio::spawn(most_in_one_turn(begun, CALLS));
    let most = soon("all calls", watching).await.unwrap();
    // Whoever watches looks for the first time after the second turn.
    assert!((1..=2).contains(&most), "{most} answers of a megabyte were put together in two turns");
}

/// Every connection that had much to do was woken again behind its turn, so that whoever had little to do waited for all of them.
#[tokio::test]
async fn whoever_has_little_to_do_does_not_wait_for_all_who_have_much() {
    const CROWD: u32 = 100;
    const CALLS: u32 = 1_000;
    let (begun, drain) = (Arc::new(AtomicU32::new(0)), Drain::default());
    let calls: Vec<u8> = (0..CALLS).flat_map(|at| ask(1 + 2 * at, "/hang")).collect();
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        let (mut client, theirs) = tokio::io::duplex(1 << 20);
        let counted = begun.clone();
        let answer = move |_: Request<RequestBody>| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<Response<Full<Bytes>>>()
        };
        client.write_all(&[PREFACE, &settings(&[]), &calls].concat()).await.unwrap();
        tokio::spawn(Connection::new(theirs, Arc::new(Config::default()), &drain, answer));
        crowd.push(client);
    }
    let (mut client, theirs) = tokio::io::duplex(1 << 20);
    let (heard, mut hears) = tokio::sync::mpsc::channel(1);
    let counted = begun.clone();
    let answer = move |_: Request<RequestBody>| {
        heard.try_send(counted.load(Ordering::Relaxed)).unwrap();
        std::future::pending::<Response<Full<Bytes>>>()
    };
    tokio::spawn(Connection::new(theirs, Arc::new(Config::default()), &drain, answer));
    client.write_all(&[PREFACE, &settings(&[])].concat()).await.unwrap();
    // The first turn of everybody is over.
    while begun.load(Ordering::Relaxed) < CROWD * 10 {
        pass().await;
    }
    let mut most = 0;
    for at in 0..10 {
        let before = begun.load(Ordering::Relaxed);
        client.write_all(&ask(1 + 2 * at, "/little")).await.unwrap();
        let after = soon("an answer", hears.recv()).await.unwrap();
        most = most.max(after - before);
    }
    assert!(begun.load(Ordering::Relaxed) < CROWD * CALLS, "the crowd had more to do");
    assert!(most < CROWD, "{most} calls of others were begun before one of somebody who made only one");
    // Those who stand in line come to their end, too, also if some of them go.
    crowd.truncate(CROWD as usize / 2);
    let rest = async {
        while begun.load(Ordering::Relaxed) < CROWD * CALLS / 2 {
            pass().await;
        }
    };
    soon("the rest", rest).await;
}

/// An answer that goes on and on: a byte whenever there is news.
struct Newspaper {
    press: Arc<Press>,
    seen: u32,
}

#[derive(Default)]
struct Press {
    edition: AtomicU32,
    delivered: AtomicU32,
    readers: Mutex<Vec<Waker>>,
}

impl Press {
    fn print(&self) {
        self.edition.fetch_add(1, Ordering::Relaxed);
        let readers = std::mem::take(&mut *self.readers.lock());
        readers.into_iter().for_each(Waker::wake);
    }

    fn delivered(&self) -> u32 {
        self.delivered.load(Ordering::Relaxed)
    }
}

impl Body for Newspaper {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let edition = self.press.edition.load(Ordering::Relaxed);
        if self.seen == edition {
            self.press.readers.lock().push(cx.waker().clone());
            return Poll::Pending;
        }
        self.seen = edition;
        self.press.delivered.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"!")))))
    }
}

/// When there was news for thousands, the runtime had a turn of each before that of whoever asked for something: who publishes
/// often waited for everybody who was being told of the publish before.
#[tokio::test]
async fn whoever_asks_does_not_wait_for_all_who_are_told_the_news() {
    const CROWD: u32 = 500;
    let (press, drain) = (Arc::new(Press::default()), Drain::default());
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        let (mut client, theirs) = tokio::io::duplex(1 << 10);
        let press = press.clone();
        let answer = move |_: Request<RequestBody>| {
            std::future::ready(Response::new(Newspaper { press: press.clone(), seen: 0 }))
        };
        client.write_all(&[PREFACE, &settings(&[]), &ask(1, "/news")].concat()).await.unwrap();
        tokio::spawn(Connection::new(theirs, Arc::new(Config::default()), &drain, answer));
        crowd.push(client);
    }
    let everybody_waits = async {
        while press.readers.lock().len() < CROWD as usize {
            pass().await;
        }
    };
    soon("readers", everybody_waits).await;
    let (mut client, theirs) = tokio::io::duplex(1 << 10);
    let (heard, mut hears) = tokio::sync::mpsc::channel(1);
    let told = press.clone();
    let answer = move |_: Request<RequestBody>| {
        heard.try_send(told.delivered()).unwrap();
        std::future::pending::<Response<Full<Bytes>>>()
    };
    tokio::spawn(Connection::new(theirs, Arc::new(Config::default()), &drain, answer));
    client.write_all(&[PREFACE, &settings(&[])].concat()).await.unwrap();
    pass().await;

    press.print();
    client.write_all(&ask(1, "/little")).await.unwrap();
    let before = soon("an answer", hears.recv()).await.unwrap();
    assert!(before < CROWD / 4, "{before} were told the news before somebody who asked was heard");
    // Some go while they stand in line, and some are told already; the others are told what is newest, once.
    press.print();
    let (in_line, told) = (crowd.split_off(CROWD as usize / 2), press.delivered());
    drop(in_line);
    let everybody_waits = async {
        while press.readers.lock().len() < CROWD as usize / 2 {
            pass().await;
        }
    };
    soon("the news", everybody_waits).await;
    let all = press.delivered();
    assert!((CROWD / 2..=CROWD + told).contains(&all), "{all} deliveries to {CROWD}, {told} of them early");
    // The line is open for what comes next.
    press.print();
    let next = async {
        while press.delivered() < all + CROWD / 2 {
            pass().await;
        }
    };
    soon("the next edition", next).await;
}
