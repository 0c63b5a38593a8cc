//! A change of the configuration, as data.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::suggestion::CodeExample;
use isovec::config::{EngineChoice, ExecutionProvider};
use isovec::{Dtype, EmbeddingConfig, Error, Result};

/// Changes of a configuration: a JSON merge patch (RFC 7396) of its JSON form. A `null` sets a knob
/// back to its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Patch(Map<String, Value>);

impl Patch {
    /// Changes of knobs by their paths, such as `("session.pool_size", 2)`.
    pub fn of<V: Into<Value>>(knobs: impl IntoIterator<Item = (&'static str, V)>) -> Self {
        let mut patch = Self(Map::new());
        for (knob, value) in knobs {
            patch.put(knob, value.into());
        }
        patch
    }

    /// Adds the change of a knob.
    #[must_use]
    pub fn and(mut self, knob: &str, value: impl Into<Value>) -> Self {
        self.put(knob, value.into());
        self
    }

    fn put(&mut self, knob: &str, value: Value) {
        let mut groups = knob.split('.').peekable();
        let mut within = &mut self.0;
        while let Some(name) = groups.next() {
            if groups.peek().is_none() {
                within.insert(name.to_owned(), value);
                return;
            }
            let group = within
                .entry(name)
                .or_insert_with(|| Value::Object(Map::new()));
            if !group.is_object() {
                *group = Value::Object(Map::new());
            }
            let Value::Object(inner) = group else { return };
            within = inner;
        }
    }

    /// The knobs that it changes, with their new values.
    pub fn knobs(&self) -> Vec<(String, &Value)> {
        let mut knobs = Vec::new();
        collect(&self.0, "", &mut knobs);
        knobs
    }

    /// The configuration with the changes in it.
    ///
    /// # Errors
    /// [`Error::Config`] when there is no such knob, or the result contradicts itself.
    pub fn apply(&self, config: &EmbeddingConfig) -> Result<EmbeddingConfig> {
        let fault = |error: serde_json::Error| Error::Config(vec![error.to_string()]);
        let mut json = serde_json::to_value(config).map_err(fault)?;
        merge(&mut json, &self.0);
        let mut changed: EmbeddingConfig = serde_json::from_value(json).map_err(fault)?;
        // It is never written anywhere, and so is not in the JSON.
        changed.hub.token.clone_from(&config.hub.token);
        changed.build()
    }

    /// "Set session.pool_size to 2, and leave out session.intra_op_threads."
    pub(super) fn in_words(&self) -> String {
        let all: Vec<String> = self
            .knobs()
            .into_iter()
            .map(|(knob, value)| match value {
                Value::Null => format!("leave out {knob}"),
                value => format!("set {knob} to {value}"),
            })
            .collect();
        let mut words = all.join(", and ");
        if let Some(first) = words.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        words + "."
    }

    pub(super) fn as_code(&self) -> CodeExample {
        let rust: Vec<String> = self
            .knobs()
            .into_iter()
            .map(
                |(knob, value)| match (literal(&knob, value), method(&knob)) {
                    (Some(literal), Some(method)) => {
                        format!("config = config.{method}({literal});")
                    }
                    (Some(literal), None) => format!("config.{} = Some({literal});", field(&knob)),
                    (None, _) => format!("config.{} = {};", field(&knob), empty(&knob)),
                },
            )
            .collect();
        let own = Value::Object(camel_case(&without_nulls(&self.0)));
        let options = serde_json::to_string_pretty(&own).unwrap_or_default();
        let without: Vec<String> = self
            .knobs()
            .into_iter()
            .filter(|(_, value)| value.is_null())
            .map(|(knob, _)| format!("// leave out {}\n", camel(&knob)))
            .collect();
        CodeExample {
            rust: rust.join("\n"),
            typescript: format!(
                "{}const embedder = await Embedder.load(model, {{ config: {options} }});",
                without.concat()
            ),
        }
    }
}

fn collect<'a>(group: &'a Map<String, Value>, path: &str, knobs: &mut Vec<(String, &'a Value)>) {
    for (name, value) in group {
        let path = match path {
            "" => name.clone(),
            path => format!("{path}.{name}"),
        };
        match value {
            Value::Object(inner) => collect(inner, &path, knobs),
            value => knobs.push((path, value)),
        }
    }
}

fn merge(under: &mut Value, over: &Map<String, Value>) {
    if !under.is_object() {
        *under = Value::Object(Map::new());
    }
    let Value::Object(under) = under else { return };
    for (name, value) in over {
        match value {
            Value::Null => drop(under.remove(name)),
            Value::Object(inner) => merge(under.entry(name).or_insert(Value::Null), inner),
            value => drop(under.insert(name.clone(), value.clone())),
        }
    }
}

fn without_nulls(group: &Map<String, Value>) -> Map<String, Value> {
    let kept = group.iter().filter_map(|(name, value)| match value {
        Value::Null => None,
        Value::Object(inner) => {
            let inner = without_nulls(inner);
            (!inner.is_empty()).then(|| (name.clone(), Value::Object(inner)))
        }
        value => Some((name.clone(), value.clone())),
    });
    kept.collect()
}

/// The knobs under the names that JavaScript gives them. What a user named keeps its name.
fn camel_case(group: &Map<String, Value>) -> Map<String, Value> {
    let renamed = group.iter().map(|(name, value)| {
        let value = match value {
            Value::Object(inner) if !FREE.contains(&name.as_str()) => {
                Value::Object(camel_case(inner))
            }
            value => value.clone(),
        };
        (camel(name), value)
    });
    renamed.collect()
}

/// Groups whose members have names that users or ONNX Runtime gave them.
const FREE: [&str; 2] = ["options", "prompts"];

/// `max_batch_size` as `maxBatchSize`.
fn camel(name: &str) -> String {
    let mut camel = String::new();
    let mut large = false;
    for letter in name.chars() {
        if letter == '_' {
            large = true;
        } else if std::mem::take(&mut large) {
            camel.push(letter.to_ascii_uppercase());
        } else {
            camel.push(letter);
        }
    }
    camel
}

fn last(knob: &str) -> &str {
    knob.rsplit('.').next().unwrap_or(knob)
}

/// The builder's method for a knob; options of providers have none.
fn method(knob: &str) -> Option<String> {
    let name = last(knob);
    match knob.split('.').collect::<Vec<_>>()[..] {
        ["embedding_cache", _] => Some(format!("with_embedding_cache_{name}")),
        [_] | [_, _] => Some(format!("with_{name}")),
        _ => None,
    }
}

/// The argument of the knob's own method.
fn literal(knob: &str, value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let written = match last(knob) {
        "dtype" => variant::<Dtype>("Dtype", value),
        "engine" => variant::<EngineChoice>("EngineChoice", value),
        "execution_providers" => {
            let name = |one| variant::<ExecutionProvider>("ExecutionProvider", one);
            let all = value.as_array().into_iter().flatten();
            let names: Option<Vec<String>> = all.map(name).collect();
            names.map(|names| format!("[{}]", names.join(", ")))
        }
        _ => None,
    };
    Some(written.unwrap_or_else(|| value.to_string()))
}

/// How Rust writes what configurations write so.
fn variant<T: DeserializeOwned + fmt::Debug>(name: &str, value: &Value) -> Option<String> {
    let variant: T = serde_json::from_value(value.clone()).ok()?;
    Some(format!("{name}::{variant:?}"))
}

/// Where the knob is in the configuration's type.
fn field(knob: &str) -> String {
    let runtime = ["session.", "providers.", "io.", "memory."];
    if runtime.iter().any(|group| knob.starts_with(group)) || !knob.contains('.') {
        format!("runtime.{knob}")
    } else {
        knob.to_owned()
    }
}

fn empty(knob: &str) -> &'static str {
    match last(knob) {
        "execution_providers" => "Vec::new()",
        "webgpu" => "WebGpuOptions::default()",
        "engine" => "EngineChoice::Auto",
        _ => "None",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_sets_takes_back_and_leaves_the_rest() {
        let config = EmbeddingConfig::default()
            .with_pool_size(7)
            .with_max_batch_tokens(64)
            .with_token("secret");
        let patch = Patch::of([("session.pool_size", 2)])
            .and("batching.max_batch_tokens", Value::Null)
            .and("session.intra_op_threads", 1);
        let expected = EmbeddingConfig::default()
            .with_pool_size(2)
            .with_intra_op_threads(1)
            .with_token("secret");
        assert_eq!(patch.apply(&config).unwrap(), expected);
        assert_eq!(
            patch.in_words(),
            "Leave out batching.max_batch_tokens, and set session.intra_op_threads to 1, and set session.pool_size to 2."
        );
        let json = serde_json::to_string(&patch).unwrap();
        assert_eq!(serde_json::from_str::<Patch>(&json).unwrap(), patch);
    }

    #[test]
    fn what_contradicts_itself_or_is_no_knob_is_refused() {
        let config = EmbeddingConfig::default();
        for patch in [
            Patch::of([("session.pool_size", 0)]),
            Patch::of([("session.no_such_knob", 1)]),
            Patch::of([("session", 1)]),
        ] {
            let error = patch.apply(&config).unwrap_err();
            assert_eq!(error.kind(), "Config", "{patch:?}: {error}");
        }
    }

    #[test]
    fn code_says_the_same_on_both_targets() {
        let patch = Patch::of([("session.pool_size", 2)]).and("memory.mmap", Value::Null);
        let code = patch.as_code();
        assert_eq!(
            code.rust,
            "config.runtime.memory.mmap = None;\nconfig = config.with_pool_size(2);"
        );
        assert!(code.typescript.contains("\"poolSize\": 2"), "{code:?}");
        assert!(code.typescript.contains("// leave out memory.mmap"));
        let patch = Patch::of([("providers.cuda.tf32", true)]);
        let code = "config.runtime.providers.cuda.tf32 = Some(true);";
        assert_eq!(patch.as_code().rust, code);
        let patch = Patch::of([("model.dtype", "int8")]);
        assert_eq!(
            patch.as_code().rust,
            "config = config.with_dtype(Dtype::Int8);"
        );
        let patch = Patch::of([("engine", "onnxruntime")]);
        assert_eq!(
            patch.as_code().rust,
            "config = config.with_engine(EngineChoice::OnnxRuntime);"
        );
        let all = ["ort-webgpu", "tensorrt", "cpu"];
        let patch = Patch::of([("providers.execution_providers", Value::from(&all[..]))]);
        assert_eq!(
            patch.as_code().rust,
            "config = config.with_execution_providers([ExecutionProvider::OrtWebGpu, \
             ExecutionProvider::TensorRt, ExecutionProvider::Cpu]);"
        );
    }

    /// The code that suggestions show names methods that there are.
    #[test]
    fn every_knob_that_rules_change_has_its_method() {
        let builder = include_str!("../../../src/config/builder.rs");
        let rules = [
            include_str!("rules/batching.rs"),
            include_str!("rules/graph.rs"),
            include_str!("rules/memory.rs"),
            include_str!("rules/precision.rs"),
            include_str!("rules/providers.rs"),
            include_str!("rules/threads.rs"),
            include_str!("experiments.rs"),
        ];
        let mut seen = 0;
        for rule in rules {
            let without_space: String = rule.split_whitespace().collect();
            for before in ["Patch::of([(\"", ".and(\""] {
                for rest in without_space.split(before).skip(1) {
                    let knob = rest.split('"').next().unwrap_or_default();
                    let known = serde_json::to_value(EmbeddingConfig::default()).unwrap();
                    let path = format!("/{}", knob.replace('.', "/"));
                    assert!(known.pointer(&path).is_some(), "{knob} is no knob");
                    if knob == "providers.webgpu" {
                        continue;
                    }
                    let method = method(knob).unwrap();
                    assert!(builder.contains(&format!("fn {method}(")), "{method}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 20, "{seen}");
    }
}
