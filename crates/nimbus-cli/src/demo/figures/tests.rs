//! Tests of figures.

use nimbus_wire::v1;

use crate::demo::figures;

#[test]
fn bytes_are_written_as_people_read_them() {
    fn check(count: u64, expected: &str) {
        assert_eq!(figures::bytes(count), expected);
    }

    check(0, "0 B");
    check(999, "999 B");
    check(1_640, "1.6 kB");
    check(12_345_678, "12.3 MB");
}

#[test]
fn who_has_it_who_has_not_and_why_fits_into_a_line() {
    let exception =
        v1::Exception { code: "TABLE_FULL".to_owned(), message: "no room".to_owned(), ..Default::default() };
    let failures = vec![v1::AgentException { agent: "south-1".to_owned(), exception: Some(exception) }];
    let pending = |number: u32| {
        let state = v1::AgentState::Away.into();
        v1::PendingAgent { agent: format!("west-{number}"), state, ..v1::PendingAgent::default() }
    };
    let pending_agents = (1..=4).map(pending).collect();
    let of = v1::Propagation {
        agents: 9,
        applied: 4,
        failed: 1,
        pending: 4,
        failures,
        pending_agents,
        ..Default::default()
    };
    assert_eq!(
        figures::propagation(&of),
        "4 of 9 agents have applied it; south-1 has not: TABLE_FULL: no room; \
         4 pending: west-1 (away), west-2 (away), west-3 (away), …"
    );
}
