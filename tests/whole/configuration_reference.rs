//! `docs/knobs.md` names every knob that there is, and none that there is not; `docs/configuration.md` every provider and preset.

use std::collections::BTreeSet;

use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec::config::ExecutionProvider;
use isovec_test_support::{engines, tiny_model};
use serde_json::Value;

const CHAPTER: &str = include_str!("../../docs/configuration.md");
const REFERENCE: &str = include_str!("../../docs/knobs.md");

/// What stands in the first cell of a table's row, between backticks, and nothing else there.
fn rows(document: &'static str) -> impl Iterator<Item = &'static str> {
    document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(name, _)| name)
}

/// The knobs that have a row, each one of its own.
pub(crate) fn documented() -> BTreeSet<&'static str> {
    let mut names = BTreeSet::new();
    for name in rows(REFERENCE) {
        assert!(names.insert(name), "{name} has two rows");
    }
    names
}

/// The words between backticks.
fn quoted(text: &'static str) -> Vec<&'static str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Every knob of the written configuration, `group.name`.
fn written(prefix: &str, value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(group) if !group.is_empty() => {
            for (key, value) in group {
                let name = if prefix.is_empty() {
                    key.clone()
                } else {
                    format!("{prefix}.{key}")
                };
                written(&name, value, names);
            }
        }
        _ => drop(names.insert(prefix.to_owned())),
    }
}

#[test]
fn every_knob_of_the_configuration_is_documented_and_nothing_else() {
    let mut names = BTreeSet::new();
    let config = serde_json::to_value(EmbeddingConfig::default()).unwrap();
    written("", &config, &mut names);
    // Never written, for it is a secret.
    names.insert("hub.token".into());
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(documented(), names);
}

#[test]
fn every_knob_in_effect_is_documented() {
    let documented = documented();
    for engine in engines() {
        let config = engine.configure(EmbeddingConfig::default());
        let embedder = Embedder::builder(tiny_model())
            .config(config)
            .load()
            .unwrap();
        let used: BTreeSet<&str> = embedder
            .effective_config()
            .knobs()
            .iter()
            .map(|knob| &*knob.name)
            .collect();
        let unknown: Vec<_> = used.difference(&documented).collect();
        assert!(unknown.is_empty(), "{engine:?}: {unknown:?}");
        // Options of other providers stand there only where some are given.
        let silent: Vec<_> = documented.difference(&used).collect();
        assert_eq!(silent, [&"providers.options"], "{engine:?}");
    }
}

#[test]
fn every_provider_and_preset_is_documented() {
    // Their names stand in other places too, so it is the list of them that counts.
    let list = CHAPTER
        .lines()
        .find_map(|line| {
            line.split_once("is the list of providers that an engine may use, best first: ")
        })
        .map(|(_, rest)| rest)
        .and_then(|rest| rest.split_once(". "))
        .unwrap()
        .0;
    let listed: BTreeSet<String> = quoted(list).into_iter().map(str::to_owned).collect();
    let all: BTreeSet<String> = ExecutionProvider::ALL
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(listed, all);
    let presets: Vec<&str> = rows(CHAPTER).filter(|name| name.contains("::")).collect();
    let calls = [
        "high_throughput",
        "low_latency",
        "gpu",
        "cpu",
        "memory_constrained",
        "debug",
    ]
    .map(|preset| format!("EmbeddingConfig::{preset}()"));
    assert_eq!(presets, calls);
}
