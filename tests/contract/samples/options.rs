//! Samples of `options.proto`.

use nimbus_wire::v1::Refers;

use crate::golden::Case;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::whole(Refers { kind: "demo.v1.Zone".into(), weak: true, selector: true }),
        Case::part("strong", Refers { kind: "demo.v1.Zone".into(), weak: false, selector: false }),
    ]
}
