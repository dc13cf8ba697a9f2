//! Charts of what was measured, as SVG.

mod svg;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::Value;

use self::svg::{Bar, Chart, Group};

/// What is drawn, and where to.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files that were written with --json.
    #[arg(required = true, value_name = "FILES")]
    files: Vec<PathBuf>,

    /// The folder for the charts, one for each question.
    #[arg(long, default_value = "docs/charts", value_name = "FOLDER")]
    into: PathBuf,
}

/// How a question is drawn.
struct Question {
    bench: &'static str,
    figure: &'static str,
    title: &'static str,
}

/// Every question that has a chart.
const QUESTIONS: [Question; 8] = [
    Question {
        bench: "fanout",
        figure: "cpu_us_per_delivery",
        title: "Fan-out: CPU of the server per delivery, µs (less is better)",
    },
    Question { bench: "latency", figure: "p99_ms", title: "Latency: publish to receipt, p99, ms (less is better)" },
    Question { bench: "storm", figure: "seconds", title: "Storm: until everybody is in sync, s (less is better)" },
    Question { bench: "idle", figure: "rss_kb_per_agent", title: "Idle: memory per subscriber, KiB (less is better)" },
    Question { bench: "memory", figure: "bytes_per_object", title: "Memory per object, bytes (less is better)" },
    Question { bench: "durable", figure: "writes_per_s", title: "Durable writes per second (more is better)" },
    Question {
        bench: "targeted",
        figure: "cpu_us_per_publish",
        title: "Targeted: CPU of the bus per publish, µs (less is better)",
    },
    Question { bench: "reactors", figure: "objects_per_s", title: "Reactors: objects per second (more is better)" },
];

/// What a group is named by, and in what words.
const VARIED: [(&str, &str); 8] = [
    ("subscribers", "subscribers"),
    ("batch", "at once"),
    ("rate", "per second"),
    ("writers", "writers"),
    ("objects", "objects"),
    ("changed_percent", "% changed"),
    ("at_once", "calls at once"),
    ("how", ""),
];

/// Draws all of it.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for file in &arguments.files {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        for line in text.lines() {
            let line = serde_json::from_str(line).with_context(|| format!("{} is not from --json", file.display()))?;
            lines.push(line);
        }
    }
    fs::create_dir_all(&arguments.into)?;
    let mut drawn = 0;
    for question in &QUESTIONS {
        let chart = chart(question, &lines);
        if !chart.groups.is_empty() {
            write(&arguments.into, question.bench, &chart)?;
            drawn += 1;
        }
    }
    ensure!(drawn > 0, "there is nothing to draw in these files (hint: write them with --json)");
    Ok(())
}

fn write(folder: &Path, name: &str, chart: &Chart) -> anyhow::Result<()> {
    let path = folder.join(format!("{name}.svg"));
    fs::write(&path, chart.to_string()).with_context(|| format!("cannot write {}", path.display()))
}

fn chart(question: &Question, lines: &[Value]) -> Chart {
    let mut groups: Vec<Group> = Vec::new();
    for line in lines.iter().filter(|line| line["bench"] == question.bench) {
        let (Some(system), Some(value)) = (line["system"].as_str(), line[question.figure].as_f64()) else { continue };
        let name = group(line);
        let bar = Bar { system: system.to_owned(), value };
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.bars.push(bar),
            None => groups.push(Group { name, bars: vec![bar] }),
        }
    }
    Chart { title: question.title, groups }
}

/// What the systems of one group have in common.
fn group(line: &Value) -> String {
    let part = |(field, word): &(&str, &str)| match &line[*field] {
        Value::Number(number) if number.as_u64() != Some(0) || *field == "changed_percent" => {
            Some(format!("{number} {word}"))
        }
        Value::String(text) => Some(text.clone()),
        _ => None,
    };
    VARIED.iter().filter_map(part).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
