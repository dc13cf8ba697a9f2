//! The file of an agent: its rows, and the whole of it.

use nimbus_agent::fuzzing;
use nimbus_core::AgentId;

use crate::{files, hush::hushed, script};

/// Whose files the corpus has.
pub(crate) const AGENT: &str = "edge-1";

fn agent() -> AgentId {
    AgentId::new(AGENT).unwrap()
}

/// Two parts, the key of a row and its body, or one, the header. What is read is written so that the same is read again.
pub(crate) fn rows(bytes: &[u8]) {
    let rewrite = |parts: &[&[u8]]| match parts {
        [header] => fuzzing::rewrite_header(&agent(), header),
        [key, body, ..] => fuzzing::rewrite_row(key, body),
        [] => Err("nothing".to_owned()),
    };
    let parts = script::read(bytes);
    let mut parts: Vec<&[u8]> = parts.iter().map(|part| part.body).take(2).collect();
    match rewrite(&parts) {
        Err(reason) => assert!(!reason.is_empty(), "it was refused without a reason"),
        Ok(written) => {
            *parts.last_mut().unwrap() = &written;
            assert_eq!(rewrite(&parts).as_ref(), Ok(&written), "what was read is written differently the next time");
        }
    }
}

/// What is different in a file from one that was written. What is accepted once is accepted again.
pub(crate) fn file(input: &[u8]) {
    let bytes = &files::damaged(&files::CACHE, input);
    match hushed(|| fuzzing::load(&agent(), bytes)) {
        Err(reason) => assert!(!reason.is_empty(), "a file was refused without a reason"),
        Ok(objects) => {
            let again = hushed(|| fuzzing::load(&agent(), bytes));
            assert_eq!(again, Ok(objects), "a file is read differently the next time");
        }
    }
}
