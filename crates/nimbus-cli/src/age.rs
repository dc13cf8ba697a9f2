//! Times as people read them.

#[cfg(test)]
mod tests;

/// How long something has been so: `5s`, `3m`, `2h`, `4d`.
pub(crate) fn age(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// How long something took, to about two digits: `7ms`, `1.2s`, `3m`.
pub(crate) fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..10_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        _ => age(ms),
    }
}
