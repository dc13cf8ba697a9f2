//! Messages in pieces, and who gives way.

use std::task::Context;

use nimbus_wire::v1;
use proptest::prelude::*;

use super::*;

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&[0][..], &length.to_be_bytes(), message].concat()
}

/// Parts of a message that is complete but for its last byte.
fn parts(message: &impl prost::Message) -> usize {
    let bytes = framed(&message.encode_to_vec());
    let mut scan = Scan::default();
    scan.read(&bytes[..bytes.len() - 1]);
    scan.parts()
}

#[test]
fn parts_are_fields_and_what_lists_hold_and_their_fields() {
    let empty = || v1::Exception::default();
    let exceptions = |count| v1::ReportRequest { exceptions: vec![empty(); count], ..v1::ReportRequest::default() };
    assert_eq!(parts(&exceptions(1_000)), 1_000);
    let named = v1::Exception { code: "c".repeat(300), message: "m".to_owned(), ..empty() };
    let report = v1::ReportRequest { session: 1 << 40, exceptions: vec![named; 10], ..v1::ReportRequest::default() };
    assert_eq!(parts(&report), 1 + 10 * 3);
    let objects = vec![v1::Object::default(); 500];
    let step = v1::sync_request::Step::Items(v1::SyncItems { objects });
    assert_eq!(parts(&v1::SyncRequest { step: Some(step) }), 501);
}

#[test]
fn what_is_complete_is_not_held() {
    let mut scan = Scan::default();
    let message = framed(&[0x0a; 100]);
    scan.read(&message[..50]);
    assert_eq!(scan.held(), 45);
    scan.read(&[&message[50..], &framed(b""), &message[..7]].concat());
    assert_eq!(scan.held(), 2);
}

proptest! {
    /// However a stream is cut, the end of each message is found, and no message has more parts than bytes.
    #[test]
    fn pieces_are_read_as_the_whole(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..6),
        cuts in prop::collection::vec(1usize..40, 1..40),
    ) {
        let bytes: Vec<u8> = messages.iter().flat_map(|message| framed(message)).collect();
        let ends: Vec<usize> = messages.iter().scan(0, |end, message| {
            *end += PREFIX + message.len();
            Some(*end)
        }).collect();
        let (mut scan, mut at) = (Scan::default(), 0);
        for cut in cuts.iter().cycle() {
            let to = (at + cut).min(bytes.len());
            scan.read(&bytes[at..to]);
            at = to;
            let begun = ends.iter().filter(|end| **end <= at).max().copied().unwrap_or(0);
            prop_assert_eq!(scan.held(), (at - begun).saturating_sub(PREFIX));
            let mut whole = Scan::default();
            whole.read(&bytes[begun..at]);
            prop_assert_eq!(scan.parts(), whole.parts());
            prop_assert!(scan.parts() <= scan.held());
            if at == bytes.len() {
                break;
            }
        }
    }
}

const PREFIX: usize = 5;

#[test]
fn who_began_first_gives_way() {
    let budget = Arc::new(Budget::new(100));
    let mut cx = Context::from_waker(std::task::Waker::noop());
    let mut shares: Vec<_> = (0..3).map(|_| Share::new(budget.clone())).collect();
    shares[1].set(40);
    shares[0].set(40);
    shares[2].set(20);
    assert!(shares.iter().all(|share| !share.poll_revoked(&mut cx)));
    shares[2].set(21);
    assert_eq!([0, 1, 2].map(|at| shares[at].poll_revoked(&mut cx)), [false, true, false]);
    assert_eq!(budget.bytes(), 61);
    // What is larger than everything gives way itself.
    shares[2].set(101);
    assert_eq!([0, 1, 2].map(|at| shares[at].poll_revoked(&mut cx)), [true, true, true]);
    drop(shares);
    assert_eq!(budget.bytes(), 0);
}

#[test]
fn what_is_kept_goes_when_its_share_is_revoked() {
    let budget = Arc::new(Budget::new(100));
    let mut cx = Context::from_waker(std::task::Waker::noop());
    let (mut first, mut second) = (Share::new(budget.clone()), Share::new(budget.clone()));
    first.keep(Bytes::from(vec![1; 60]));
    assert_eq!((first.take(20).len(), budget.bytes()), (20, 40));
    second.keep(Bytes::from(vec![2; 90]));
    assert!(first.poll_revoked(&mut cx) && first.take(20).is_empty());
    assert_eq!([second.take(50).len(), second.take(50).len(), second.take(50).len()], [50, 40, 0]);
    assert_eq!(budget.bytes(), 0);
}

#[test]
fn who_is_done_gives_back_what_it_had() {
    let budget = Arc::new(Budget::new(100));
    let mut share = Share::new(budget.clone());
    share.set(60);
    share.set(30);
    assert_eq!(budget.bytes(), 30);
    share.set(0);
    assert_eq!(budget.bytes(), 0);
    share.set(60);
    drop(share);
    assert_eq!(budget.bytes(), 0);
}
