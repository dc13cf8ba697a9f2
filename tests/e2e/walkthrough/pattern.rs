//! Output as documents show it: `…` stands for what is different each time, and on a line of its own for any lines.

/// What stands for anything.
const ANYTHING: &str = "…";

/// Whether this was printed, spaces at the ends of lines apart.
pub(crate) fn matches(pattern: &str, printed: &str) -> bool {
    let pattern: Vec<&str> = pattern.lines().map(str::trim_end).collect();
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    lines_match(&pattern, &printed)
}

fn lines_match(pattern: &[&str], printed: &[&str]) -> bool {
    match pattern {
        [] => printed.is_empty(),
        [ANYTHING, rest @ ..] => (0..=printed.len()).any(|left_out| lines_match(rest, &printed[left_out..])),
        [line, rest @ ..] => {
            printed.first().is_some_and(|first| line_matches(line, first)) && lines_match(rest, &printed[1..])
        }
    }
}

fn line_matches(pattern: &str, line: &str) -> bool {
    match pattern.split_once(ANYTHING) {
        None => pattern == line,
        Some((begin, rest)) => line.strip_prefix(begin).is_some_and(|line| {
            line.char_indices()
                .map(|(at, _)| at)
                .chain([line.len()])
                .any(|at| line_matches(rest, &line[at..]))
        }),
    }
}

#[test]
fn an_ellipsis_stands_for_anything_and_nothing_else_does() {
    fn check(pattern: &str, printed: &str, expected: bool) {
        assert_eq!(matches(pattern, printed), expected, "{pattern:?} of {printed:?}");
    }
    check("", "", true);
    check("", "a\n", false);
    check("a\n", "a \n", true);
    check("a\n", "b\n", false);
    check("a\nb\n", "a\n", false);
    check("uid: …\n", "uid: 17\n", true);
    check("uid: …!\n", "uid: 17\n", false);
    check("…\nb\n", "b\n", true);
    check("…\nb\n…\n", "x\ny\nb\nz\n", true);
    check("…\nb\n", "b\nz\n", false);
    check("1…2…3", "1 2 2 3", true);
}
