//! Output that nobody reads to its end, and servers that do not answer.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    process::Stdio,
    thread,
};

use nimbus_wire::v1;

use crate::{
    cli::{World, nimbus, run},
    demo,
};

#[tokio::test]
async fn a_reader_that_goes_away_ends_the_command_quietly() {
    let mut world = World::start().await;
    // More than any pipe holds.
    let note = BTreeMap::from([("note".to_owned(), "x".repeat(20_000))]);
    let object = |n| v1::Object { annotations: note.clone(), ..demo::policy(&format!("p{n}"), "a", 1) };
    world.publish((0..50).map(object).collect()).await;
    for format in ["json", "yaml"] {
        let mut command = world.command(&["list", "networkpolicy", "-o", format]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut said = String::new();
        process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((process.wait().unwrap().code(), &*said), (Some(0), ""), "{format}");
    }
}

#[test]
fn a_bus_that_does_not_answer_is_not_waited_for_forever() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let ended = run(&mut nimbus(&["kinds", "--server", &address, "--timeout", "0.2"]));
    let said = format!(
        "nimbus: no answer from the bus at {address} within 0.2 s \
         (hint: is it busy, or a long way off? --timeout waits longer)\n"
    );
    assert_eq!((ended.code, &*ended.out, ended.err), (7, "", said));
}

#[test]
fn somebody_else_who_listens_there_is_no_bus() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").unwrap();
        drop(stream.read_to_end(&mut Vec::new()));
    });
    let ended = run(&mut nimbus(&["kinds", "--server", &address]));
    server.join().unwrap();
    assert_eq!((ended.code, &*ended.out), (4, ""), "{}", ended.err);
    assert!(ended.err.starts_with(&format!("nimbus: cannot reach a bus at {address}: ")), "{}", ended.err);
}
