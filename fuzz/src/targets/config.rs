//! The configuration, as JSON and as TOML, which two independent parsers read with the same result.
//!
//! If JSON accepts a value, TOML accepts the same value and gives the same configuration. A written configuration is
//! read back unchanged. An unknown key is an error in any place.

use arbitrary::Unstructured;
use isovec::EmbeddingConfig;
use serde_json::{Map, Value};

use crate::bounds::ours;

/// Tries one input.
pub fn run(data: &[u8]) {
    let mut input = Unstructured::new(data);
    match input.arbitrary::<u8>() {
        Ok(0) => any_text(input.take_rest()),
        _ => {
            if let Ok(value) = object(&mut input, 0) {
                compare(&Value::Object(value));
            }
        }
    }
}

/// Whatever the text is: an answer or an error.
fn any_text(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let length = text.len();
    let json = ours(length, || serde_json::from_str::<EmbeddingConfig>(&text));
    if let Ok(config) = json {
        round_trip(&config);
    }
    let toml = ours(length, || toml::from_str::<EmbeddingConfig>(&text));
    if let Ok(config) = toml {
        round_trip(&config);
    }
    if let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(&text) {
        compare(&value);
    }
}

fn compare(value: &Value) {
    let text = value.to_string();
    let json = ours(text.len(), || {
        serde_json::from_str::<EmbeddingConfig>(&text)
    });
    let Ok(config) = json else { return };
    round_trip(&config);
    // TOML has no null: what is not there is not set, which is the same.
    let Some(toml) = to_toml(value) else { return };
    let Ok(text) = toml::to_string(&toml) else {
        return;
    };
    let read = ours(text.len(), || toml::from_str::<EmbeddingConfig>(&text));
    assert_eq!(read.unwrap(), config, "{text}");
    unknown_keys(value);
}

fn round_trip(config: &EmbeddingConfig) {
    let json = serde_json::to_string(config).unwrap();
    assert_eq!(
        serde_json::from_str::<EmbeddingConfig>(&json).unwrap(),
        *config,
        "{json}"
    );
    let knobs = toml::to_string(&config.to_knobs());
    if let Ok(text) = knobs {
        assert_eq!(
            toml::from_str::<EmbeddingConfig>(&text).unwrap(),
            *config,
            "{text}"
        );
    }
    // What is impossible together is an error, not a panic.
    let _ = config.clone().build();
}

/// A key that nobody knows, at the top and in every group.
fn unknown_keys(value: &Value) {
    const NOBODYS: &str = "nobodys_key";
    let Value::Object(groups) = value else { return };
    let mut top = groups.clone();
    top.insert(NOBODYS.into(), Value::Bool(true));
    refused(Value::Object(top));
    for (name, group) in groups {
        // Prompts have names of their own.
        if let Value::Object(inner) = group {
            let mut inner = inner.clone();
            inner.insert(NOBODYS.into(), Value::Bool(true));
            let mut all = groups.clone();
            all.insert(name.clone(), Value::Object(inner));
            refused(Value::Object(all));
        }
    }
}

fn refused(value: Value) {
    let read = serde_json::from_value::<EmbeddingConfig>(value.clone());
    assert!(read.is_err(), "{value}");
}

/// The same value, without nulls; `None` for one that TOML cannot hold.
fn to_toml(value: &Value) -> Option<toml::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => toml::Value::Boolean(*value),
        Value::Number(number) => match number.as_i64() {
            Some(number) => toml::Value::Integer(number),
            None if number.is_u64() => return None,
            None => toml::Value::Float(number.as_f64()?),
        },
        Value::String(text) => toml::Value::String(text.clone()),
        Value::Array(values) => {
            toml::Value::Array(values.iter().map(to_toml).collect::<Option<_>>()?)
        }
        Value::Object(values) => {
            let mut table = toml::Table::new();
            for (key, value) in values.iter().filter(|(_, value)| !value.is_null()) {
                table.insert(key.clone(), to_toml(value)?);
            }
            toml::Value::Table(table)
        }
    })
}

/// Keys that there are, and one that is near.
const KEYS: &[&str] = &[
    "engine",
    "onnxruntime_library",
    "remember",
    "session",
    "providers",
    "memory",
    "io",
    "text",
    "batching",
    "hub",
    "model",
    "embedding_cache",
    "max_length",
    "truncation",
    "pooling",
    "normalize",
    "dimension",
    "prompts",
    "query_prompt",
    "passage_prompt",
    "max_batch_tokens",
    "max_batch_texts",
    "max_queue",
    "max_queue_tokens",
    "dynamic_batching",
    "pool_size",
    "intra_op_threads",
    "graph_optimization_level",
    "deterministic_compute",
    "chain",
    "cuda",
    "webgpu",
    "options",
    "memory_limit",
    "mmap",
    "batch_optimization",
    "endpoint",
    "revision",
    "offline",
    "cache_dir",
    "onnx_file",
    "dtype",
    "verify",
    "disk",
    "folder_",
];

fn object(input: &mut Unstructured<'_>, depth: usize) -> arbitrary::Result<Map<String, Value>> {
    let mut map = Map::new();
    for _ in 0..input.int_in_range(0..=4u8)? {
        let key = *input.choose(KEYS)?;
        map.insert(key.to_owned(), value(input, depth)?);
    }
    Ok(map)
}

fn value(input: &mut Unstructured<'_>, depth: usize) -> arbitrary::Result<Value> {
    Ok(match input.int_in_range(0..=9u8)? {
        0 => Value::Null,
        1 => input.arbitrary::<bool>()?.into(),
        2 => input.int_in_range(0..=1024u32)?.into(),
        3 => input.arbitrary::<i64>()?.into(),
        4 => input.arbitrary::<u64>()?.into(),
        5 => Value::from(f64::from(input.arbitrary::<f32>()?)),
        6 => (*input.choose(&[
            "portable",
            "onnxruntime",
            "auto",
            "cpu",
            "webgpu",
            "mean",
            "cls",
            "end",
            "f16",
            "bf16",
            "int8",
            "",
            "x",
            "2 GiB",
            "1 MB",
        ])?)
        .into(),
        7 if depth < 3 => {
            let values: Vec<Value> = (0..input.int_in_range(0..=2u8)?)
                .map(|_| value(input, depth + 1))
                .collect::<arbitrary::Result<_>>()?;
            values.into()
        }
        _ if depth < 3 => Value::Object(object(input, depth + 1)?),
        _ => Value::Null,
    })
}
