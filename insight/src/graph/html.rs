//! A graph as one page that loads nothing: it opens from a disk, and no script runs in it.

use std::fmt::Write;

use super::markup::escape;
use super::{GraphGroup, INPUT, ModelGraph, numbers};

/// Colours have a contrast of at least 4.5 to 1 with what is behind them, in light and in dark (WCAG 2.2, 1.4.3).
const STYLE: &str = include_str!("page.css");

impl ModelGraph {
    /// The graph as an HTML page of its own: sums, operators by kind, and every node, layers folded away. It asks for
    /// nothing from anywhere, and follows the reader's choice of light and dark.
    pub fn to_html(&self) -> String {
        let title = name(&self.model);
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>Graph of {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        );
        for line in self.headline() {
            let _ = writeln!(page, "<p>{}</p>", name(&line));
        }
        self.kinds(&mut page);
        let _ = writeln!(page, "<h2>Nodes</h2>");
        for group in &self.groups {
            self.group(&mut page, group);
        }
        page.push_str("</main>\n</body>\n</html>\n");
        page
    }

    fn kinds(&self, page: &mut String) {
        let timed = self.times.is_some();
        let _ = write!(
            page,
            "<h2>By operator</h2>\n\
             <div class=\"wide\" role=\"region\" aria-label=\"Operators\" tabindex=\"0\">\n<table>\n\
             <caption>What all nodes of a kind take together</caption>\n<thead><tr><th scope=\"col\">Operator</th>\
             <th scope=\"col\">Nodes</th><th scope=\"col\">Parameters</th><th scope=\"col\">FLOPs</th>\
             <th scope=\"col\">Share of FLOPs</th>{}</tr></thead>\n<tbody>\n",
            if timed {
                "<th scope=\"col\">Time</th>"
            } else {
                ""
            }
        );
        for share in &self.operators {
            let _ = writeln!(
                page,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td><meter min=\"0\" max=\"1\" \
                 value=\"{:.4}\" aria-hidden=\"true\"></meter> {}</td>{}</tr>",
                name(&share.operator),
                share.nodes,
                numbers::count(share.parameters),
                numbers::flops(share.flops),
                share.share,
                numbers::percent(share.share),
                time(timed, share.milliseconds),
            );
        }
        page.push_str("</tbody>\n</table>\n</div>\n");
    }

    /// A group, folded away where it is one of many; each copy of a layer has its own fold in it.
    fn group(&self, page: &mut String, group: &GraphGroup) {
        let open = if self.nodes.len() <= 64 { " open" } else { "" };
        let title = name(&self.title(group, None));
        let _ = writeln!(page, "<details{open}>\n<summary>{title}</summary>");
        for copy in 0..group.repeats {
            let title = name(&self.title(group, Some(copy)));
            if group.repeats > 1 {
                let _ = writeln!(page, "<details>\n<summary>{title}</summary>");
            }
            self.table(page, group, copy, &title);
            if group.repeats > 1 {
                page.push_str("</details>\n");
            }
        }
        page.push_str("</details>\n");
    }

    fn table(&self, page: &mut String, group: &GraphGroup, copy: usize, title: &str) {
        let timed = self.times.is_some();
        let _ = write!(
            page,
            "<div class=\"wide\" role=\"region\" aria-label=\"{title}\" tabindex=\"0\">\n<table>\n<thead><tr>\
             <th scope=\"col\">#</th><th scope=\"col\">Operator</th><th scope=\"col\">Name</th>\
             <th scope=\"col\">Reads</th><th scope=\"col\">Result</th><th scope=\"col\">Parameters</th>\
             <th scope=\"col\">Weights</th><th scope=\"col\">Bytes of the result</th><th scope=\"col\">FLOPs</th>\
             <th scope=\"col\">Runs on</th>{}</tr></thead>\n<tbody>\n",
            if timed {
                "<th scope=\"col\">Time</th>"
            } else {
                ""
            }
        );
        let unknown = || "unknown".to_owned();
        for at in group.copy(copy) {
            let node = &self.nodes[at];
            let detail = match node.detail.is_empty() {
                true => String::new(),
                false => format!(" <span>{}</span>", name(&node.detail)),
            };
            let reads = node
                .inputs
                .iter()
                .map(|input| format!("<a href=\"#n{input}\">{input}</a>"));
            let runs_on = match &node.provider {
                Some(provider) => name(provider),
                None if node.operator == INPUT => String::new(),
                None => unknown(),
            };
            let _ = writeln!(
                page,
                "<tr id=\"n{at}\"><td>{at}</td><th scope=\"row\">{}{detail}</th><td>{}</td><td>{}</td><td>{}</td>\
                 <td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{runs_on}</td>{}</tr>",
                name(&node.operator),
                name(&node.name),
                reads.collect::<Vec<_>>().join(" "),
                name(&numbers::shape(node)),
                numbers::count(node.parameters),
                numbers::bytes(node.weight_bytes),
                node.result_bytes.map_or_else(unknown, numbers::bytes),
                node.flops.map_or_else(unknown, numbers::flops),
                time(timed, node.milliseconds),
            );
        }
        page.push_str("</tbody>\n</table>\n</div>\n");
    }
}

fn time(timed: bool, milliseconds: Option<f64>) -> String {
    match (timed, milliseconds) {
        (false, _) => String::new(),
        (true, time) => format!(
            "<td>{}</td>",
            time.map(numbers::milliseconds).unwrap_or_default()
        ),
    }
}

/// A name as text of the page.
fn name(text: &str) -> String {
    escape(&numbers::plain(text))
}
