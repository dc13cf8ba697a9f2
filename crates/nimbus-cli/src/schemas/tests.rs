//! What is read, and what is kept back.

use prost_types::Any;
use protox::{
    Compiler,
    file::{ChainFileResolver, File, FileResolver, GoogleFileResolver},
};
use serde_json::{Value, json};

use crate::schemas::{Content, Schemas, Secrets};

/// One file, from text.
struct Source(&'static str);

impl FileResolver for Source {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match name {
            "demo.proto" => File::from_source(name, self.0),
            _ => Err(protox::Error::file_not_found(name)),
        }
    }
}

const DEMO: &str = r#"
syntax = "proto3";
package demo;
import "google/protobuf/any.proto";
import "google/protobuf/struct.proto";

message Policy { string zone = 1; uint32 priority = 2; int64 large = 3; }
message Account {
  string user = 1;
  string password = 2 [debug_redact = true];
  bytes key = 3 [debug_redact = true];
  uint32 pin = 4 [debug_redact = true];
  repeated string tokens = 5 [debug_redact = true];
  map<string, string> answers = 6 [debug_redact = true];
  Account other = 7 [debug_redact = true];
  oneof proof { string code = 8 [debug_redact = true]; string name = 9; }
  string not_this = 10 [debug_redact = false];
}
message Nest {
  Account one = 1;
  repeated Account many = 2;
  map<string, Account> by_name = 3;
  google.protobuf.Any packed = 4;
  google.protobuf.Struct free = 5;
}
"#;

/// Schemas that know [`DEMO`].
pub(crate) fn demo() -> Schemas {
    let mut resolver = ChainFileResolver::new();
    resolver.add(Source(DEMO));
    resolver.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).open_file("demo.proto").unwrap();
    Schemas::with(&compiler.encode_file_descriptor_set())
}

/// A message of [`DEMO`] from JSON, packed.
pub(crate) fn pack(schemas: &Schemas, kind: &str, json: &Value) -> Any {
    use prost::Message as _;
    let message = prost_reflect::DynamicMessage::deserialize(schemas.message(kind).unwrap(), json).unwrap();
    Any { type_url: format!("type.googleapis.com/{kind}"), value: message.encode_to_vec() }
}

fn check(kind: &str, given: &Value, expected: Value) {
    let schemas = demo();
    let any = pack(&schemas, kind, given);
    assert_eq!(schemas.read(&any, Secrets::Hidden), Content::Json(expected));
    assert_eq!(schemas.read(&any, Secrets::Shown), Content::Json(given.clone()), "and with --show-secrets");
}

#[test]
fn secrets_of_every_type_are_hidden() {
    let account = json!({
        "user": "u", "password": "p", "key": "YWJj", "pin": 1234, "tokens": ["t"], "answers": {"q": "a"},
        "other": {"user": "v"}, "code": "c", "notThis": "n",
    });
    let shown = json!({
        "user": "u", "password": "<secret>", "key": "<secret>", "pin": "<secret>", "tokens": "<secret>",
        "answers": "<secret>", "other": "<secret>", "code": "<secret>", "notThis": "n",
    });
    check("demo.Account", &account, shown);
    check("demo.Account", &json!({"user": "u", "name": "n"}), json!({"user": "u", "name": "n"}));
}

#[test]
fn secrets_are_hidden_wherever_their_message_is() {
    let nest = json!({
        "one": {"user": "a", "password": "p"},
        "many": [{"user": "b", "password": "p"}, {"user": "c"}],
        "byName": {"password": {"user": "d", "password": "p"}},
        "packed": {"@type": "type.googleapis.com/demo.Account", "user": "e", "password": "p"},
        "free": {"password": "not a field of a message"},
    });
    let shown = json!({
        "one": {"user": "a", "password": "<secret>"},
        "many": [{"user": "b", "password": "<secret>"}, {"user": "c"}],
        "byName": {"password": {"user": "d", "password": "<secret>"}},
        "packed": {"@type": "type.googleapis.com/demo.Account", "user": "e", "password": "<secret>"},
        "free": {"password": "not a field of a message"},
    });
    check("demo.Nest", &nest, shown);
}

#[test]
fn fields_come_in_the_order_of_their_numbers() {
    let schemas = demo();
    let any = pack(&schemas, "demo.Policy", &json!({"large": "3", "zone": "a", "priority": 2}));
    let Content::Json(json) = schemas.read(&any, Secrets::Hidden) else { panic!("it is known") };
    assert_eq!(json.to_string(), r#"{"zone":"a","priority":2,"large":"3"}"#);
}

#[test]
fn what_cannot_be_read_is_bytes() {
    let schemas = demo();
    let unknown = Any { type_url: "type.googleapis.com/demo.Unknown".to_owned(), value: vec![8, 1] };
    assert_eq!(schemas.read(&unknown, Secrets::Hidden), Content::Bytes(vec![8, 1]));
    let broken = Any { type_url: "type.googleapis.com/demo.Policy".to_owned(), value: vec![0xff] };
    assert_eq!(schemas.read(&broken, Secrets::Hidden), Content::Bytes(vec![0xff]));
}
