//! A benchmark as one page that needs nothing but itself: charts, and behind each of them its table.

mod bars;
mod intervals;
mod lines;

use std::fmt::Write as _;

use super::compare::{Comparison, Verdict};
use super::figure::{Figure, Part};
use super::kept::Benchmark;

const STYLE: &str = include_str!("style.css");

/// The page. Nothing in it asks for anything else, and its policy forbids that anything could.
pub(super) fn page(benchmark: &Benchmark, comparison: Option<&Comparison>) -> String {
    let title = escape(&format!("{}: benchmark of isovec", benchmark.model));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    );
    about(&mut page, benchmark);
    if let Some(comparison) = comparison {
        compared(&mut page, comparison);
    }
    for part in Part::ALL {
        let figures = benchmark
            .figures
            .iter()
            .filter(|figure| figure.key.part == part);
        let figures: Vec<&Figure> = figures.collect();
        if figures.is_empty() {
            continue;
        }
        let _ = writeln!(page, "<section>\n<h2>{}</h2>", part.title());
        page.push_str(&match part {
            Part::Curves => lines::chart(&figures),
            _ => bars::chart(part.title(), &figures),
        });
        measured(&mut page, part, &figures);
        page.push_str("</section>\n");
    }
    configuration(&mut page, benchmark);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn about(page: &mut String, benchmark: &Benchmark) {
    let (options, texts) = (&benchmark.options, &benchmark.texts);
    let lines = [
        ("Model", benchmark.model.clone()),
        ("Fingerprint", benchmark.fingerprint.id()),
        ("Provider", benchmark.provider.clone()),
        ("Machine", benchmark.machine.to_string()),
        (
            "Measured",
            format!("{} by isovec {}", benchmark.date, benchmark.isovec),
        ),
        (
            "Turns",
            format!(
                "{} of about {} s each; {} callers",
                options.rounds, options.seconds, options.callers
            ),
        ),
        (
            "Texts",
            format!(
                "{} of {} a turn, {} tokens; hash {}",
                texts.a_turn, texts.count, texts.tokens, texts.hash
            ),
        ),
    ];
    page.push_str("<dl>\n");
    for (what, value) in lines {
        let _ = writeln!(page, "<dt>{what}</dt><dd>{}</dd>", escape(&value));
    }
    page.push_str("</dl>\n");
}

fn compared(page: &mut String, comparison: &Comparison) {
    let _ = writeln!(
        page,
        "<section>\n<h2>Compared with {}</h2>\n<p>{}.</p>",
        escape(&comparison.baseline),
        escape(&comparison.summary())
    );
    if let Some(machine) = &comparison.other_machine {
        let machine = escape(&machine.to_string());
        let _ = writeln!(
            page,
            "<p class=\"warning\">The baseline is of another machine: {machine}.</p>"
        );
    }
    if !comparison.differences.is_empty() {
        page.push_str("<ul>\n");
        for difference in &comparison.differences {
            let _ = writeln!(page, "<li>{}</li>", escape(difference));
        }
        page.push_str("</ul>\n");
    }
    page.push_str(&intervals::chart(comparison));
    let rows = comparison.figures.iter().map(|figure| {
        [
            figure.key.to_string(),
            figure.before.clone(),
            figure.after.clone(),
            figure.interval(),
            figure.verdict.word().to_owned(),
        ]
    });
    let heads = ["figure", "then", "now", "times as long", "verdict"];
    let confidence = comparison.confidence * 100.0;
    let caption =
        format!("Each interval has a confidence of {confidence:.3} %, all of them together 95 %.");
    table(page, &caption, heads, rows);
    page.push_str("</section>\n");
}

fn measured(page: &mut String, part: Part, figures: &[&Figure]) {
    let rows = figures.iter().map(|figure| {
        [
            figure.key.to_string(),
            figure.shown(),
            figure.range(),
            figure.texts.to_string(),
            figure.seconds.values().len().to_string(),
        ]
    });
    let heads = ["figure", "middle turn", "all turns", "texts", "turns"];
    table(page, part.title(), heads, rows);
}

fn configuration(page: &mut String, benchmark: &Benchmark) {
    page.push_str("<section>\n<h2>Configuration</h2>\n");
    let rows = benchmark.effective_config.knobs().iter().map(|knob| {
        [
            knob.name.to_string(),
            knob.used.clone(),
            knob.asked.clone().unwrap_or_else(|| "not asked".into()),
            knob.why.clone(),
        ]
    });
    table(
        page,
        "Every knob as it is in effect",
        ["knob", "used", "asked", "why"],
        rows,
    );
    page.push_str("</section>\n");
}

/// A table whose first column names its rows.
fn table<const N: usize>(
    page: &mut String,
    caption: &str,
    heads: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) {
    // A wide one scrolls by itself, also by the keyboard.
    let caption = escape(caption);
    let _ = write!(
        page,
        "<div class=\"scrolls\" role=\"region\" aria-label=\"{caption}\" tabindex=\"0\">\n<table>\n\
         <caption>{caption}</caption>\n<thead><tr>"
    );
    for head in heads {
        let _ = write!(page, "<th scope=\"col\">{head}</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        page.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let cell = escape(cell);
            let _ = match column {
                0 => write!(page, "<th scope=\"row\">{cell}</th>"),
                _ => write!(page, "<td>{cell}</td>"),
            };
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table>\n</div>\n");
}

/// Text as HTML and attributes have it. Characters that no document may have are left out.
fn escape(text: &str) -> String {
    let allowed = |c: &char| matches!(c, '\t' | '\n') || !c.is_control();
    isovec_insight::graph::escape(&text.chars().filter(allowed).collect::<String>())
}

/// The beginning of a chart: what it is, for those who hear it as well.
fn svg(title: &str, says: &str, width: usize, height: usize) -> String {
    let (title, says) = (escape(title), escape(says));
    format!(
        "<svg role=\"img\" aria-label=\"{title}. {says}\" viewBox=\"0 0 {width} {height}\">\n\
         <title>{title}</title>\n<desc>{says}</desc>\n"
    )
}

impl Verdict {
    /// The colour's name in the style; charts and tables say the word as well.
    fn class(self) -> &'static str {
        match self {
            Self::Slower => "bad",
            Self::Faster => "good",
            Self::Same | Self::Unclear => "plain",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_named_is_text_and_nothing_else() {
        let name = "<img src=\"http://x\" onerror='y'>&\u{0}\u{7}";
        assert_eq!(
            escape(name),
            "&lt;img src=&quot;http://x&quot; onerror=&#39;y&#39;&gt;&amp;"
        );
    }
}
