//! Which file is the model, which files belong to it, and what is said when there is none.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::describe;
use isovec_engine::error::EngineError;
use isovec_hub::choice::HALF_ONNX_FILE;
use isovec_model::bundle::{self, BundleOptions};
use safetensors::tensor::{Dtype, TensorView};

use crate::support::{assert_error, encode, linear, load_all, weights};

const HIDDEN: usize = 16;
const INNER: usize = 32;

/// The config of a tiny BERT.
fn config(model_type: &str) -> Bytes {
    serde_json::json!({
        "model_type": model_type,
        "architectures": ["BertModel"],
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_attention_heads": 2,
        "num_hidden_layers": 1,
        "vocab_size": 40,
        "max_position_embeddings": 24,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    })
    .to_string()
    .into()
}

/// The tensors of a tiny BERT.
fn shapes() -> Vec<(String, Vec<usize>)> {
    let mut shapes = vec![
        (
            "embeddings.word_embeddings.weight".to_owned(),
            vec![40, HIDDEN],
        ),
        (
            "embeddings.position_embeddings.weight".to_owned(),
            vec![24, HIDDEN],
        ),
        (
            "embeddings.token_type_embeddings.weight".to_owned(),
            vec![2, HIDDEN],
        ),
    ];
    let mut layer = |name: &str, out: usize, into: Option<usize>| {
        let weight = into.map_or(vec![out], |into| vec![out, into]);
        shapes.push((format!("{name}.weight"), weight));
        shapes.push((format!("{name}.bias"), vec![out]));
    };
    layer("embeddings.LayerNorm", HIDDEN, None);
    for part in ["self.query", "self.key", "self.value", "output.dense"] {
        layer(
            &format!("encoder.layer.0.attention.{part}"),
            HIDDEN,
            Some(HIDDEN),
        );
    }
    layer("encoder.layer.0.attention.output.LayerNorm", HIDDEN, None);
    layer("encoder.layer.0.intermediate.dense", INNER, Some(HIDDEN));
    layer("encoder.layer.0.output.dense", HIDDEN, Some(INNER));
    layer("encoder.layer.0.output.LayerNorm", HIDDEN, None);
    shapes
}

/// A safetensors file of some of the tiny BERT's tensors.
fn checkpoint(keep: impl Fn(&str) -> bool) -> Bytes {
    let zeros = vec![0u8; 4 * 40 * HIDDEN];
    let shapes = shapes();
    let views = shapes
        .iter()
        .filter(|(name, _)| keep(name))
        .map(|(name, shape)| {
            let bytes = 4 * shape.iter().product::<usize>();
            (
                name,
                TensorView::new(Dtype::F32, shape.clone(), &zeros[..bytes]).unwrap(),
            )
        });
    safetensors::serialize(views, None).unwrap().into()
}

fn is_bert(bundle: &ModelBundle) -> bool {
    describe(bundle)
        .inputs
        .iter()
        .any(|input| input.name == "input_ids")
}

fn write(folder: &Path, files: &[(&str, &Bytes)]) {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn from_folder(path: &Path) -> Result<ModelBundle, EngineError> {
    bundle::from_folder(path, &BundleOptions::default())
}

#[test]
fn a_checkpoint_that_can_be_converted_comes_first() {
    let (onnx, tensors) = (encode(&linear()), checkpoint(|_| true));
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("model.onnx", &onnx),
        ("model.safetensors", &tensors),
        ("config.json", &config("bert")),
    ];
    write(folder.path(), &files);
    let bundle = from_folder(folder.path()).unwrap();
    assert!(is_bert(&bundle));

    // The same from named files and from bytes.
    let named = files.map(|(name, _)| (name.to_owned(), folder.path().join(name)));
    let named = bundle::from_files(BTreeMap::from(named), &BundleOptions::default()).unwrap();
    let bytes = load_all(files.map(|(name, bytes)| (name, bytes.clone()))).unwrap();
    for other in [&named, &bytes] {
        assert_eq!(other.graph, bundle.graph);
        assert_eq!(other.identity, bundle.identity);
        assert_eq!(weights(other), weights(&bundle));
        assert_eq!(other.files, bundle.files);
    }
}

#[test]
fn a_checkpoint_that_cannot_be_converted_gives_way_to_onnx() {
    let (onnx, tensors) = (encode(&linear()), checkpoint(|_| true));
    let strange = config("strange");
    let files = [
        ("model.safetensors", tensors.clone()),
        ("config.json", strange.clone()),
    ];
    assert_error(load_all(files), "UnsupportedModel", &["strange"]);
    let files = [
        ("model.safetensors", tensors.clone()),
        ("config.json", strange),
        ("model.onnx", onnx.clone()),
    ];
    assert!(!is_bert(&load_all(files).unwrap()));
    // Without a config nobody knows what the tensors are.
    let files = [("model.safetensors", tensors.clone())];
    assert_error(load_all(files), "MissingFile", &["config.json"]);
    let files = [
        ("model.safetensors", tensors.clone()),
        ("model.onnx", onnx.clone()),
    ];
    assert!(!is_bert(&load_all(files).unwrap()));
    // A damaged checkpoint is an error: quietly taking other weights would be a surprise.
    let cut = tensors.slice(..tensors.len() - 1);
    let files = [
        ("model.safetensors", cut),
        ("config.json", config("bert")),
        ("model.onnx", onnx),
    ];
    assert_error(load_all(files), "InvalidModel", &["model.safetensors"]);
}

#[test]
fn the_graph_in_the_root_comes_before_the_one_in_the_onnx_folder_and_a_named_one_before_both() {
    let named = |name: &str| {
        let mut model = linear();
        model.producer_name = name.into();
        encode(&model)
    };
    let producer = |options: &BundleOptions, files: &[&str]| {
        let files = files.iter().map(|name| ((*name).to_owned(), named(name)));
        bundle::from_bytes("test", files.collect(), options)
            .map(|bundle| bundle.graph.producer_name)
    };
    let default = BundleOptions::default();
    assert_eq!(
        producer(&default, &["onnx/model.onnx", "model.onnx"]).unwrap(),
        "model.onnx"
    );
    assert_eq!(
        producer(&default, &["onnx/model.onnx", "onnx/other.onnx"]).unwrap(),
        "onnx/model.onnx"
    );
    let other = BundleOptions {
        onnx_file: Some("onnx/other.onnx".into()),
        ..BundleOptions::default()
    };
    assert_eq!(
        producer(&other, &["model.onnx", "onnx/other.onnx"]).unwrap(),
        "onnx/other.onnx"
    );
    assert_error(
        producer(&other, &["model.onnx"]),
        "MissingFile",
        &["onnx/other.onnx", "Its ONNX files: model.onnx"],
    );
    assert_error(
        producer(&default, &["fast.onnx"]),
        "MissingFile",
        &["fast.onnx", "onnx_file"],
    );
}

#[test]
fn a_folder_without_a_model_says_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    assert_error(
        from_folder(folder.path()),
        "MissingFile",
        &["model.safetensors", "no files at all"],
    );
    write(
        folder.path(),
        &[("README.md", &Bytes::from_static(b"# hello"))],
    );
    assert_error(from_folder(folder.path()), "MissingFile", &["README.md"]);
    write(
        folder.path(),
        &[("pytorch_model.bin", &Bytes::from_static(b"PK\x03\x04"))],
    );
    assert_error(
        from_folder(folder.path()),
        "MissingFile",
        &["pytorch_model.bin", "safetensors"],
    );
    assert_error(from_folder(&folder.path().join("gone")), "Io", &["gone"]);
    assert_error(
        from_folder(&folder.path().join("README.md")),
        "MissingFile",
        &["It is a file"],
    );
}

#[test]
fn side_files_come_along_by_their_paths() {
    let folder = tempfile::tempdir().unwrap();
    let text = Bytes::from_static(b"{}");
    let onnx = encode(&linear());
    write(
        folder.path(),
        &[
            ("model.onnx", &onnx),
            ("tokenizer.json", &text),
            ("vocab.txt", &text),
            ("sentencepiece.bpe.model", &text),
            ("1_Pooling/config.json", &text),
            ("2_Dense/config.json", &text),
            ("2_Dense/model.safetensors", &text),
            ("README.md", &text),
            (".git/config.json", &text),
            ("a/b/c.json", &text),
        ],
    );
    let bundle = from_folder(folder.path()).unwrap();
    let names: Vec<&str> = bundle.files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "1_Pooling/config.json",
            "2_Dense/config.json",
            "2_Dense/model.safetensors",
            "sentencepiece.bpe.model",
            "tokenizer.json",
            "vocab.txt",
        ]
    );
    assert_eq!(bundle.files["tokenizer.json"], text);
    assert_eq!(bundle.origin, folder.path().display().to_string());
}

#[test]
fn shards_are_found_by_their_index() {
    let first = |name: &str| name.starts_with("embeddings");
    let index = |second: &str, extra: &str| -> Bytes {
        let mut map: BTreeMap<String, &str> = shapes()
            .into_iter()
            .map(|(name, _)| {
                if first(&name) {
                    (name, "1.safetensors")
                } else {
                    (name, second)
                }
            })
            .collect();
        if !extra.is_empty() {
            map.insert(extra.to_owned(), "1.safetensors");
        }
        serde_json::json!({"metadata": {"total_size": 1}, "weight_map": map})
            .to_string()
            .into()
    };
    let load = |index: Bytes, with_second: bool| {
        let mut files = BTreeMap::from([
            ("config.json".to_owned(), config("bert")),
            ("model.safetensors.index.json".to_owned(), index),
            ("1.safetensors".to_owned(), checkpoint(first)),
        ]);
        if with_second {
            files.insert("2.safetensors".to_owned(), checkpoint(|name| !first(name)));
        }
        bundle::from_bytes("test", files, &BundleOptions::default())
    };
    let sharded = load(index("2.safetensors", ""), true).unwrap();
    let whole = load_all([
        ("config.json", config("bert")),
        ("model.safetensors", checkpoint(|_| true)),
    ])
    .unwrap();
    assert_eq!(sharded.identity, whole.identity);
    assert_eq!(weights(&sharded), weights(&whole));

    assert_error(
        load(index("2.safetensors", ""), false),
        "MissingFile",
        &["2.safetensors", "encoder.layer.0"],
    );
    assert_error(
        load(index("2.safetensors", "ghost"), true),
        "InvalidModel",
        &["ghost", "1.safetensors"],
    );
    for outside in ["/etc/passwd", "../2.safetensors"] {
        assert_error(load(index(outside, ""), true), "OutsideBundle", &[outside]);
    }
    assert_error(
        load(Bytes::from_static(b"{}"), true),
        "InvalidModel",
        &["index.json", "weight_map"],
    );
}

#[test]
fn an_entry_of_the_hub_cache_is_its_main_snapshot() {
    let cache = tempfile::tempdir().unwrap();
    let entry = cache.path().join("models--tests--linear");
    let onnx = encode(&linear());
    write(&entry, &[("snapshots/aaaa/model.onnx", &onnx)]);
    assert!(
        from_folder(&entry).unwrap().origin.ends_with("aaaa"),
        "the only one"
    );
    write(&entry, &[("snapshots/bbbb/model.onnx", &onnx)]);
    assert_error(
        from_folder(&entry),
        "MissingFile",
        &["snapshots/", "aaaa, bbbb"],
    );
    write(&entry, &[("refs/main", &Bytes::from_static(b"bbbb\n"))]);
    assert!(from_folder(&entry).unwrap().origin.ends_with("bbbb"));
    write(
        &entry,
        &[("refs/main", &Bytes::from_static(b"../../other"))],
    );
    assert_error(from_folder(&entry), "MissingFile", &["snapshots/"]);
}

#[test]
fn a_named_graph_may_lie_deeper_than_the_list_reaches() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("a/b/c.onnx", &encode(&linear()))]);
    let load = |name: &str| {
        let options = BundleOptions {
            onnx_file: Some(name.into()),
            ..BundleOptions::default()
        };
        bundle::from_folder(folder.path().join("a"), &options)
    };
    assert!(load("b/c.onnx").is_ok());
    write(folder.path(), &[("outside.onnx", &encode(&linear()))]);
    assert_error(load("../outside.onnx"), "MissingFile", &["outside.onnx"]);
    write(folder.path(), &[("a/x/y/c.onnx", &encode(&linear()))]);
    assert!(load("x/y/c.onnx").is_ok());
}

#[test]
fn the_smallest_file_is_taken_where_that_is_asked_for() {
    let half = (HALF_ONNX_FILE, encode(&linear()));
    let onnx = ("model.onnx", encode(&linear()));
    let taken = |files: Vec<(&str, Bytes)>, smallest: bool| {
        let files = files
            .into_iter()
            .map(|(name, bytes)| (name.to_owned(), bytes));
        let options = BundleOptions {
            smallest,
            ..BundleOptions::default()
        };
        let bundle = bundle::from_bytes("test", files.collect(), &options);
        bundle.unwrap().model_file
    };
    assert_eq!(
        taken(vec![half.clone(), onnx.clone()], true),
        HALF_ONNX_FILE
    );
    assert_eq!(taken(vec![half.clone(), onnx.clone()], false), "model.onnx");
    assert_eq!(taken(vec![onnx.clone()], true), "model.onnx");
    // A checkpoint that is as small keeps its place; here it is none, so ONNX is taken after all.
    let small = ("model.safetensors", Bytes::from_static(b"tiny"));
    assert_eq!(taken(vec![half.clone(), onnx, small], true), "model.onnx");
    let large = ("model.safetensors", Bytes::from(vec![0; 100_000]));
    assert_eq!(taken(vec![half, large], true), HALF_ONNX_FILE);
}
