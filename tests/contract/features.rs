//! `docs/FEATURES.md` names every row once, and only tests that exist.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::RangeInclusive,
};

use crate::tree;

/// The numbers that the table must have: prefix, least number of digits, range.
const NUMBERS: [(&str, usize, RangeInclusive<u32>); 9] = [
    ("F", 2, 1..=27),
    ("F", 2, 30..=39),
    ("F", 2, 40..=48),
    ("F", 2, 50..=70),
    ("F", 2, 71..=81),
    ("F", 2, 90..=97),
    ("H", 2, 1..=37),
    ("S", 1, 1..=15),
    ("B", 2, 1..=14),
];

const STATES: [&str; 3] = ["done", "partly", "not yet"];

/// One row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    number: &'a str,
    state: &'a str,
    tests: Vec<&'a str>,
}

/// What the table must have: `F01`, `F02`, …
fn expected_numbers() -> BTreeSet<String> {
    let numbers = |(prefix, digits, range): (&str, usize, RangeInclusive<u32>)| {
        range.map(|n| format!("{prefix}{n:0digits$}")).collect::<Vec<_>>()
    };
    NUMBERS.into_iter().flat_map(numbers).collect()
}

fn is_number(cell: &str) -> bool {
    cell.strip_prefix(['F', 'H', 'S', 'B'])
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The row in a line of Markdown; `None` if the line is something else.
fn parse(line: &str) -> Option<Result<Row<'_>, String>> {
    let cells: Vec<_> = line.trim().strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    let number = *cells.first().filter(|cell| is_number(cell))?;
    let [_, _, state, tests] = cells[..] else {
        return Some(Err(format!("{number}: {} cells instead of 4", cells.len())));
    };
    let tests = tests.split(',').map(str::trim).filter(|name| !name.is_empty());
    let unquoted = |name: &'_ str| format!("{number}: `{name}` is not one name in backticks");
    let tests = tests.map(|name| {
        let inner = name.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
        inner.filter(|inner| !inner.contains('`')).ok_or_else(|| unquoted(name))
    });
    Some(tests.collect::<Result<_, _>>().map(|tests| Row { number, state, tests }))
}

/// Everything that is wrong with the table in `text`.
fn problems(text: &str, expected: &BTreeSet<String>, existing: &BTreeSet<String>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = BTreeMap::<&str, usize>::new();
    for row in text.lines().filter_map(parse) {
        let Row { number, state, tests } = match row {
            Ok(row) => row,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        *seen.entry(number).or_default() += 1;
        if !expected.contains(number) {
            problems.push(format!("{number}: unknown number"));
        }
        if !STATES.contains(&state) {
            problems.push(format!("{number}: unknown state `{state}`, expected one of {STATES:?}"));
        }
        if state == "done" && tests.is_empty() {
            problems.push(format!("{number}: done, but no test is named"));
        }
        let absent = tests.into_iter().filter(|name| !existing.contains(*name));
        problems.extend(absent.map(|name| format!("{number}: there is no test `{name}`")));
    }
    let repeated = seen.iter().filter(|(_, times)| **times > 1);
    problems.extend(repeated.map(|(number, times)| format!("{number}: appears {times} times")));
    let missing = expected.iter().filter(|number| !seen.contains_key(number.as_str()));
    problems.extend(missing.map(|number| format!("{number}: missing")));
    problems
}

/// The names that follow `keyword` and come before a parenthesis, as in `fn NAME(`.
fn functions<'a>(source: &'a str, keyword: &'a str) -> impl Iterator<Item = &'a str> {
    source.lines().filter_map(move |line| {
        let (before, after) = line.split_once(keyword)?;
        let starts_a_word = before.is_empty() || before.ends_with(char::is_whitespace);
        let (name, _) = after.split_once('(').filter(|_| starts_a_word)?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name.then_some(name)
    })
}

/// The names of all functions in the sources of the project, tests among them.
fn existing_functions() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in ["crates", "tests", "agents", "proto"] {
        for path in tree::files_below(&tree::root().join(folder), &["rs", "py"]) {
            let source = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let keyword = if path.extension().is_some_and(|extension| extension == "py") { "def " } else { "fn " };
            names.extend(functions(&source, keyword).map(str::to_owned));
        }
    }
    names
}

#[test]
fn the_table_of_features_is_whole_and_names_only_tests_that_exist() {
    let text = fs::read_to_string(tree::root().join("docs/FEATURES.md")).unwrap();
    let problems = problems(&text, &expected_numbers(), &existing_functions());
    assert!(problems.is_empty(), "docs/FEATURES.md:\n  {}", problems.join("\n  "));
}

#[test]
fn every_kind_of_mistake_in_the_table_is_found() {
    fn check(table: &str, expected: &[&str]) {
        let numbers = ["F01", "H02"].map(str::to_owned).into();
        let existing = ["it_works", "it_holds"].map(str::to_owned).into();
        assert_eq!(problems(table, &numbers, &existing), expected, "in\n{table}");
    }
    let fine = "| H02 | a | not yet | |";

    check(&format!("| # | What | State | Tests |\n|---|---|---|---|\n| F01 | a | partly | |\n{fine}"), &[]);
    check(&format!("| F01 | a | done | `it_works`, `it_holds` |\n{fine}"), &[]);
    check(fine, &["F01: missing"]);
    check(&format!("| F01 | a | partly | |\n{fine}\n{fine}"), &["H02: appears 2 times"]);
    check(&format!("| F01 | a | partly | |\n| F03 | a | partly | |\n{fine}"), &["F03: unknown number"]);
    check(
        &format!("| F01 | a | soon | |\n{fine}"),
        &[r#"F01: unknown state `soon`, expected one of ["done", "partly", "not yet"]"#],
    );
    check(&format!("| F01 | a | done | |\n{fine}"), &["F01: done, but no test is named"]);
    check(&format!("| F01 | a | partly | `it_flies` |\n{fine}"), &["F01: there is no test `it_flies`"]);
    check(
        &format!("| F01 | a | partly | it_works |\n{fine}"),
        &["F01: `it_works` is not one name in backticks", "F01: missing"],
    );
    check(&format!("| F01 | a | partly |\n{fine}"), &["F01: 3 cells instead of 4", "F01: missing"]);
}

#[test]
fn functions_are_found_by_their_definition_only() {
    let rust = "async fn one() {}\n    pub(crate) fn two(x: u8) {}\n// see fn three\nlet x = often four();\nfn five<T>(x: T) {}";
    assert_eq!(functions(rust, "fn ").collect::<Vec<_>>(), ["one", "two"]);
    let python = "def one(self):\n    async def two():\nundef three()";
    assert_eq!(functions(python, "def ").collect::<Vec<_>>(), ["one", "two"]);
}
