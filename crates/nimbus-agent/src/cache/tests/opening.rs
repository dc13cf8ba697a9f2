//! What is found at a path.

use std::{fs, io, path::Path, time::SystemTime};

use nimbus_core::AgentId;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::cache::{
    error::CacheError,
    keeper::Keeper,
    ledger::Ledger,
    record::{FORMAT, Header},
    tests::{Place, agent, at, file_with, item, names_in, open, place, put, reload},
};

const HEADER: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("header");

fn refusal(path: &Path) -> String {
    match Keeper::open(path, &agent(), false) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error.to_string(),
    }
}

/// Opens a file that must be moved aside for a reason, and checks that it is as it was, and that a new one works.
async fn check_aside(path: &Path, reason: &str) {
    let before = fs::read(path).unwrap();
    let (keeper, memory, aside) = open(path);
    let aside = aside.expect("it was moved aside");
    assert!(aside.reason.contains(reason), "{:?} does not say {reason:?}", aside.reason);
    assert!(fs::read(&aside.path).unwrap() == before, "it was changed");
    assert_eq!(memory.position, None);
    keeper.save(put(3, &[item("new", 1)]));
    keeper.barrier().await.unwrap();
    keeper.close().await;
    assert_eq!(reload(path).await.position, at(3));
}

#[tokio::test]
async fn a_new_file_is_made_where_there_is_none() {
    let Place { directory, path } = place();
    let (keeper, memory, aside) = open(&path);
    assert_eq!((memory.desired.len(), memory.position, aside), (0, None, None));
    keeper.barrier().await.unwrap();
    keeper.close().await;
    assert_eq!(names_in(directory.path()), ["memory.db", "memory.db.lock"]);
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let Place { directory: _directory, path } = place();
    file_with(&path, []).await;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn an_empty_file_is_a_new_one() {
    let Place { directory: _directory, path } = place();
    fs::write(&path, "").unwrap();
    let (keeper, _, aside) = open(&path);
    assert_eq!(aside, None);
    keeper.save(put(1, &[]));
    keeper.close().await;
    assert_eq!(reload(&path).await.position, at(1));
}

#[tokio::test]
async fn a_file_of_another_kind_is_moved_aside() {
    let Place { directory: _directory, path } = place();
    for text in ["x", "certainly not a database\n"] {
        fs::write(&path, text).unwrap();
        check_aside(&path, "").await;
    }
    fs::write(&path, "certainly not a database\n".repeat(10_000)).unwrap();
    check_aside(&path, "magic number").await;
}

#[tokio::test]
async fn a_database_of_another_program_is_moved_aside() {
    let Place { directory: _directory, path } = place();
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction
        .open_table(TableDefinition::<u64, u64>::new("theirs"))
        .unwrap()
        .insert(1, 2)
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    check_aside(&path, "another program's file").await;

    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.delete_table(HEADER).unwrap();
    transaction
        .open_table(TableDefinition::<u64, u64>::new("header"))
        .unwrap()
        .insert(1, 2)
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    check_aside(&path, "another program's file").await;
}

#[tokio::test]
async fn a_database_that_was_never_written_is_moved_aside() {
    let Place { directory: _directory, path } = place();
    drop(Database::create(&path).unwrap());
    check_aside(&path, "another program's file").await;
}

#[tokio::test]
async fn the_memory_of_another_agent_is_moved_aside() {
    let Place { directory: _directory, path } = place();
    file_with(&path, [put(1, &[item("a", 1)])]).await;
    let other = AgentId::new("edge-2").unwrap();
    let (keeper, memory, aside) = Keeper::open(&path, &other, false).unwrap();
    assert_eq!(memory.position, None);
    assert_eq!(aside.unwrap().reason, "it belongs to agent \"edge-1\", this is edge-2");
    keeper.close().await;
}

#[tokio::test]
async fn a_memory_in_another_format_is_moved_aside() {
    let Place { directory: _directory, path } = place();
    for format in [0, FORMAT + 1, u32::MAX] {
        file_with(&path, [put(1, &[item("a", 1)])]).await;
        let mut header = Header::new(&agent(), 1, None, &Ledger::default());
        header.format = format;
        rewrite_header(&path, |_| header.to_bytes());
        check_aside(&path, &format!("the format is {format}, this agent reads 1")).await;
    }
}

#[tokio::test]
async fn rows_that_do_not_belong_to_the_header_are_moved_aside() {
    let Place { directory: _directory, path } = place();
    file_with(&path, [put(1, &[item("a", 1), item("b", 1)])]).await;
    let header = Header::new(&agent(), 1, at(1), &Ledger::default()).saved(SystemTime::UNIX_EPOCH, None);
    rewrite_header(&path, |_| header.to_bytes());
    check_aside(&path, "the rows are not those that the header was written with").await;
}

/// Changes the header through redb, so that all of redb's checksums are right.
fn rewrite_header(path: &Path, change: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    let database = Database::open(path).unwrap();
    let before = {
        let table = database.begin_read().unwrap().open_table(HEADER).unwrap();
        table.iter().unwrap().next().unwrap().unwrap().1.value().to_vec()
    };
    let transaction = database.begin_write().unwrap();
    transaction.open_table(HEADER).unwrap().insert("header", &*change(before)).unwrap();
    transaction.commit().unwrap();
}

#[tokio::test]
async fn a_file_that_somebody_has_open_is_refused_and_stays() {
    let Place { directory: _directory, path } = place();
    file_with(&path, [put(1, &[item("a", 1)])]).await;
    let (keeper, ..) = open(&path);
    let refused = refusal(&path);
    assert!(refused.contains("memory.db is in use by another process (hint: "), "{refused}");
    keeper.close().await;

    let database = Database::open(&path).unwrap();
    let refused = refusal(&path);
    assert!(refused.contains("memory.db is in use by another process (hint: "), "{refused}");
    drop(database);
    assert_eq!(reload(&path).await.position, at(1));
}

#[tokio::test]
async fn two_agents_that_begin_at_once_do_not_both_get_the_path() {
    let Place { directory: _directory, path } = place();
    let (keeper, ..) = open(&path);
    assert!(refusal(&path).contains("in use by another process"));
    keeper.close().await;
}

#[tokio::test]
async fn a_missing_directory_is_named_with_what_to_do() {
    let Place { directory, .. } = place();
    let path = directory.path().join("missing/memory.db");
    let expected = format!(
        "the directory {} does not exist (hint: create it, or choose another path)",
        directory.path().join("missing").display()
    );
    assert_eq!(refusal(&path), expected);

    fs::write(directory.path().join("file"), "").unwrap();
    assert!(matches!(
        Keeper::open(&directory.path().join("file/memory.db"), &agent(), false),
        Err(CacheError::NoDirectory(_))
    ));
}

#[tokio::test]
async fn what_is_not_a_file_is_refused_and_stays() {
    let Place { directory, .. } = place();
    let refused = refusal(directory.path());
    assert!(refused.contains("is not a file (hint: give the path of a file"), "{refused}");
    assert!(refusal(Path::new("/")).contains("/ is not a file"));
    assert!(refusal(Path::new("/dev/null")).contains("/dev/null is not a file"));
    assert!(directory.path().is_dir());
}

#[test]
fn an_agent_that_may_not_is_told_what_to_do() {
    for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
        let error = CacheError::new(Path::new("/var/lib/memory.db"), kind.into());
        assert_eq!(
            error.to_string(),
            "no permission to read and write /var/lib/memory.db (hint: it must belong to the user that the agent runs as)"
        );
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_stays_when_the_file_is_made_anew() {
    let Place { directory, path } = place();
    let link = directory.path().join("link.db");
    fs::write(&path, "").unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    file_with(&link, [put(1, &[item("a", 1)])]).await;
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(reload(&path).await.position, at(1));
}
