//! JSON values as YAML documents.

#[cfg(test)]
mod tests;

use saphyr::{Mapping, Scalar, ScalarStyle, Yaml, YamlEmitter};
use serde_json::Value;

/// A document, with a line break at its end.
pub(crate) fn document(value: &Value) -> String {
    let mut text = String::new();
    let mut emitter = YamlEmitter::new(&mut text);
    emitter.multiline(true);
    emitter.dump(&yaml(value)).expect("a string takes everything");
    let text = text.strip_prefix("---\n").unwrap_or(&text);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}")
}

fn yaml(value: &Value) -> Yaml<'_> {
    match value {
        Value::Null => Yaml::Value(Scalar::Null),
        Value::Bool(value) => Yaml::Value(Scalar::Boolean(*value)),
        // Digit by digit as in JSON, whatever the size.
        Value::Number(number) => Yaml::Representation(number.to_string().into(), ScalarStyle::Plain, None),
        Value::String(text) => string(text),
        Value::Array(values) => Yaml::Sequence(values.iter().map(yaml).collect()),
        Value::Object(members) => {
            let entries = members.iter().map(|(name, value)| (string(name), yaml(value)));
            Yaml::Mapping(entries.collect::<Mapping<'_>>())
        }
    }
}

fn string(text: &str) -> Yaml<'_> {
    Yaml::Value(Scalar::String(text.into()))
}
