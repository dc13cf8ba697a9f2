//! An agent that is killed at any moment.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use crate::cache::tests::{Place, item, open, place, put, reload};

/// Where the child of the test below finds the file. Not set when the tests run.
const CHILD: &str = "NIMBUS_CACHE_TEST_CHILD";

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Begins where the file ends, and tells its parent what is on disk, until it is killed.
#[tokio::test]
async fn child_that_writes_until_it_is_killed() {
    let Some(path) = env::var_os(CHILD) else { return };
    let (keeper, memory, aside) = open(Path::new(&path));
    assert_eq!(aside, None);
    let first = memory.position.map_or(0, |position| position.revision.0);
    for revision in first + 1.. {
        keeper.save(put(revision, &NAMES.map(|name| item(name, revision))));
        keeper.barrier().await.unwrap();
        writeln!(std::io::stdout(), "\ndurable {revision}").unwrap();
    }
}

#[tokio::test]
async fn an_agent_that_is_killed_at_any_moment_finds_all_that_was_on_disk() {
    let Place { directory: _directory, path } = place();
    let mut durable = 0;
    for round in 0..40_usize {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["cache::tests::crash::child_that_writes_until_it_is_killed", "--exact", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let told = lines.filter_map(|line| line.strip_prefix("durable ")?.parse::<u64>().ok());
        // Whatever it does after that line is cut short.
        let mut told = told.skip(round % 7);
        durable = told.next().unwrap_or(durable).max(durable);
        child.kill().unwrap();
        durable = told.last().unwrap_or(durable).max(durable);
        child.wait().unwrap();

        // The next child finds the file as the kill left it.
        let copy = path.with_extension("copy");
        fs::copy(&path, &copy).unwrap();
        let memory = reload(&copy).await;
        let revision = memory.position.unwrap().revision.0;
        assert!(revision == durable || revision == durable + 1, "{revision} after {durable}");
        assert_eq!(memory.desired.into_values().collect::<Vec<_>>(), NAMES.map(|name| item(name, revision)));
        durable = revision;
    }
}
