//! `nimbus-testkit proxy`: a line to a bus on which everything goes wrong that goes wrong on a network.

use std::{net::SocketAddr, num::NonZeroU64, process::ExitCode, time::Duration};

use anyhow::Context as _;
use clap::{Args, Parser, ValueEnum};
use nimbus_testkit::{Cut, Line, Proxy, Toward, Traffic};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpListener,
};

/// Carries connections to a bus over a line that is slow, narrow, half open, or breaks.
///
/// Where it listens is the first line of output. While it runs, it reads lines: any of the flags below, such as `--delay 0.1`,
/// say all of how the line is from now on; `reset` and `close` break every connection that is open; `traffic` says what was
/// carried.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Where to listen. Port 0 takes any free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    listen: SocketAddr,

    /// Where the bus is.
    #[arg(long, value_name = "HOST:PORT")]
    to: String,

    /// Where randomness begins.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,

    #[command(flatten)]
    line: LineArguments,
}

/// How the line is.
#[derive(Debug, Args)]
struct LineArguments {
    /// Seconds that bytes take.
    #[arg(long, default_value = "0", value_name = "SECONDS", value_parser = parse_seconds)]
    delay: Duration,

    /// Up to so many seconds more, each piece another time.
    #[arg(long, default_value = "0", value_name = "SECONDS", value_parser = parse_seconds)]
    jitter: Duration,

    /// Bytes per second in each direction of each connection.
    #[arg(long, value_name = "N")]
    rate: Option<NonZeroU64>,

    /// Bytes in this direction vanish, and nobody is told.
    #[arg(long, value_name = "DIRECTION")]
    half_open: Option<Direction>,

    /// Nothing arrives until this is over, and then all of it does.
    #[arg(long)]
    hold: bool,

    /// Each connection breaks when so many bytes have arrived at the client.
    #[arg(long, value_name = "N")]
    cut_after: Option<u64>,

    /// Each connection breaks at a random moment, on average after so many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    cut_every: Option<Duration>,

    /// Connections do not break with a reset, but with an orderly end.
    #[arg(long)]
    close: bool,

    /// New connections are reset at once.
    #[arg(long)]
    refuse: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Direction {
    /// What the bus says is lost.
    Down,
    /// What clients say is lost.
    Up,
    Both,
}

/// A line of input.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Change {
    /// `reset`, `close` or `traffic`; without it, the flags.
    #[arg(value_enum)]
    what: Option<What>,

    #[command(flatten)]
    line: LineArguments,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    Reset,
    Close,
    Traffic,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { listen, to, seed, line } = arguments;
    let listener = TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
    let proxy = Proxy::start(listener, &to, line.to_line(), seed)?;
    say(&format!("listening on {}", proxy.address()));
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        match Change::try_parse_from(line.split_whitespace()) {
            Ok(change) => change.make(&proxy),
            Err(error) => say(error.to_string().trim_end()),
        }
    }
    // Nobody tells it anything any more; it goes on as it is.
    std::future::pending().await
}

#[allow(clippy::print_stdout, reason = "whoever asked for any free port waits for this line")]
fn say(text: &str) {
    println!("{text}");
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|time| time.as_secs() <= 86_400)
        .ok_or_else(|| "expected seconds, such as 0.25".to_owned())
}

// === impl LineArguments ===

impl LineArguments {
    fn to_line(&self) -> Line {
        let loses = |direction| match direction {
            Direction::Down => Toward::Client,
            Direction::Up => Toward::Server,
            Direction::Both => Toward::Both,
        };
        Line {
            delay: self.delay,
            jitter: self.jitter,
            rate: self.rate,
            loses: self.half_open.map(loses),
            holds: self.hold,
            cut_after: self.cut_after,
            cut_every: self.cut_every,
            cut_by: if self.close { Cut::Close } else { Cut::Reset },
            refuses: self.refuse,
        }
    }
}

// === impl Change ===

impl Change {
    fn make(&self, proxy: &Proxy) {
        match self.what {
            None => proxy.change(|line| *line = self.line.to_line()),
            Some(What::Reset) => proxy.cut(Cut::Reset),
            Some(What::Close) => proxy.cut(Cut::Close),
            Some(What::Traffic) => {
                let Traffic { open, taken, cut, up, down, .. } = proxy.traffic();
                say(&format!("{open} open, {taken} taken, {cut} broken, {up} bytes up, {down} bytes down"));
            }
        }
    }
}
