//! Samples of `control.proto`.

use nimbus_wire::v1::{Acknowledged, Condition, ConditionState, Published, Standing};

use crate::{
    golden::Case,
    samples::{
        any,
        object::{key, object},
    },
};

pub(super) fn cases() -> Vec<Case> {
    let states = [ConditionState::True, ConditionState::False];
    let states = states.map(|state| Case::part(state.as_str_name(), Condition { state: state.into(), ..condition() }));
    let mut cases = vec![
        Case::whole(Standing { conditions: vec![condition()], detail: Some(any("demo.v1.PolicyStatus")) }),
        Case::whole(condition()),
        Case::whole(Acknowledged {
            controller: "policies".into(),
            object: Some(object()),
            published: vec![published()],
        }),
        Case::whole(published()),
    ];
    cases.extend(states);
    cases
}

fn condition() -> Condition {
    Condition {
        r#type: "Ready".into(),
        state: ConditionState::False.into(),
        code: "no_such_zone".into(),
        message: "there is no zone c".into(),
        generation: 3,
    }
}

fn published() -> Published {
    Published { key: Some(key()), generation: 3, digest: 0x0102_0304_0506_0708 }
}
