//! What the reader can type in another terminal.

use std::{env, net::SocketAddr, path::Path};

use crate::demo::{
    fleet::SMALL,
    kinds::{POLICY, RULES},
    screen::Screen,
};

/// What the reader can type in another terminal.
#[derive(Debug, Clone)]
pub(crate) struct Hints {
    /// This program, as it can be called from here.
    program: String,
    address: SocketAddr,
}

/// Where clients look if nobody says otherwise.
const USUAL_PORT: u16 = 7400;

// === impl Hints ===

impl Hints {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { program: program().unwrap_or_else(|| "nimbus".to_owned()), address }
    }

    /// Enough to begin with.
    pub(crate) fn first(&self, screen: &mut Screen) {
        screen.note("Look on from another terminal:");
        screen.command(&self.grpcurl("", "list"));
        screen.command(&format!("{}{} agents", self.server(), self.program));
    }

    /// Everything that is worth a look, with some rules as an example.
    pub(crate) fn all(&self, screen: &mut Screen, rules: &str) {
        screen.note("In another terminal:");
        let server = self.server();
        if !server.is_empty() {
            screen.command(&format!("export {}", server.trim_end()));
        }
        for words in [
            "kinds".to_owned(),
            "list zonerules".to_owned(),
            "get networkpolicy web".to_owned(),
            "agents".to_owned(),
            format!("propagation zonerules {rules}"),
            format!("explain {SMALL} zonerules {rules}"),
            "watch networkpolicy".to_owned(),
            "top".to_owned(),
        ] {
            screen.command(&format!("{} {words}", self.program));
        }
        screen.command(&self.grpcurl("", "list"));
        screen.command(&self.grpcurl(&format!(r#"{{"kinds":["{RULES}"]}}"#), "nimbus.v1.Bus/List"));
        screen.command(&self.grpcurl(&format!(r#"{{"kind":"{POLICY}","name":"web"}}"#), "nimbus.v1.Bus/Get"));
        screen.command(&self.grpcurl(&format!(r#"{{"kinds":["{POLICY}"]}}"#), "nimbus.v1.Bus/Subscribe"));
        screen.command(&self.grpcurl(&mine(), "nimbus.v1.Publisher/Apply"));
    }

    /// Who has these rules.
    pub(crate) fn propagation(&self, screen: &mut Screen, rules: &str) {
        let request = format!(r#"{{"target":{{"object":{{"kind":"{RULES}","name":"{rules}"}}}}}}"#);
        screen.command(&self.grpcurl(&request, "nimbus.v1.Fleet/GetPropagation"));
    }

    /// Why an agent has them, or has not.
    pub(crate) fn explain(&self, screen: &mut Screen, agent: &str, rules: &str) {
        let request = format!(r#"{{"agent":"{agent}","object":{{"kind":"{RULES}","name":"{rules}"}}}}"#);
        screen.command(&self.grpcurl(&request, "nimbus.v1.Fleet/Explain"));
    }

    /// Which agents there are.
    pub(crate) fn agents(&self, screen: &mut Screen) {
        screen.command(&self.grpcurl("", "nimbus.v1.Fleet/ListAgents"));
    }

    /// What clients must be told, if the bus is not where they look.
    fn server(&self) -> String {
        if self.address.port() == USUAL_PORT {
            String::new()
        } else {
            format!("NIMBUS_SERVER=http://{} ", self.address)
        }
    }

    fn grpcurl(&self, request: &str, call: &str) -> String {
        let request = if request.is_empty() { String::new() } else { format!("-d '{request}' ") };
        format!("grpcurl -plaintext {request}{} {call}", self.address)
    }
}

/// A policy that the reader may write.
fn mine() -> String {
    let spec = format!(r#"{{"@type":"type.googleapis.com/{POLICY}","zones":["west"],"rules":["allow tcp 25"]}}"#);
    format!(r#"{{"publisher":"me","ops":[{{"upsert":{{"name":"mine","spec":{spec}}}}}]}}"#)
}

/// How this program is called: by its name if that finds it, otherwise by its path, from here if it is below.
fn program() -> Option<String> {
    let path = env::current_exe().ok()?;
    let name = path.file_name()?;
    let found = env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    if found.is_some_and(|found| found.canonicalize().is_ok_and(|found| found == path)) {
        return Some(name.to_str()?.to_owned());
    }
    let here = env::current_dir().ok()?;
    let near: &Path = path.strip_prefix(&here).unwrap_or(&path);
    Some(near.to_str()?.to_owned())
}
