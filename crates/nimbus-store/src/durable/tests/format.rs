//! The bytes in the file. What a release has written must be read for ever: a change here needs a new format.

use std::sync::Arc;

use nimbus_core::{Annotations, Epoch, Finalizers, Generation, Labels, Reference, Revision, Uid};

use crate::{
    durable::{
        ledger::Ledger,
        meta::Meta,
        row::{decode_object, decode_tombstone, encode_object, encode_slot, encode_tombstone},
        tests::{agents, key, publisher, spec},
    },
    lane::Address,
    record::{Content, Record, Slot},
    state::State,
    view::{Entry, Seat, Seats},
};

const OBJECT: &str = "\
    0a80010a0d746573742e76312e416c7068611a01612202753128033a0a0a03617070120377656242120a0d746573742e7631\
    2e416c7068611a016252017068025a1b0a0f742f746573742e76312e416c70686112080000000000000005621b0a0f742f74\
    6573742e76312e416c706861120800000000000000063009720512030a0178100418062a090a0178100818012007";
const TOMBSTONE: &str = "\
    0a10746573742e76312e416c706861000061120275311a120a0d746573742e76312e416c7068611a016220012a0408061001\
    2a0408061801";
const META: &str = "\
    0018d08725eea6a0c43a2f7ee6b7479d08011007180920022a1b0a076f626a656374731a1000000000000000000000000000\
    0000002a1e0a0a746f6d6273746f6e65731a10000000000000000000000000000000002a190a056b696e64731a1000000000\
    0000000000000000000000002a1a0a0666656e6365731a10000000000000000000000000000000002a1a0a0673796e636564\
    1a10000000000000000000000000000000002a1a0a066578747261731a1000000000000000000000000000000000300c";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn slot(revision: u64, seq: u32) -> Slot {
    Slot { revision: Revision(revision), seq }
}

fn entry() -> Entry {
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
    Entry { record, since: Revision(6), seats: Seats::Named([seat].into()) }
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
    let grave = entry().record.grave(slot(10, 2), Revision(6), true);
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
    assert_eq!(hex(&row), META);
    let read = Meta::from_row(&row).unwrap();
    assert_eq!((read.epoch(), read.head(), read.horizon(), read.commit), (Epoch(7), Revision(9), Revision(2), 12));
}
