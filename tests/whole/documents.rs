//! Tests of the documents: every link has a target, the book has every chapter, every error is explained, and a test
//! reads every example. (Rust examples are compiled by `src/lib.rs`, commands by `cli/` and `xtask/`, TypeScript by
//! `bindings/js/tests/documents.test.mjs`.)

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// Where this repository is read by those who have no clone of it.
const REPOSITORY: &str = "https://github.com/isovec/isovec/";
const OUTLINE: &str = "docs/SUMMARY.md";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    let text = fs::read_to_string(root().join(name));
    // As git may have checked it out.
    text.unwrap_or_else(|error| panic!("{name}: {error}"))
        .replace("\r\n", "\n")
}

/// The book's chapters, and its outline.
fn chapters() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    names.sort();
    names
}

/// All documents that users and developers read.
fn documents() -> Vec<String> {
    let others = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "bindings/js/README.md",
        "bindings/python/README.md",
        "benches/RESULTS.md",
    ];
    chapters()
        .into_iter()
        .chain(others.map(str::to_owned))
        .collect()
}

/// What a document links to, what can be linked to in it, and its code blocks with their languages.
#[derive(Default)]
struct Document {
    links: Vec<String>,
    anchors: BTreeSet<String>,
    blocks: Vec<(String, String)>,
}

fn parse(text: &str) -> Document {
    let mut document = Document::default();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut heading: Option<String> = None;
    let mut block: Option<(String, String)> = None;
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                document.links.push(dest_url.into_string());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let id = anchor(&heading.take().unwrap());
                let before = seen.entry(id.clone()).or_default();
                document.anchors.insert(match *before {
                    0 => id,
                    times => format!("{id}-{times}"),
                });
                *before += 1;
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                block = Some((language, String::new()));
            }
            Event::End(TagEnd::CodeBlock) => document.blocks.extend(block.take()),
            Event::Text(text) | Event::Code(text) => {
                let into = heading.as_mut().or(block.as_mut().map(|(_, code)| code));
                if let Some(into) = into {
                    into.push_str(&text);
                }
            }
            _ => {}
        }
    }
    document
}

/// The anchor of a heading, as mdBook and GitHub make it.
fn anchor(heading: &str) -> String {
    heading
        .trim()
        .chars()
        .filter_map(|c| match c {
            _ if c.is_alphanumeric() || c == '_' || c == '-' => Some(c.to_ascii_lowercase()),
            ' ' => Some('-'),
            _ => None,
        })
        .collect()
}

/// A path without `.` and `..`; nothing where it leads out of the repository.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            _ => return None,
        }
    }
    Some(plain)
}

/// The file of the repository that a link means, if it means one.
fn target(from: &str, link: &str) -> Option<String> {
    if let Some(place) = link.strip_prefix(REPOSITORY) {
        let place = place
            .strip_prefix("blob/main/")
            .or(place.strip_prefix("tree/main/"))?;
        return Some(place.to_owned());
    }
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let folder = Path::new(from).parent().unwrap();
    let path = plain(&folder.join(link)).unwrap_or_else(|| panic!("{from}: {link} leads out"));
    Some(path.to_str().unwrap().replace('\\', "/"))
}

#[test]
fn every_link_leads_somewhere() {
    let documents: BTreeMap<String, Document> = documents()
        .into_iter()
        .map(|name| {
            let document = parse(&read(&name));
            (name, document)
        })
        .collect();
    let mut faults = Vec::new();
    let mut checked = 0;
    for (name, document) in &documents {
        for link in &document.links {
            let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
            let file = match path {
                "" => Some(name.clone()),
                path => target(name, path),
            };
            let Some(file) = file else { continue };
            checked += 1;
            if !root().join(&file).exists() {
                faults.push(format!("{name}: {link} is not there"));
            } else if let Some(there) = documents.get(&file)
                && !fragment.is_empty()
                && !there.anchors.contains(fragment)
            {
                faults.push(format!("{name}: {link} names no heading"));
            }
            // The book's pages stand alone: what is no page has to be linked to where it is read.
            let inside = file.starts_with("docs/") && file.ends_with(".md");
            if name.starts_with("docs/") && !inside && !link.starts_with(REPOSITORY) {
                faults.push(format!(
                    "{name}: {link} leads out of the book; write {REPOSITORY}blob/main/{file}"
                ));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    assert!(checked > 60, "{checked} links");
}

#[test]
fn the_book_has_every_chapter() {
    let outline: BTreeSet<String> = parse(&read(OUTLINE))
        .links
        .iter()
        .map(|link| format!("docs/{link}"))
        .collect();
    let mut there: BTreeSet<String> = chapters().into_iter().collect();
    there.remove(OUTLINE);
    assert_eq!(outline, there);
}

/// The names that `kind` functions give, in a file of Rust.
fn kinds_of_rust(name: &str) -> BTreeSet<String> {
    let text = read(name);
    let (_, function) = text.split_once("fn kind(&self)").unwrap();
    let (function, _) = function.split_once("\n    }\n").unwrap();
    function
        .lines()
        .filter_map(|line| line.split_once("=> \"")?.1.split_once('"'))
        .map(|(kind, _)| kind.to_owned())
        .collect()
}

/// The kinds with which the npm package makes errors of its own.
fn kinds_of_typescript(folder: &Path, kinds: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            kinds_of_typescript(&path, kinds);
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        let made = text.split("new IsovecError(\"").skip(1);
        kinds.extend(made.map(|rest| rest.split('"').next().unwrap().to_owned()));
    }
}

/// The kinds that have a class of their own in the Python package.
fn kinds_of_python() -> BTreeSet<String> {
    let text = read("bindings/python/python/isovec/_errors.py");
    let kinds: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("    \"")?.split_once("\": "))
        .map(|(kind, _)| kind.to_owned())
        .collect();
    assert!(kinds.len() > 5, "{kinds:?}");
    kinds
}

/// Every kind of error of the SDK and of the npm package.
fn kinds() -> BTreeSet<String> {
    let mut kinds = BTreeSet::new();
    for (name, least) in [
        ("src/error.rs", 6),
        ("engine/src/error.rs", 6),
        ("engine/model/optimise/src/error.rs", 1),
        ("input/text/src/error.rs", 6),
    ] {
        let own = kinds_of_rust(name);
        assert!(own.len() >= least, "{name}: {own:?}");
        kinds.extend(own);
    }
    let before = kinds.len();
    kinds_of_typescript(&root().join("bindings/js/ts"), &mut kinds);
    assert!(kinds.len() > before, "the npm package has kinds of its own");
    kinds
}

/// The union that TypeScript has of the kinds says all of them, and no other.
#[test]
fn the_npm_package_names_every_kind_of_error() {
    let text = read("bindings/js/ts/kinds.ts");
    let named: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("  | \"")?.split_once('"'))
        .map(|(kind, _)| kind.to_owned())
        .collect();
    assert_eq!(named, kinds());
}

/// Every kind of error has a heading in the chapter on troubles, and nothing else has.
#[test]
fn every_error_is_explained() {
    let text = read("docs/troubleshooting.md");
    let (_, errors) = text.split_once("\n## Errors by their kind\n").unwrap();
    let explained: BTreeSet<String> = errors
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(kind, _)| kind.to_owned())
        .collect();
    let mut kinds = kinds();
    kinds.extend(kinds_of_python());
    assert_eq!(explained, kinds);
}

/// The messages that the chapter on troubles quotes are those that the code says.
#[test]
fn every_quoted_message_is_said() {
    let own = [
        "src",
        "engine/src",
        "engine/hub/src",
        "engine/model/src",
        "native/src",
        "web/gpu/src",
        "web/src",
        "bindings/js/ts",
    ];
    said_by("Messages that are not errors", &own);
    said_by("A query in SQL is refused", &["bindings/datafusion/src"]);
}

/// Finds the messages that begin the rows of a section in the source of these folders.
fn said_by(section: &str, folders: &[&str]) {
    let mut said = String::new();
    for folder in folders {
        sources(&root().join(folder), &mut said);
    }
    let text = read("docs/troubleshooting.md");
    let (_, messages) = text.split_once(&format!("\n## {section}\n")).unwrap();
    let (messages, _) = messages.split_once("\n## ").unwrap();
    let quoted = messages
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let mut parts = 0;
    // An ellipsis stands for what is put in.
    for part in quoted.flat_map(|(message, _)| message.split('…')) {
        let part = part.trim_matches([' ', '(', ')']);
        if part.len() > 5 && !OF_DATAFUSION.contains(&part) {
            assert!(said.contains(part), "nothing says {part:?}");
            parts += 1;
        }
    }
    assert!(parts > 3, "{parts} parts of messages");
}

/// What DataFusion says itself.
const OF_DATAFUSION: [&str; 1] = ["async functions should not be called directly"];

/// The text of all files below a folder.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, text),
            false => text.push_str(&fs::read_to_string(path).unwrap_or_default()),
        }
    }
}

/// What begins as a knob does, and is a file or a number of the statistics.
const NO_KNOBS: [&str; 5] = [
    "memory.wasm_bytes",
    "model.onnx",
    "model.safetensors",
    "model.safetensors.index.json",
    "session.run",
];

/// Knobs of earlier versions, which the history names.
const GONE: [&str; 4] = [
    "io.cuda_memory_streams",
    "session.inter_op_threads",
    "session.memory_pattern",
    "session.parallel_execution",
];
const HISTORY: [&str; 2] = ["CHANGELOG.md", "benches/RESULTS.md"];

#[test]
fn a_knob_that_is_gone_is_in_the_changelog_and_says_so_itself() {
    let changelog = read("CHANGELOG.md");
    for path in GONE {
        assert!(changelog.contains(&format!("`{path}`")), "{path}");
        let (group, name) = path.split_once('.').unwrap();
        let config = format!(r#"{{"{group}": {{"{name}": true}}}}"#);
        let error = serde_json::from_str::<isovec::EmbeddingConfig>(&config).unwrap_err();
        let begins = format!("there is no knob {path} any more: ");
        assert!(error.to_string().starts_with(&begins), "{error}");
    }
}

/// A name as Rust writes it: `maxBatchSize` is `max_batch_size`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[test]
fn every_knob_that_is_named_is_one() {
    let reference = read("docs/knobs.md");
    let knobs: BTreeSet<&str> = reference
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    let groups: BTreeSet<&str> = knobs
        .iter()
        .filter_map(|knob| knob.split_once('.'))
        .map(|(group, _)| group)
        .collect();
    let mut named = 0;
    for name in documents() {
        let text = read(&name);
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
            let Event::Code(code) = event else { continue };
            let path = code
                .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
                .next()
                .unwrap();
            // A call, of another library's model for instance, is none.
            if code[path.len()..].starts_with('(') {
                continue;
            }
            let path = &*snake(path);
            let Some((group, _)) = path
                .split_once('.')
                .filter(|(group, _)| groups.contains(group))
            else {
                continue;
            };
            let inner = format!("{path}.");
            let is_knob = knobs.contains(path)
                || knobs.iter().any(|knob| knob.starts_with(&inner))
                || NO_KNOBS.contains(&path)
                || (HISTORY.contains(&&*name) && GONE.contains(&path));
            assert!(is_knob, "{name} names {path}, and {group} has no such knob");
            named += 1;
        }
    }
    assert!(named > 100, "{named} names");
}

/// Languages of examples whose readers are tests, and of pictures and output.
const LANGUAGES: [&str; 11] = [
    "mermaid",
    "rust,no_run",
    "rust",
    "js",
    "ts",
    "python",
    "sql",
    "sh",
    "toml",
    "json",
    "text",
];

#[test]
fn every_example_is_one_that_a_test_reads() {
    // Each compiles those of its own crate.
    let sdk = read("src/lib.rs");
    let others = [
        read("insight/src/lib.rs"),
        read("route/src/lib.rs"),
        read("serve/src/lib.rs"),
    ];
    // In a workspace of its own.
    let datafusion = read("bindings/datafusion/src/lib.rs");
    let sql = read("bindings/datafusion/tests/documents.rs");
    let python = read("bindings/python/tests/test_documents.py");
    let mut examples = 0;
    for name in documents() {
        for (language, code) in parse(&read(&name)).blocks {
            examples += 1;
            assert!(
                LANGUAGES.contains(&language.as_str()),
                "{name}: nobody tests {language:?}: {code}"
            );
            if language == "python" {
                let path = format!("ROOT / \"{}\"", name.replace('/', "\" / \""));
                let is_chapter =
                    name.starts_with("docs/") && python.contains("ROOT / \"docs\").glob(\"*.md\")");
                assert!(
                    is_chapter || python.contains(&path),
                    "no test in Python runs {name}"
                );
            }
            if language == "sql" {
                assert!(
                    sql.contains(&format!("include_str!(\"../../../{name}\")")),
                    "no test of bindings/datafusion runs {name}"
                );
            }
            if language.starts_with("rust") {
                let in_bindings = format!("include_str!(\"../../../{name}\")");
                let below = format!("include_str!(\"../../{name}\")");
                assert!(
                    sdk.contains(&format!("include_str!(\"../{name}\")"))
                        || others.iter().any(|other| other.contains(&below))
                        || datafusion.contains(&in_bindings),
                    "no lib.rs of src, bindings/datafusion/src, insight/src, route/src and serve/src compiles {name}"
                );
            }
        }
    }
    assert!(examples > 40, "{examples} examples");
}

/// The numbers of a text that say more than a count does: with a point, or of three digits and more.
fn figures(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.')
        .map(|number| number.trim_matches('.'))
        .filter(|number| number.contains('.') || number.len() > 2)
        .collect()
}

/// A table of the chapter on performance says what was measured, and says it no longer when it was
/// measured anew.
#[test]
fn every_figure_was_measured() {
    let results = read("benches/RESULTS.md");
    let configuration = read("docs/configuration.md");
    let mut measured = figures(&results);
    measured.extend(figures(&configuration));
    let chapter = read("docs/performance.md");
    let rows = chapter.lines().filter(|line| line.starts_with('|'));
    let stated: BTreeSet<&str> = rows.flat_map(figures).collect();
    assert!(stated.len() > 80, "{stated:?}");
    let stale: Vec<_> = stated.difference(&measured).collect();
    assert!(
        stale.is_empty(),
        "docs/performance.md states {stale:?}, which benches/RESULTS.md and docs/configuration.md do not"
    );
}

/// The examples in the comments of Rust files, and whole files where those are examples themselves.
fn examples_of_sources() -> Vec<(String, String)> {
    let mut examples = Vec::new();
    for folder in ["src", "examples"] {
        let mut folders = vec![root().join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.display().to_string();
                let text = fs::read_to_string(&path).unwrap();
                let comments = text.lines().map(|line| {
                    let line = line.trim_start();
                    let comment = ["//! ", "/// "]
                        .iter()
                        .find_map(|mark| line.strip_prefix(mark));
                    format!("{}\n", comment.unwrap_or_default())
                });
                let comments = parse(&comments.collect::<String>()).blocks;
                examples.extend(comments.into_iter().map(|(_, code)| (name.clone(), code)));
                if path.starts_with(root().join("examples")) {
                    examples.push((name, text));
                }
            }
        }
    }
    examples
}

/// Models that were trained with prompts find little where one side goes without: no example may teach that.
#[test]
fn what_a_query_searches_was_embedded_as_passages() {
    const QUERIES: [&str; 4] = [
        "embed_query(",
        "embedQuery(",
        "embed_queries(",
        "embedQueries(",
    ];
    /// Calls that put the model's default prompt before a text, which is seldom the one for passages.
    const PLAIN: [&str; 7] = [
        ".embed(",
        ".embed_one(",
        ".embedOne(",
        ".embed_chunks(",
        ".embed_long(",
        ".embed_stream(",
        ".embed_iter(",
    ];
    let of_documents = documents().into_iter().flat_map(|name| {
        let blocks = parse(&read(&name)).blocks;
        blocks
            .into_iter()
            .map(move |(_, code)| (name.clone(), code))
    });
    let page = ("www/src/index.html".to_owned(), read("www/src/index.html"));
    let mut searched = 0;
    for (name, code) in of_documents.chain(examples_of_sources()).chain([page]) {
        // Pictures have no prompts.
        let pictures = code.contains("ImageEmbedder");
        if pictures || !QUERIES.iter().any(|call| code.contains(call)) {
            continue;
        }
        searched += 1;
        let plain = PLAIN.iter().find(|call| code.contains(*call));
        assert!(
            plain.is_none(),
            "{name}: an example searches with a query what {plain:?} made: {code}"
        );
    }
    assert!(searched > 10, "{searched} examples search");
}

/// What stands between two marks, and what comes after them.
fn between<'t>(text: &'t str, open: &str, close: &str) -> Option<(&'t str, &'t str)> {
    text.split_once(open)?.1.split_once(close)
}

/// The first examples of the pages that users begin with find what they say they find, with the
/// score that they say.
#[test]
fn the_first_examples_print_what_they_say() {
    let Some(model) = isovec_test_support::minilm() else {
        return;
    };
    let embedder = isovec::blocking::Embedder::load(model).unwrap();
    for name in [
        "README.md",
        "docs/getting-started.md",
        "src/lib.rs",
        "src/embedder.rs",
    ] {
        let text = read(name);
        let (list, rest) = between(&text, "let passages = [", "];").unwrap();
        // Odd parts of what quotes divide stand within them.
        let passages: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
        let (query, rest) = between(rest, "embed_query(\"", "\")").unwrap();
        assert!(rest.contains(".search_one(&query, "), "{name} searches");
        let index = embedder.embed_passages(&passages).unwrap();
        let query = embedder.embed_query(query).unwrap();
        let hits = index.search_one(&query, passages.len()).unwrap();
        for (rank, hit) in hits.iter().enumerate() {
            let (passage, score) = (passages[hit.index], format!("{:.3}", hit.score));
            // Every score that stands before the passage is its own, and the best one's is there.
            let stated: Vec<&str> = rest
                .match_indices(passage)
                .filter_map(|(at, _)| rest[..at].strip_suffix(' '))
                .filter(|before| before.ends_with(|c: char| c.is_ascii_digit()))
                .map(|before| before.rsplit([' ', '`', '\n']).next().unwrap())
                .collect();
            assert!(
                stated.iter().all(|&number| number == score),
                "{name}: {score} {passage}"
            );
            assert!(rank > 0 || !stated.is_empty(), "{name}: {score} {passage}");
        }
    }
}
