//! Tests the renderers with graphs that no exporter would write.
#![allow(clippy::unwrap_used)] // Also outside the functions marked as tests.

mod counts;

use super::*;

fn node(operator: &str, inputs: &[usize]) -> GraphNode {
    GraphNode {
        operator: operator.into(),
        inputs: inputs.to_vec(),
        shape: Some(vec![Dim::Symbolic("tokens".into()), Dim::Fixed(8)]),
        flops: Some(16),
        result_bytes: Some(32),
        ..GraphNode::default()
    }
}

fn graph(nodes: Vec<GraphNode>) -> ModelGraph {
    let mut graph = ModelGraph::empty("a model".into(), 1, 8);
    graph.nodes = nodes;
    graph.finish();
    graph
}

/// Names that are markup, commands or directives somewhere.
fn odd() -> ModelGraph {
    let names = [
        "<script>alert(1)</script>",
        "\"]; click n0 href \"https://example.org\"",
        "end\nsubgraph x",
        "%%{init: {}}%%",
        "a`b`#quot;;&amp;\\",
        "\u{1b}[31mred\u{202e}",
        "' onload='x",
        "图 → 🙂",
    ];
    let mut graph = graph(
        names
            .iter()
            .enumerate()
            .map(|(at, name)| GraphNode {
                name: (*name).into(),
                detail: (*name).into(),
                shape: Some(vec![Dim::Symbolic((*name).into())]),
                provider: Some((*name).into()),
                ..node(name, &at.checked_sub(1).map_or(vec![], |at| vec![at]))
            })
            .collect(),
    );
    graph.model = "</title><script>\n%%{init}".into();
    graph.notes.push("<b>note</b>\nflowchart LR".into());
    graph
}

fn many() -> ModelGraph {
    let nodes = (0..10_000_usize).map(|at| {
        let inputs: Vec<usize> = [1, 7, 40]
            .iter()
            .filter_map(|back| at.checked_sub(*back))
            .collect();
        node(&format!("op{}", at * at % 977), &inputs)
    });
    graph(nodes.collect())
}

/// Whether text is what stands between the quotes of a label: nothing that ends it, and every `#` begins a number.
fn label(text: &str) -> bool {
    let text = text.replace("<br/>", "");
    let mut parts = text.split('#');
    let plain = |part: &str| !part.contains(['"', ';', '<', '>', '&', '`', '\\', '{', '}', '%']);
    let number = |part: &str| {
        let (digits, rest) = part.split_once(';').unwrap_or(("", part));
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && plain(rest)
    };
    plain(parts.next().unwrap_or_default()) && parts.all(number)
}

fn id(text: &str, letter: char) -> bool {
    text.strip_prefix(letter).is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The grammar of the lines that are written, and that every edge is between nodes that are.
fn check_mermaid(text: &str) {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("flowchart TD"));
    let (mut inside, mut seen) = (false, std::collections::HashSet::new());
    for line in lines {
        let line = line.trim_start();
        let between = |open: &str, close: &str| {
            let (name, rest) = line.split_once(open)?;
            Some((name, rest.strip_suffix(close)?))
        };
        if let Some(comment) = line.strip_prefix("%% ") {
            assert!(!comment.contains(['{', '}']), "{line}");
        } else if let Some(rest) = line.strip_prefix("subgraph ") {
            let (name, text) = rest.split_once("[\"").unwrap();
            assert!(
                !inside && id(name, 'g') && label(text.strip_suffix("\"]").unwrap()),
                "{line}"
            );
            inside = true;
        } else if line == "end" {
            assert!(inside);
            inside = false;
        } else if let Some((from, to)) = line
            .split_once(" --> ")
            .or_else(|| line.split_once(" -. \"next\" .-> "))
        {
            assert!(seen.contains(from) && seen.contains(to), "{line}");
        } else {
            let found = between("([\"", "\"])").or_else(|| between("[\"", "\"]"));
            let (name, text) = found.unwrap_or_else(|| panic!("{line}"));
            assert!(
                label(text) && (id(name, 'n') && inside || name == "cut"),
                "{line}"
            );
            seen.insert(name.to_owned());
        }
    }
    assert!(!inside);
}

#[test]
fn mermaid_is_lines_that_mermaid_reads_whatever_names_are_like() {
    for graph in [odd(), many(), graph(Vec::new())] {
        let text = graph.to_mermaid();
        check_mermaid(&text);
        assert_eq!(text, graph.clone().to_mermaid());
    }
    assert!(odd().to_mermaid().contains("#60;script#62;"));
}

#[test]
fn names_are_text_in_the_page_and_move_nothing_on_a_terminal() {
    let graph = odd();
    let page = graph.to_html();
    assert!(!page.contains("<script") && !page.contains("<b>"), "{page}");
    assert!(!page.contains("' onload") && page.contains("&#39; onload"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("图 → 🙂"));
    for text in [graph.to_text(false), graph.to_text(true), page] {
        let odd = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!text.contains(odd), "{text:?}");
    }
    // A line for each node, whatever its name holds.
    let branches = graph.to_text(true);
    let branches = branches.lines().filter(|line| line.contains("─ "));
    assert_eq!(branches.count(), graph.nodes.len());
}

#[test]
fn the_page_asks_for_nothing_and_is_well_formed() {
    for graph in [odd(), many()] {
        let page = graph.to_html();
        for outside in ["http:", "https:", "src=", "@import", "url(", "<link"] {
            let text = page.replace("&quot;https://example.org&quot;", "");
            assert!(!text.contains(outside), "{outside}");
        }
        for tag in [
            "main", "table", "tr", "td", "th", "details", "summary", "div", "a", "p", "h1",
        ] {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            let closed = page.matches(&format!("</{tag}>")).count();
            assert_eq!(opened, closed, "{tag}");
        }
        // Every link leads to a row of the page, and each row is there once.
        let rows = page
            .split("<tr id=\"n")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap());
        let wanted = (0..graph.nodes.len()).map(|at| at.to_string());
        assert!(rows.eq(wanted));
    }
}

#[test]
fn ten_thousand_nodes_are_cut_where_nobody_would_read_on() {
    let graph = many();
    let text = graph.to_text(false);
    assert!(text.lines().count() < 1500, "{}", text.lines().count());
    assert!(text.contains("more nodes, not shown"), "{text}");
    assert!(graph.to_text(true).lines().count() > 10_000);
    let mermaid = graph.to_mermaid();
    assert!(mermaid.contains("cut[\"… cut here: "), "{mermaid}");
    assert!(mermaid.lines().count() < 1000);
}
