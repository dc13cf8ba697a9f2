//! How much of something is done, drawn with characters.

mod tally;
#[cfg(test)]
mod tests;

pub(crate) use self::tally::Tally;

/// A bar of that many characters: `[######----]`. It is full only if all is done, and empty only if nothing is.
pub(crate) fn bar(done: u32, all: u32, width: usize) -> String {
    let filled = match (done, all) {
        (_, 0) | (0, _) => 0,
        (done, all) if done >= all => width,
        (done, all) => {
            let part = width as u64 * u64::from(done) / u64::from(all);
            usize::try_from(part).unwrap_or(width).clamp(1, width.saturating_sub(1).max(1))
        }
    };
    format!("[{}{}]", "#".repeat(filled), "-".repeat(width - filled))
}

/// Of a hundred; 100 only if all is done.
pub(crate) fn percent(done: u32, all: u32) -> u32 {
    if all == 0 { 0 } else { u32::try_from(u64::from(done) * 100 / u64::from(all)).unwrap_or(100) }
}
