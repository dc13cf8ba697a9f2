//! Tests of the demo as a whole; the story itself is told in the end-to-end tests.

use std::{io, sync::Arc, time::Duration};

use parking_lot::Mutex;

use crate::demo::{
    End,
    cast::Cast,
    parse_speed, parse_store, perform,
    screen::{Look, Screen},
    stage::Stage,
};

#[derive(Debug, Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl io::Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// This program is not `nimbus`, so that the bus which the demo wants to start is none.
#[tokio::test]
async fn a_step_that_does_not_come_true_makes_the_whole_fail_with_a_message() {
    let paper = Paper::default();
    let screen = Screen::new(Box::new(paper.clone()), Look::default());
    let mut stage = Stage::new(screen, Duration::from_secs(60));
    let mut cast = Cast::new("127.0.0.1:0".parse().unwrap(), None, false).await.unwrap();
    let mut end = None;
    perform(&mut stage, &mut cast, 6, true, &mut end).await;
    cast.close().await;
    assert_eq!(end, Some(End::Untold));
    let text = String::from_utf8(paper.0.lock().clone()).unwrap();
    assert!(text.contains("  ✗ expected: a bus starts\n    seen:     the bus did not start: "), "{text}");
    assert!(text.ends_with("The story ends here, because this did not come true: a bus starts\n"), "{text}");
}

#[test]
fn stores_and_speeds_that_are_none_are_refused_with_what_was_expected() {
    assert_eq!(parse_store("redb:x").unwrap().to_str(), Some("x"));
    for text in ["memory", "redb:", "x"] {
        assert!(parse_store(text).unwrap_err().contains("expected redb:PATH"), "{text}");
    }
    assert_eq!(parse_speed("2"), Ok(2.0));
    for text in ["0", "-1", "fast", "NaN", "1e9"] {
        assert!(parse_speed(text).unwrap_err().contains("between 0.1 and 100"), "{text}");
    }
}
