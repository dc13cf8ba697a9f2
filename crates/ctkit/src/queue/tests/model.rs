//! The queue as a list that is searched from end to end: slow, and obviously right.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

use crate::queue::{Cause, Causes, Config, Finish, Policy, Rate, State, case::Hold};

/// All keys, and all rules.
pub(crate) struct Model {
    pub(crate) config: Config,
    pub(crate) purse: Purse,
    pub(crate) lanes: Vec<Track>,
    pub(crate) items: Vec<Item>,
    pub(crate) closed: BTreeSet<u16>,
}

pub(crate) struct Track {
    pub(crate) policy: Policy,
    pub(crate) purse: Purse,
    pub(crate) paused: bool,
    /// Live jobs in a row while one of the boot list was ready.
    streak: u32,
    /// Jobs of other lanes in a row while this one could have run something.
    passed: usize,
}

/// Time that has been saved up, of which each run costs one interval.
pub(crate) struct Purse {
    rate: Option<Rate>,
    saved: Duration,
    at: Instant,
}

pub(crate) struct Item {
    pub(crate) lane: u16,
    pub(crate) key: u8,
    pub(crate) group: Option<u16>,
    pub(crate) paused: bool,
    pub(crate) causes: Causes,
    /// Times at which it should run.
    wishes: Vec<Instant>,
    /// Debounced changes.
    changes: Vec<Instant>,
    last_change: Option<Instant>,
    hold: Hold,
    pub(crate) attempts: u32,
    steps: u32,
    panics: u32,
    pub(crate) run: Option<Run>,
}

pub(crate) struct Run {
    since: Instant,
    due: Instant,
    causes: Causes,
    forgotten: bool,
}

// === impl Purse ===

impl Purse {
    pub(crate) fn new(rate: Option<Rate>, now: Instant) -> Self {
        let saved = rate.map_or(Duration::ZERO, |rate| rate.interval * rate.burst);
        Self { rate, saved, at: now }
    }

    fn free_at(&mut self, now: Instant) -> Instant {
        let Some(rate) = self.rate else { return now };
        self.saved = (self.saved + (now - self.at)).min(rate.interval * rate.burst);
        self.at = now;
        now + rate.interval.saturating_sub(self.saved)
    }

    fn spend(&mut self, now: Instant) {
        assert_eq!(self.free_at(now), now, "the rate was exceeded");
        self.saved -= self.rate.map_or(Duration::ZERO, |rate| rate.interval);
    }
}

// === impl Track ===

impl Track {
    pub(crate) fn new(policy: Policy, now: Instant) -> Self {
        let purse = Purse::new(policy.rate, now);
        Self { policy, purse, paused: false, streak: 0, passed: 0 }
    }
}

// === impl Item ===

impl Item {
    fn due(&self, policy: &Policy) -> Option<Instant> {
        match self.hold {
            Hold::Backoff(until) | Hold::Quarantine(until) => return Some(until),
            Hold::Permanent | Hold::Poison => return None,
            Hold::None | Hold::Waiting => {}
        }
        let mut burst = None;
        if let (Some(debounce), Some(first)) = (policy.debounce, self.changes.first()) {
            let mut end = *first;
            for change in &self.changes {
                if change == first || *change < end {
                    end = (*change + debounce.quiet).min(*first + debounce.max_wait);
                }
            }
            burst = Some(end);
        }
        self.wishes.iter().copied().chain(burst).min()
    }

    fn pin(&mut self, policy: &Policy, now: Instant) {
        if self.run.is_none()
            && let Some(due) = self.due(policy).filter(|due| *due <= now)
        {
            (self.wishes, self.changes, self.hold) = (vec![due], vec![], Hold::None);
        }
    }

    fn forgive(&mut self) {
        (self.attempts, self.steps, self.panics) = (0, 0, 0);
    }

    pub(crate) fn wake(&mut self, cause: Cause, policy: &Policy, now: Instant) {
        self.pin(policy, now);
        self.causes = self.causes | cause.into();
        let idle = self.run.is_none();
        if idle && cause == Cause::Edited {
            self.forgive();
        }
        if idle && (cause == Cause::Referent || cause == Cause::Manual) {
            self.steps = 0;
        }
        let overrules = match self.hold {
            Hold::None | Hold::Waiting => true,
            Hold::Backoff(_) => [Cause::Edited, Cause::Manual, Cause::Referent].contains(&cause),
            Hold::Quarantine(_) | Hold::Permanent | Hold::Poison => [Cause::Edited, Cause::Manual].contains(&cause),
        };
        if !overrules {
            return;
        }
        if let Hold::Backoff(until) = self.hold
            && cause == Cause::Referent
        {
            self.wishes.push(until);
        }
        self.hold = Hold::None;
        let bursts = [Cause::Edited, Cause::Touched, Cause::Referent, Cause::Status].contains(&cause);
        let Some(debounce) = policy.debounce.filter(|_| bursts) else {
            self.wishes.push(now);
            return;
        };
        let leads = debounce.leading && self.last_change.is_none_or(|last| last + debounce.quiet <= now);
        self.last_change = Some(now);
        if leads { &mut self.wishes } else { &mut self.changes }.push(now);
    }

    pub(crate) fn wake_after(&mut self, delay: Duration, policy: &Policy, now: Instant) {
        self.pin(policy, now);
        self.causes = self.causes | Cause::Requeued.into();
        if matches!(self.hold, Hold::None | Hold::Waiting) {
            self.wishes.push(now + delay);
        }
    }

    pub(crate) fn finish(&mut self, finish: &Finish, policy: &Policy, now: Instant, random: f64) {
        let run = self.run.take().unwrap();
        let news = self.causes;
        let has = |cause| news.contains(cause);
        let retried = news | run.causes | Cause::Retried.into();
        let mut hold = None;
        match finish {
            _ if run.forgotten => self.forgive(),
            Finish::Done => self.forgive(),
            Finish::RequeueAfter(delay) => {
                self.forgive();
                self.wake_after(*delay, policy, now);
            }
            Finish::Waiting(deadline) => {
                (self.steps, self.panics) = (0, 0);
                self.causes = news | run.causes;
                self.hold = if news.iter().any(|cause| cause != Cause::Requeued) { Hold::None } else { Hold::Waiting };
                if let Some(deadline) = deadline {
                    self.causes = self.causes | Cause::Requeued.into();
                    self.wishes.push(now + *deadline);
                }
            }
            Finish::Retry(failure) => {
                let delay = failure.delay().unwrap_or(policy.backoff.delay(self.steps, random));
                self.panics = 0;
                hold = Some((Hold::Backoff(now + delay), has(Cause::Referent)));
            }
            Finish::Permanent(_) => {
                self.panics = 0;
                hold = Some((Hold::Permanent, false));
            }
            Finish::Panicked(_) => {
                let until = now + policy.quarantine.delay(self.panics, random);
                self.panics += 1;
                let poison = self.panics >= policy.poison_after;
                hold = Some((if poison { Hold::Poison } else { Hold::Quarantine(until) }, false));
            }
        }
        if let Some((hold, cured)) = hold {
            (self.causes, self.attempts, self.steps) = (retried, self.attempts + 1, self.steps + 1);
            if cured || has(Cause::Edited) || has(Cause::Manual) {
                self.steps = 0;
            } else {
                (self.hold, self.wishes, self.changes) = (hold, vec![], vec![]);
            }
        }
        if has(Cause::Edited) {
            self.forgive();
        }
    }

    pub(crate) fn abandon(&mut self) {
        let run = self.run.take().unwrap();
        if self.causes.contains(Cause::Edited) || run.forgotten {
            self.forgive();
        }
        if !run.forgotten {
            self.causes = self.causes | run.causes;
            self.wishes.push(run.due);
        }
    }

    pub(crate) fn forget(&mut self) {
        if let Some(run) = &mut self.run {
            run.forgotten = true;
        }
        self.forgive();
        (self.paused, self.causes, self.hold, self.last_change) = (false, Causes::NONE, Hold::None, None);
        (self.wishes, self.changes) = (vec![], vec![]);
    }

    /// How it is; `None` if nobody needs to remember it.
    fn state(&self, policy: &Policy, closed: bool, now: Instant) -> Option<State> {
        if let Some(run) = &self.run {
            return Some(State::Running { since: run.since });
        }
        if self.paused {
            return Some(State::Paused);
        }
        if self.causes.is_empty() {
            let debounce = policy.debounce.filter(|debounce| debounce.leading)?;
            let until = self.last_change? + debounce.quiet;
            return (until > now).then_some(State::Quiet { until });
        }
        let due = self.due(policy);
        Some(match (self.hold, due) {
            (_, Some(_)) if closed => State::Held,
            (_, Some(due)) if due <= now => State::Ready,
            (Hold::Waiting, until) => State::Waiting { until },
            (Hold::Permanent, _) => State::Failed,
            (Hold::Poison, _) => State::Poisoned,
            (Hold::Backoff(until), _) => State::Retrying { until },
            (Hold::Quarantine(until), _) => State::Quarantined { until },
            (Hold::None, due) => State::Delayed { until: due.expect("nothing else stands against it") },
        })
    }
}

// === impl Model ===

impl Model {
    pub(crate) fn find(&mut self, lane: u16, key: u8) -> Option<&mut Item> {
        self.items.iter_mut().find(|item| (item.lane, item.key) == (lane, key))
    }

    pub(crate) fn enter(&mut self, lane: u16, key: u8) -> (&mut Item, &Policy) {
        if self.find(lane, key).is_none() {
            self.items.push(Item {
                lane,
                key,
                group: None,
                paused: false,
                causes: Causes::NONE,
                wishes: vec![],
                changes: vec![],
                last_change: None,
                hold: Hold::None,
                attempts: 0,
                steps: 0,
                panics: 0,
                run: None,
            });
        }
        let item = self.items.iter_mut().find(|item| (item.lane, item.key) == (lane, key)).unwrap();
        (item, &self.lanes[usize::from(lane)].policy)
    }

    pub(crate) fn state(&self, item: &Item, now: Instant) -> Option<State> {
        let closed = item.group.is_some_and(|group| self.closed.contains(&group));
        item.state(&self.lanes[usize::from(item.lane)].policy, closed, now)
    }

    /// Forgets what nobody needs to remember, of those that `which` names.
    pub(crate) fn sweep(&mut self, now: Instant, which: impl Fn(&Item) -> bool) {
        let mut items = std::mem::take(&mut self.items);
        items.retain(|item| !which(item) || self.state(item, now).is_some());
        self.items = items;
    }

    pub(crate) fn running(&self, lane: Option<usize>) -> usize {
        let all = self.items.iter().filter(|item| item.run.is_some());
        all.filter(|item| lane.is_none_or(|lane| lane == usize::from(item.lane))).count()
    }

    fn has_room(&self, lane: usize) -> bool {
        let track = &self.lanes[lane];
        !track.paused
            && self.running(Some(lane)) < track.policy.concurrency
            && self.running(None) < self.config.concurrency
    }

    /// Those that could be handed out now, as lane, key, and whether somebody waits for it.
    pub(crate) fn eligible(&mut self, now: Instant) -> Vec<(u16, u8, bool)> {
        let mut eligible = Vec::new();
        if self.purse.free_at(now) > now {
            return eligible;
        }
        for lane in 0..self.lanes.len() {
            if self.has_room(lane) && self.lanes[lane].purse.free_at(now) <= now {
                let here = self.items.iter().filter(|item| usize::from(item.lane) == lane);
                let ready = here.filter(|item| self.state(item, now) == Some(State::Ready));
                let background = [Cause::Boot, Cause::Resync, Cause::Retried];
                let live = |item: &Item| item.causes.iter().any(|cause| !background.contains(&cause));
                eligible.extend(ready.map(|item| (item.lane, item.key, live(item))));
            }
        }
        eligible
    }

    /// When something can be handed out, if nothing happens.
    pub(crate) fn deadline(&mut self, now: Instant) -> Option<Instant> {
        let mut deadlines = Vec::new();
        for lane in 0..self.lanes.len() {
            let free_at = self.lanes[lane].purse.free_at(now);
            let here = self.items.iter().filter(|item| usize::from(item.lane) == lane && self.has_room(lane));
            let movable = here.filter(|item| {
                let state = self.state(item, now);
                !matches!(state, Some(State::Running { .. } | State::Paused | State::Held | State::Quiet { .. }))
            });
            let dues = movable.filter_map(|item| item.due(&self.lanes[lane].policy));
            deadlines.extend(dues.map(|due| due.max(free_at)));
        }
        let free_at = self.purse.free_at(now);
        deadlines.into_iter().min().map(|due| due.max(free_at))
    }

    /// Hands out this key. Returns its causes and attempts.
    pub(crate) fn start(&mut self, lane: u16, key: u8, now: Instant) -> (Causes, u32) {
        self.check_turn(lane, key, now);
        self.purse.spend(now);
        self.lanes[usize::from(lane)].purse.spend(now);
        let (item, policy) = self.enter(lane, key);
        item.pin(policy, now);
        let (due, causes) = (item.wishes[0], std::mem::take(&mut item.causes));
        (item.wishes, item.changes) = (vec![], vec![]);
        assert!(item.run.is_none(), "handed out twice");
        item.run = Some(Run { since: now, due, causes, forgotten: false });
        (causes, item.attempts)
    }

    /// Whether it was the turn of this lane, and in the lane the turn of this key.
    fn check_turn(&mut self, lane: u16, key: u8, now: Instant) {
        let eligible = self.eligible(now);
        let mine = eligible.iter().find(|(l, k, _)| (*l, *k) == (lane, key));
        let (.., is_live) = mine.unwrap_or_else(|| panic!("{key} of {lane} is not among {eligible:?}"));
        let others = eligible.iter().filter(|(l, ..)| *l == lane);
        let (mut some_live, mut some_boot) = (false, false);
        others.for_each(|(.., live)| if *live { some_live = true } else { some_boot = true });
        let track = &mut self.lanes[usize::from(lane)];
        let boots_turn = some_boot && (!some_live || track.streak + 1 >= self.config.boot_share);
        assert_eq!(*is_live, !boots_turn, "{eligible:?} after {} live ones", track.streak);
        track.streak = if *is_live && some_boot { track.streak + 1 } else { 0 };
        let count = self.lanes.len();
        for (number, track) in self.lanes.iter_mut().enumerate() {
            let could_run = eligible.iter().any(|(l, ..)| usize::from(*l) == number);
            track.passed = if could_run && number != usize::from(lane) { track.passed + 1 } else { 0 };
            assert!(track.passed < count, "lane {number} starves");
        }
    }
}
