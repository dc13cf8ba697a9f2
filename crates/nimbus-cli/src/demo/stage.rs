//! Where the story is told. What is said there was seen to be true.

use std::time::Duration;

use tokio::time::Instant;

use crate::demo::screen::Screen;

/// Where the story is told.
pub(crate) struct Stage {
    pub(crate) screen: Screen,
    /// What has not come true by then does not count.
    limit: Duration,
}

/// Something did not come true. It was said on the screen, with what was seen instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Untrue {
    pub(crate) expected: String,
    pub(crate) seen: String,
}

/// Often enough for people, and seldom enough for a bus with a thousand agents.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// In a log, whoever waits for long is told why this often.
const SAY_EVERY: Duration = Duration::from_secs(5);

// === impl Stage ===

impl Stage {
    pub(crate) fn new(screen: Screen, limit: Duration) -> Self {
        Self { screen, limit }
    }

    /// Looks again and again until it is as expected, and gives what was seen then. `look` says what it sees while it is not.
    pub(crate) async fn expect<T>(
        &mut self,
        expected: &str,
        mut look: impl AsyncFnMut() -> Result<T, String>,
    ) -> Result<T, Untrue> {
        let begin = Instant::now();
        let (mut seen, mut said) = ("nothing".to_owned(), begin);
        loop {
            match tokio::time::timeout_at(begin + self.limit, look()).await {
                Ok(Ok(found)) => return Ok(found),
                Ok(Err(instead)) => seen = instead,
                Err(_) => return Err(self.untrue(expected, &seen)),
            }
            if Instant::now() >= begin + self.limit {
                return Err(self.untrue(expected, &seen));
            }
            if self.screen.has_live() {
                self.screen.live(&format!("… {seen}"));
            } else if said.elapsed() >= SAY_EVERY {
                said = Instant::now();
                self.screen.note(&format!("… {seen}"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// What must be true at once.
    pub(crate) fn check(&mut self, expected: &str, is_true: bool, seen: &str) -> Result<(), Untrue> {
        if is_true { Ok(()) } else { Err(self.untrue(expected, seen)) }
    }

    /// Something that has to work.
    pub(crate) fn must<T>(&mut self, expected: &str, result: Result<T, String>) -> Result<T, Untrue> {
        result.map_err(|error| self.untrue(expected, &error))
    }

    fn untrue(&mut self, expected: &str, seen: &str) -> Untrue {
        self.screen.failure(expected, seen);
        Untrue { expected: expected.to_owned(), seen: seen.to_owned() }
    }
}

#[cfg(test)]
mod tests;
