//! How many commits a durable collection makes in a second, and how long it takes to open a large one.
//!
//! `cargo run --release -p nimbus-store --example durable_figures -- [directory] [objects]`

#![allow(clippy::print_stdout, reason = "it prints figures")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use nimbus_core::{Annotations, Audience, Epoch, Kind, Labels, ObjectKey, PublisherId};
use nimbus_store::{Collection, Config, Draft, Op, Txn};

type Failure = Box<dyn Error + Send + Sync>;

/// How long each number of writers is measured.
const SPAN: Duration = Duration::from_secs(3);

fn txn(names: impl Iterator<Item = String>, fill: u8) -> Result<Txn, Failure> {
    let draft = |name: String| -> Result<_, Failure> {
        let draft = Draft {
            key: ObjectKey::new(Kind::new("test.v1.Alpha")?, "", &name)?,
            uid: None,
            generation: None,
            labels: Labels::default(),
            refs: Arc::default(),
            owner: None,
            annotations: Annotations::default(),
            audience: Audience::Everyone,
            // An `Any` with a type and a value of 512 bytes in all.
            spec: [b"\x0a\x0dt/test.v1.Any\x12\xee\x03".as_slice(), &[fill; 494]].concat().into(),
        };
        Ok(Op::Upsert(draft).into())
    };
    Ok(Txn {
        publisher: PublisherId::new("p")?,
        fence: 0,
        leases: Vec::new(),
        steps: names.map(draft).collect::<Result<_, _>>()?,
    })
}

fn commits(path: &Path, writers: usize) -> Result<(), Failure> {
    let store = Collection::open(path, Config::new(Epoch(1)))?;
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let begin = Instant::now();
    thread::scope(|scope| -> Result<(), Failure> {
        let write = |writer: usize| -> Result<(), Failure> {
            for round in 0.. {
                if stop.load(Relaxed) {
                    break;
                }
                let names = std::iter::once(format!("writer-{writer}-{}", round % 100));
                store.commit(&txn(names, (round / 100 % 251) as u8)?)?;
                count.fetch_add(1, Relaxed);
            }
            Ok(())
        };
        let threads: Vec<_> = (0..writers).map(|writer| scope.spawn(move || write(writer))).collect();
        thread::sleep(SPAN);
        stop.store(true, Relaxed);
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a writer panicked")?)
    })?;
    let rate = count.load(Relaxed) as f64 / begin.elapsed().as_secs_f64();
    println!("{writers} writers: {rate:.0} commits/s");
    Ok(())
}

/// How long this thread has been on a processor, where the system says so. Others may be busy, too.
fn on_cpu() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

fn load(path: &Path, objects: usize) -> Result<(), Failure> {
    const AT_ONCE: usize = 1000;
    let store = Collection::open(path, Config::new(Epoch(1)))?;
    let begin = Instant::now();
    for from in (0..objects).step_by(AT_ONCE) {
        store.commit(&txn((from..from + AT_ONCE).map(|at| format!("object-{at}")), 1)?)?;
    }
    println!("{objects} objects written in {:?}", begin.elapsed());
    let begin = Instant::now();
    drop(store);
    println!("closed in {:?}", begin.elapsed());
    let (begin, cpu) = (Instant::now(), on_cpu());
    let store = Collection::open(path, Config::new(Epoch(2)))?;
    println!(
        "{} objects opened in {:?}, {:?} of it on the processor",
        store.state().objects(),
        begin.elapsed(),
        on_cpu() - cpu
    );
    println!("the file has {} MB", fs::metadata(path)?.len() >> 20);
    Ok(())
}

fn main() -> Result<(), Failure> {
    let directory: PathBuf = env::args().nth(1).map_or_else(env::temp_dir, PathBuf::from);
    let objects = env::args().nth(2).map_or(Ok(200_000), |text| text.parse())?;
    let path = directory.join(format!("durable-figures-{}.redb", std::process::id()));
    for writers in [1, 16, 64] {
        commits(&path, writers)?;
        fs::remove_file(&path)?;
    }
    load(&path, objects)?;
    fs::remove_file(&path)?;
    fs::remove_file(path.with_extension("redb.lock"))?;
    Ok(())
}
