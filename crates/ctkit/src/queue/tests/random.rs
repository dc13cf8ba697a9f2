//! Anything, in any order: the queue does what the model does.

use nimbus_core::{Backoff, Failure};
use proptest::prelude::*;
use tokio::time::Instant;

use crate::queue::{
    Cause, Config, Counts, Debounce, Finish, Group, Lane, Policy, Queue, Rate,
    tests::{
        model::{Item, Model, Purse, Track},
        scene::ms,
    },
};

#[derive(Debug, Clone)]
enum Op {
    Add {
        lane: u16,
        key: u8,
        group: Option<u16>,
        cause: Cause,
    },
    AddAfter {
        lane: u16,
        key: u8,
        delay: u64,
    },
    Next,
    Finish {
        which: usize,
        finish: Finish,
        random: f64,
    },
    Abandon {
        which: usize,
    },
    Pause {
        lane: u16,
        key: u8,
    },
    Resume {
        lane: u16,
        key: u8,
    },
    PauseLane {
        lane: u16,
        paused: bool,
    },
    Close {
        group: u16,
        closed: bool,
    },
    Forget {
        lane: u16,
        key: u8,
    },
    ForgetGroup {
        group: u16,
    },
    Tick {
        millis: u64,
    },
    /// To the next deadline, exactly.
    Skip,
}

/// A queue and its model, which are told the same.
struct Pair {
    queue: Queue<u8>,
    lanes: Vec<Lane>,
    model: Model,
    running: Vec<(u16, u8)>,
    now: Instant,
}

const LANES: u16 = 3;
const KEYS: u8 = 5;
const GROUPS: u16 = 2;

fn policies() -> [Policy; LANES as usize] {
    let policy = Policy {
        concurrency: 2,
        backoff: Backoff { base: ms(4), max: ms(40) },
        quarantine: Backoff { base: ms(8), max: ms(80) },
        poison_after: 2,
        ..Policy::default()
    };
    let trailing = Some(Debounce { quiet: ms(10), max_wait: ms(25), leading: false });
    let leading = Some(Debounce { quiet: ms(6), max_wait: ms(15), leading: true });
    let rate = Some(Rate { interval: ms(5), burst: 2 });
    [
        Policy { debounce: trailing, ..policy.clone() },
        Policy { debounce: leading, concurrency: 3, ..policy.clone() },
        Policy { rate, ..policy },
    ]
}

fn finishes() -> impl Strategy<Value = Finish> {
    let failure = || Failure::new("no");
    prop_oneof![
        3 => Just(Finish::Done),
        2 => (0_u64..40).prop_map(|delay| Finish::RequeueAfter(ms(delay))),
        3 => Just(Finish::Retry(failure())),
        1 => (0_u64..40).prop_map(move |delay| Finish::Retry(failure().retry_after(ms(delay)))),
        1 => Just(Finish::Permanent(failure())),
        2 => proptest::option::of(0_u64..40).prop_map(|delay| Finish::Waiting(delay.map(ms))),
        2 => Just(Finish::Panicked("no".into())),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    let causes = proptest::sample::select(vec![
        Cause::Boot,
        Cause::Edited,
        Cause::Touched,
        Cause::Referent,
        Cause::Status,
        Cause::Requeued,
        Cause::Resync,
        Cause::Manual,
    ]);
    let (lane, key, group) = (0..LANES, 0..KEYS, 0..GROUPS);
    let at = (lane.clone(), key);
    prop_oneof![
        12 => (at.clone(), proptest::option::of(group.clone()), causes)
            .prop_map(|((lane, key), group, cause)| Op::Add { lane, key, group, cause }),
        2 => (at.clone(), 0_u64..40).prop_map(|((lane, key), delay)| Op::AddAfter { lane, key, delay }),
        14 => Just(Op::Next),
        8 => (any::<usize>(), finishes(), proptest::sample::select(vec![0.0, 0.5, 1.0]))
            .prop_map(|(which, finish, random)| Op::Finish { which, finish, random }),
        1 => any::<usize>().prop_map(|which| Op::Abandon { which }),
        1 => at.clone().prop_map(|(lane, key)| Op::Pause { lane, key }),
        2 => at.clone().prop_map(|(lane, key)| Op::Resume { lane, key }),
        1 => (lane, any::<bool>()).prop_map(|(lane, paused)| Op::PauseLane { lane, paused }),
        2 => (group.clone(), any::<bool>()).prop_map(|(group, closed)| Op::Close { group, closed }),
        1 => at.prop_map(|(lane, key)| Op::Forget { lane, key }),
        1 => group.prop_map(|group| Op::ForgetGroup { group }),
        5 => (0_u64..30).prop_map(|millis| Op::Tick { millis }),
        4 => Just(Op::Skip),
    ]
}

// === impl Pair ===

impl Pair {
    fn new() -> Self {
        let rate = Some(Rate { interval: ms(1), burst: 3 });
        let config = Config { concurrency: 5, rate, boot_share: 3 };
        let (mut queue, now) = (Queue::new(config.clone()), Instant::now());
        let lanes = policies().map(|policy| queue.lane(policy)).to_vec();
        let model = Model {
            purse: Purse::new(config.rate, now),
            config,
            lanes: policies().map(|policy| Track::new(policy, now)).into(),
            items: vec![],
            closed: [].into(),
        };
        Self { queue, lanes, model, running: vec![], now }
    }

    fn lane(&self, lane: u16) -> Lane {
        self.lanes[usize::from(lane)]
    }

    fn apply(&mut self, op: Op) {
        let now = self.now;
        match op {
            Op::Add { lane, key, group, cause } => {
                match group {
                    Some(group) => self.queue.add_in(Group(group), self.lane(lane), key, cause, now),
                    None => self.queue.add(self.lane(lane), key, cause, now),
                }
                let (item, policy) = self.model.enter(lane, key);
                item.group = group.or(item.group);
                item.wake(cause, policy, now);
            }
            Op::AddAfter { lane, key, delay } => {
                self.queue.add_after(self.lane(lane), key, ms(delay), now);
                let (item, policy) = self.model.enter(lane, key);
                item.wake_after(ms(delay), policy, now);
            }
            Op::Next => drop(self.next()),
            Op::Finish { which, finish, random } => {
                if let Some((lane, key)) = self.take(which) {
                    let (item, policy) = self.model.enter(lane, key);
                    item.finish(&finish, policy, now, random);
                    let state = self.queue.finish(self.lane(lane), &key, finish, now, random).unwrap();
                    self.model.sweep(now, |item| (item.lane, item.key) == (lane, key));
                    let expected = self.model.items.iter().find(|item| (item.lane, item.key) == (lane, key));
                    assert_eq!(state, expected.and_then(|item| self.model.state(item, now)));
                }
            }
            Op::Abandon { which } => {
                if let Some((lane, key)) = self.take(which) {
                    self.queue.abandon(self.lane(lane), &key, now).unwrap();
                    self.model.enter(lane, key).0.abandon();
                    self.model.sweep(now, |item| (item.lane, item.key) == (lane, key));
                }
            }
            Op::Pause { lane, key } => {
                self.queue.pause(self.lane(lane), &key, now);
                self.model.enter(lane, key).0.paused = true;
            }
            Op::Resume { lane, key } => {
                let item = self.model.find(lane, key);
                let was_paused = item.is_some_and(|item| std::mem::take(&mut item.paused));
                assert_eq!(self.queue.resume(self.lane(lane), &key, now), was_paused);
                self.model.sweep(now, |item| (item.lane, item.key) == (lane, key));
            }
            Op::PauseLane { lane, paused } => {
                let id = self.lane(lane);
                if paused {
                    self.queue.pause_lane(id);
                } else {
                    self.queue.resume_lane(id);
                }
                self.model.lanes[usize::from(lane)].paused = paused;
            }
            Op::Close { group, closed: true } => {
                self.queue.close_group(Group(group), now);
                self.model.closed.insert(group);
                self.model.sweep(now, |item| item.group == Some(group));
            }
            Op::Close { group, closed: false } => {
                self.queue.open_group(Group(group), now);
                self.model.closed.remove(&group);
                self.model.sweep(now, |item| item.group == Some(group));
            }
            Op::Forget { lane, key } => {
                self.queue.forget(self.lane(lane), &key, now);
                if let Some(item) = self.model.find(lane, key) {
                    item.forget();
                }
                self.model.sweep(now, |item| (item.lane, item.key) == (lane, key));
            }
            Op::ForgetGroup { group } => {
                self.queue.forget_group(Group(group), now);
                let members = self.model.items.iter_mut().filter(|item| item.group == Some(group));
                members.for_each(Item::forget);
                self.model.sweep(now, |item| item.group == Some(group));
            }
            Op::Tick { millis } => self.now += ms(millis),
            Op::Skip => self.now = self.queue.deadline().unwrap_or(now).max(now),
        }
    }

    fn take(&mut self, which: usize) -> Option<(u16, u8)> {
        let count = self.running.len();
        (count > 0).then(|| self.running.swap_remove(which % count))
    }

    fn next(&mut self) -> Option<(u16, u8)> {
        let now = self.now;
        let job = self.queue.next(now);
        self.model.sweep(now, |_| true);
        let handed = job.map(|job| {
            let lane = u16::try_from(self.lanes.iter().position(|lane| *lane == job.lane).unwrap()).unwrap();
            let expected = self.model.start(lane, job.key, now);
            assert_eq!((job.causes, job.attempt), expected);
            self.running.push((lane, job.key));
            (lane, job.key)
        });
        if handed.is_none() {
            assert_eq!(self.model.eligible(now), []);
        }
        self.check();
        handed
    }

    /// Compares everything that can be seen. What is due must be settled: a call of `next` has just been made.
    fn check(&mut self) {
        let now = self.now;
        assert_eq!(self.queue.deadline().map(|at| at.max(now)), self.model.deadline(now));
        assert_eq!(self.queue.len(), self.model.items.len());
        let mut totals = Counts::default();
        for item in &self.model.items {
            let view = self.queue.get(self.lane(item.lane), &item.key).expect("the model knows it");
            let state = self.model.state(item, now).expect("it was swept");
            assert_eq!(view.state, state);
            assert_eq!((view.attempts, view.group), (item.attempts, item.group.map(Group)));
            *totals.of(state) += 1;
        }
        assert_eq!(self.queue.totals(), totals);
        for group in 0..GROUPS {
            let members = self.model.items.iter().filter(|item| item.group == Some(group));
            let running = members.filter(|item| item.run.is_some()).count();
            assert_eq!(self.queue.running_in(Group(group)), running);
        }
    }

    /// Stops nothing any longer, and lets everything succeed.
    fn settle(&mut self) {
        (0..LANES).for_each(|lane| self.apply(Op::PauseLane { lane, paused: false }));
        (0..GROUPS).for_each(|group| self.apply(Op::Close { group, closed: false }));
        for (lane, key) in (0..LANES).flat_map(|lane| (0..KEYS).map(move |key| (lane, key))) {
            self.apply(Op::Resume { lane, key });
        }
        loop {
            while !self.running.is_empty() {
                self.apply(Op::Finish { which: 0, finish: Finish::Done, random: 0.0 });
            }
            if self.next().is_none() {
                let Some(deadline) = self.queue.deadline() else { break };
                assert!(deadline > self.now, "nothing is given at the deadline");
                self.now = deadline;
            }
        }
        self.now += ms(1_000);
        assert_eq!(self.next(), None);
        let totals = self.queue.totals();
        assert_eq!(self.queue.len(), totals.failed + totals.poisoned + totals.waiting, "something was lost");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn the_queue_does_what_the_model_does(ops in proptest::collection::vec(ops(), 1..250)) {
        let mut pair = Pair::new();
        for op in ops {
            pair.apply(op);
        }
        pair.settle();
    }
}
