//! Runs of keys that the queue does not know.

use tokio::time::Instant;

use crate::queue::{Cause, Config, Finish, Group, Policy, Queue, State};

#[test]
fn runs_of_unknown_keys_count_like_others_and_become_like_others_when_something_happens() {
    let mut queue = Queue::new(Config { concurrency: 3, ..Config::default() });
    let lane = queue.lane(Policy { concurrency: 2, ..Policy::default() });
    let (group, now) = (Group(7), Instant::now());
    assert!(queue.is_free(lane));
    assert_eq!(queue.begin_apart(lane, group, 9), 2, "as many as the lane allows");
    assert_eq!((queue.counts(lane).running, queue.running_in(group)), (2, 2));
    assert!(!queue.is_idle());
    queue.add(lane, "known", Cause::Edited, now);
    assert!(!queue.is_free(lane));
    assert_eq!(queue.next(now), None, "there is no room");

    queue.adopt(lane, group, "adopted", Cause::Boot, now);
    assert_eq!((queue.counts(lane).running, queue.running_in(group)), (2, 2));
    queue.add_in(group, lane, "adopted", Cause::Edited, now);
    queue.end_apart(lane, group, 1);
    assert_eq!(queue.next(now).unwrap().key, "known");
    assert_eq!(queue.next(now), None, "there is no room, and what was adopted is running");
    assert_eq!(queue.finish(lane, &"adopted", Finish::Done, now, 0.5), Ok(Some(State::Ready)));
    let again = queue.next(now).unwrap();
    assert_eq!((again.key, again.causes), ("adopted", Cause::Edited.into()));
    assert_eq!(queue.finish(lane, &"adopted", Finish::Done, now, 0.5), Ok(None));
    assert_eq!(queue.finish(lane, &"known", Finish::Done, now, 0.5), Ok(None));
    assert!(queue.is_idle() && queue.is_empty());
    queue.close_group(group, now);
    assert_eq!(queue.begin_apart(lane, group, 9), 0);
}
