//! Projects for people who begin: what `nimbus new` writes.

mod crate_name;
mod kind_name;
mod project;
mod source;

pub(crate) use self::{crate_name::CrateName, kind_name::KindName, project::Project, source::Source};

/// Words that Rust keeps for itself, now or later.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];
