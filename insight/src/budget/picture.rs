//! The candidates as an SVG: the time of a text or picture to the right, the cosine of the worst one upwards, and bytes as the area of a
//! disc.

use std::fmt::Write as _;

use isovec::optimize::budget::{Figure, Figures};

use super::report::BudgetReport;
use crate::graph::markup::escape;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 40.0;
/// The radius of the original, and of what has as many bytes.
const RADIUS: f64 = 16.0;
const SMALLEST: f64 = 3.0;

/// The picture; empty where nothing was measured.
pub(super) fn drawn(report: &BudgetReport) -> String {
    let measured: Vec<(usize, &Figures, bool)> = report
        .points
        .iter()
        .enumerate()
        .filter_map(|(place, point)| Some((place, point.figures()?, point.front)))
        // What is no number has no place.
        .filter(|(_, figures, _)| {
            figures.cosine.is_finite() && figures.latency.estimate.is_finite()
        })
        .collect();
    let Some(original) = report.original.filter(|_| !measured.is_empty()) else {
        return String::new();
    };
    let limit = |figure| report.budget.of(figure).map(|bound| bound.limit);
    let times = measured
        .iter()
        .map(|(_, figures, _)| figures.latency.estimate);
    let slowest = times.chain([original.latency.estimate]).fold(0.0, f64::max);
    // A bound far beyond everything would press all discs into a corner.
    let bound = limit(Figure::Latency).filter(|limit| *limit < 2.0 * slowest);
    let most = bound.map_or(slowest, |limit| slowest.max(limit)) * 1.1;
    let cosines = measured.iter().map(|(_, figures, _)| figures.cosine);
    let lowest = cosines.chain(limit(Figure::Cosine)).fold(1.0, f64::min);
    let span = ((1.0 - lowest) * 1.1).max(1e-6);
    let x = |seconds: f64| LEFT + (WIDTH - LEFT - RIGHT) * (seconds / most).clamp(0.0, 1.0);
    let y = |cosine: f64| TOP + (HEIGHT - TOP - BOTTOM) * ((1.0 - cosine) / span).clamp(0.0, 1.0);
    let radius = |bytes: u64| {
        let share = bytes as f64 / original.bytes.max(1) as f64;
        (RADIUS * share.sqrt()).clamp(SMALLEST, 2.0 * RADIUS)
    };
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    let (one, _) = report.items();
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Time and cosine of the candidates; the table has the numbers\" \
         font-size=\"12\">\n<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" class=\"axis\"/>\n\
         <text x=\"{right}\" y=\"{}\" text-anchor=\"end\">time of a {one}, ms; a disc's area is its bytes, 0 is the original</text>\n\
         <text x=\"{LEFT}\" y=\"12\">cosine of the worst {one}</text>\n",
        HEIGHT - 6.0
    );
    // Writing into a `String` cannot fail.
    for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let (time, cosine) = (most * part, 1.0 - span * part);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{:.2}</text><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{cosine:.4}</text>",
            x(time),
            bottom + 16.0,
            time * 1e3,
            LEFT - 6.0,
            y(cosine) + 4.0
        );
    }
    if let Some(limit) = bound {
        let x = x(limit);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" class=\"bound\"/>"
        );
    }
    if let Some(limit) = limit(Figure::Cosine) {
        let y = y(limit);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"bound\"/>"
        );
    }
    let (at, top) = (x(original.latency.estimate), y(1.0));
    let _ = writeln!(
        svg,
        "<circle cx=\"{at:.1}\" cy=\"{top:.1}\" r=\"{RADIUS}\" fill=\"none\" class=\"axis\"/><text x=\"{at:.1}\" y=\"{:.1}\" \
         text-anchor=\"middle\">0</text>",
        top + 4.0
    );
    // The large ones first, so that none hides another.
    let mut discs = measured;
    discs.sort_by_key(|(_, figures, _)| std::cmp::Reverse(figures.bytes));
    for (place, figures, front) in discs {
        let (at, up, disc) = (
            x(figures.latency.estimate),
            y(figures.cosine),
            radius(figures.bytes),
        );
        let class = if front { "front" } else { "other" };
        let name = escape(&report.points[place].candidate.to_string());
        let _ = writeln!(
            svg,
            "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{up:.1}\" y2=\"{up:.1}\" class=\"span\"/>\
             <circle cx=\"{at:.1}\" cy=\"{up:.1}\" r=\"{disc:.1}\" class=\"{class}\"><title>{}: {name}</title></circle>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x(figures.latency.low),
            x(figures.latency.high),
            place + 1,
            at + disc + 3.0,
            up + 4.0,
            place + 1
        );
        if report.chosen == Some(place) {
            let _ = writeln!(
                svg,
                "<circle cx=\"{at:.1}\" cy=\"{up:.1}\" r=\"{:.1}\" class=\"chosen\"/>",
                disc + 4.0
            );
        }
    }
    svg + "</svg>\n"
}
