//! Files that are cut short or changed under us. Whatever happened to one, it is refused, or it has what was saved.

use std::{
    collections::BTreeMap,
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use redb::StorageBackend;

use crate::cache::{
    flaw::Flaw,
    keeper::Keeper,
    load::Loaded,
    memory::{Delta, Memory},
    tests::{Place, agent, applied, at, boot, faults::FaultyDisk, item, open, place, put, settings, sized, started},
};

/// A file that notes when somebody tries to change it.
#[derive(Debug)]
struct Frozen {
    bytes: Arc<[u8]>,
    changed: Arc<AtomicBool>,
}

/// redb's page.
const PAGE: usize = 4096;

/// The part of the first page that redb uses: its header and two commit slots.
const SUPER_HEADER: usize = 320;

/// A file, and all states that were ever on disk, the last one last.
struct Sample {
    place: Place,
    bytes: Vec<u8>,
    states: Vec<Memory>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// As it was last.
    Newest,
    /// As it was one commit before, which is what redb makes of a file whose last commit did not end.
    Older,
    Refused,
    /// Refused because redb panicked.
    Panicked,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// The agent ended.
    Closed,
    /// The agent was killed.
    Killed,
}

/// Changes of all sorts: more rows than fit on a page, and one that does not fit on any.
fn history() -> Vec<Delta> {
    let many: Vec<_> = (0..40).map(|number| sized(&format!("object-{number}"), 1, 50 + number * 10)).collect();
    let large = sized("large", 1, 3 * PAGE);
    let keys = many[10..20].iter().map(|item| item.key().clone()).collect();
    vec![
        put(1, &many),
        Delta { puts: vec![large.clone()], ..applied(&many[0]) },
        started(&large),
        Delta { deletes: keys, ..put(2, &[item("object-3", 2)]) },
        applied(&large),
        put(3, &[item("late", 1), item("object-30", 2)]),
    ]
}

async fn sample(end: End) -> Sample {
    let place = place();
    let (keeper, first, _) = open(&place.path);
    let mut image = crate::cache::image::Image::default();
    let mut states = vec![first];
    for delta in history() {
        keeper.save(delta.clone());
        keeper.barrier().await.unwrap();
        image.apply(delta, boot("boot-1").as_ref(), |_| {});
        states.push(image.to_memory(boot("boot-1").as_ref(), None));
    }
    let killed = fs::read(&place.path).unwrap();
    keeper.close().await;
    let bytes = if end == End::Killed { killed } else { fs::read(&place.path).unwrap() };
    let sample = Sample { place, bytes, states };
    assert_eq!(sample.check(&sample.bytes), Outcome::Newest);
    sample
}

// === impl Frozen ===

impl Frozen {
    fn refuse(&self) -> io::Result<()> {
        self.changed.store(true, Relaxed);
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

impl StorageBackend for Frozen {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..)?.get(..out.len()));
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        self.refuse()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.refuse()
    }

    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
        self.refuse()
    }
}

// === impl Sample ===

impl Sample {
    fn other(&self) -> PathBuf {
        self.place.path.with_extension("damaged")
    }

    /// Reads a damaged copy. It must be refused, or be a state that was on disk.
    fn check(&self, bytes: &[u8]) -> Outcome {
        let changed = Arc::new(AtomicBool::new(false));
        let loaded = Loaded::from_file(Frozen { bytes: bytes.into(), changed: changed.clone() }, &agent());
        assert!(!changed.load(Relaxed), "reading changed the file");
        match loaded {
            Ok(loaded) => {
                let memory = loaded.image.to_memory(boot("boot-1").as_ref(), None);
                let state = self.states.iter().rposition(|state| *state == memory);
                match self.states.len() - state.expect("the state was on disk") {
                    1 => Outcome::Newest,
                    2 => Outcome::Older,
                    ago => panic!("a state of {ago} commits ago"),
                }
            }
            Err(Flaw::Panic(_)) => Outcome::Panicked,
            Err(_) => Outcome::Refused,
        }
    }

    /// Works on with a damaged copy that was accepted: what is written to it must be there afterwards.
    async fn check_use(&self, bytes: &[u8]) {
        fs::write(self.other(), bytes).unwrap();
        let open = |path: &Path| Keeper::open_with(path, &agent(), settings(FaultyDisk::default())).unwrap();
        let (keeper, mut expected, aside) = open(&self.other());
        assert_eq!(aside, None);
        for revision in 100..104 {
            let items: Vec<_> = (0..10).map(|number| sized(&format!("object-{number}"), revision, 500)).collect();
            keeper.save(put(revision, &items));
            keeper.barrier().await.unwrap();
            expected.position = at(revision);
            expected.desired.extend(items.into_iter().map(|item| (item.key().clone(), item)));
        }
        keeper.close().await;
        let (keeper, found, aside) = open(&self.other());
        keeper.close().await;
        assert_eq!(aside, None);
        assert!(found == Memory { saved_at: found.saved_at, boot: found.boot.clone(), ..expected });
    }

    fn cut(&self, lengths: impl Iterator<Item = usize>) -> BTreeMap<Outcome, usize> {
        let mut outcomes = BTreeMap::new();
        for len in lengths {
            *outcomes.entry(self.check(&self.bytes[..len])).or_insert(0) += 1;
        }
        outcomes
    }

    fn last_page(&self) -> Range<usize> {
        self.bytes.len() - PAGE..self.bytes.len()
    }
}

#[tokio::test]
async fn a_file_that_was_cut_anywhere_in_its_last_page_is_refused_or_right() {
    for end in [End::Closed, End::Killed] {
        let sample = sample(end).await;
        let outcomes = sample.cut(sample.last_page());
        // redb gives its files no other length than those that fit what is in them.
        assert_eq!(outcomes, [(Outcome::Refused, PAGE)].into());
    }
}

#[tokio::test]
async fn a_file_that_was_cut_anywhere_is_refused_or_right() {
    for end in [End::Closed, End::Killed] {
        let sample = sample(end).await;
        // An empty file is a new one, which is another test.
        let outcomes = sample.cut((1..sample.bytes.len()).step_by(64));
        assert!(outcomes[&Outcome::Refused] > 1_000, "{outcomes:?}");
    }
}

#[tokio::test]
async fn a_file_that_became_longer_is_refused_or_right() {
    let mut outcomes = BTreeMap::new();
    for end in [End::Closed, End::Killed] {
        let sample = sample(end).await;
        for extra in [1, 100, PAGE - 1, PAGE, PAGE + 1, 100 * PAGE] {
            for byte in [0, 0xFF] {
                let longer = [sample.bytes.clone(), vec![byte; extra]].concat();
                *outcomes.entry((sample.check(&longer), extra % PAGE == 0)).or_insert(0) += 1;
            }
        }
    }
    assert_eq!(outcomes, [((Outcome::Newest, true), 8), ((Outcome::Refused, false), 16)].into());
}

#[tokio::test]
async fn a_file_with_any_bit_of_its_first_bytes_changed_is_refused_or_right() {
    for end in [End::Closed, End::Killed] {
        let sample = sample(end).await;
        let mut outcomes = BTreeMap::new();
        // Repairs take their time. Three has no factor in common with eight: every bit of a byte gets its turn.
        let step = if end == End::Killed { 3 } else { 1 };
        for bit in (0..SUPER_HEADER * 8).step_by(step) {
            let mut bytes = sample.bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let outcome = sample.check(&bytes);
            *outcomes.entry(outcome).or_insert(0) += 1;
            if matches!(outcome, Outcome::Newest | Outcome::Older) && bit % 5 == 0 {
                sample.check_use(&bytes).await;
            }
            // A closed file has its last state in both slots.
            assert!(end == End::Killed || outcome != Outcome::Older, "bit {bit}");
        }
        assert!(outcomes[&Outcome::Newest] > 100 && outcomes[&Outcome::Refused] > 50, "{outcomes:?}");
    }
}

#[tokio::test]
async fn a_file_with_bytes_changed_anywhere_is_refused_or_right() {
    const SEED: u64 = 20_250_401;
    for end in [End::Closed, End::Killed] {
        let sample = sample(end).await;
        let mut random = StdRng::seed_from_u64(SEED);
        let mut outcomes = BTreeMap::new();
        for round in 0..if end == End::Killed { 1_000 } else { 2_000 } {
            let mut bytes = sample.bytes.clone();
            // One bit, some bytes here and there, or a whole stretch; the beginning more often than its share.
            let end_of_range = if round % 4 == 0 { 2 * PAGE } else { bytes.len() };
            match round % 3 {
                0 => bytes[random.random_range(0..end_of_range)] ^= 1 << random.random_range(0..8),
                1 => {
                    for _ in 0..random.random_range(2..9) {
                        bytes[random.random_range(0..end_of_range)] = random.random();
                    }
                }
                _ => {
                    let start = random.random_range(0..end_of_range);
                    let stretch = start..(start + random.random_range(1..2 * PAGE)).min(bytes.len());
                    let zero = random.random_bool(0.5);
                    bytes[stretch].iter_mut().for_each(|byte| *byte = if zero { 0 } else { random.random() });
                }
            }
            let outcome = sample.check(&bytes);
            *outcomes.entry(outcome).or_insert(0) += 1;
            if matches!(outcome, Outcome::Newest | Outcome::Older) && round % 8 == 0 {
                sample.check_use(&bytes).await;
            }
        }
        assert!(outcomes[&Outcome::Newest] > 100 && outcomes[&Outcome::Refused] > 30, "{outcomes:?}");
    }
}

/// What a disk does that loses a write, or brings back an old one.
#[tokio::test]
async fn a_file_with_pages_of_an_earlier_time_is_refused_or_right() {
    let place = place();
    let (keeper, ..) = open(&place.path);
    let mut images = Vec::new();
    for delta in history() {
        keeper.save(delta);
        keeper.barrier().await.unwrap();
        images.push(fs::read(&place.path).unwrap());
    }
    keeper.close().await;
    let sample = sample(End::Killed).await;
    let mut outcomes = BTreeMap::new();
    for image in &images {
        for page in 0..sample.bytes.len() / PAGE {
            let range = page * PAGE..(page + 1) * PAGE;
            let Some(old) = image.get(range.clone()) else { continue };
            if *old == sample.bytes[range.clone()] {
                continue;
            }
            let mut bytes = sample.bytes.clone();
            bytes[range].copy_from_slice(old);
            *outcomes.entry(sample.check(&bytes)).or_insert(0) += 1;
        }
    }
    assert!(outcomes.len() == 3 && !outcomes.contains_key(&Outcome::Panicked), "{outcomes:?}");
}
