//! Latency over throughput: a line for each length, a point for each number of texts of a call.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::figure::{Figure, Of};
use super::svg;

const WIDTH: usize = 760;
const HEIGHT: usize = 430;
const LEFT: f64 = 70.0;
const TOP: f64 = 14.0;
const PLOT: (f64, f64) = (560.0, 360.0);

/// A point: texts of a call, texts a second, milliseconds of half and of 99 in 100 calls.
type Point = (usize, f64, f64, f64);

pub(super) fn chart(figures: &[&Figure]) -> String {
    let lines = points(figures);
    let all = || lines.values().flatten();
    let across = Axis::of(all().map(|point| point.1));
    let up = Axis::of(all().flat_map(|point| [point.2, point.3]));
    let x = |rate: f64| LEFT + PLOT.0 * across.at(rate);
    let y = |milliseconds: f64| TOP + PLOT.1 * (1.0 - up.at(milliseconds));
    let says = "Milliseconds of a call over texts a second, both logarithmic: right is more, low is sooner. Each line \
                is a length, each point a number of texts of a call; the thin line goes from p50 up to p99.";
    let mut chart = svg("Latency against throughput", says, WIDTH, HEIGHT);
    let (bottom, right) = (TOP + PLOT.1, LEFT + PLOT.0);
    for tick in across.ticks() {
        let at = x(tick);
        let _ = writeln!(
            chart,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" class=\"grid\"/>\n\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{tick}</text>",
            bottom + 18.0
        );
    }
    for tick in up.ticks() {
        let at = y(tick);
        let _ = writeln!(
            chart,
            "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" class=\"grid\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"label\">{tick} ms</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    let _ = writeln!(
        chart,
        "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">texts/s</text>",
        LEFT + PLOT.0 / 2.0,
        HEIGHT - 8
    );
    for (series, (tokens, points)) in lines.iter().enumerate() {
        let class = format!("s{}", series % 5);
        let path: Vec<String> = points
            .iter()
            .map(|&(_, rate, p50, _)| format!("{:.1},{:.1}", x(rate), y(p50)))
            .collect();
        let _ = writeln!(
            chart,
            "<polyline points=\"{}\" class=\"line {class}\"/>",
            path.join(" ")
        );
        for &(texts, rate, p50, p99) in points {
            let (at, from, to) = (x(rate), y(p50), y(p99));
            let _ = writeln!(
                chart,
                "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{from:.1}\" y2=\"{to:.1}\" class=\"whisker\"/>\n\
                 <circle cx=\"{at:.1}\" cy=\"{from:.1}\" r=\"4\" class=\"{class}\"><title>{texts} of {tokens} tokens: \
                 {rate:.1} texts/s, p50 {p50:.2} ms, p99 {p99:.2} ms</title></circle>"
            );
        }
        // The key, beside the plot.
        let at = TOP + 20.0 + 24.0 * series as f64;
        let _ = writeln!(
            chart,
            "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{at}\" y2=\"{at}\" class=\"line {class}\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\">{tokens} tokens</text>",
            right + 14.0,
            right + 44.0,
            right + 50.0,
            at + 5.0
        );
    }
    chart.push_str("</svg>\n");
    chart
}

fn points(figures: &[&Figure]) -> BTreeMap<usize, Vec<Point>> {
    let mut lines: BTreeMap<usize, Vec<Point>> = BTreeMap::new();
    let of = |of: Of| figures.iter().filter(move |figure| figure.key.of == of);
    for figure in of(Of::Time) {
        let milliseconds = |which: Of| {
            let found = of(which).find(|other| other.key.name == figure.key.name);
            found.map(|found| found.seconds.median() * 1e3)
        };
        if let (Some(tokens), Some(p50), Some(p99)) =
            (figure.tokens, milliseconds(Of::P50), milliseconds(Of::P99))
        {
            let line = lines.entry(tokens).or_default();
            line.push((figure.texts, figure.texts_per_second(), p50, p99));
        }
    }
    lines
}

/// A logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// With a little room around the values.
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(0.0, f64::max).max(low);
        Self {
            low: (low / 1.3).log10(),
            high: (high * 1.3).log10(),
        }
    }

    fn at(&self, value: f64) -> f64 {
        (value.log10() - self.low) / (self.high - self.low)
    }

    /// 1, 2 and 5 times the powers of ten that are on it; powers alone where these would be many.
    fn ticks(&self) -> Vec<f64> {
        let powers = (self.low.floor() as i32)..=(self.high.ceil() as i32);
        let steps: &[f64] = if self.high - self.low > 2.5 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        powers
            .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)))
            .map(|tick| (tick * 1e6).round() / 1e6)
            .filter(|tick| (0.0..=1.0).contains(&self.at(*tick)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_on_the_axis() {
        let axis = Axis::of([12.0, 90.0].into_iter());
        assert_eq!(axis.ticks(), [10.0, 20.0, 50.0, 100.0]);
        assert!(axis.at(12.0) > 0.0 && axis.at(90.0) < 1.0);
        let wide = Axis::of([0.02, 900.0].into_iter());
        assert_eq!(wide.ticks(), [0.1, 1.0, 10.0, 100.0, 1000.0]);
        // One value alone has room on both sides as well.
        assert!((Axis::of([5.0].into_iter()).at(5.0) - 0.5).abs() < 1e-9);
    }
}
