//! `nimbus serve` as people start and stop it.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Output, Stdio},
};

use nimbus_wire::v1::{self, bus_client::BusClient, frame::Frame, notice::Notice};
use tonic::Code;

use crate::{
    server::{Server, binary},
    wait,
};

fn serve(arguments: &[&str]) -> Output {
    Command::new(binary())
        .arg("serve")
        .args(arguments)
        .env("NIMBUS_LOG", "off")
        .env("NIMBUS_ADMIN", "none")
        .output()
        .unwrap()
}

#[test]
fn what_cannot_be_served_is_said_with_a_hint() {
    let taken = Server::start(&[]);
    let cases: [(&[&str], i32, &str); 10] = [
        (&["--listen", &taken.address], 1, "hint: is another bus running there?"),
        (&["--listen", "nowhere"], 2, "expected an address and a port, such as 127.0.0.1:7400 or [::]:7400"),
        (&["--store", "disk"], 2, "expected redb:PATH, such as redb:/var/lib/nimbus/store.redb, or memory"),
        (&["--listen", "127.0.0.1:0", "--store", "redb:/nowhere/at/all/x"], 1, "/nowhere/at/all"),
        (&["--listen", "127.0.0.1:0", "--store", "redb:/sys/nimbus.redb"], 1, "hint: may this user write there?"),
        (&["--listen", "127.0.0.1:0", "--store", "redb:/"], 1, "/ is not a collection: it is a directory"),
        (&["--bookmark-interval", "0"], 2, "expected seconds between 0.01 and 86400"),
        (&["--listen", "127.0.0.1:0", "--max-object-bytes", "2000000"], 2, "so that an object fits into a frame"),
        (&["--listen", "127.0.0.1:0", "--max-message-bytes", "10"], 1, "or no object can be published"),
        (&["--max-frame-bytes", "7", "--listen", "127.0.0.1:0"], 2, "expected a number between 1024 and 1048576"),
    ];
    for (arguments, code, words) in cases {
        let output = serve(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[tokio::test]
async fn a_bus_that_is_told_to_stop_sends_its_subscribers_away_and_ends_well() {
    let mut process = Command::new(binary())
        .args([
            "serve",
            "--store",
            "memory",
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "none",
            "--assume-complete",
            "--drain",
            "2",
        ])
        .env("NIMBUS_LOG", "off")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on ").unwrap();
    let mut bus = BusClient::connect(format!("http://{address}")).await.unwrap();
    let mut frames = bus.subscribe(v1::SubscribeRequest::default()).await.unwrap().into_inner();
    let mut next = async || wait::for_it("a frame", frames.message()).await.map(|frame| frame.unwrap().frame.unwrap());
    assert!(matches!(next().await, Ok(Frame::Welcome(_))));

    let pid = process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let mut drained = false;
    let status = loop {
        match next().await {
            Ok(Frame::Notice(v1::Notice { notice: Some(Notice::Drain(_)) })) => drained = true,
            Ok(_) => {}
            Err(status) => break status,
        }
    };
    assert!(drained);
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    drop(bus);
    let ended = tokio::task::spawn_blocking(move || process.wait()).await.unwrap().unwrap();
    assert_eq!(ended.code(), Some(0));
}
