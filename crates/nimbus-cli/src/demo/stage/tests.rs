//! Tests of the stage.

use std::{io, sync::Arc, time::Duration};

use parking_lot::Mutex;

use crate::demo::{
    screen::{Look, Screen},
    stage::{Stage, Untrue},
};

/// What was written, for as long as somebody wants to know.
#[derive(Debug, Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

impl io::Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn stage(look: Look) -> (Stage, Paper) {
    let paper = Paper::default();
    (Stage::new(Screen::new(Box::new(paper.clone()), look), Duration::from_secs(12)), paper)
}

#[tokio::test(start_paused = true)]
async fn what_does_not_come_true_is_said_with_what_was_seen_instead() {
    let (mut stage, paper) = stage(Look::default());
    let mut looks = 0;
    let result = stage
        .expect("six of six", async || {
            looks += 1;
            Err::<(), _>("five of six".to_owned())
        })
        .await;
    assert_eq!(result, Err(Untrue { expected: "six of six".to_owned(), seen: "five of six".to_owned() }));
    assert!(looks > 1, "it looks more than once");
    let waiting = "  … five of six\n".repeat(2);
    assert_eq!(paper.text(), format!("{waiting}  ✗ expected: six of six\n    seen:     five of six\n"));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_ends_too() {
    let (mut stage, _) = stage(Look::default());
    let result = stage
        .expect("an answer", async || std::future::pending::<Result<(), String>>().await)
        .await;
    assert_eq!(result, Err(Untrue { expected: "an answer".to_owned(), seen: "nothing".to_owned() }));
}

#[tokio::test(start_paused = true)]
async fn what_comes_true_at_last_is_true() {
    let (mut stage, paper) = stage(Look::default());
    let mut left = 3;
    let result = stage
        .expect("none left", async || {
            left -= 1;
            if left == 0 { Ok("done") } else { Err(format!("{left} left")) }
        })
        .await;
    assert_eq!((result, paper.text().as_str()), (Ok("done"), ""));
}

#[tokio::test(start_paused = true)]
async fn on_a_terminal_progress_is_one_line_that_is_replaced() {
    let (mut stage, paper) = stage(Look { live: true, ..Look::default() });
    let mut left = 2;
    let result = stage
        .expect("none left", async || {
            left -= 1;
            if left == 0 { Ok(()) } else { Err(format!("{left} left")) }
        })
        .await;
    stage.screen.fact("none left");
    assert_eq!(result, Ok(()));
    assert_eq!(paper.text(), "\r\x1b[K  … 1 left\r\x1b[K  ✓ none left\n");
}

#[test]
fn what_must_be_true_at_once_is_said_if_it_is_not() {
    let (mut stage, paper) = stage(Look::default());
    assert_eq!(stage.check("quiet", true, "noise"), Ok(()));
    assert_eq!(paper.text(), "");
    assert!(stage.check("quiet", false, "noise").is_err());
    assert!(stage.must::<()>("an answer", Err("none".to_owned())).is_err());
    assert_eq!(paper.text(), "  ✗ expected: quiet\n    seen:     noise\n  ✗ expected: an answer\n    seen:     none\n");
}

#[test]
fn colour_is_there_only_if_it_is_wanted() {
    for (colour, expected) in [(false, "  ✓ done\n"), (true, "  \x1b[32m✓\x1b[0m done\n")] {
        let (mut stage, paper) = stage(Look { colour, ..Look::default() });
        stage.screen.fact("done");
        assert_eq!(paper.text(), expected);
    }
}
