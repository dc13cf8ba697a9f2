//! Files of redb, and what is in them.

use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use crate::{
    corpus::{Files, named},
    files::{CACHE, CUT, LOG, STORE, WHOLE, WRITE},
    script::{self, Part},
    store::RAW,
};

type Bytes = TableDefinition<'static, &'static [u8], &'static [u8]>;

/// Before each row.
const CHECKSUM: usize = 16;

/// What happens to files.
pub(super) fn damages() -> Files {
    let one = |tag: u8, body: &[u8]| script::write([Part { tag, body }]);
    let at = |at: u32, with: &[u8]| one(WRITE, &[&at.to_le_bytes()[..], with].concat());
    let cut = |length: u32| one(CUT, &length.to_le_bytes());
    named([
        ("as-it-was", Vec::new()),
        ("empty", cut(0)),
        ("first-page-only", cut(4096)),
        ("not-a-whole-page", cut(70_001)),
        ("something-else", one(WHOLE, b"SQLite format 3\0")),
        ("only-the-magic", one(WHOLE, b"redb\x1A\x0A\xA9\x0D\x0A")),
        ("another-god-byte", at(9, &[0xff])),
        ("a-page-size-of-nothing", at(12, &[0; 4])),
        ("a-huge-page-size", at(12, &[0xff; 4])),
        ("a-huge-region", at(16, &[0xff; 16])),
        ("no-first-slot", at(64, &[0; 128])),
        ("no-slots-at-all", at(64, &[0xff; 256])),
        ("a-page-of-zeros", at(4096, &[0; 4096])),
    ])
}

/// Rows of all tables of a bus, and rows that nobody would write.
pub(super) fn store_rows() -> Files {
    let mut files = Files::new();
    let tables = ["objects", "tombstones", "kinds", "meta"];
    read(&STORE, |database| {
        for (tag, table) in (0..).zip(tables) {
            let definition: Bytes = TableDefinition::new(table);
            let rows = database.begin_read().unwrap().open_table(definition).unwrap();
            for (at, row) in rows.iter().unwrap().enumerate() {
                let (key, value) = row.unwrap();
                let body = &value.value()[CHECKSUM..];
                let parts = [Part { tag, body: key.value() }, Part { tag: 0, body }];
                files.insert(format!("{table}-{at}"), script::write(parts));
            }
        }
    });
    let pair = |tag: u8, key: &[u8], body: &[u8]| script::write([Part { tag, body: key }, Part { tag: 0, body }]);
    files.extend(named([
        ("nothing", pair(0, b"", b"")),
        ("key-without-name", pair(0, b"fuzz.Policy\0\0", b"")),
        ("slot-too-short", pair(1, &[1], b"")),
        ("meta-of-tomorrow", pair(3, b"", &[0x08, 0xff, 0xff, 0xff, 0xff, 0x0f])),
        ("length-beyond-the-end", pair(2, b"fuzz.Policy", &[0x0a, 0xff, 0xff, 0xff, 0x7f])),
    ]));
    files
}

/// A log, the groups in it, and what nobody would write.
pub(super) fn store_log() -> Files {
    /// What comes before a group, and where its length is in there.
    const HEADER: usize = 48;
    const LENGTH: usize = 24;

    let one = |tag: u8, body: &[u8]| script::write([Part { tag, body }]);
    let (mut groups, mut rest) = (Vec::new(), &LOG[..]);
    while let Some((header, after)) = rest.split_first_chunk::<HEADER>() {
        let length = u64::from_le_bytes(*header[LENGTH..].first_chunk().unwrap()) as usize;
        groups.push(&after[..length]);
        rest = &after[length.next_multiple_of(8).min(after.len())..];
    }
    let group = |body| Part { tag: 1, body };
    let raw = |body| Part { tag: RAW, body };
    let mut files = named([
        ("as-it-was", one(RAW, &LOG)),
        ("cut-off", one(RAW, &LOG[..LOG.len() - 9])),
        ("groups", script::write(groups.iter().copied().map(group))),
        ("one-is-missing", script::write([raw(&LOG[..HEADER]), group(groups[0])])),
        ("the-same-twice", script::write([group(groups[0]), group(groups[0])])),
        ("head-goes-back", script::write([group(groups[0]), group(&[0x08, 1])])),
        ("no-such-table", one(1, &[0x08, 9, 0x1a, 2, 0x08, 99])),
        ("no-such-object", one(1, &[0x08, 9, 0x1a, 3, 0x12, 1, b'x'])),
        ("not-a-group", one(1, &[0xff; 16])),
        ("empty-group", one(1, b"")),
    ]);
    files.extend(groups.iter().enumerate().map(|(at, body)| (format!("group-{at}"), one(1, body))));
    files
}

/// The rows and the header of an agent, and rows that nobody would write.
pub(super) fn cache_rows() -> Files {
    let mut files = Files::new();
    read(&CACHE, |database| {
        let transaction = database.begin_read().unwrap();
        let objects: Bytes = TableDefinition::new("objects");
        for (at, row) in transaction.open_table(objects).unwrap().iter().unwrap().enumerate() {
            let (key, value) = row.unwrap();
            let body = &value.value()[CHECKSUM..];
            let parts = [Part { tag: 0, body: key.value() }, Part { tag: 0, body }];
            files.insert(format!("object-{at}"), script::write(parts));
        }
    });
    let pair = |key: &[u8], body: &[u8]| script::write([Part { tag: 0, body: key }, Part { tag: 0, body }]);
    let header = |body: &[u8]| script::write([Part { tag: 0, body }]);
    files.extend(named([
        // By hand: the real one has the time in it.
        ("header", header(b"\x08\x01\x12\x06edge-1\x18\x02\x22\x06\x08\x07\x10\x01\x18\x09\x2a\x02\x08\x05\x38\x00")),
        ("header-of-another-agent", header(b"\x08\x01\x12\x06edge-2")),
        ("header-of-tomorrow", header(b"\x08\x63\x12\x06edge-1")),
        ("header-long-ago", header(b"\x08\x01\x12\x06edge-1\x2a\x0b\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01")),
        ("header-with-too-many-nanos", header(b"\x08\x01\x12\x06edge-1\x2a\x06\x10\xff\xff\xff\xff\x07")),
        ("nothing", pair(b"", b"")),
        ("no-version", pair(b"fuzz.Policy\0\0a", &[0x10, 0])),
        ("version-that-is-not-there", pair(b"fuzz.Policy\0\0a", &[0x10, 0xff, 0xff, 0xff, 0xff, 0x0f])),
    ]));
    files
}

fn read(bytes: &[u8], with: impl FnOnce(&Database)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.redb");
    std::fs::write(&path, bytes).unwrap();
    with(&Database::open(&path).unwrap());
}
