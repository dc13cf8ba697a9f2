//! What a word in a YAML file means: the core schema of YAML 1.2.

use crate::document::Content;

/// The value of a word without quotes.
pub(super) fn resolve(text: &str) -> Content {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Content::Null,
        "true" | "True" | "TRUE" => Content::Bool(true),
        "false" | "False" | "FALSE" => Content::Bool(false),
        ".nan" | ".NaN" | ".NAN" => Content::Number("NaN".to_owned()),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Content::Number("Infinity".to_owned()),
        "-.inf" | "-.Inf" | "-.INF" => Content::Number("-Infinity".to_owned()),
        _ => number(text).map_or_else(|| Content::Text(text.to_owned()), Content::Number),
    }
}

fn number(text: &str) -> Option<String> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let plain = digits.starts_with(|c: char| c.is_digit(radix));
            return plain
                .then(|| u64::from_str_radix(digits, radix).ok().map(|value| value.to_string()))
                .flatten();
        }
    }
    is_decimal(text).then(|| text.strip_prefix('+').unwrap_or(text).to_owned())
}

/// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}
