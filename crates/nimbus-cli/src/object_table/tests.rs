//! How objects fare, in a word.

use nimbus_wire::v1::{self, ConditionState};

use crate::{
    object_table::state,
    output::{Cell, Tone},
};

#[test]
fn the_state_is_what_the_controller_says_or_that_it_goes() {
    let standing = |kind: &str, state: ConditionState, code: &str, generation| {
        let condition = v1::Condition {
            r#type: kind.to_owned(),
            state: state.into(),
            code: code.to_owned(),
            generation,
            ..v1::Condition::default()
        };
        let standing = v1::Standing { conditions: vec![condition], detail: None };
        let status = Some(prost_types::Any::from_msg(&standing).unwrap());
        v1::Object { generation: 2, status, ..v1::Object::default() }
    };
    let check = |object: v1::Object, text: &str, tone| assert_eq!(state(&object), Cell::from(text).tone(tone));

    check(v1::Object::default(), "", Tone::Plain);
    check(standing("Ready", ConditionState::True, "Reconciled", 2), "Reconciled", Tone::Good);
    check(standing("Ready", ConditionState::False, "Failed", 2), "Failed", Tone::Bad);
    check(standing("Ready", ConditionState::Unspecified, "Paused", 2), "Paused", Tone::Warning);
    check(standing("Ready", ConditionState::True, "Reconciled", 1), "Reconciled (generation 1)", Tone::Warning);
    check(standing("Other", ConditionState::True, "Reconciled", 2), "", Tone::Plain);
    let finalizers = vec!["a".to_owned(), "b".to_owned()];
    let deleting =
        v1::Object { deleting: true, finalizers, ..standing("Ready", ConditionState::True, "Reconciled", 2) };
    check(deleting, "Deleting, waits for a,b", Tone::Warning);
}
