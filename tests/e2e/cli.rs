//! The commands that talk to a bus, as people type them: what they print, to the letter, and how they end.

mod agents;
mod apply;
mod apply_many;
mod apply_problems;
mod bad_input;
mod delete;
mod describe;
mod diff;
mod edit;
mod explain;
mod files;
mod kinds;
mod objects;
mod pipes;
mod propagation;
mod references;
mod register;
mod secrets;
mod sim;
mod terminal;
mod top;
mod version;
mod waiting;
mod watching;

use std::process::{Command, Stdio};

use nimbus_wire::v1::{self, publisher_client::PublisherClient};
use prost::Message as _;
use tonic::transport::Channel;

use crate::{
    demo,
    server::{Server, binary},
};

/// A bus, and the command against it.
struct World {
    server: Server,
    publisher: PublisherClient<Channel>,
}

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
struct Ended {
    code: i32,
    out: String,
    err: String,
}

/// The same as in the proto file.
#[derive(Clone, PartialEq, prost::Message)]
struct Account {
    #[prost(string, tag = "1")]
    user: String,
    #[prost(string, tag = "2")]
    password: String,
}

/// A kind with a secret in it.
const ACCOUNT: &str = "demo.v1.Account";

/// Runs the command where no variable of the caller says anything.
fn nimbus(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

/// Runs a command to its end.
fn run(command: &mut Command) -> Ended {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

// === impl World ===

impl World {
    /// A bus on which nothing is incomplete.
    async fn start() -> Self {
        Self::on(Server::start(&["--assume-complete"])).await
    }

    async fn on(server: Server) -> Self {
        let publisher = PublisherClient::connect(server.url()).await.unwrap();
        Self { server, publisher }
    }

    /// Registers the kinds of these files.
    async fn register(&mut self, files: &[&str]) {
        let mut compiler = protox::Compiler::new([demo::folder().join("proto")]).unwrap();
        // Not by way of prost's own types, which do not know the option that marks secrets.
        let descriptor_set = compiler
            .include_imports(true)
            .open_files(files)
            .unwrap()
            .encode_file_descriptor_set()
            .into();
        let request = v1::RegisterKindsRequest { descriptor_set, kinds: vec![] };
        self.publisher.register_kinds(request).await.unwrap();
    }

    /// Publishes objects, in the name of `policies`.
    async fn publish(&mut self, objects: Vec<v1::Object>) {
        self.apply(objects.into_iter().map(demo::upsert).collect()).await;
    }

    async fn apply(&mut self, ops: Vec<v1::Op>) {
        self.publisher.apply(demo::apply("policies", ops)).await.unwrap();
    }

    /// The command against this bus.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = nimbus(arguments);
        command.env("NIMBUS_SERVER", &self.server.address);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        run(&mut self.command(arguments))
    }

    /// It succeeds, and prints exactly this.
    fn prints(&self, arguments: &[&str], out: &str) {
        let ended = self.run(arguments);
        let expected = Ended { code: 0, out: out.to_owned(), err: String::new() };
        assert_eq!(ended, expected, "{arguments:?} prints\n{}", ended.out);
    }

    /// It ends with this code, and says exactly this; nothing is printed.
    fn fails(&self, arguments: &[&str], code: i32, err: &str) {
        let expected = Ended { code, out: String::new(), err: format!("nimbus: {err}\n") };
        assert_eq!(self.run(arguments), expected, "{arguments:?}");
    }
}

/// An account of that name.
fn account(name: &str, user: &str, password: &str) -> v1::Object {
    let spec = Account { user: user.to_owned(), password: password.to_owned() };
    v1::Object { name: name.to_owned(), spec: Some(demo::pack(ACCOUNT, spec.encode_to_vec())), ..v1::Object::default() }
}
