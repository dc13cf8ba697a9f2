//! When a wait is over.

use nimbus_wire::v1::Propagation;

use crate::goal::{Deed, Enough, Goal, Outlook};

fn outlook(deed: Deed, enough: &str, [agents, received, applied, for_good]: [u32; 4]) -> Outlook {
    let propagation = Propagation { agents, received, applied, failed_for_good: for_good, ..Propagation::default() };
    Goal { deed, enough: enough.parse().unwrap() }.outlook(&propagation)
}

#[test]
fn a_goal_is_reached_by_enough_agents_and_given_up_when_too_many_have_failed() {
    let check =
        |enough: &str, counts, expected| assert_eq!(outlook(Deed::Applied, enough, counts), expected, "{enough}");
    check("100%", [10, 10, 10, 0], Outlook::Reached);
    check("100%", [10, 10, 9, 0], Outlook::Open);
    check("100%", [10, 10, 9, 1], Outlook::Hopeless);
    check("90%", [10, 10, 9, 1], Outlook::Reached);
    check("90%", [10, 10, 8, 1], Outlook::Open);
    check("90%", [10, 10, 8, 2], Outlook::Hopeless);
    check("70%", [30, 30, 21, 0], Outlook::Reached);
    check("33.4%", [3, 3, 1, 0], Outlook::Open);
    // Nobody is there yet.
    check("100%", [0, 0, 0, 0], Outlook::Open);
    check("0.1%", [0, 0, 0, 0], Outlook::Open);
    check("0.1%", [10, 0, 0, 0], Outlook::Open);
    check("3", [10, 10, 3, 7], Outlook::Reached);
    check("3", [4, 4, 2, 2], Outlook::Hopeless);
    // A third one may come.
    check("3", [2, 2, 1, 1], Outlook::Open);
}

#[test]
fn what_has_arrived_has_arrived_even_if_it_failed() {
    assert_eq!(outlook(Deed::Received, "100%", [3, 3, 0, 3]), Outlook::Reached);
    assert_eq!(outlook(Deed::Received, "100%", [3, 2, 0, 2]), Outlook::Open);
}

#[test]
fn enough_is_a_number_or_a_part() {
    assert_eq!("3".parse(), Ok(Enough::Agents(3)));
    assert_eq!("99.5%".parse(), Ok(Enough::Percent(99.5)));
    assert_eq!("100 %".parse(), Ok(Enough::Percent(100.0)));
    for wrong in ["", "0", "0%", "101%", "-1", "all", "%", "NaN%", "1.5"] {
        assert!(wrong.parse::<Enough>().is_err(), "{wrong}");
    }
}
