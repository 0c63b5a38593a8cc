//! What was tried, what was chosen and why, for people and for programs.

use std::fmt::Write as _;

use isovec::optimize::Report;
use isovec::optimize::budget::{Budget, Figure, Figures, Point, Span, Tried};
use serde::Serialize;

use super::picture;
use crate::graph::markup::escape;

/// The result of [`optimize_within`](super::optimize_within). As JSON it has the names of these fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
#[must_use = "where no model keeps the budget nothing was written, and this says so"]
pub struct BudgetReport {
    /// The original.
    pub model: String,
    /// What was asked for.
    pub budget: Budget,
    /// Texts or pictures that were compared and timed.
    pub texts: usize,
    /// Whether they were pictures.
    pub of_pictures: bool,
    /// The original's size and time; `None` where no candidate could be made.
    pub original: Option<Original>,
    /// Every candidate, in the order in which they were tried.
    pub points: Vec<Point>,
    /// The place of the one that was written; `None`: none was.
    pub chosen: Option<usize>,
    /// Why this one, or how near the nearest came.
    pub why: String,
    /// The nodes of the chosen one that stay in f32 for the budget.
    pub in_f32: Vec<String>,
    /// The report of what was written, measured once more.
    pub optimized: Option<Report>,
}

/// What the original is like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Original {
    /// Bytes of its weights and of the files beside them.
    pub bytes: u64,
    /// Seconds of a text or picture, in a call of its own.
    pub latency: Span,
}

/// Why a place was chosen, or how near the nearest came. The original has so many bytes.
pub(super) fn why(
    budget: &Budget,
    original: u64,
    points: &[Point],
    chosen: Option<usize>,
) -> String {
    let all = points.iter().filter_map(Point::figures);
    let met: Vec<&Figures> = all.filter(|figures| budget.is_met(figures)).collect();
    let figures = |place: usize| points[place].figures();
    if let Some((place, found)) = chosen.and_then(|place| Some((place, figures(place)?))) {
        let mut why = format!(
            "{} keeps the budget: {}. It is {} times as fast as the original, with {:.1} % of its bytes.",
            points[place].candidate,
            values(budget, found),
            times(found.speedup),
            100.0 * found.bytes as f64 / original.max(1) as f64
        );
        let _ = match met.len() {
            1 => write!(why, " No other candidate of {} does.", points.len()),
            count => write!(
                why,
                " {count} of {} candidates do; of those whose speed cannot be told from the fastest's it is the smallest.",
                points.len()
            ),
        };
        return why;
    }
    let Some((place, found)) = budget
        .nearest(points)
        .and_then(|place| Some((place, figures(place)?)))
    else {
        return "No candidate could be made, so nothing was written.".into();
    };
    let candidate = points[place].candidate;
    if !met.is_empty() {
        return format!(
            "{candidate} keeps the budget, but is neither smaller than the original nor certainly faster: it is {} times as fast, with \
             {} to {}. Nothing was written.",
            times(found.speedup),
            Figure::Size.shown(found.bytes as f64),
            Figure::Size.shown(original as f64)
        );
    }
    let missed = budget.missed(found).map(|(bound, share)| {
        let value = bound.figure.value(found);
        let value = value.map_or("not measured".into(), |value| bound.figure.shown(value));
        format!(
            "{} is {value} and misses {bound} by {:.1} %",
            bound.figure.name(),
            100.0 * share
        )
    });
    format!(
        "No candidate keeps the budget, so nothing was written. {candidate} comes nearest: {}.",
        missed.collect::<Vec<_>>().join(", ")
    )
}

/// The values that a budget asks for: "cosine 0.9961 (cosine>=0.995)".
fn values(budget: &Budget, figures: &Figures) -> String {
    let values = budget.bounds().iter().filter_map(|bound| {
        let value = bound.figure.value(figures)?;
        Some(format!(
            "{} {} ({bound})",
            bound.figure.name(),
            bound.figure.shown(value)
        ))
    });
    values.collect::<Vec<_>>().join(", ")
}

/// "1.42 (1.36 to 1.47)"
fn times(span: Span) -> String {
    format!("{:.2} ({:.2} to {:.2})", span.estimate, span.low, span.high)
}

/// "4.210 ms (4.180 to 4.260)"
fn milliseconds(span: Span) -> String {
    let [estimate, low, high] = [span.estimate, span.low, span.high].map(|seconds| seconds * 1e3);
    format!("{estimate:.3} ms ({low:.3} to {high:.3})")
}

impl BudgetReport {
    /// What was compared: one, and several of them.
    pub(super) fn items(&self) -> (&'static str, &'static str) {
        match self.of_pictures {
            true => ("picture", "pictures"),
            false => ("text", "texts"),
        }
    }

    fn columns(&self) -> [String; 8] {
        let (one, _) = self.items();
        let cosine = format!("cosine, worst {one}");
        let time = format!("time of a {one}");
        let names = [
            "",
            "candidate",
            &cosine,
            "recall@10",
            "bytes",
            &time,
            "times as fast",
            "",
        ];
        names.map(str::to_owned)
    }

    /// The table of candidates, the original first.
    fn table(&self) -> Vec<[String; 8]> {
        let mut rows = Vec::new();
        if let Some(original) = self.original {
            rows.push([
                "0".into(),
                "the original".into(),
                "1".into(),
                "1".into(),
                Figure::Size.shown(original.bytes as f64),
                milliseconds(original.latency),
                "1".into(),
                String::new(),
            ]);
        }
        for (place, point) in self.points.iter().enumerate() {
            let number = (place + 1).to_string();
            let name = point.candidate.to_string();
            rows.push(match &point.tried {
                Tried::Refused(reason) => {
                    let mut row = [number, name].into_iter();
                    let mut row: [String; 8] =
                        std::array::from_fn(|_| row.next().unwrap_or_default());
                    row[7] = format!("refused: {reason}");
                    row
                }
                Tried::Measured { figures, .. } => [
                    number,
                    name,
                    format!("{:.4}", figures.cosine),
                    figures
                        .recall
                        .map_or(String::new(), |recall| format!("{recall:.4}")),
                    Figure::Size.shown(figures.bytes as f64),
                    milliseconds(figures.latency),
                    times(figures.speedup),
                    self.says(place, point, figures),
                ],
            });
        }
        rows
    }

    /// What is said of a candidate: "chosen, keeps the budget, on the front".
    fn says(&self, place: usize, point: &Point, figures: &Figures) -> String {
        let missed: Vec<String> = self
            .budget
            .missed(figures)
            .map(|(bound, _)| bound.to_string())
            .collect();
        let kept = match missed.is_empty() {
            true => "keeps the budget".to_owned(),
            false => format!("misses {}", missed.join(", ")),
        };
        let chosen = (self.chosen == Some(place)).then(|| "chosen".to_owned());
        let front = point.front.then(|| "on the front".to_owned());
        let all: Vec<String> = chosen.into_iter().chain([kept]).chain(front).collect();
        all.join(", ")
    }

    fn title(&self) -> String {
        format!("{}, within a budget", self.model)
    }

    fn asked(&self) -> String {
        let bounds = self.budget.bounds().iter().map(ToString::to_string);
        format!(
            "Asked for: {}. Measured on {} {}; intervals hold with the confidence of the trials, and a bound of latency is one of the \
             upper end. The front has the candidates that no other beats in cosine, recall, bytes and time.",
            bounds.collect::<Vec<_>>().join(", "),
            self.texts,
            self.items().1
        )
    }

    fn kept(&self) -> Option<String> {
        (!self.in_f32.is_empty())
            .then(|| format!("In f32 for the budget: {}.", self.in_f32.join(", ")))
    }

    /// The report in Markdown.
    pub fn to_markdown(&self) -> String {
        let mut out = format!("# {}\n\n{}\n\n{}\n\n", self.title(), self.why, self.asked());
        if let Some(kept) = self.kept() {
            out += &format!("{kept}\n\n");
        }
        let mut line = |cells: &[&str]| {
            let cells = cells.iter().map(|cell| cell.replace('|', "\\|"));
            // Writing into a `String` cannot fail.
            let _ = writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "));
        };
        line(&self.columns().each_ref().map(String::as_str));
        line(&["---"; 8]);
        for row in self.table() {
            line(&row.each_ref().map(String::as_str));
        }
        if let Some(report) = &self.optimized {
            let _ = write!(out, "\n{}", report.to_markdown());
        }
        out
    }

    /// The report as a page that needs nothing but itself, with a picture of the candidates.
    pub fn to_html(&self) -> String {
        let title = escape(&self.title());
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n"
        );
        let paragraphs = [Some(self.why.clone()), Some(self.asked()), self.kept()];
        for paragraph in paragraphs.into_iter().flatten() {
            let _ = writeln!(out, "<p>{}</p>", escape(&paragraph));
        }
        out += &picture::drawn(self);
        out += "<table>\n";
        let mut line = |cells: &[&str], tag: &str| {
            let cells = cells
                .iter()
                .map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)));
            let _ = writeln!(out, "<tr>{}</tr>", cells.collect::<String>());
        };
        line(&self.columns().each_ref().map(String::as_str), "th");
        for row in self.table() {
            line(&row.each_ref().map(String::as_str), "td");
        }
        out += "</table>\n";
        if let Some(report) = &self.optimized {
            out += "<h2>What was written</h2>\n<table>\n";
            for (name, value) in report.rows() {
                let _ = writeln!(
                    out,
                    "<tr><td>{}</td><td>{}</td></tr>",
                    escape(&name),
                    escape(&value)
                );
            }
            out += "</table>\n";
        }
        out + "</html>\n"
    }
}

const STYLE: &str = "body { font-family: sans-serif; margin: 2em; max-width: 75em } \
    th, td { border-bottom: 1px solid #ccc; padding: 0.4em 1em 0.4em 0; text-align: left } \
    svg { max-width: 48em } .axis { stroke: #888 } .bound { stroke: #a33; stroke-dasharray: 4 3 } \
    .other { fill: #9aa } .front { fill: #27c } .span { stroke: #27c } .chosen { fill: none; stroke: #080; stroke-width: 2 }";
