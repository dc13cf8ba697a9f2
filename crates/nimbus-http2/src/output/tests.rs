//! What is written, however little of it goes at once.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn everything_is_written_in_order(
        parts in prop::collection::vec((any::<bool>(), 0_usize..3_000), 0..20),
        steps in prop::collection::vec(1_usize..4_000, 1..20),
    ) {
        let mut out = Output::default();
        let mut expected = Vec::new();
        for (at, (is_shared, length)) in parts.iter().enumerate() {
            let bytes = vec![at as u8; *length];
            expected.extend_from_slice(&bytes);
            if *is_shared { out.shared(bytes.into()) } else { out.own(&bytes) }
        }
        let mut written = Vec::new();
        for step in steps.iter().cycle() {
            prop_assert_eq!(out.len(), expected.len() - written.len());
            if out.is_empty() {
                break;
            }
            let mut slices = [IoSlice::new(&[]); 3];
            let count = out.slices(&mut slices);
            let there: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
            prop_assert!(!there.is_empty());
            let now = there.len().min(*step);
            written.extend_from_slice(&there[..now]);
            out.advance(now);
        }
        prop_assert_eq!(written, expected);
        prop_assert_eq!((out.own_len(), out.parts.len()), (0, 0));
    }
}

#[test]
fn large_slices_are_not_copied() {
    let shared = Bytes::from(vec![1; COPY + 1]);
    let mut out = Output::default();
    out.own(b"head");
    out.shared(shared.clone());
    let mut slices = [IoSlice::new(&[]); 4];
    assert_eq!(out.slices(&mut slices), 2);
    assert_eq!(slices[1].as_ptr(), shared.as_ptr());
}
