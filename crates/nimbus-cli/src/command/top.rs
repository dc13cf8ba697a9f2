//! `nimbus top`: the fleet at a glance, as it changes.

use std::{io::IsTerminal as _, time::Duration};

use clap::Args;
use nimbus_wire::v1;
use tokio::time::Instant;

use crate::{
    client::{Client, ClientArguments},
    dashboard::{Dashboard, Sample, Sort},
    failure::{Exit, Failure},
    output::{Printer, colors_are_welcome},
    screen::{Input, Screen},
};

/// Show the fleet at a glance, as it changes: sessions, lag, rates, and how far the newest change has come.
///
/// RATE is how many revisions an agent passes in a second. Keys: `s` sorts by something else, arrows scroll, `q` quits. Where
/// standard output is no terminal, one page is printed, as with --once.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print one page, and end.
    #[arg(long)]
    once: bool,

    /// Only agents whose labels match, such as `zone in (a,b),role=edge,!canary`.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,

    /// What agents are sorted by.
    #[arg(long, value_name = "BY", default_value = "lag")]
    sort: Sort,

    /// Seconds between two looks.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = parse_interval)]
    interval: f64,

    #[command(flatten)]
    client: ClientArguments,
}

/// Agents on a page of the terminal, about.
const PAGE: isize = 20;

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let client = arguments.client.client()?;
    let selector = arguments.selector.as_deref().unwrap_or_default();
    let mut dashboard = Dashboard::new(client.address(), arguments.sort);
    // What is wrong is said before the screen is taken.
    dashboard.take(look(&client, selector).await?, None);
    if arguments.once || !std::io::stdout().is_terminal() {
        let mut printer = Printer::lines();
        for line in dashboard.page(std::io::stdout().is_terminal() && colors_are_welcome()) {
            printer.line(&line)?;
        }
        return printer.flush();
    }
    let interval = Duration::from_secs_f64(arguments.interval);
    live(&client, selector, interval, &mut dashboard).await
}

/// Looks again and again, and shows what it sees.
async fn live(client: &Client, selector: &str, interval: Duration, dashboard: &mut Dashboard) -> Result<(), Failure> {
    let no_screen = |error| Failure::from(format!("cannot draw on this terminal: {error}")).hint("try --once");
    let screen = Screen::take().map_err(no_screen)?;
    let mut inputs = screen.inputs();
    let colored = colors_are_welcome();
    let mut seen = Instant::now();
    let look_at = |when| async move {
        tokio::time::sleep_until(when).await;
        look(client, selector).await
    };
    // A look under way goes on while keys are pressed.
    let mut looking = Box::pin(look_at(seen + interval));
    loop {
        screen.draw(&dashboard.screen(screen.height(), colored))?;
        tokio::select! {
            input = inputs.recv() => match input {
                None | Some(Input::Quit) => return Ok(()),
                Some(Input::Interrupt) => return Err(Failure::silent(Exit::Interrupted)),
                Some(Input::Sort) => dashboard.sort_by_next(),
                Some(Input::Up) => dashboard.scroll(-1),
                Some(Input::Down) => dashboard.scroll(1),
                Some(Input::PageUp) => dashboard.scroll(-PAGE),
                Some(Input::PageDown) => dashboard.scroll(PAGE),
                Some(Input::Resized) => {}
            },
            sample = &mut looking => {
                match sample {
                    Ok(sample) => {
                        let now = Instant::now();
                        dashboard.take(sample, Some(now - std::mem::replace(&mut seen, now)));
                    }
                    Err(failure) => dashboard.fail(&failure.to_string()),
                }
                looking.set(look_at(Instant::now() + interval));
            }
        }
    }
}

/// Looks at all agents, and at how far the newest revision has come.
async fn look(client: &Client, selector: &str) -> Result<Sample, Failure> {
    let mut request = v1::ListAgentsRequest { selector: selector.to_owned(), ..v1::ListAgentsRequest::default() };
    let mut sample = Sample::default();
    loop {
        let page = client.call(client.fleet().list_agents(request.clone())).await?;
        let v1::ListAgentsResponse { epoch, revision, connected, away, lost, .. } = page;
        sample = Sample { epoch, revision, connected, away, lost, ..sample };
        sample.agents.extend(page.agents);
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    if sample.revision > 0 {
        let target = v1::Target { target: Some(v1::target::Target::Revision(sample.revision)) };
        let request = v1::GetPropagationRequest {
            target: Some(target),
            selector: selector.to_owned(),
            max_agents: 1,
            ..v1::GetPropagationRequest::default()
        };
        sample.newest = client.call(client.fleet().get_propagation(request)).await?.propagation;
    }
    Ok(sample)
}

fn parse_interval(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3_600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds between 0.1 and 3600".to_owned()),
    }
}
