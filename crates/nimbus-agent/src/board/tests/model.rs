//! A board against a machine that checks every call, under random changes, failures, crashes and schedules.

use proptest::{collection::vec, prelude::*};

use crate::board::tests::machine::{Edit, How, Machine, NAMES, ROOM, Step, Target};

fn target(refers: bool) -> impl Strategy<Value = Target> {
    (1..4_u64, 1..3_u64, any::<u16>(), any::<u16>()).prop_map(move |(version, life, a, b)| Target {
        version,
        life,
        needs: if refers { a & b } else { 0 },
    })
}

fn step(refers: bool) -> impl Strategy<Value = Step> {
    let edit =
        (0..NAMES.len(), proptest::option::weighted(0.7, target(refers))).prop_map(|(name, to)| Edit { name, to });
    let how = prop_oneof![
        5 => Just(How::Well),
        2 => Just(How::Failed),
        1 => Just(How::Permanently),
        1 => Just(How::Panicked),
        1 => Just(How::Dropped),
        6 => Just(How::Drifted),
    ];
    prop_oneof![
        6 => vec(edit, 1..7).prop_map(Step::Change),
        6 => (0..=ROOM).prop_map(Step::Take),
        10 => (any::<usize>(), how).prop_map(|(which, how)| Step::Finish { which, how }),
        5 => (0..100_000_u64).prop_map(Step::Wait),
        1 => any::<bool>().prop_map(|trust| Step::Crash { trust }),
        1 => Just(Step::ResetFloors),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_machine_never_sees_a_call_out_of_order_and_ends_as_it_should(
        (refers, steps) in prop::bool::weighted(0.8).prop_flat_map(|refers| (Just(refers), vec(step(refers), 1..80)))
    ) {
        let mut machine = Machine::new(refers);
        for step in &steps {
            machine.step(step);
        }
        machine.mend();
        machine.converge();
    }
}
