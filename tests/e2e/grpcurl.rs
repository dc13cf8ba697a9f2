//! What people type: grpcurl, with nothing but the address.

use std::{
    env,
    io::BufReader,
    path::Path,
    process::{Child, Command, Stdio},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::{demo, server::Server};

/// grpcurl against one server.
struct Grpcurl<'a> {
    server: &'a Server,
}

/// A call that goes on. It ends with this value.
struct Running {
    process: Child,
}

/// No call takes as long; it only keeps a failing test from hanging.
const GUARD_SECONDS: &str = "60";

/// The spec as people write it, and as they must get it back.
fn spec(zone: &str, priority: u32) -> Value {
    json!({"@type": "type.googleapis.com/demo.v1.NetworkPolicy", "zone": zone, "priority": priority})
}

/// The tool, wherever it is.
pub(crate) fn command() -> Command {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cache/cargo/bin/grpcurl");
    let on_path = || {
        let folders = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&folders).map(|folder| folder.join("grpcurl")).find(|tool| tool.exists())
    };
    let tool = Some(installed).filter(|tool| tool.exists()).or_else(on_path);
    Command::new(tool.expect("grpcurl is missing (hint: tests/run installs it)"))
}

// === impl Grpcurl ===

impl Grpcurl<'_> {
    /// What it prints. It must succeed.
    fn print(&self, flags: &[&str], words: &[&str]) -> String {
        let (worked, out, complaint) = self.run(flags, words);
        assert!(worked, "grpcurl {flags:?} {words:?} failed: {complaint}{out}");
        out
    }

    fn run(&self, flags: &[&str], words: &[&str]) -> (bool, String, String) {
        let mut command = command();
        command
            .args(["-plaintext", "-max-time", GUARD_SECONDS])
            .args(flags)
            .arg(&self.server.address)
            .args(words);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }

    fn call(&self, method: &str, request: &Value) -> Value {
        let out = self.print(&["-d", &request.to_string()], &[method]);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error} in {out}"))
    }

    /// A call that fails: what it prints about it.
    fn fail(&self, method: &str, request: &Value) -> String {
        let (worked, out, complaint) = self.run(&["-d", &request.to_string()], &[method]);
        assert!(!worked, "{method} {request} was accepted: {out}");
        complaint
    }

    fn register(&self) -> Value {
        let set = BASE64_STANDARD.encode(demo::descriptor_set());
        self.call("nimbus.v1.Publisher/RegisterKinds", &json!({"descriptor_set": set}))
    }

    fn publish(&self, name: &str, zone: &str, priority: u32) -> Value {
        let ops = json!([{"upsert": {"name": name, "labels": {"tier": "web"}, "spec": spec(zone, priority)}}]);
        self.call("nimbus.v1.Publisher/Apply", &json!({"publisher": "person", "ops": ops}))
    }
}

// === impl Running ===

impl Running {
    /// Starts a call that goes on, and the frames that it prints.
    fn start(server: &Server, request: &str, method: &str) -> (Self, impl Iterator<Item = Value>) {
        let mut command = command();
        command.args(["-plaintext", "-max-time", GUARD_SECONDS, "-d", request, &server.address, method]);
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(process.stdout.take().expect("it is piped"));
        let frames = serde_json::Deserializer::from_reader(out).into_iter::<Value>();
        (Self { process }, frames.map(|frame| frame.expect("grpcurl prints JSON")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if the process has ended by itself.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The objects that a frame puts.
fn puts(frame: &Value) -> Vec<Value> {
    let events = frame["batch"]["events"].as_array().cloned().unwrap_or_default();
    events
        .into_iter()
        .map(|event| event["put"].clone())
        .filter(|put| !put.is_null())
        .collect()
}

#[test]
fn grpcurl_lists_and_describes_what_the_bus_and_its_users_have() {
    let server = Server::start(&[]);
    let grpcurl = Grpcurl { server: &server };
    let services = grpcurl.print(&[], &["list"]);
    for service in [
        "nimbus.v1.Bus",
        "nimbus.v1.Publisher",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ] {
        assert!(services.lines().any(|line| line == service), "{service} is not in\n{services}");
    }
    let methods = grpcurl.print(&[], &["list", "nimbus.v1.Bus"]);
    assert!(methods.contains("nimbus.v1.Bus.Subscribe") && methods.contains("nimbus.v1.Bus.List"), "{methods}");
    let (known, out, _) = grpcurl.run(&[], &["describe", demo::KIND]);
    assert!(!known, "nobody has registered it yet, but: {out}");

    let registered = grpcurl.register();
    assert_eq!(registered["kinds"], json!([demo::KIND, "demo.v1.NetworkPolicyStatus"]));
    let described = grpcurl.print(&[], &["describe", demo::KIND]);
    assert!(described.contains("message NetworkPolicy {") && described.contains("string zone = 1;"), "{described}");
    assert!(
        grpcurl
            .print(&[], &["describe", "nimbus.v1.Object"])
            .contains("google.protobuf.Any spec = 11;")
    );
    let health = grpcurl.call("grpc.health.v1.Health/Check", &json!({"service": "nimbus.v1.Bus"}));
    assert_eq!(health["status"], "SERVING");
}

#[test]
fn grpcurl_publishes_and_reads_specs_as_json() {
    let server = Server::start(&[]);
    let grpcurl = Grpcurl { server: &server };
    grpcurl.register();
    let created = grpcurl.publish("web", "a", 10);
    assert_eq!(created["outcomes"][0]["result"], "RESULT_CREATED");
    assert_eq!(grpcurl.publish("web", "a", 10)["outcomes"][0]["result"], "RESULT_UNCHANGED");

    // Exactly the line of the documentation.
    let request = r#"{"kinds":["demo.v1.NetworkPolicy"]}"#;
    let list = command()
        .args(["-plaintext", "-d", request, &server.address, "nimbus.v1.Bus/List"])
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&list.stderr);
    assert!(list.status.success(), "{complaint}");
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(list["objects"][0]["name"], "web");
    assert_eq!(list["objects"][0]["spec"], spec("a", 10), "{list}");

    let get = grpcurl.call("nimbus.v1.Bus/Get", &json!({"kind": demo::KIND, "name": "web"}));
    assert_eq!(get["object"]["spec"], spec("a", 10));
    assert_eq!(get["object"]["manager"], "person");

    let kinds = grpcurl.call("nimbus.v1.Bus/ListKinds", &json!({}));
    let kind = kinds["kinds"]
        .as_array()
        .unwrap()
        .iter()
        .find(|kind| kind["kind"] == demo::KIND)
        .unwrap()
        .clone();
    assert_eq!((&kind["objects"], &kind["registered"]), (&json!("1"), &json!(true)), "{kinds}");

    let filter = json!({"kinds": [demo::KIND], "filter": {"fields": ["spec.zone=b"]}});
    assert_eq!(grpcurl.call("nimbus.v1.Bus/List", &filter)["objects"].as_array().map_or(0, Vec::len), 0);
    let refused = grpcurl.fail("nimbus.v1.Bus/Get", &json!({"kind": demo::KIND, "name": "nothing"}));
    assert!(refused.contains("NotFound") && refused.contains("does not exist"), "{refused}");
}

#[test]
fn grpcurl_subscribes_with_nothing_but_one_line_and_prints_specs() {
    let server = Server::start(&["--assume-complete"]);
    let grpcurl = Grpcurl { server: &server };
    grpcurl.register();
    grpcurl.publish("web", "a", 10);
    let request = r#"{"kinds":["demo.v1.NetworkPolicy"]}"#;
    let (_running, mut frames) = Running::start(&server, request, "nimbus.v1.Bus/Subscribe");
    let mut next = || frames.next().expect("the stream goes on");

    assert_eq!(next()["welcome"]["mode"], "MODE_SNAPSHOT");
    assert_eq!(next()["snapshotBegin"]["objects"], "1");
    let snapshot = puts(&next());
    assert_eq!(snapshot.iter().map(|put| put["spec"].clone()).collect::<Vec<_>>(), [spec("a", 10)]);
    assert_eq!(next()["snapshotEnd"]["objects"], "1");

    grpcurl.publish("web", "b", 11);
    let live = loop {
        let puts = puts(&next());
        if !puts.is_empty() {
            break puts;
        }
    };
    assert_eq!(live.iter().map(|put| put["spec"].clone()).collect::<Vec<_>>(), [spec("b", 11)]);
    let delete = json!({"publisher": "person", "ops": [{"delete": {"kind": demo::KIND, "name": "web"}}]});
    grpcurl.call("nimbus.v1.Publisher/Apply", &delete);
    let gone = loop {
        let frame = next();
        let gone = &frame["batch"]["events"][0]["delete"];
        if !gone.is_null() {
            break gone.clone();
        }
    };
    assert_eq!((&gone["kind"], &gone["name"]), (&json!(demo::KIND), &json!("web")));
}

#[test]
fn grpcurl_shows_why_something_was_refused() {
    let server = Server::start(&[]);
    let grpcurl = Grpcurl { server: &server };
    grpcurl.register();
    let ops = json!([{"upsert": {"name": "a b", "spec": spec("a", 1)}}]);
    let refused = grpcurl.fail("nimbus.v1.Publisher/Apply", &json!({"ops": ops}));
    for words in ["InvalidArgument", "ops[0].upsert.name", "1 to 253 of the characters"] {
        assert!(refused.contains(words), "no {words:?} in {refused}");
    }
}
