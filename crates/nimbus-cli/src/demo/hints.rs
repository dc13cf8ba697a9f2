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

    /// Everything that is worth a look, with the rules of one policy as an example.
    pub(crate) fn all(&self, screen: &mut Screen, rules: &str) {
        screen.note("In another terminal:");
        if self.address.port() != USUAL_PORT {
            screen.command(&format!("export NIMBUS_BUS=http://{}", self.address));
        }
        for words in [
            "kinds".to_owned(),
            format!("list {RULES}"),
            format!("get {POLICY} web"),
            "agents".to_owned(),
            format!("propagation {RULES} {rules}"),
            format!("explain {SMALL} {RULES} {rules}"),
            format!("watch {POLICY}"),
            "top".to_owned(),
        ] {
            screen.command(&format!("{} {words}", self.program));
        }
        screen.command(&self.grpcurl("", "list"));
        screen.command(&self.grpcurl(&format!(r#"{{"kinds":["{RULES}"]}}"#), "nimbus.v1.Bus/List"));
        screen.command(&self.grpcurl(&format!(r#"{{"kinds":["{POLICY}"]}}"#), "nimbus.v1.Bus/Subscribe"));
        let mine = format!(
            r#"{{"publisher":"me","ops":[{{"upsert":{{"name":"mine","spec":{{"@type":"type.googleapis.com/{POLICY}","zones":["west"],"rules":["allow tcp 25"]}}}}}}]}}"#
        );
        screen.command(&self.grpcurl(&mine, "nimbus.v1.Publisher/Apply"));
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

    fn grpcurl(&self, request: &str, call: &str) -> String {
        let request = if request.is_empty() { String::new() } else { format!("-d '{request}' ") };
        format!("grpcurl -plaintext {request}{} {call}", self.address)
    }
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
