//! The parts of a document that can be followed.

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// A file: the line before the block is nothing but its path and a colon.
    File { path: String, text: String },
    /// What happens in a terminal.
    Console(Vec<Step>),
    /// Something to look at.
    Other,
}

/// A command, and what it prints.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) output: String,
}

/// The blocks of a document, in order.
pub(crate) fn blocks(document: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut before = "";
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            before = if line.is_empty() { before } else { line };
            continue;
        };
        let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push(match path(before) {
            Some(path) => Block::File { path: path.to_owned(), text: joined(&text) },
            None if language == "console" => Block::Console(steps(&text)),
            None => Block::Other,
        });
        before = "";
    }
    blocks
}

/// `` `src/lib.rs`: `` is a path.
fn path(line: &str) -> Option<&str> {
    let path = line.strip_prefix('`')?.strip_suffix("`:")?;
    (!path.contains(['`', ' '])).then_some(path)
}

fn steps(lines: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step { command: command.to_owned(), output: String::new() }),
            (None, Some(step)) if step.command.ends_with('\\') => step.command += &format!("\n{line}"),
            (None, Some(step)) => step.output += &format!("{line}\n"),
            (None, None) => panic!("output without a command: {line}"),
        }
    }
    steps
}

fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn files_and_commands_are_found_in_a_document() {
    let document = "# Title\nWrite this:\n\n`a/b.rs`:\n\n```rust\nfn a() {}\n\n```\n\nand `b`:\n```rust\nno file\n```\n\
                    ```console\n$ one \\\n    two\nout\n\n$ three\n```\n";
    let step = |command: &str, output: &str| Step { command: command.to_owned(), output: output.to_owned() };
    let expected = [
        Block::File { path: "a/b.rs".to_owned(), text: "fn a() {}\n\n".to_owned() },
        Block::Other,
        Block::Console(vec![step("one \\\n    two", "out\n\n"), step("three", "")]),
    ];
    assert_eq!(blocks(document), expected);
}
