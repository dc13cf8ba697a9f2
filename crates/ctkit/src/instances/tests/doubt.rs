//! What the core makes of answers that come late, twice or never.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use nimbus_store::Guard;

use crate::{
    Acquired, CommitError, Held, InstancesConfig, Shard,
    instances::{
        assignment::Assignment,
        call::{Answer, Call, Topic},
        view::Seat,
    },
};

const TTL: Duration = Duration::from_secs(15);

/// The name that follows from the seed 1.
const ME: &str = "0000000000000001";

/// One instance, and a lease table that says what a test tells it to.
struct Script {
    assignment: Assignment,
    now: Instant,
}

#[test]
fn an_answer_that_comes_too_late_gives_nothing() {
    let mut script = Script::joined(1, Vec::new());
    script.expect(Topic::Acquire(Shard::new(0)));
    script.now += TTL - TTL / 5;
    script.answer(Topic::Acquire(Shard::new(0)), granted("a.shard-0", 1));
    assert_eq!(script.held(), []);
}

#[test]
fn a_lease_is_trusted_from_when_its_renewal_was_sent() {
    let mut script = Script::holding(1);
    script.expect(Topic::Renew);
    let sent_at = script.now;
    script.now += Duration::from_secs(2);
    script.answer(Topic::Renew, Answer::Renewed(Vec::new()));
    assert_eq!(script.assignment.view().seats[0].as_ref().unwrap().until, Some(sent_at + (TTL - TTL / 5)));
}

#[test]
fn a_lease_that_is_named_as_lost_is_not_touched_any_more() {
    let mut script = Script::holding(2);
    script.expect(Topic::Renew);
    script.answer(Topic::Renew, Answer::Renewed(vec!["a.shard-1".into()]));
    assert_eq!(script.held(), [Shard::new(0)]);
}

#[test]
fn only_a_higher_token_in_a_list_means_that_a_shard_is_lost() {
    let mut script = Script::holding(1);
    script.expect(Topic::Look);
    script.answer(Topic::Look, Answer::Listed(vec![held("a.shard-0", "x", 1)]));
    assert_eq!(script.held(), [Shard::new(0)], "a list from before we were given it");
    script.expect(Topic::Look);
    script.answer(Topic::Look, Answer::Listed(vec![held("a.shard-0", "x", 3)]));
    assert_eq!(script.held(), []);
}

#[test]
fn what_was_given_to_us_unheard_is_taken_up_or_given_back() {
    let listed = vec![held("a.member-x", "x", 1), held("a.shard-0", ME, 5), held("a.shard-1", ME, 5)];
    let mut script = Script::joined(2, listed);
    let calls = script.assignment.poll(script.now);
    let taken = calls.iter().filter(|(topic, _)| matches!(topic, Topic::Acquire(_))).count();
    let back = calls
        .iter()
        .find_map(|(_, call)| if let Call::Release(back) = call { Some(back.len()) } else { None });
    assert_eq!((taken, back), (1, Some(1)));
}

#[test]
fn a_token_that_a_lost_call_may_still_give_back_is_not_relied_on() {
    // A release that nobody answers is still on its way when the shard becomes ours again. With the same token, it would
    // take away what we believe to have, and somebody else could have it too.
    let mut script = Script::holding(2);
    script.expect(Topic::Look);
    script.answer(Topic::Look, Answer::Listed(vec![held("a.member-x", "x", 1)]));
    let view = script.assignment.view();
    let index = view.seats.iter().position(|seat| seat.as_ref().unwrap().draining).unwrap();
    let (shard, name) = (Shard::at(index), format!("a.shard-{index}"));
    script.assignment.drained(shard, view.seats[index].as_ref().unwrap().number, script.now);
    assert!(!script.held().contains(&shard));
    script.expect(Topic::Release);
    script.fail(Topic::Release);
    script.expect(Topic::Release);
    script.answer(Topic::Release, Answer::Released);

    for (token, relied_on) in [(2, false), (3, true)] {
        script.expect(Topic::Look);
        script.answer(Topic::Look, Answer::Listed(Vec::new()));
        script.expect(Topic::Acquire(shard));
        script.answer(Topic::Acquire(shard), granted(&name, token));
        assert_eq!(script.held().contains(&shard), relied_on);
        if !relied_on {
            let Call::Release(back) = script.expect(Topic::Release) else { panic!("not a release") };
            assert_eq!(back, [Guard { lease: name.as_str().into(), token }]);
            script.answer(Topic::Release, Answer::Released);
        }
    }
}

// === impl Script ===

impl Script {
    #[expect(clippy::disallowed_methods, reason = "any instant will do as the first one")]
    fn new(shards: u32) -> Self {
        let now = Instant::now();
        let config = InstancesConfig { shards, ..InstancesConfig::new("a") };
        Self { assignment: Assignment::new(Arc::new(config.check(1).unwrap()), now), now }
    }

    /// A member that has looked around once and seen this.
    fn joined(shards: u32, listed: Vec<Held>) -> Self {
        let mut script = Self::new(shards);
        script.expect(Topic::Join);
        script.answer(Topic::Join, granted(&format!("a.member-{ME}"), 1));
        script.expect(Topic::Look);
        script.answer(Topic::Look, Answer::Listed(listed));
        script
    }

    /// A member that has all shards, with the token 2.
    fn holding(shards: u32) -> Self {
        let mut script = Self::joined(shards, Vec::new());
        let calls = script.assignment.poll(script.now);
        for (topic, call) in calls {
            let Call::Acquire(name) = call else { panic!("{call:?} out of turn") };
            script.answer(topic, granted(&name, 2));
        }
        assert_eq!(script.held().len(), shards as usize);
        script
    }

    /// Lets time pass until this is asked. Renewals succeed meanwhile, and everything else fails.
    fn expect(&mut self, topic: Topic) -> Call {
        for _ in 0..100 {
            let mut found = None;
            for (asked, call) in self.assignment.poll(self.now) {
                match call {
                    call if asked == topic => found = Some(call),
                    Call::Renew(_) => self.answer(asked, Answer::Renewed(Vec::new())),
                    _ => self.fail(asked),
                }
            }
            if let Some(call) = found {
                return call;
            }
            self.now = self.now.max(self.assignment.due().expect("something is due"));
        }
        panic!("{topic:?} was never asked");
    }

    fn answer(&mut self, topic: Topic, answer: Answer) {
        self.assignment.answer(topic, Ok(answer), self.now, 0.0);
    }

    fn fail(&mut self, topic: Topic) {
        self.assignment
            .answer(topic, Err(CommitError::Unavailable("no answer".into())), self.now, 0.0);
    }

    /// Shards that may be acted on.
    fn held(&self) -> Vec<Shard> {
        let seats = self.assignment.view().seats;
        let held = |seat: &Option<Seat>| seat.as_ref().is_some_and(|seat| seat.until > Some(self.now));
        seats
            .iter()
            .enumerate()
            .filter(|(_, seat)| held(seat))
            .map(|(index, _)| Shard::at(index))
            .collect()
    }
}

fn held(name: &str, holder: &str, token: u64) -> Held {
    Held { name: name.into(), holder: holder.into(), token, expires_in: TTL }
}

fn granted(name: &str, token: u64) -> Answer {
    Answer::Acquired(Acquired { granted: true, lease: held(name, ME, token) })
}
