//! The bytes of every message of the contract, as they were when it was released.
//!
//! A golden in `golden/` never changes. It is named after its message, or after its message and a part of it
//! (`Frame.welcome`), because a value holds only one case of a oneof and only one value of an enum.
//!
//! When a field is added, the samples no longer compile. Give the field its default in the samples that are there, so
//! that their bytes stay as they are; add a sample `Message.field` that sets it; and write its golden with
//! `NIMBUS_BLESS=1`, which writes goldens that are missing and touches no other.

use std::{
    any,
    collections::BTreeSet,
    env,
    fmt::{self, Write as _},
    fs, io,
    path::PathBuf,
};

use nimbus_wire::v1;
use prost::Message;
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet, MessageOptions};

use crate::{samples, tree};

/// Bytes in a line of a golden: short enough for a diff to show where they differ.
const BYTES_PER_LINE: usize = 32;

/// A value with a golden of its own.
pub(crate) struct Case {
    message: &'static str,
    part: Option<String>,
    bytes: Vec<u8>,
    decode: Decode,
}

/// Decodes bytes and compares with the value that they should give.
type Decode = Box<dyn Fn(&[u8]) -> Result<(), String>>;

// === impl Case ===

impl Case {
    /// A value with every field set.
    pub(crate) fn whole<M: Message + Default + PartialEq + fmt::Debug + 'static>(value: M) -> Self {
        let path = any::type_name::<M>();
        let message = path.rsplit("::").next().unwrap_or(path);
        let bytes = value.encode_to_vec();
        let decode = move |bytes: &[u8]| match M::decode(bytes) {
            Ok(decoded) if decoded == value => Ok(()),
            Ok(decoded) => Err(format!("decodes to\n{decoded:?}\ninstead of\n{value:?}")),
            Err(error) => Err(format!("does not decode: {error}")),
        };
        Self { message, part: None, bytes, decode: Box::new(decode) }
    }

    /// A value for one part of a message: a case of a oneof, a value of an enum, a field that came later.
    pub(crate) fn part<M: Message + Default + PartialEq + fmt::Debug + 'static>(part: &str, value: M) -> Self {
        Self { part: Some(part.to_owned()), ..Self::whole(value) }
    }

    fn path(&self) -> PathBuf {
        tree::root().join(format!("tests/contract/golden/{self}.hex"))
    }

    /// Compares with the golden, or writes it if there is none and `bless` is set.
    fn check(&self, bless: bool) -> Result<(), String> {
        let golden = match fs::read_to_string(self.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && bless => {
                return fs::write(self.path(), to_hex(&self.bytes)).map_err(|error| format!("{self}: {error}"));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(format!("{self}: no golden yet (hint: NIMBUS_BLESS=1 writes those that are missing)"));
            }
            golden => golden.map_err(|error| format!("{self}: {error}"))?,
        };
        let encoded = to_hex(&self.bytes);
        if encoded != golden {
            return Err(format!(
                "{self}: the encoding changed. A released golden never changes: whoever has the old contract could no \
                 longer read the new bytes. Undo the change, or add a field (proto/README.md) and a sample of its \
                 own.\ngolden:\n{golden}now:\n{encoded}"
            ));
        }
        let bytes = from_hex(&golden).ok_or_else(|| format!("{self}: the golden is not hex"))?;
        (self.decode)(&bytes).map_err(|problem| format!("{self}: the golden {problem}"))
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.part {
            Some(part) => write!(f, "{}.{part}", self.message),
            None => f.write_str(self.message),
        }
    }
}

/// Hex in lines; an empty message is an empty line.
fn to_hex(bytes: &[u8]) -> String {
    let mut hex = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 && index % BYTES_PER_LINE == 0 {
            hex.push('\n');
        }
        write!(hex, "{byte:02x}").expect("a String takes everything");
    }
    hex.push('\n');
    hex
}

fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<_>> = hex.lines().flat_map(str::chars).map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok()).collect()
}

/// Reads a base-128 number off the front of `bytes`.
fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a varint ends");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

/// The numbers of the fields in an encoded message, not looking into messages inside it.
fn field_numbers(mut bytes: &[u8]) -> BTreeSet<i32> {
    let mut numbers = BTreeSet::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        numbers.insert(i32::try_from(key >> 3).unwrap());
        let length = match key & 7 {
            0 => {
                varint(&mut bytes);
                0
            }
            1 => 8,
            2 => usize::try_from(varint(&mut bytes)).unwrap(),
            5 => 4,
            other => panic!("wire type {other}"),
        };
        bytes = &bytes[length..];
    }
    numbers
}

/// The contract's own files, without what they import.
fn contract() -> Vec<FileDescriptorProto> {
    let set = FileDescriptorSet::decode(v1::FILE_DESCRIPTOR_SET).unwrap();
    set.file.into_iter().filter(|file| file.package() == "nimbus.v1").collect()
}

fn messages() -> Vec<DescriptorProto> {
    let messages: Vec<_> = contract().into_iter().flat_map(|file| file.message_type).collect();
    assert!(!messages.is_empty(), "the descriptor set has no messages");
    messages
}

fn is_map_entry(message: &DescriptorProto) -> bool {
    message.options.as_ref().is_some_and(MessageOptions::map_entry)
}

/// All enums, those inside messages too.
fn enums() -> Vec<EnumDescriptorProto> {
    let inside = messages().into_iter().flat_map(|message| message.enum_type);
    contract().into_iter().flat_map(|file| file.enum_type).chain(inside).collect()
}

fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "{} problem(s):\n\n{}", problems.len(), problems.join("\n\n"));
}

#[test]
fn every_message_keeps_its_golden_bytes() {
    let bless = env::var_os("NIMBUS_BLESS").is_some_and(|value| value == "1");
    let problems: Vec<_> = samples::all().iter().filter_map(|case| case.check(bless).err()).collect();
    assert_none(&problems);
}

#[test]
fn every_message_and_every_field_of_it_has_a_golden() {
    let cases = samples::all();
    let mut problems = Vec::new();
    for message in messages() {
        let mut cases = cases.iter().filter(|case| case.message == message.name()).peekable();
        if cases.peek().is_none() {
            problems.push(format!("{}: no sample in tests/contract/samples", message.name()));
            continue;
        }
        let covered: BTreeSet<_> = cases.flat_map(|case| field_numbers(&case.bytes)).collect();
        let bare = message.field.iter().filter(|field| !covered.contains(&field.number()));
        problems.extend(bare.map(|field| format!("{}.{}: set in no sample", message.name(), field.name())));
        let nested = message.nested_type.iter().filter(|nested| !is_map_entry(nested));
        problems.extend(nested.map(|nested| format!("{}.{}: nested; put it beside", message.name(), nested.name())));
    }
    assert_none(&problems);
}

#[test]
fn every_value_of_an_enum_has_a_golden() {
    let parts: BTreeSet<_> = samples::all().into_iter().filter_map(|case| case.part).collect();
    let values = enums().into_iter().flat_map(|one| one.value).filter(|value| value.number() != 0);
    let bare = values.filter(|value| !parts.contains(value.name()));
    assert_none(
        &bare
            .map(|value| format!("{}: no sample in tests/contract/samples", value.name()))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn zero_means_unspecified_in_every_enum() {
    let named = |value: &prost_types::EnumValueDescriptorProto| value.name().ends_with("_UNSPECIFIED");
    let wrong = enums()
        .into_iter()
        .filter(|one| !one.value.iter().all(|value| named(value) == (value.number() == 0)));
    assert_none(
        &wrong
            .map(|one| format!("{}: zero is not its _UNSPECIFIED", one.name()))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn no_golden_has_lost_its_sample_and_no_two_samples_share_one() {
    let cases = samples::all();
    let expected: BTreeSet<_> = cases.iter().map(Case::path).collect();
    assert_eq!(expected.len(), cases.len(), "two samples have the same name");
    let files = tree::files_below(&tree::root().join("tests/contract/golden"), &["hex"]);
    let orphans = files.iter().filter(|file| !expected.contains(*file));
    let problem = |file: &PathBuf| format!("{}: a released golden keeps its sample", file.display());
    assert_none(&orphans.map(problem).collect::<Vec<_>>());
}

#[test]
fn hex_reads_back() {
    for length in [0, 1, 31, 32, 33, 64, 200] {
        let bytes: Vec<u8> = (0..length).collect();
        assert_eq!(from_hex(&to_hex(&bytes)), Some(bytes));
    }
    assert_eq!(from_hex("0g\n"), None);
    assert_eq!(from_hex("012\n"), None);
}
