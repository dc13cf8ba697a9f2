use super::*;

const MIB: u64 = 1 << 20;

fn agent(n: usize) -> AgentId {
    AgentId::new(&format!("agent-{n}")).unwrap()
}

#[test]
fn a_burst_is_admitted_at_once_and_the_rest_is_told_exactly_when() {
    let start = Instant::now();
    let mut admission = Admission::new(MIB, 2 * MIB, 100);
    let mut waits = Vec::new();
    for n in 0..10 {
        match admission.ask(Some(&agent(n)), MIB, start) {
            Ok(()) => waits.push(0),
            Err(wait) => waits.push(wait.as_secs()),
        }
    }
    // Two seconds ahead are allowed, so the third still goes; then one more second each.
    assert_eq!(waits, [0, 0, 0, 1, 2, 3, 4, 5, 6, 7]);
    for n in 3..10 {
        let turn = start + Duration::from_secs(n as u64 - 2);
        let early = turn - Duration::from_millis(250);
        assert_eq!(admission.ask(Some(&agent(n)), MIB, early), Err(Duration::from_millis(250)));
        assert_eq!(admission.ask(Some(&agent(n)), MIB, turn), Ok(()), "agent {n} comes back in its turn");
    }
}

#[test]
fn a_missed_turn_is_asked_for_again() {
    let start = Instant::now();
    let mut admission = Admission::new(MIB, 0, 100);
    assert_eq!(admission.ask(Some(&agent(1)), 10 * MIB, start), Ok(()));
    let wait = admission.ask(Some(&agent(2)), MIB, start).unwrap_err();
    assert_eq!(wait, Duration::from_secs(10));
    let late = start + wait + GRACE + Duration::from_secs(1);
    assert_eq!(admission.ask(Some(&agent(3)), 10 * MIB, late), Ok(()));
    assert_eq!(admission.ask(Some(&agent(2)), MIB, late), Err(Duration::from_secs(10)));
}

#[test]
fn observers_are_told_a_time_but_keep_no_turn() {
    let start = Instant::now();
    let mut admission = Admission::new(MIB, 0, 100);
    assert_eq!(admission.ask(None, 4 * MIB, start), Ok(()));
    for _ in 0..3 {
        assert_eq!(admission.ask(None, MIB, start), Err(Duration::from_secs(4)));
    }
}

#[test]
fn promised_turns_are_bounded() {
    let start = Instant::now();
    let mut admission = Admission::new(MIB, 0, 5);
    assert_eq!(admission.ask(Some(&agent(0)), MIB, start), Ok(()));
    for n in 1..100 {
        assert!(admission.ask(Some(&agent(n)), MIB, start).is_err());
    }
    assert_eq!(admission.turns.len(), 5);
}
