//! One table of files and settings, and the choice: by the hub's client, by a folder, and by who has
//! no list and asks file by file, as a page does (`bindings/js/tests/choice.test.mjs` has the page itself).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use isovec_engine::{EngineError, Result};
use isovec_hub::{FileSelection, Listing, WeightFiles};
use isovec_model::bundle::{self, BundleOptions, next_told};
use isovec_model::convert::family;
use serde_json::{Value, json};

use crate::repo::COMMIT;

struct Case {
    name: String,
    files: BTreeMap<String, Vec<u8>>,
    onnx_file: Option<String>,
    smallest: bool,
    /// The weights and all files, where they are said; or the kind of error.
    expected: Result<(String, Option<Vec<String>>), String>,
}

fn table() -> Vec<Case> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/choice/table.json"
    );
    let json = std::fs::read(path).expect("the table");
    let table: Value = serde_json::from_slice(&json).expect("JSON");
    let cases = table["cases"].as_array().expect("a list");
    cases.iter().map(case).collect()
}

fn case(case: &Value) -> Case {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let files = case["files"].as_object().expect("files");
    let expected = match case.get("error") {
        Some(kind) => Err(text(kind)),
        None => {
            let all = case.get("all").and_then(Value::as_array);
            Ok((
                text(&case["weights"]),
                all.map(|all| all.iter().map(text).collect()),
            ))
        }
    };
    Case {
        name: text(&case["name"]),
        files: files
            .iter()
            .map(|(name, content)| {
                let bytes = match content {
                    Value::Number(size) => vec![b'x'; size.as_u64().expect("a size") as usize],
                    Value::String(text) => text.clone().into_bytes(),
                    json => json.to_string().into_bytes(),
                };
                (name.clone(), bytes)
            })
            .collect(),
        onnx_file: case["settings"].get("onnx_file").map(text),
        smallest: case["settings"].get("smallest").is_some(),
        expected,
    }
}

impl Case {
    fn check(&self, who: &str, found: Result<(String, Vec<String>)>) {
        let name = &self.name;
        match (&self.expected, found) {
            (Ok((weights, all)), Ok((found, files))) => {
                assert_eq!(&found, weights, "{who}: {name}");
                if let Some(all) = all {
                    assert_eq!(&files, all, "{who}: {name}");
                }
                for file in &files {
                    assert!(self.files.contains_key(file), "{who}: {name}: {file}");
                }
            }
            (Err(kind), Err(error)) => assert_eq!(error.kind(), kind, "{who}: {name}: {error}"),
            (expected, found) => panic!("{who}: {name}: {expected:?}, found {found:?}"),
        }
    }
}

#[test]
fn the_hubs_client_goes_by_the_table() {
    for case in table() {
        let siblings: Vec<Value> = case
            .files
            .iter()
            .map(|(name, bytes)| json!({"rfilename": name, "size": bytes.len()}))
            .collect();
        let api = json!({"sha": COMMIT, "siblings": siblings}).to_string();
        let listing = Listing::from_api(api.as_bytes()).expect("a list");
        let weights = match &case.onnx_file {
            Some(file) => WeightFiles::Onnx(file.clone()),
            None if case.smallest => WeightFiles::Smallest,
            None => WeightFiles::Auto,
        };
        let chosen = FileSelection::embedding()
            .weights(weights)
            .accept_safetensors_if(|config| family("test", config).map(|_| ()))
            .choose("test", &listing, &|path| case.files.get(path).cloned());
        let found = chosen.map(|choice| {
            let file = choice.weights.file().expect("weights").to_owned();
            (file, choice.files)
        });
        case.check("the hub", found);
    }
}

#[test]
fn folders_go_by_the_table() {
    for case in table() {
        let files = case.files.iter();
        let files = files.map(|(name, bytes)| (name.clone(), Bytes::copy_from_slice(bytes)));
        let options = BundleOptions {
            onnx_file: case.onnx_file.clone(),
            smallest: case.smallest,
            ..BundleOptions::default()
        };
        let error = bundle::from_bytes("test", files.collect(), &options)
            .expect_err("no file of the table is a model");
        match &case.expected {
            // The file that was read says that it is no model.
            Ok((weights, _)) => {
                let first = match weights.strip_suffix(".index.json") {
                    Some(_) => "a.safetensors",
                    None => weights.as_str(),
                };
                let said = error.to_string();
                assert!(
                    said.starts_with(&format!("test/{first} ")),
                    "{}: {said}",
                    case.name
                );
            }
            Err(kind) => assert_eq!(error.kind(), kind, "{}: {error}", case.name),
        }
    }
}

/// Asks as a page does: it knows nothing but what it was told to look at.
fn by_asking(case: &Case) -> (Result<(String, Vec<String>)>, BTreeSet<String>) {
    let mut known = serde_json::Map::new();
    let mut asked = BTreeSet::new();
    loop {
        let told = json!({
            "origin": "test",
            "onnx_file": case.onnx_file,
            "smallest": case.smallest,
            "listed": false,
            "files": known,
        });
        let said = match next_told(&told.to_string()) {
            Ok(said) => said,
            Err(error) => return (Err(error), asked),
        };
        let said: Value = serde_json::from_str(&said).expect("JSON");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        if let Some(files) = said.get("files") {
            let files = files.as_array().expect("files").iter().map(text).collect();
            return (Ok((text(&said["weights"]), files)), asked);
        }
        let questions = said["ask"].as_array().expect("questions");
        assert!(!questions.is_empty(), "{}", case.name);
        for question in questions {
            let (path, need) = (text(&question[0]), text(&question[1]));
            let fact = case.files.get(&path).map(|bytes| {
                let mut fact = json!({ "bytes": bytes.len() });
                if need == "content" {
                    fact["text"] = String::from_utf8_lossy(bytes).into();
                }
                fact
            });
            // What is only known to be there may be read later.
            let before = known.insert(path.clone(), json!(fact));
            let is_news = before.is_none_or(|before| {
                need == "content" && before.is_object() && before.get("text").is_none()
            });
            assert!(is_news, "{}: {path} is asked for twice", case.name);
            asked.insert(path);
        }
    }
}

#[test]
fn who_has_no_list_comes_to_the_same_by_asking() {
    for case in table() {
        let (found, asked) = by_asking(&case);
        if let Ok((_, files)) = &found {
            // Nothing is taken that was not asked for, and little is asked for in vain.
            assert!(
                files.iter().all(|file| asked.contains(file)),
                "{}",
                case.name
            );
        }
        case.check("who asks", found);
    }
}

#[test]
fn no_checkpoint_is_asked_for_that_could_not_be_converted() {
    let case = table()
        .into_iter()
        .find(|case| case.name.starts_with("one that is not makes way"))
        .expect("it is in the table");
    let (_, asked) = by_asking(&case);
    assert!(!asked.contains("model.safetensors"), "{asked:?}");
}

#[test]
fn what_is_no_question_is_an_error() {
    for known in ["", "[]", "{}", r#"{"origin":"x","listed":1,"files":{}}"#] {
        let error = next_told(known).expect_err(known);
        assert!(matches!(error, EngineError::Config(_)), "{error}");
    }
}
