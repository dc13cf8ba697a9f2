//! `nimbus demo`: a bus, a controller and agents on this machine, and a story that is told about them while it happens.

mod agent;
mod bus;
mod cast;
mod controller;
mod figures;
mod files;
mod fleet;
mod folder;
mod hints;
mod interrupt;
mod kinds;
mod line;
mod living;
mod operator;
mod rules;
mod running;
mod screen;
mod stage;
mod story;
mod tap;

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;

use self::{
    cast::Cast,
    fleet::ZONES,
    interrupt::Interrupt,
    screen::{Look, Screen},
    stage::Stage,
};

/// See it work: a bus, a controller and agents on this machine, and a story that is told while it happens.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Agents, spread over three zones.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(ZONES.len() as i64..=20_000))]
    agents: u32,

    /// End after the story; the exit code is 0 if every step of it was seen to happen.
    #[arg(long)]
    once: bool,

    /// Where the bus listens. Port 0 takes any free one.
    #[arg(long, default_value = "127.0.0.1:7400")]
    listen: SocketAddr,

    /// Keep the objects in this new file, also when the demo has ended; otherwise they are in a temporary one.
    #[arg(long, value_name = "redb:PATH", value_parser = parse_store)]
    store: Option<PathBuf>,

    /// Keep the temporary files.
    #[arg(long)]
    keep: bool,

    /// How fast the story is told; 2 is twice as fast. Without a terminal, or with --once, there are no pauses.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = parse_speed)]
    speed: f64,

    /// No pauses between the steps.
    #[arg(long)]
    no_pause: bool,

    /// Be the bus of a demo, for as long as standard input is open.
    #[arg(long, hide = true)]
    as_bus: bool,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Every step was seen to happen.
    Told,
    /// A step was not.
    Untold,
    /// Somebody ended it before that.
    Interrupted(Interrupt),
}

/// Long enough to read a step.
const PAUSE: Duration = Duration::from_secs(2);

/// A step takes a fraction of a second, with many agents a few; a machine may be busy.
const LIMIT: Duration = Duration::from_secs(30);
const LIMIT_PER_AGENT: Duration = Duration::from_millis(60);

// === impl Arguments ===

impl Arguments {
    /// Whether this is only the bus of a demo.
    pub(crate) fn is_bus(&self) -> bool {
        self.as_bus
    }
}

pub(crate) async fn run(arguments: Arguments, verbose: u8) -> ExitCode {
    let result = match &arguments.store {
        Some(store) if arguments.as_bus => {
            bus::serve(arguments.listen, store, verbose).await.map(|()| ExitCode::SUCCESS)
        }
        _ => play(arguments).await,
    };
    result.unwrap_or_else(|message| {
        #[allow(clippy::print_stderr, reason = "the place where a command says why it failed")]
        {
            eprintln!("nimbus: {message}");
        }
        ExitCode::FAILURE
    })
}

async fn play(arguments: Arguments) -> Result<ExitCode, String> {
    let Arguments { agents, once, listen, store, keep, speed, no_pause, .. } = arguments;
    let mut interrupts = interrupt::listen()?;
    files::allow(agents)?;
    let pause = if once || no_pause { Duration::ZERO } else { PAUSE.div_f64(speed) };
    let screen = Screen::new(Box::new(std::io::stdout()), Look::of_stdout(pause));
    let mut stage = Stage::new(screen, LIMIT + LIMIT_PER_AGENT * agents);
    let mut cast = Cast::new(listen, store, keep).await?;
    let mut end = None;
    tokio::select! {
        biased;
        interrupt = interrupts.next() => {
            end.get_or_insert(End::Interrupted(interrupt));
        }
        () = perform(&mut stage, &mut cast, agents, once, &mut end) => {}
    }
    // What comes next on a terminal begins a line of its own.
    stage.screen.line("");
    if let Some(kept) = cast.kept() {
        stage.screen.line(&format!("Its files are kept in {}.", kept.display()));
    }
    cast.close().await;
    Ok(end.unwrap_or(End::Untold).code())
}

/// Tells the story, and goes on for as long as somebody wants to look.
async fn perform(stage: &mut Stage, cast: &mut Cast, agents: u32, once: bool, end: &mut Option<End>) {
    let told = story::tell(stage, cast, agents).await;
    match &told {
        Ok(()) => {
            *end = Some(End::Told);
            stage.screen.heading("That was the story; every step of it was seen to happen.");
        }
        Err(untrue) => {
            *end = Some(End::Untold);
            stage
                .screen
                .heading(&format!("The story ends here, because this did not come true: {}", untrue.expected));
        }
    }
    if once || stage.screen.is_closed() {
        return;
    }
    let listed = cast.operator.rules_of(story::WEB).await.unwrap_or_default();
    cast.hints.all(&mut stage.screen, story::of_zone(&listed, "south").unwrap_or("NAME"));
    stage.screen.line("");
    if told.is_ok() {
        stage.screen.note("Somebody edits a policy every few seconds. Ctrl-C ends it all.");
        living::go_on(stage, cast).await;
    } else {
        stage
            .screen
            .note("Everything goes on as it is, so that you can look. Ctrl-C ends it all.");
        std::future::pending::<()>().await;
    }
}

// === impl End ===

impl End {
    fn code(self) -> ExitCode {
        match self {
            Self::Told => ExitCode::SUCCESS,
            Self::Untold => ExitCode::FAILURE,
            Self::Interrupted(interrupt) => ExitCode::from(interrupt.code()),
        }
    }
}

fn parse_store(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("redb:").filter(|path| !path.is_empty());
    let expected = "expected redb:PATH: in memory, nothing would be there after the restart that the story tells of";
    path.map(PathBuf::from).ok_or_else(|| expected.to_owned())
}

fn parse_speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed| (0.1..=100.0).contains(speed));
    speed.ok_or_else(|| "expected a factor between 0.1 and 100".to_owned())
}

#[cfg(test)]
mod tests;
