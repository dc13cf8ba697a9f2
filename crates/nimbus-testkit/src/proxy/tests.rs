use std::{num::NonZeroU64, time::Duration};

use rand::{SeedableRng as _, rngs::SmallRng};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::task::AbortOnDropHandle;

use crate::proxy::{
    Cut, Line, Proxy, Toward, Traffic,
    carry::{State, carry},
    pace::Pace,
};

/// A client and a server, and a line between them.
struct Between {
    client: DuplexStream,
    server: DuplexStream,
    state: watch::Sender<State>,
    carried: AbortOnDropHandle<Option<Cut>>,
}

/// Nothing here takes as long; the clock stands still where nothing waits for it.
const LONG: Duration = Duration::from_secs(3600);

const MS: Duration = Duration::from_millis(1);

// === impl Between ===

impl Between {
    fn new(line: Line) -> Self {
        Self::seeded(line, 1)
    }

    fn seeded(line: Line, seed: u64) -> Self {
        let (client, mut near) = tokio::io::duplex(64 << 10);
        let (server, mut far) = tokio::io::duplex(64 << 10);
        let state = watch::Sender::new(State { line, cuts: 0, how: Cut::Reset });
        let watched = state.subscribe();
        let carried = tokio::spawn(async move {
            let traffic = watch::Sender::new(Traffic::default());
            carry(&mut near, &mut far, watched, &traffic, SmallRng::seed_from_u64(seed)).await
        });
        Self { client, server, state, carried: AbortOnDropHandle::new(carried) }
    }

    fn change(&self, change: impl FnOnce(&mut Line)) {
        self.state.send_modify(|state| change(&mut state.line));
    }

    /// Sends it from the server, and waits until the client has all of it.
    async fn down(&mut self, text: &[u8]) {
        let (server, client) = (&mut self.server, &mut self.client);
        let mut read = vec![0; text.len()];
        let (written, got) = tokio::join!(server.write_all(text), client.read_exact(&mut read));
        written.unwrap();
        got.unwrap();
        assert_eq!(read, text);
    }

    async fn up(&mut self, text: &[u8]) {
        std::mem::swap(&mut self.client, &mut self.server);
        self.down(text).await;
        std::mem::swap(&mut self.client, &mut self.server);
    }

    /// Nothing arrives at the client, not even an end.
    async fn is_silent(&mut self) {
        let mut byte = [0];
        assert!(timeout(LONG, self.client.read(&mut byte)).await.is_err(), "something arrived");
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_arrive_as_late_as_the_line_says_and_in_order() {
    let mut between = Between::new(Line { delay: 30 * MS, ..Line::default() });
    let begin = Instant::now();
    between.up(b"ping").await;
    between.down(b"pong").await;
    let took = begin.elapsed();
    assert!((60 * MS..70 * MS).contains(&took), "{took:?}");
    between.change(|line| line.jitter = 500 * MS);
    let text: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    between.down(&text).await;
    // The end takes its time, too.
    drop(between.server);
    assert_eq!(between.client.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_narrow_line_takes_its_time() {
    let mut between = Between::new(Line { rate: NonZeroU64::new(100_000), ..Line::default() });
    let begin = Instant::now();
    between.down(&[7; 500_000]).await;
    let took = begin.elapsed();
    assert!((5000 * MS..5100 * MS).contains(&took), "{took:?}");
}

#[test]
fn what_arrives_is_in_order_and_never_before_its_time() {
    let now = Instant::now();
    let line = Line { delay: 10 * MS, jitter: 50 * MS, ..Line::default() };
    let arrivals = |seed| {
        let mut pace = Pace::new(SmallRng::seed_from_u64(seed));
        (0..1000).map(|n| pace.arrival(1, &line, now + n * MS) - now).collect::<Vec<_>>()
    };
    let first = arrivals(1);
    assert!(first.is_sorted());
    for (at, arrival) in first.iter().enumerate() {
        assert!(*arrival >= u32::try_from(at + 10).unwrap() * MS, "{at}: {arrival:?}");
    }
    assert_eq!(first, arrivals(1), "the same seed is the same line");
    assert_ne!(first, arrivals(2));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_has_lost_bytes_is_half_open_for_ever() {
    let mut between = Between::new(Line { loses: Some(Toward::Client), ..Line::default() });
    between.up(b"a request").await;
    between.server.write_all(b"an answer").await.unwrap();
    between.is_silent().await;
    between.change(|line| line.loses = None);
    between.server.write_all(b"the next one").await.unwrap();
    between.is_silent().await;
    between.up(b"another request").await;
    drop(between.server);
    let mut byte = [0];
    assert!(timeout(LONG, between.client.read(&mut byte)).await.is_err(), "its end arrived");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_nothing_was_said_on_meanwhile_has_lost_nothing() {
    let mut between = Between::new(Line { loses: Some(Toward::Both), ..Line::default() });
    between.is_silent().await;
    between.change(|line| line.loses = None);
    between.up(b"a request").await;
    between.down(b"an answer").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_held_up_arrives_when_that_is_over() {
    let mut between = Between::new(Line { holds: true, ..Line::default() });
    between.server.write_all(b"late").await.unwrap();
    between.is_silent().await;
    between.change(|line| line.holds = false);
    let mut read = [0; 4];
    between.client.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"late");
}

#[tokio::test(start_paused = true)]
async fn a_connection_breaks_after_exactly_so_many_bytes() {
    let line = Line { cut_after: Some(70_001), cut_by: Cut::Close, ..Line::default() };
    let Between { mut client, mut server, state: _state, carried } = Between::new(line);
    let sending = tokio::spawn(async move { server.write_all(&[7; 2_000_000]).await });
    let mut read = Vec::new();
    client.read_to_end(&mut read).await.unwrap();
    assert_eq!(read.len(), 70_001);
    assert!(sending.await.unwrap().is_err(), "the server learns of it");
    assert_eq!(carried.await.unwrap(), Some(Cut::Close));
}

#[tokio::test(start_paused = true)]
async fn connections_break_by_chance_and_the_same_seed_breaks_them_at_the_same_time() {
    let breaks = async |seed| {
        let begin = Instant::now();
        let Between { client: _client, server: _server, state: _state, carried } =
            Between::seeded(Line { cut_every: Some(Duration::from_secs(10)), ..Line::default() }, seed);
        assert_eq!(carried.await.unwrap(), Some(Cut::Reset));
        begin.elapsed()
    };
    let mut total = Duration::ZERO;
    for seed in 0..200 {
        total += breaks(seed).await;
    }
    let mean = total / 200;
    assert!((8000 * MS..12_000 * MS).contains(&mean), "{mean:?}");
    assert_eq!(breaks(3).await, breaks(3).await);
}

/// A line that changes does not begin again with what it has never done.
#[tokio::test(start_paused = true)]
async fn chance_begins_and_ends_while_a_connection_is_open() {
    let mut between = Between::new(Line::default());
    between.down(b"fine").await;
    between.change(|line| line.cut_every = Some(10 * MS));
    between.change(|line| line.cut_every = None);
    between.is_silent().await;
    between.change(|line| line.cut_every = Some(10 * MS));
    assert_eq!(between.carried.await.unwrap(), Some(Cut::Reset));
}

/// A proxy in front of a server that says what it hears.
async fn echo(line: Line) -> (Proxy, AbortOnDropHandle<()>) {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = server.local_addr().unwrap().to_string();
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = server.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                // Some connections are broken on purpose.
                drop(tokio::io::copy(&mut read, &mut write).await);
            });
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    (Proxy::start(listener, &to, line, 1).unwrap(), AbortOnDropHandle::new(serving))
}

async fn say(stream: &mut TcpStream) {
    let mut heard = [0; 5];
    stream.write_all(b"hello").await.unwrap();
    stream.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"hello");
}

#[tokio::test]
async fn a_proxy_breaks_sockets_as_it_is_told() {
    let (proxy, _serving) = echo(Line::default()).await;
    let connect = async || TcpStream::connect(proxy.address()).await.unwrap();
    let mut first = connect().await;
    say(&mut first).await;
    proxy.cut(Cut::Reset);
    let error = first.read(&mut [0]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);

    let mut second = connect().await;
    say(&mut second).await;
    proxy.cut(Cut::Close);
    assert_eq!(second.read(&mut [0]).await.unwrap(), 0);

    proxy.change(|line| line.refuses = true);
    let mut third = connect().await;
    assert!(third.read(&mut [0]).await.is_err(), "it is refused");
    proxy.change(|line| line.refuses = false);
    let mut fourth = connect().await;
    say(&mut fourth).await;
    let traffic = proxy.wait_until(|traffic| traffic.open == 1 && traffic.down == 15).await;
    assert_eq!((traffic.taken, traffic.cut, traffic.up), (4, 2, 15));
    // With the proxy its connections end.
    drop(proxy);
    assert!(matches!(fourth.read(&mut [0]).await, Ok(0) | Err(_)));
}

#[tokio::test]
async fn who_resets_one_side_resets_the_other() {
    let (proxy, _serving) = echo(Line::default()).await;
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    say(&mut stream).await;
    stream.set_zero_linger().unwrap();
    drop(stream);
    let traffic = proxy.wait_until(|traffic| traffic.open == 0 && traffic.taken == 1).await;
    assert_eq!(traffic.cut, 1);
}
