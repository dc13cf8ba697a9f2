//! The rules of a zone, as files.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use nimbus_agent::{Context, Failure, Handler, Object, ObjectKey, Observation, Status};
use tokio::{fs, io::AsyncWriteExt as _};

use crate::kinds::ZoneRules;

/// Keeps the rules of a zone in a directory, one file for each policy.
pub(crate) struct Zone {
    directory: PathBuf,
    max_statements: usize,
}

// === impl Zone ===

impl Zone {
    /// Keeps rules there; makes the directory, if there is none.
    pub(crate) async fn open(directory: &Path, max_statements: usize) -> io::Result<Self> {
        fs::create_dir_all(directory).await?;
        Ok(Self { directory: directory.to_owned(), max_statements })
    }

    /// Names of objects are names of files, and those in different namespaces must not meet.
    fn path(&self, key: &ObjectKey) -> PathBuf {
        match key.namespace() {
            "" => self.directory.join(format!("{}.nft", key.name())),
            namespace => self.directory.join(format!("{namespace},{}.nft", key.name())),
        }
    }

    /// Replaces a file at one moment, for good: a crash leaves the old one or the new one.
    async fn replace(&self, path: &Path, text: &str) -> io::Result<()> {
        let unfinished = path.with_extension("nft.new");
        let mut file = fs::File::create(&unfinished).await?;
        file.write_all(text.as_bytes()).await?;
        file.sync_all().await?;
        fs::rename(&unfinished, path).await?;
        fs::File::open(&self.directory).await?.sync_all().await
    }
}

impl Handler<ZoneRules> for Zone {
    async fn apply(&self, _: &Context, rules: Arc<Object<ZoneRules>>) -> Result<Status, Failure> {
        let (path, text, found) = (self.path(rules.key()), text(&rules.spec), rules.spec.statements.len());
        if found > self.max_statements {
            let message = format!("{found} statements, but there is room for {} only", self.max_statements);
            return Err(Failure::new(message).with_code("TABLE_FULL").permanent());
        }
        if fs::read_to_string(&path).await.is_ok_and(|there| there == text) {
            return Ok(Status::applied());
        }
        self.replace(&path, &text).await?;
        Ok(Status::applied())
    }

    async fn remove(&self, _: &Context, rules: Arc<Object<ZoneRules>>) -> Result<(), Failure> {
        match fs::remove_file(self.path(rules.key())).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn observe(&self, _: &Context, rules: Arc<Object<ZoneRules>>) -> Result<Observation, Failure> {
        match fs::read_to_string(self.path(rules.key())).await {
            Ok(there) if there == text(&rules.spec) => Ok(Observation::InSync),
            Ok(_) => Ok(Observation::Drifted("somebody changed the file".to_owned())),
            Err(error) => Ok(Observation::Drifted(error.to_string())),
        }
    }
}

/// What is in the file.
fn text(rules: &ZoneRules) -> String {
    let head = format!("# zone {}\n", rules.zone);
    rules.statements.iter().fold(head, |text, statement| text + statement + "\n")
}
