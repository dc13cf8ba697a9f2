//! Every target with the files of its corpus, and with thousands of variations of each, which are always the same.

#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]
#![allow(clippy::print_stdout, reason = "what is printed is how a failure is repeated")]

use std::{
    collections::BTreeSet,
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
};

use nimbus_fuzz::{TARGETS, corpus, mutate};
use rand::{SeedableRng as _, rngs::StdRng};

/// Says which variations there are; another one is found with `NIMBUS_FUZZ_SEED`.
const SEED: u64 = 1;

/// Far more than any target needs, and far less than what an unbounded one would take within thousands of inputs.
const MAX_RESIDENT: u64 = 1 << 30;

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz")
}

/// The files of a target's corpus, in the order of their names.
fn files(target: &str) -> Vec<(String, Vec<u8>)> {
    let directory = tree().join("corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable)
        .ok()
        .map(|value| value.parse().unwrap_or_else(|_| panic!("{variable} must be a number")))
}

/// The most memory that this process ever had.
fn peak_resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

/// Checks one input; one that fails is left where cargo-fuzz can take it up.
fn check(name: &str, check: fn(&[u8]), origin: &str, input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(input))) {
        let path = env::temp_dir().join(format!("nimbus-fuzz-{name}-{}", std::process::id()));
        fs::write(&path, input).unwrap();
        println!("{name}: {origin} fails; the input is in {}", path.display());
        resume_unwind(panic);
    }
}

fn smoke(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let seed = number("NIMBUS_FUZZ_SEED").unwrap_or(SEED);
    let variations = number("NIMBUS_FUZZ_VARIATIONS").unwrap_or_else(|| target.variations.into());
    let files = files(name);
    println!("{name}: {} files, {variations} variations of each, NIMBUS_FUZZ_SEED={seed}", files.len());
    for (at, (file, bytes)) in files.iter().enumerate() {
        check(name, target.check, file, bytes);
        let mut random = StdRng::seed_from_u64(seed.wrapping_add(at as u64));
        for variation in 0..variations {
            let other = &files[variation as usize % files.len()].1;
            let input = mutate(bytes, other, &mut random);
            check(name, target.check, &format!("variation {variation} of {file}"), &input);
        }
    }
    if let Some(peak) = peak_resident() {
        assert!(peak < MAX_RESIDENT, "{name} took {} MiB", peak >> 20);
    }
}

#[test]
fn any_file_of_an_agent_is_refused_or_read() {
    smoke("cache_file");
}

#[test]
fn any_row_of_an_agent_is_refused_or_read_and_written_again() {
    smoke("cache_rows");
}

#[test]
fn any_descriptor_set_is_refused_or_registered() {
    smoke("descriptors");
}

#[test]
fn any_filter_is_refused_or_means_the_same_wherever_it_travels() {
    smoke("filters");
}

#[test]
fn any_frames_are_nonsense_or_add_up() {
    smoke("frames");
}

#[test]
fn any_connection_is_served_or_told_why_not_however_its_bytes_are_cut() {
    smoke("http2");
}

#[test]
fn any_manifest_is_refused_with_a_place_or_read_and_printed_again() {
    smoke("manifests");
}

#[test]
fn any_requests_are_refused_clearly_or_leave_a_bus_that_adds_up() {
    smoke("requests");
}

#[test]
fn any_selector_is_refused_or_printed_as_the_same() {
    smoke("selectors");
}

#[test]
fn any_spec_that_is_accepted_can_be_decoded_by_others() {
    smoke("specs");
}

#[test]
fn any_file_of_a_bus_is_refused_or_read() {
    smoke("store_file");
}

#[test]
fn any_log_of_a_bus_is_refused_or_read() {
    smoke("store_log");
}

#[test]
fn any_row_of_a_bus_is_refused_or_read_and_written_again() {
    smoke("store_rows");
}

#[test]
fn every_target_has_a_test_a_program_and_a_corpus() {
    let source = include_str!("main.rs");
    let targets: BTreeSet<_> = TARGETS.iter().map(|target| target.name).collect();
    for target in &targets {
        assert!(source.contains(&format!("smoke(\"{target}\")")), "{target} has no test");
    }
    let stems = |directory: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(tree().join(directory)).unwrap();
        entries
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect()
    };
    let targets: BTreeSet<String> = targets.into_iter().map(str::to_owned).collect();
    assert_eq!(stems("fuzz_targets"), targets);
    assert_eq!(stems("corpus"), targets);
    let manifest = fs::read_to_string(tree().join("Cargo.toml")).unwrap();
    for target in targets {
        assert!(manifest.contains(&format!("name = \"{target}\"")), "{target} is not in tests/fuzz/Cargo.toml");
    }
}

#[test]
fn every_call_of_the_contract_is_accepted_somewhere_in_the_corpus() {
    assert_eq!(corpus::calls_that_are_always_refused(), BTreeSet::new());
}

#[test]
fn the_corpus_is_what_the_program_writes() {
    for (target, written) in corpus::all() {
        let found: BTreeSet<String> = files(target).into_iter().map(|(name, _)| name).collect();
        for (name, bytes) in written {
            assert!(found.contains(&name), "{target}/{name} is missing: cargo run -p nimbus-fuzz -- tests/fuzz/corpus");
            let kept = fs::read(tree().join("corpus").join(target).join(&name)).unwrap();
            assert_eq!(kept, bytes, "{target}/{name}: cargo run -p nimbus-fuzz -- tests/fuzz/corpus");
        }
    }
}
