//! A whole agent: keeps the message of the day, one file for each object.
//!
//! ```console
//! $ cargo run -p nimbus-agent --example motd -- web-1 http://127.0.0.1:7400 /tmp/motd.d
//! ```

use std::{env, error::Error, path::PathBuf, sync::Arc};

use nimbus_agent::{Agent, Context, Failure, Handler, Object, Observation, Status};
use tokio::fs;

/// What protoc would generate from `message Motd { string text = 1; }` in package `demo.v1`.
#[derive(Clone, PartialEq, prost::Message)]
struct Motd {
    #[prost(string, tag = "1")]
    text: String,
}

impl prost::Name for Motd {
    const NAME: &'static str = "Motd";
    const PACKAGE: &'static str = "demo.v1";
}

/// Keeps files in a folder.
struct Folder(PathBuf);

impl Handler<Motd> for Folder {
    async fn apply(&self, _: &Context, motd: Arc<Object<Motd>>) -> Result<Status, Failure> {
        let staged = self.0.join(format!(".{}.new", motd.name()));
        fs::write(&staged, &motd.spec.text).await?;
        fs::rename(staged, self.0.join(motd.name())).await?;
        Ok(Status::applied())
    }

    async fn remove(&self, _: &Context, motd: Arc<Object<Motd>>) -> Result<(), Failure> {
        match fs::remove_file(self.0.join(motd.name())).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn observe(&self, _: &Context, motd: Arc<Object<Motd>>) -> Result<Observation, Failure> {
        match fs::read_to_string(self.0.join(motd.name())).await {
            Ok(text) if text == motd.spec.text => Ok(Observation::InSync),
            Ok(_) => Ok(Observation::Drifted("somebody changed the text".to_owned())),
            Err(error) => Ok(Observation::Drifted(error.to_string())),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [id, bus, folder] = &arguments[..] else { return Err("usage: motd AGENT BUS FOLDER".into()) };
    fs::create_dir_all(folder).await?;
    Agent::builder(id, bus)
        .cache(PathBuf::from(folder).join(".cache.redb"))
        .trust_applied()
        .observe_every(std::time::Duration::from_secs(10))
        .handle(Folder(folder.into()))
        .run_until(async { drop(tokio::signal::ctrl_c().await) })
        .await?;
    Ok(())
}
