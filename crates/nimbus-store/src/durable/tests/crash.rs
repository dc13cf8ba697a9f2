//! The power goes at any moment.

use std::collections::BTreeMap;

use bytes::Bytes;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use crate::{
    collection::{Collection, Config},
    durable::{
        error::OpenError,
        tests::{Place, config, contents, delete, disk::TestDisk, open, place, put, spec, txn},
    },
    ticket::Ticket,
};

/// Objects by name.
type Contents = BTreeMap<String, Bytes>;

/// A collection that dies again and again, and all that it could hold at each revision.
struct Life {
    place: Place,
    random: StdRng,
    history: Vec<Contents>,
    /// The last revision that was acknowledged, or shown.
    acknowledged: u64,
    values: u64,
}

impl Life {
    fn new(seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed);
        Self { place: place(), random, history: vec![Contents::new()], acknowledged: 0, values: 0 }
    }

    /// Writes until the power goes. Says how many writes were acknowledged.
    fn live(&mut self) -> usize {
        let disk = TestDisk::dies_after(self.random.random_range(0..200), self.random.random());
        // In some lives all is in the log, in others the file is written now and then, or every time.
        let log_bytes = [0, 600, 3000, 1 << 20][self.random.random_range(0..4)];
        let store = match Collection::open_on(&disk, &self.place.path, Config { log_bytes, ..config() }) {
            Ok(store) => store,
            Err(OpenError::Io { .. }) => return 0,
            Err(error) => panic!("{error}"),
        };
        self.check(&store);
        let (mut waiting, mut acknowledged): (Vec<(u64, Ticket)>, _) = (Vec::new(), 0);
        while store.failure().is_none() {
            waiting.extend(self.write(&store));
            self.acknowledged = self.acknowledged.max(store.state().head().0);
            let wait = if self.random.random_bool(0.2) { waiting.len() } else { 0 };
            for (revision, ticket) in waiting.drain(..wait) {
                if let Ok(committed) = ticket.wait() {
                    assert_eq!(committed.revision.0, revision);
                    assert!(store.state().head().0 >= revision, "it is visible");
                    self.acknowledged = self.acknowledged.max(revision);
                    acknowledged += 1;
                }
            }
        }
        let shown = store.state();
        self.acknowledged = self.acknowledged.max(shown.head().0);
        let seen: Contents = contents(&store).into_iter().collect();
        assert_eq!(seen, self.history[usize::try_from(shown.head().0).unwrap()], "what is shown to the last");
        acknowledged
    }

    /// Submits a change of a few objects, which always changes something.
    fn write(&mut self, store: &Collection) -> Option<(u64, Ticket)> {
        let mut next = self.history.last().unwrap().clone();
        self.values += 1;
        let fresh = format!("object-{}", self.random.random_range(0..6));
        let mut steps = vec![put(&fresh, self.values)];
        next.insert(fresh.clone(), spec(self.values, 8));
        let gone = format!("object-{}", self.random.random_range(0..6));
        if gone != fresh {
            next.remove(&gone);
            steps.push(delete(&gone));
        }
        let ticket = store.submit(&txn(steps)).ok()?;
        self.history.push(next);
        Some((self.history.len() as u64 - 1, ticket))
    }

    /// What is there is what was written up to some revision, and all that was acknowledged.
    fn check(&mut self, store: &Collection) {
        let head = store.state().head().0;
        assert!(head >= self.acknowledged, "{head} is there, {} was acknowledged", self.acknowledged);
        self.history.truncate(usize::try_from(head).unwrap() + 1);
        assert_eq!(contents(store).into_iter().collect::<Contents>(), *self.history.last().unwrap());
        self.acknowledged = head;
    }
}

#[test]
fn what_was_acknowledged_is_there_whenever_the_power_goes() {
    let mut acknowledged = 0;
    for seed in 0..60 {
        let mut life = Life::new(seed);
        for _ in 0..5 {
            acknowledged += life.live();
        }
        let store = open(&life.place).unwrap();
        life.check(&store);
    }
    assert!(acknowledged > 500, "{acknowledged}");
}
