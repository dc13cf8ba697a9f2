//! `nimbus apply` with ten thousand objects.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::{
    cli::{
        World,
        files::{Desk, ten_thousand},
    },
    server::Server,
};

/// Lines in a log that say how far it is.
fn progress() -> String {
    (1..10).map(|n| format!("nimbus: applied {n},000 of 10,000\n")).collect()
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

#[tokio::test]
async fn ten_thousand_objects_are_applied_with_progress_and_applied_again_without_a_change() {
    let desk = Desk::new().await;
    ten_thousand(desk.folder.path());
    let ended = desk.run(&["apply", "-f", "many"]);
    assert_eq!((ended.code, &*ended.err), (0, &*progress()));
    assert_eq!(ended.out.lines().count(), 10_001);
    assert_eq!(last_line(&ended.out), "10,000 created, 0 changed, 0 unchanged");
    assert_eq!(desk.run(&["list", "networkpolicy", "-o", "name"]).out.lines().count(), 10_000);
    let again = desk.run(&["apply", "-f", "many"]);
    assert_eq!((again.code, last_line(&again.out)), (0, "0 created, 0 changed, 10,000 unchanged"));
    let deleted = desk.run(&["delete", "-f", "many"]);
    assert_eq!((deleted.code, deleted.out.lines().count()), (0, 10_000));
}

#[tokio::test]
async fn ten_thousand_objects_are_one_transaction_or_none() {
    let desk = Desk::new().await;
    ten_thousand(desk.folder.path());
    desk.write("many/bad.yaml", "kind: demo.v1.NetworkPolicy\nname: bad\nspec: {zoen: a}\n");
    desk.ends(
        &["apply", "-f", "many", "--atomic"],
        5,
        "",
        "many/bad.yaml:3:8: demo.v1.NetworkPolicy has no field `zoen`; did you mean `zone`?\n\
         nimbus: 1 problem, nothing was sent\n",
    );
    desk.write("many/bad.yaml", "kind: demo.v1.NetworkPolicy\nname: too-many\nspec: {}\n");
    desk.ends(
        &["apply", "-f", "many", "--atomic"],
        5,
        "",
        "nimbus: 10,001 objects are too many for one transaction: 10,000 of them fit; nothing was sent \
         (hint: apply without --atomic, or in parts, or start the bus with a larger --max-ops)\n",
    );
    assert_eq!(desk.run(&["list", "networkpolicy", "-o", "name"]).out, "");
    std::fs::remove_file(desk.folder.path().join("many/bad.yaml")).unwrap();
    let ended = desk.run(&["apply", "-f", "many", "--atomic"]);
    assert_eq!((ended.code, last_line(&ended.out)), (0, "10,000 created, 0 changed, 0 unchanged"), "{}", ended.err);
    let listed = desk.run(&["list", "networkpolicy", "--no-headers"]).out;
    assert!(listed.lines().all(|line| line.split_whitespace().nth(2) == Some("1")), "all at one revision");
}

#[tokio::test]
async fn a_bus_that_takes_little_at_a_time_gets_everything() {
    let flags = ["--assume-complete", "--max-ops", "50", "--max-message-bytes", "262144"];
    let desk = Desk::on(World::on(Server::start(&flags)).await).await;
    ten_thousand(desk.folder.path());
    let ended = desk.run(&["apply", "-f", "many"]);
    assert_eq!((ended.code, last_line(&ended.out)), (0, "10,000 created, 0 changed, 0 unchanged"), "{}", ended.err);
    desk.ends(
        &["apply", "-f", "many/0", "--atomic"],
        5,
        "",
        "nimbus: 1,000 objects are too many for one transaction: 50 of them fit; nothing was sent \
         (hint: apply without --atomic, or in parts, or start the bus with a larger --max-ops)\n",
    );
}

/// A way to the bus that lets so many bytes pass towards it, and then no more.
async fn narrow_way(address: String, mut bytes: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(address).await.unwrap();
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let back = tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
        let mut buffer = vec![0; 4096];
        while bytes > 0 {
            let room = bytes.min(buffer.len());
            let Ok(read @ 1..) = from_client.read(&mut buffer[..room]).await else { break };
            to_server.write_all(&buffer[..read]).await.unwrap();
            bytes -= read;
        }
        // The rest never arrives; the connection stays open for as long as somebody answers.
        drop(back.await);
        drop((from_client, to_server));
    });
    here
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_interrupted_says_how_far_it_came_and_goes_on_when_it_is_run_again() {
    let desk = Desk::new().await;
    ten_thousand(desk.folder.path());
    let way = narrow_way(desk.world.server.address.clone(), 600_000).await;
    let mut command = desk.command(&["apply", "-f", "many", "--server", &way, "--timeout", "600"]);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "nimbus: applied 1,000 of 10,000"));
    let interrupt = Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let said = lines.last().unwrap();
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    let applied = said
        .strip_prefix("nimbus: interrupted: applied ")
        .and_then(|rest| rest.split_once(" of 10,000"));
    let (applied, rest) = applied.unwrap_or_else(|| panic!("{said}"));
    assert!(rest.ends_with(" more were under way; run it again to go on"), "{said}");
    let applied: usize = applied.replace(',', "").parse().unwrap();
    assert!((1_000..10_000).contains(&applied), "{said}");
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(last_line(&out), format!("{} created, 0 changed, 0 unchanged", with_commas(applied)));
    assert_eq!(out.lines().count(), applied + 1, "those that are known to be applied are named");

    let again = desk.run(&["apply", "-f", "many"]);
    assert_eq!(again.code, 0, "{}", again.err);
    let totals: Vec<usize> = last_line(&again.out)
        .split(", ")
        .map(|part| part.split_once(' ').unwrap().0.replace(',', "").parse().unwrap())
        .collect();
    assert_eq!((totals[0] + totals[2], totals[1]), (10_000, 0), "{totals:?}");
    assert!(totals[2] >= applied, "{totals:?}");
    assert_eq!(desk.run(&["list", "networkpolicy", "-o", "name"]).out.lines().count(), 10_000);
}

fn with_commas(number: usize) -> String {
    if number < 1_000 { number.to_string() } else { format!("{},{:03}", number / 1_000, number % 1_000) }
}
