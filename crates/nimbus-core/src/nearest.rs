//! The name that somebody probably meant.

/// Longer names are no typing errors, and comparing them takes quadratic time.
const MAX_LEN: usize = 128;

/// A suggestion is a courtesy: it must not cost more than the mistake.
const MAX_CANDIDATES: usize = 2_000;

/// The candidate most like `wanted`: one that differs only in its package or case, or else by few letters.
///
/// ```
/// let options = ["max-objects", "max-bytes", "listen"];
/// assert_eq!(nimbus_core::nearest("max_object", options.into_iter()), Some("max-objects".to_owned()));
/// assert_eq!(nimbus_core::nearest("colour", options.into_iter()), None);
/// ```
pub fn nearest<'a>(wanted: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    if wanted.len() > MAX_LEN {
        return None;
    }
    let tolerance = (wanted.len() / 3).max(2);
    candidates
        .take(MAX_CANDIDATES)
        .filter(|name| name.len() <= MAX_LEN)
        .filter_map(|name| {
            if last_part(name).eq_ignore_ascii_case(last_part(wanted)) {
                return Some((0, name));
            }
            let close = name.len().abs_diff(wanted.len()) <= tolerance;
            let distance = close.then(|| distance(wanted.as_bytes(), name.as_bytes()))?;
            (distance <= tolerance).then_some((distance, name))
        })
        .min()
        .map(|(_, name)| name.to_owned())
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Letters to insert, remove, replace or swap with their neighbour in order to turn one into the other.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut above: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut next = vec![i + 1];
        for j in 0..b.len() {
            let replaced = row[j] + usize::from(a[i] != b[j]);
            let mut least = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(above[j - 1] + 1);
            }
            next.push(least);
        }
        above = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}
