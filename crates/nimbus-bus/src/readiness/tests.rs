use nimbus_core::{Kind, PublisherId};

use crate::readiness::Unready;

#[test]
fn a_kind_that_is_not_complete_names_whom_it_waits_for_as_far_as_there_is_room() {
    let missing = |count: usize| Unready::Kind {
        kind: Kind::new("demo.v1.Policy").unwrap(),
        publishers: (0..count).map(|at| PublisherId::new(&format!("p{at}")).unwrap()).collect(),
    };
    let cases = [
        (0, "kind demo.v1.Policy: waits for a sync, which no publisher has begun"),
        (2, "kind demo.v1.Policy: waits for the sync of p0, p1"),
        (8, "kind demo.v1.Policy: waits for the sync of p0, p1, p2, p3, p4, p5, p6, p7"),
        (11, "kind demo.v1.Policy: waits for the sync of p0, p1, p2, p3, p4, p5, p6, p7 and 3 more"),
    ];
    for (count, said) in cases {
        assert_eq!(missing(count).to_string(), said);
    }
}
