//! Changes that depend on what is there, made by many at once.

use std::sync::Arc;

use ctkit::{CommitError, Draft, Editor, Effect, Op, Source, Store};
use nimbus_core::{Generation, PublisherId};
use nimbus_store::StatusDraft;
use parking_lot::Mutex;

use crate::{
    faulty::Faulty,
    kinds::Policy,
    net::Daemon,
    world::{delete, finalizers, key, put, record},
};

const WRITERS: u32 = 8;

const TURNS: u32 = 25;

fn editor<S: Source>(source: S) -> Editor<S> {
    Editor::new(source, PublisherId::new("user").unwrap())
}

/// Appends a mark of its own: as many as there are writers and turns, or one of them was lost.
async fn mark(editor: &Editor<impl Source>, mark: String) {
    editor
        .update(&key::<Policy>("p"), |policy: &mut Policy| policy.zones.push(mark.clone()))
        .await
        .unwrap();
}

/// Eight editors with a copy of their own each, and their turns.
async fn count_up(store: &Store, connect: impl Fn() -> Box<dyn Fn(u32) -> tokio::task::JoinHandle<()>>) {
    put(store, "p", &[], "").await;
    let start = connect();
    let writers: Vec<_> = (0..WRITERS).map(start).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let mut marks = policy(store).zones;
    marks.sort();
    marks.dedup();
    assert_eq!(marks.len(), (WRITERS * TURNS) as usize, "no edit was lost, and none was made twice");
    assert_eq!(record(store, "p").generation(), Generation(u64::from(1 + WRITERS * TURNS)), "each is one change");
}

fn writer<S: Source>(source: S, id: u32) -> tokio::task::JoinHandle<()> {
    let editor = editor(source);
    tokio::spawn(async move {
        for turn in 0..TURNS {
            mark(&editor, format!("{id}-{turn}")).await;
        }
    })
}

fn policy(store: &Store) -> Policy {
    let record = record(store, "p");
    let any = <prost_types::Any as prost::Message>::decode(&*record.spec_bytes()).unwrap();
    any.to_msg::<Policy>().unwrap()
}

#[tokio::test(start_paused = true)]
async fn of_many_who_edit_one_object_in_process_none_is_lost() {
    let store = Store::in_memory();
    let near = store.clone();
    count_up(&store, move || {
        let near = near.clone();
        Box::new(move |id| writer(near.clone(), id))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn of_many_who_edit_one_object_of_a_daemon_none_is_lost() {
    // What users write one by one, nobody ever syncs.
    let daemon = Daemon::start(|config| config.assume_complete = true);
    let remotes: Arc<Vec<_>> = Arc::new((0..WRITERS).map(|_| daemon.remote()).collect());
    count_up(&daemon.store, move || {
        let remotes = remotes.clone();
        Box::new(move |id| writer(remotes[id as usize].clone(), id))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_edit_leaves_all_but_the_spec_as_it_is() {
    let store = Store::in_memory();
    let editor = editor(store.clone());
    let draft = Draft::new("p", Policy { zones: vec!["a".into()], text: "old".into() })
        .label("team", "net")
        .annotation("note", "mine")
        .for_selector("zone in (a,b)")
        .needs(&key::<Policy>("other"));
    assert!(editor.create(draft.clone()).await.unwrap());
    assert!(!editor.create(draft).await.unwrap(), "there is one already");
    finalizers(&store, "p", &["somebody"], &[]).await;
    let before = record(&store, "p").content();

    editor
        .update(&key::<Policy>("p"), |policy: &mut Policy| policy.text = "new".into())
        .await
        .unwrap();

    let after = record(&store, "p").content();
    assert_eq!(policy(&store).text, "new");
    assert_eq!(policy(&store).zones, ["a"]);
    assert_eq!(
        (after.uid, after.labels, after.annotations, after.audience, after.refs, after.finalizers),
        (before.uid, before.labels, before.annotations, before.audience, before.refs, before.finalizers),
    );
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_changes_nothing_writes_nothing() {
    let store = Store::in_memory();
    put(&store, "p", &["a"], "").await;
    let before = store.snapshot().revision();
    editor(store.clone()).update(&key::<Policy>("p"), |_: &mut Policy| {}).await.unwrap();
    assert_eq!(store.snapshot().revision(), before);
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_what_is_not_there_or_goes_says_so() {
    let store = Store::in_memory();
    let editor = editor(store.clone());
    let p = key::<Policy>("p");
    let edit = |policy: &mut Policy| policy.text = "new".into();
    assert_eq!(editor.update(&p, edit).await, Err(CommitError::NotFound(p.clone())));

    put(&store, "p", &["a"], "").await;
    finalizers(&store, "p", &["somebody"], &[]).await;
    editor.update(&p, edit).await.unwrap();
    delete(&store, "p").await;
    // The editor hears of it a moment later, and the source refuses what it wants until then.
    assert_eq!(editor.update(&p, |policy: &mut Policy| policy.text.push('!')).await, Err(CommitError::NotFound(p)));
}

/// Eight waits of any length could all be short, and then a watch that was two seconds behind was not waited for.
#[tokio::test(start_paused = true)]
async fn whoever_was_behind_decides_again_on_what_is_there() {
    let store = Store::in_memory();
    put(&store, "p", &["a"], "old").await;
    let slow = Faulty::lagging(&store, std::time::Duration::from_secs(5));
    let editor = editor(slow);
    // It has read this.
    editor.write(&key::<Policy>("p"), |_| None).await.unwrap();
    put(&store, "p", &["a"], "newer").await;

    let seen = Mutex::new(Vec::new());
    let edit = |policy: &mut Policy| {
        seen.lock().push(policy.text.clone());
        policy.text.push_str(" and mine");
    };
    editor.update(&key::<Policy>("p"), edit).await.unwrap();

    let seen = seen.into_inner();
    assert_eq!((seen.first().unwrap().as_str(), seen.last().unwrap().as_str()), ("old", "newer"));
    assert_eq!(policy(&store).text, "newer and mine");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_no_change_explains_is_given_back() {
    let store = Store::in_memory();
    put(&store, "p", &["a"], "").await;
    let ahead = |_: Option<&ctkit::Record>| {
        let observed = Generation(7);
        Some(Op::Status(StatusDraft { key: key::<Policy>("p"), status: bytes::Bytes::new(), observed }))
    };
    let refused = editor(store.clone()).write(&key::<Policy>("p"), ahead).await.unwrap_err();
    assert!(matches!(refused, CommitError::Conflict { .. } | CommitError::Invalid { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn an_edit_changes_only_the_object_that_it_was_shown() {
    let store = Store::in_memory();
    let other = |_: Option<&ctkit::Record>| Some(Op::Delete(key::<Policy>("other")));
    let refused = editor(store).write(&key::<Policy>("p"), other).await.unwrap_err();
    assert!(refused.to_string().contains("hint: edit that one"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn what_is_somebody_elses_is_edited_only_by_taking_it_over() {
    let store = Store::in_memory();
    put(&store, "p", &["a"], "").await;
    let stranger = Editor::new(store.clone(), PublisherId::new("stranger").unwrap());
    let edit = |policy: &mut Policy| policy.text = "mine".into();
    let refused = stranger.update(&key::<Policy>("p"), edit).await.unwrap_err();
    assert!(matches!(refused, CommitError::Foreign { .. }), "{refused}");

    stranger.taking_over().update(&key::<Policy>("p"), edit).await.unwrap();
    assert_eq!(record(&store, "p").manager().as_str(), "stranger");
}

#[tokio::test(start_paused = true)]
async fn a_delete_is_decided_on_what_is_there_as_well() {
    let store = Store::in_memory();
    put(&store, "p", &["a"], "").await;
    let editor = editor(store.clone());
    let p = key::<Policy>("p");
    let gone = editor
        .write(&p, |found| found.map(|record| Op::Delete(record.key().clone())))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(gone.outcomes[0].effect, Effect::Deleted);
    let again = editor
        .write(&p, |found| found.map(|record| Op::Delete(record.key().clone())))
        .await
        .unwrap();
    assert_eq!(again, None, "it has read its own write");
}
