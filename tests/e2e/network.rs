//! Agents behind lines that are slow, narrow, half open, or break: between them and the bus is the proxy of the testkit.

use std::{num::NonZeroU64, time::Duration};

use nimbus_testkit::{Cut, Line, Proxy, Toward};
use tokio::net::TcpListener;

use crate::{file_agent::ask, machine::Machine, server::Server, user::User, wait};

const KIND: &str = "demo.v1.Blob";

const MS: Duration = Duration::from_millis(1);

/// A line to a bus.
async fn to(bus: &Server, line: Line) -> (Proxy, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::start(listener, &bus.address, line, 7).unwrap();
    let url = format!("http://{}", proxy.address());
    (proxy, url)
}

async fn user(bus: &Server) -> User {
    let mut user = User::of(&bus.url(), KIND);
    user.begin().await;
    user
}

/// Objects of this size, with a text of their own for each version.
fn objects(numbers: impl IntoIterator<Item = usize>, version: usize, bytes: usize) -> Vec<(String, String)> {
    let text = |n| format!("{n} {version} {}", "x".repeat(bytes));
    numbers.into_iter().map(|n| (format!("o{n}"), text(n))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_on_slow_and_shaky_lines_come_to_have_exactly_what_there_is() {
    let bus = Server::start(&["--bookmark-interval", "0.5"]);
    let mut user = user(&bus).await;
    let line = Line { delay: 15 * MS, jitter: 40 * MS, rate: NonZeroU64::new(2_000_000), ..Line::default() };
    let (_proxy, url) = to(&bus, line).await;
    let mut machines: Vec<_> = (0..3).map(|n| Machine::start(&format!("m{n}"), &url, KIND)).collect();
    for version in 0..15 {
        user.put(objects((0..40).map(|n| n + version), version, 2_000)).await;
        user.delete([format!("o{version}")]).await;
    }
    for machine in &mut machines {
        machine.comes_to(&user).await;
    }
}

/// A frame that takes longer on a narrow line than three bookmarks are apart counted as silence: the agent hung up in the middle
/// of it, asked again, and never got any further, though bytes arrived all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_takes_long_on_a_narrow_line_arrives() {
    let bus = Server::start(&["--bookmark-interval", "0.2"]);
    let mut user = user(&bus).await;
    // Two seconds, where bookmarks come every fifth of one.
    let (proxy, url) = to(&bus, Line { rate: NonZeroU64::new(120_000), ..Line::default() }).await;
    user.put(objects(0..1, 1, 250_000)).await;
    let mut machine = Machine::start("m", &url, KIND);
    machine.comes_to(&user).await;
    assert!(proxy.traffic().down >= 250_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_break_in_the_middle_of_snapshots_and_changes_lose_nothing() {
    let bus = Server::start(&["--bookmark-interval", "0.5"]);
    let mut user = user(&bus).await;
    user.put(objects(0..400, 0, 1_000)).await;
    // The first ones break before anything was said; the last ones after the whole snapshot.
    let (proxy, url) = to(&bus, Line { cut_after: Some(1), ..Line::default() }).await;
    let mut machine = Machine::start("m", &url, KIND);
    let mut room = 1;
    while room < 1 << 20 {
        let cut = proxy.traffic().cut;
        let is_over = tokio::select! {
            _ = wait::for_long("a cut", proxy.wait_until(|traffic| traffic.cut > cut)) => false,
            () = machine.in_sync() => true,
        };
        if is_over {
            break;
        }
        room = room * 3 / 2 + 1;
        let cut_by = if room % 2 == 0 { Cut::Reset } else { Cut::Close };
        proxy.change(|line| (line.cut_after, line.cut_by) = (Some(room), cut_by));
    }
    let cuts = proxy.traffic().cut;
    assert!(cuts > 10, "{cuts}");
    proxy.change(|line| line.cut_after = None);
    machine.comes_to(&user).await;

    // And then in the middle of changes, at random moments.
    proxy.change(|line| line.cut_every = Some(60 * MS));
    for version in 1..100 {
        user.put(objects((0..20).map(|n| n + 2 * version), version, 1_000)).await;
        user.delete([format!("o{version}"), format!("o{}", 400 - version)]).await;
        if version % 10 == 0 {
            let cut = proxy.traffic().cut;
            wait::for_long("a cut", proxy.wait_until(|traffic| traffic.cut > cut)).await;
        }
    }
    proxy.change(|line| *line = Line::default());
    machine.comes_to(&user).await;
}

/// Each side learns by itself that the other is gone, whichever direction is lost, and the agent goes on as soon as it can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_open_connection_is_noticed_by_both_sides() {
    let bus = Server::start(&["--bookmark-interval", "0.4", "--keepalive", "1"]);
    let mut user = user(&bus).await;
    user.put(objects(0..10, 0, 10)).await;
    for (number, direction) in [Toward::Both, Toward::Client, Toward::Server].into_iter().enumerate() {
        let (proxy, url) = to(&bus, Line::default()).await;
        let id = format!("m{number}");
        let mut machine = Machine::start(&id, &url, KIND);
        machine.comes_to(&user).await;
        let before = ask("a session", async || user.session(&id).await).await;
        proxy.change(|line| line.loses = Some(direction));
        ask("the bus to notice", async || (user.session(&id).await != Some(before)).then_some(())).await;
        machine.is_alone().await;
        user.put(objects(0..5, number + 1, 10)).await;
        user.delete([format!("o{}", 9 - number)]).await;
        // What was asked for meanwhile is lost, too; nobody waits for the answer to that.
        proxy.change(|line| line.loses = None);
        proxy.cut(Cut::Reset);
        machine.comes_to(&user).await;
        assert_ne!(ask("another session", async || user.session(&id).await).await, before);
    }
}

/// A line that carries nothing for a while, and then all of it, breaks nothing that was not given up meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_arrives_late_and_all_at_once_is_taken_in_order() {
    let bus = Server::start(&["--bookmark-interval", "60"]);
    let mut user = user(&bus).await;
    let (proxy, url) = to(&bus, Line::default()).await;
    let mut machine = Machine::start("m", &url, KIND);
    user.put(objects(0..20, 0, 100)).await;
    machine.comes_to(&user).await;
    for round in 1..4 {
        proxy.change(|line| line.holds = true);
        for version in 0..30 {
            user.put(objects(0..20, 100 * round + version, 100)).await;
        }
        proxy.change(|line| line.holds = false);
        machine.comes_to(&user).await;
    }
    assert_eq!(proxy.traffic().taken, 1, "it was the same connection all the time");
}
