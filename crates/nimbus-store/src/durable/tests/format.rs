//! The bytes in the file. What a release has written must be read for ever: a change here needs a new format.

use std::sync::Arc;

use nimbus_core::{Annotations, Epoch, Finalizers, Generation, Labels, Reference, Revision, Uid};

use crate::{
    durable::{
        ledger::Ledger,
        log::{Entry, Group},
        meta::Meta,
        row::{decode_object, decode_tombstone, encode_object, encode_slot, encode_tombstone},
        tests::{agents, key, publisher, spec},
    },
    lane::Address,
    record::{Content, Record, Slot},
    state::{KindState, State},
    unsaved::Changes,
    view::{self, Seat, Seats, View},
};

const OBJECT: &str = "\
    0a80010a0d746573742e76312e416c7068611a01612202753128033a0a0a03617070120377656242120a0d746573742e7631\
    2e416c7068611a016252017068025a1b0a0f742f746573742e76312e416c70686112080000000000000005621b0a0f742f74\
    6573742e76312e416c706861120800000000000000063009720512030a0178100418062a090a0178100818012007";
const TOMBSTONE: &str = "\
    0a10746573742e76312e416c706861000061120275311a120a0d746573742e76312e416c7068611a016220012a0408061001\
    2a0408061801";
/// Format 1, which nobody writes any more.
const META_1: &str = "\
    0018d08725eea6a0c43a2f7ee6b7479d08011007180920022a1b0a076f626a656374731a1000000000000000000000000000\
    0000002a1e0a0a746f6d6273746f6e65731a10000000000000000000000000000000002a190a056b696e64731a1000000000\
    0000000000000000000000002a1a0a0666656e6365731a10000000000000000000000000000000002a1a0a0673796e636564\
    1a10000000000000000000000000000000002a1a0a066578747261731a1000000000000000000000000000000000300c";

/// How the row of format 2 begins: its checksum, then its format.
const META_BEGINNING: &str = "004d0f4980aed64b6c7e7255d11de6730802";
/// An entry of the log.
const ENTRY: &str = "\
    6e696d6275736c6707000000000000000c00000000000000c30000000000000000769a87d5584376b0ff1e058f66afe40809\
    1aa7011210746573742e76312e416c7068610000611a92010a80010a0d746573742e76312e416c7068611a01612202753128\
    033a0a0a03617070120377656242120a0d746573742e76312e416c7068611a016252017068025a1b0a0f742f746573742e76\
    312e416c70686112080000000000000005621b0a0f742f746573742e76312e416c7068611208000000000000000630097205\
    12030a0178100418062a090a01781008180120071a151213746573742e76312e416c7068610000676f6e650000000000";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

fn slot(revision: u64, seq: u32) -> Slot {
    Slot { revision: Revision(revision), seq }
}

fn entry() -> view::Entry {
    let content = Content {
        key: key("a"),
        uid: Uid::new("u1").unwrap(),
        generation: Generation(3),
        labels: Labels::new(&[("app".to_owned(), "web".to_owned())].into()).unwrap(),
        refs: [Reference::strong(key("b"))].into(),
        owner: None,
        manager: publisher("p"),
        annotations: Annotations::default(),
        finalizers: Finalizers::default(),
        deleting: false,
        audience: agents(&["x"]),
        spec: spec(5, 0),
        status: spec(6, 0),
        observed: Generation(2),
    };
    let record = Arc::new(Record::new(content, slot(9, 4)));
    let seat = Seat { agent: nimbus_core::AgentId::new("x").unwrap(), slot: slot(8, 1), since: Revision(7) };
    view::Entry::new(record, Revision(6), Seats::Named([seat].into()))
}

fn restored() -> View {
    let mut view = View::new(Revision::ZERO);
    let _ = view.restore(&key("a"), entry());
    view
}

#[test]
fn the_row_of_an_object_stays_as_it_is() {
    let row = encode_object(&entry());
    assert_eq!(hex(&row), OBJECT);
    let read = decode_object(&key("a"), &row).unwrap();
    assert_eq!(format!("{read:?}"), format!("{:?}", entry()));
    assert!(decode_object(&key("b"), &row).unwrap_err().contains("the object in it is"));
}

#[test]
fn the_row_of_an_end_stays_as_it_is() {
    let grave = entry().record.grave(&key("a"), slot(10, 2), Revision(6), true);
    let graves = vec![(Address::Observers, grave.clone()), (Address::Everyone, grave)];
    let row = encode_tombstone(&graves).unwrap();
    assert_eq!(hex(&encode_slot(slot(10, 2))), "000000000000000a00000002");
    assert_eq!(hex(&row), TOMBSTONE);
    let (name, read) = decode_tombstone(slot(10, 2), &row).unwrap();
    assert_eq!((name, format!("{read:?}")), (key("a"), format!("{graves:?}")));
}

#[test]
fn the_row_of_the_whole_stays_as_it_is() {
    let state = State { head: Revision(9), horizon: Revision(2), ..State::new(Epoch(7), false) };
    let row = Meta::new(&state, &Ledger::default(), 12).to_row();
    // But for the format and the checksum, they are the same.
    assert_eq!(hex(&row)[..36], *META_BEGINNING);
    assert_eq!(hex(&row)[36..], META_1[36..]);
    for row in [row, unhex(META_1)] {
        let read = Meta::from_row(&row).unwrap();
        assert_eq!((read.epoch(), read.head(), read.horizon(), read.commit), (Epoch(7), Revision(9), Revision(2), 12));
        assert_eq!(read.to_row(), row);
    }
}

#[test]
fn an_entry_of_the_log_stays_as_it_is() {
    let kind = Arc::new(KindState { all: restored(), ..KindState::new() });
    let state = State {
        head: Revision(9),
        kinds: [(key("a").kind().clone(), kind)].into_iter().collect(),
        ..State::new(Epoch(7), false)
    };
    let changes = Changes { objects: vec![key("a"), key("gone")], ..Changes::default() };
    let group = Group::new(&state, &changes).unwrap();
    let bytes = prost::Message::encode_to_vec(&group);
    let entry = Entry { epoch: Epoch(7), commit: 12, group: &bytes };
    assert_eq!(hex(&entry.encode()), ENTRY);
    let encoded = unhex(ENTRY);
    let (read, len) = Entry::decode(&encoded).unwrap();
    assert_eq!((read, len), (entry, ENTRY.len() / 2));
    assert_eq!(<Group as prost::Message>::decode(read.group).unwrap(), group);
}
