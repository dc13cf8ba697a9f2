//! The same message has the same bytes, and they are those of the message.

use prost::Message as _;
use prost_reflect::DynamicMessage;
use serde_json::{Map, Value, json};

use crate::schemas::{canonical::encode, tests::demo};

#[test]
fn maps_are_encoded_in_the_order_of_their_keys_and_everything_is_there() {
    let schemas = demo();
    let descriptor = schemas.message("demo.Nest").unwrap();
    let answers = |n: usize| (0..n).map(|n| (format!("q{n}"), Value::from("a"))).collect::<Map<_, _>>();
    let accounts = (0..50).map(|n| (format!("k{n}"), json!({"user": "u", "answers": answers(20)})));
    let nest = json!({
        "one": {"user": "a", "tokens": ["x", "y"], "key": "YWJj", "pin": 7, "code": ""},
        "many": [{}, {"user": "b"}],
        "byName": accounts.collect::<Map<_, _>>(),
        "packed": {"@type": "type.googleapis.com/demo.Policy", "zone": "a"},
        "free": {"a": [1, null, {"b": true}]},
    });
    // Each has its maps in an order of its own.
    let read = || DynamicMessage::deserialize(descriptor.clone(), &nest).unwrap();
    let (message, bytes) = (read(), encode(&read()));
    assert_eq!(bytes, encode(&message));
    assert_eq!(bytes.len(), message.encoded_len());
    assert_eq!(DynamicMessage::decode(descriptor, &*bytes).unwrap(), message);
}
