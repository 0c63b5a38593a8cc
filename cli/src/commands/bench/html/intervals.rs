//! How many times as long each figure takes, as a point in its interval.

use std::fmt::Write as _;

use super::super::compare::Comparison;
use super::{escape, svg};

const WIDTH: usize = 760;
const LABELS: f64 = 300.0;
const PLOT: f64 = 430.0;
const ROW: usize = 24;
/// Beyond which an interval is drawn to the edge.
const WIDEST: f64 = 4.0;

pub(super) fn chart(comparison: &Comparison) -> String {
    let most = 1.0 + comparison.threshold_percent / 100.0;
    // As far to either side as the farthest point that is drawn; halves and doubles are as far from 1.
    let ends = comparison
        .figures
        .iter()
        .flat_map(|figure| [Some(figure.ratio), figure.low, figure.high]);
    let far = ends
        .flatten()
        .chain([most])
        .map(|ratio| ratio.ln().abs())
        .fold(0.0, f64::max);
    let far = (far * 1.1).clamp(0.02, WIDEST.ln());
    let at = |ratio: f64| LABELS + PLOT * (0.5 + (ratio.ln() / far).clamp(-1.0, 1.0) / 2.0);
    let height = ROW * comparison.figures.len() + 30;
    let says = format!(
        "Times as long as {}: right of 1 is slower, left of it faster. The shaded part is within the threshold.",
        comparison.baseline
    );
    let mut chart = svg("Before and after", &says, WIDTH, height);
    let (from, to) = (at(1.0 / most), at(most));
    let (bottom, one) = (height - 24, at(1.0));
    let _ = writeln!(
        chart,
        "<rect x=\"{from:.1}\" y=\"0\" width=\"{:.1}\" height=\"{bottom}\" class=\"within\"/>\n\
         <line x1=\"{one:.1}\" x2=\"{one:.1}\" y1=\"0\" y2=\"{bottom}\" class=\"axis\"/>",
        (to - from).max(1.0)
    );
    for (part, anchor) in [(-1.0, "start"), (0.0, "middle"), (1.0, "end")] {
        let ratio = (far * part).exp();
        let _ = writeln!(
            chart,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{ratio:.2}x</text>",
            at(ratio),
            height - 6
        );
    }
    for (row, figure) in comparison.figures.iter().enumerate() {
        let middle = row * ROW + ROW / 2;
        let class = figure.verdict.class();
        let _ = writeln!(
            chart,
            "<text x=\"{:.0}\" y=\"{}\" class=\"label\">{}</text>",
            LABELS - 8.0,
            middle + 5,
            escape(&figure.key.to_string())
        );
        if let (Some(low), Some(high)) = (figure.low, figure.high) {
            let _ = writeln!(
                chart,
                "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle}\" y2=\"{middle}\" class=\"interval {class}\"/>",
                at(low),
                at(high)
            );
        }
        let _ = writeln!(
            chart,
            "<circle cx=\"{:.1}\" cy=\"{middle}\" r=\"4\" class=\"{class}\"><title>{}: {}</title></circle>",
            at(figure.ratio),
            figure.verdict.word(),
            figure.interval()
        );
    }
    chart.push_str("</svg>\n");
    chart
}
