//! `isovec rerank` and `isovec search --rerank` on the seeded reranker: the order and the scores of a reference at float64, and what
//! cannot work.

use std::fs;

use serde_json::Value;

use crate::{isovec, model, stderr, stdout};

/// The largest difference of two scores.
const NEAR: f64 = 1e-5;

fn folder() -> String {
    let folder = model().with_file_name("tiny-reranker");
    folder.display().to_string()
}

/// The query, and the documents that are a line each with their logits.
fn reference() -> (String, Vec<(String, f64)>) {
    let path = model().with_file_name("tiny-reranker/reference.json");
    let all: Value = serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON");
    let documents = all["documents"].as_array().expect("documents").iter();
    let documents = documents.map(|document| {
        let text = document["text"].as_str().expect("a text");
        (
            text.to_owned(),
            document["logit"].as_f64().expect("a number"),
        )
    });
    let query = all["query"].as_str().expect("a query");
    (query.to_owned(), documents.collect())
}

fn rerank(args: &[&str]) -> assert_cmd::Command {
    let folder = folder();
    let model = ["rerank", "--model", &folder, "--engine", "portable"];
    isovec(&[&model[..], args].concat())
}

/// The places of the documents, the best first; equals in their order.
fn order(documents: &[(String, f64)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..documents.len()).collect();
    order.sort_by(|&a, &b| documents[b].1.total_cmp(&documents[a].1));
    order
}

#[test]
fn documents_come_in_the_order_of_the_reference() {
    let (query, documents) = reference();
    let order = order(&documents);
    let input: String = documents
        .iter()
        .map(|(text, _)| format!("{text}\n"))
        .collect();
    let sigmoid = |logit: f64| 1.0 / (1.0 + (-logit).exp());
    for (args, form) in [
        (&[][..], &sigmoid as &dyn Fn(f64) -> f64),
        (&["--scores", "logits"][..], &|logit| logit),
        (&["--scores", "sigmoid", "--top-n", "3"][..], &sigmoid),
        (&["--top-n", "100"][..], &sigmoid),
    ] {
        let mut command = rerank(&[&[&*query, "-", "--json"][..], args].concat());
        let answer: Value =
            serde_json::from_str(&stdout(command.write_stdin(input.clone()))).expect("JSON");
        assert_eq!(answer["documents"], documents.len());
        let hits = answer["hits"].as_array().expect("hits");
        let most = if args.contains(&"3") {
            3
        } else {
            documents.len()
        };
        assert_eq!(hits.len(), most);
        for (hit, &place) in hits.iter().zip(&order) {
            let (text, logit) = &documents[place];
            assert_eq!(
                (&hit["index"], hit["text"].as_str()),
                (&place.into(), Some(&**text))
            );
            assert_eq!(hit["number"], place + 1);
            let score = hit["score"].as_f64().expect("a number");
            assert!((score - form(*logit)).abs() <= NEAR, "{hit}");
        }
    }
    let table = stdout(rerank(&[&query, "-", "-n", "2"]).write_stdin(input));
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2);
    let start: String = documents[order[0]].0.chars().take(20).collect();
    assert!(lines[0].contains(&start), "{table}");
}

#[test]
fn fields_of_a_row_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("rows.jsonl");
    fs::write(
        &file,
        "{\"body\": \"a dog\", \"id\": 7}\n{\"body\": \"a cat\", \"id\": 8}\n",
    )
    .expect("a file");
    let file = file.display().to_string();
    let mut command = rerank(&[
        "an animal",
        "--file",
        &file,
        "--field",
        "body",
        "--json",
        "--stats",
    ]);
    let answer: Value = serde_json::from_str(&stdout(&mut command)).expect("JSON");
    let ids = answer["hits"]
        .as_array()
        .expect("hits")
        .iter()
        .map(|hit| hit["fields"]["id"].as_u64());
    let mut ids: Vec<Option<u64>> = ids.collect();
    ids.sort_unstable();
    assert_eq!(ids, [Some(7), Some(8)]);
    assert_eq!(answer["stats"]["calls"]["texts"], 2);
}

#[test]
fn a_search_gets_a_better_order() {
    let (query, documents) = reference();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("documents.txt");
    let lines = documents.iter().map(|(text, _)| format!("{text}\n"));
    fs::write(&file, lines.collect::<String>()).expect("a file");
    let path = folder.path().display().to_string();
    let reranker = self::folder();
    let search = [
        "search", "--engine", "portable", &query, &path, "--by", "line", "--json",
    ];
    let hits = |args: &[&str]| -> Vec<Value> {
        let answer = stdout(&mut isovec(&[&search[..], args].concat()));
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        answer["hits"].as_array().expect("hits").clone()
    };
    let of_vectors = hits(&["-k", "3"]);
    assert!(of_vectors.iter().all(|hit| hit.get("similarity").is_none()));

    let better = hits(&["-k", "3", "--rerank", &reranker]);
    let filled: Vec<(String, f64)> = documents
        .iter()
        .filter(|(text, _)| !text.trim().is_empty())
        .cloned()
        .collect();
    for (hit, place) in better.iter().zip(order(&filled)) {
        let (text, logit) = &filled[place];
        assert_eq!(hit["text"].as_str(), Some(&**text));
        let score = hit["score"].as_f64().expect("a number");
        assert!(
            (score - 1.0 / (1.0 + (-logit).exp())).abs() <= NEAR,
            "{hit}"
        );
        assert!(hit["similarity"].is_number());
    }
    // Nothing else is read than what the vectors found.
    let few = hits(&["-k", "2", "--rerank", &reranker, "--candidates", "1"]);
    let texts = |hits: &[Value]| -> Vec<String> {
        let mut texts: Vec<String> = hits.iter().map(|hit| hit["text"].to_string()).collect();
        texts.sort_unstable();
        texts
    };
    assert_eq!(texts(&few), texts(&of_vectors[..2]));
}

#[test]
fn what_cannot_work_is_said() {
    let said = stderr(&mut rerank(&["a query", "a document", "--top-n", "0"]), 2);
    assert!(said.contains("top-n"), "{said}");
    let vectors = model().display().to_string();
    let said = stderr(
        &mut isovec(&[
            "rerank", "q", "d", "--model", &vectors, "--engine", "portable",
        ]),
        3,
    );
    assert!(said.contains("logits"), "{said}");
    let labels = model()
        .with_file_name("tiny-classifier")
        .display()
        .to_string();
    let said = stderr(
        &mut isovec(&[
            "rerank", "q", "d", "--model", &labels, "--engine", "portable",
        ]),
        3,
    );
    assert!(
        said.contains("3 labels") && said.contains("classify_pairs"),
        "{said}"
    );
    let said = stderr(&mut isovec(&["search", "q", ".", "--candidates", "3"]), 2);
    assert!(said.contains("--rerank"), "{said}");
}

/// A decoder with a chat template, its own prompt and an instruction of the caller's.
#[test]
fn an_instruction_reaches_the_model() {
    let folder = model().with_file_name("tiny-decoder-reranker");
    let reference = fs::read(folder.join("reference.json")).expect("a file");
    let all: Value = serde_json::from_slice(&reference).expect("JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let (query, instruction) = (text(&all["query"]), text(&all["instruction"]));
    let documents = all["documents"].as_array().expect("documents");
    // An empty line is no document.
    let documents: Vec<&Value> = documents.iter().filter(|own| own["text"] != "").collect();
    let input: String = documents
        .iter()
        .map(|own| text(&own["text"]) + "\n")
        .collect();
    let folder = folder.display().to_string();
    for (args, field) in [
        (vec![], "logit"),
        (vec!["--instruction", &*instruction], "instructed"),
        (vec!["--prompt", "short"], "short"),
    ] {
        let model = [
            "rerank", "--model", &*folder, "--engine", "portable", &*query, "-", "--json",
        ];
        let mut command = isovec(&[&model[..], &args].concat());
        let answer: Value =
            serde_json::from_str(&stdout(command.write_stdin(input.clone()))).expect("JSON");
        for hit in answer["hits"].as_array().expect("hits") {
            let place = hit["index"].as_u64().expect("a place") as usize;
            let wanted = documents[place][field].as_f64().expect("a number");
            let score = hit["score"].as_f64().expect("a number");
            assert!(
                (score - wanted).abs() <= NEAR,
                "{field}: {score} and {wanted}"
            );
        }
    }
    for (args, why, code) in [
        (["--prompt", "none such"].as_slice(), "short", 1),
        (
            &["--prompt", "short", "--instruction", "x"],
            "cannot be used with",
            2,
        ),
    ] {
        let model = [
            "rerank", "--model", &*folder, "--engine", "portable", &*query, "a",
        ];
        let error = stderr(&mut isovec(&[&model[..], args].concat()), code);
        assert!(error.contains(why), "{error}");
    }
}
