//! Texts a second as bars, with a line from the slowest to the fastest turn.

use std::fmt::Write as _;

use super::super::figure::{Figure, Of};
use super::super::turns::quantile;
use super::{escape, svg};

const WIDTH: usize = 760;
const LABELS: f64 = 270.0;
const BARS: f64 = 370.0;
const ROW: usize = 30;

pub(super) fn chart(title: &str, figures: &[&Figure]) -> String {
    let shown: Vec<&&Figure> = figures
        .iter()
        .filter(|figure| figure.key.of == Of::Time)
        .collect();
    let rate =
        |figure: &Figure, part: f64| figure.texts as f64 / quantile(figure.seconds.values(), part);
    let most = shown
        .iter()
        .map(|figure| rate(figure, 0.0))
        .fold(f64::MIN_POSITIVE, f64::max);
    let at = |rate: f64| LABELS + BARS * rate / most;
    let says = "Texts a second, longer is better; the line of each bar goes from its slowest turn to its fastest.";
    let mut chart = svg(title, says, WIDTH, ROW * shown.len() + 8);
    for (row, figure) in shown.iter().enumerate() {
        let top = row * ROW + 4;
        let middle = top + ROW / 2;
        let (value, low, high) = (
            figure.texts_per_second(),
            rate(figure, 1.0),
            rate(figure, 0.0),
        );
        let _ = writeln!(
            chart,
            "<text x=\"{:.0}\" y=\"{}\" class=\"label\">{}</text>\n\
             <rect x=\"{LABELS}\" y=\"{}\" width=\"{:.1}\" height=\"{}\" class=\"bar\"/>\n\
             <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle}\" y2=\"{middle}\" class=\"whisker\"/>\n\
             <text x=\"{:.1}\" y=\"{}\">{value:.1}</text>",
            LABELS - 8.0,
            middle + 5,
            escape(&figure.key.to_string()),
            top + 5,
            at(value) - LABELS,
            ROW - 10,
            at(low),
            at(high),
            at(high) + 8.0,
            middle + 5,
        );
    }
    chart.push_str("</svg>\n");
    chart
}
