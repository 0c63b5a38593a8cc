//! Formats numbers and shapes for people.

use super::{Dim, GraphNode};

/// A count with three digits and a unit: `1.23 M`.
pub(super) fn count(value: u64) -> String {
    scaled(value, ["", " k", " M", " G", " T", " P"])
}

/// Bytes, in powers of 1000.
pub(super) fn bytes(value: u64) -> String {
    scaled(value, [" B", " kB", " MB", " GB", " TB", " PB"])
}

/// Floating-point operations.
pub(super) fn flops(value: u64) -> String {
    scaled(
        value,
        [" FLOP", " kFLOP", " MFLOP", " GFLOP", " TFLOP", " PFLOP"],
    )
}

pub(super) fn milliseconds(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0} ms"),
        value if value >= 1.0 => format!("{value:.2} ms"),
        value => format!("{:.1} µs", value * 1e3),
    }
}

pub(super) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// A number with a unit in front of which it has at most three digits and a fraction.
fn scaled(value: u64, units: [&str; 6]) -> String {
    let mut unit = 0;
    let mut number = value as f64;
    while number >= 999.5 && unit + 1 < units.len() {
        number /= 1000.0;
        unit += 1;
    }
    let digits = match number {
        _ if unit == 0 => 0,
        number if number < 9.995 => 2,
        number if number < 99.95 => 1,
        _ => 0,
    };
    format!("{number:.digits$}{}", units[unit])
}

/// `1 parameter`, `2.50 M parameters`.
pub(super) fn parameters(value: u64) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} parameter{plural}", count(value))
}

/// `1 node`, `2 nodes`.
pub(super) fn some(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

/// Extents as `[batch, sequence, 384]`; `?` where nobody knows.
pub(super) fn shape(node: &GraphNode) -> String {
    let Some(dims) = &node.shape else {
        return "[?]".into();
    };
    let dims = dims.iter().map(|dim| match dim {
        Dim::Fixed(extent) => extent.to_string(),
        Dim::Symbolic(name) => plain(name),
    });
    format!("[{}]", dims.collect::<Vec<_>>().join(", "))
}

/// A name on one line without control characters or changes of direction: these are shown as U+FFFD.
pub fn plain(name: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks = |c: char| matches!(c, '\u{2028}' | '\u{2029}');
    let odd = |c: char| c.is_control() || turns(c) || breaks(c);
    name.chars()
        .map(|c| if odd(c) { '\u{fffd}' } else { c })
        .collect()
}

/// The same, cut in the middle to at most so many characters.
pub(super) fn short(name: &str, most: usize) -> String {
    let all: Vec<char> = plain(name).chars().collect();
    if all.len() <= most {
        return all.into_iter().collect();
    }
    let kept = most.saturating_sub(1);
    let (front, back) = (kept / 3, kept - kept / 3);
    let front: String = all[..front].iter().collect();
    let back: String = all[all.len() - back..].iter().collect();
    format!("{front}…{back}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        let numbers = [0, 7, 999, 1000, 12_345, 999_499, 999_999, u64::MAX];
        let shown = numbers.map(count);
        let wanted = [
            "0", "7", "999", "1.00 k", "12.3 k", "999 k", "1.00 M", "18447 P",
        ];
        assert_eq!(shown, wanted);
        assert_eq!(bytes(90_868_224), "90.9 MB");
        assert_eq!(flops(2_500_000_000), "2.50 GFLOP");
    }

    #[test]
    fn long_names_keep_their_end_and_odd_characters_are_shown() {
        assert_eq!(short("encoder.layer.0.weight", 11), "enc….weight");
        assert_eq!(
            plain("a\nb\u{202e}c\u{1b}[31m"),
            "a\u{fffd}b\u{fffd}c\u{fffd}[31m"
        );
    }
}
