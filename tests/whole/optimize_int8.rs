//! `isovec::optimize` with products in int8: ONNX Runtime computes them so, and the vectors stay what they were, nearly.

use std::fs;
use std::path::Path;

use isovec::blocking::{Embedder, optimize};
use isovec::fingerprint::Precision;
use isovec::optimize::{Activations, LEAST_SQNR, OptimizeOptions, Report};
use isovec::{Dtype, EmbeddingConfig, ModelSource};
use isovec_parity::Reference;
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::models::bert_of;
use isovec_test_support::{Which, engines, minilm, mixed_texts, written_with_tiny_files};

/// A seeded BERT that is wide enough for its matrices and its table to be worth 8 bits. It has a row for each token of the tiny
/// model's tokenizer.
fn wide() -> Checkpoint {
    bert_of(11, 600, 128, 2)
}

fn written(model: &Checkpoint, folder: &Path) -> ModelSource {
    written_with_tiny_files(folder, &model.config_json(), &model.file(Stored::F32))
}

fn here() -> bool {
    engines().contains(&Which::OnnxRuntime)
}

fn config() -> EmbeddingConfig {
    Which::OnnxRuntime.configure(EmbeddingConfig::default())
}

fn load(source: impl Into<ModelSource>, config: EmbeddingConfig) -> Embedder {
    Embedder::builder(source).config(config).load().unwrap()
}

fn int8(activations: Activations, texts: &[String]) -> OptimizeOptions {
    OptimizeOptions::default()
        .with_int8(activations)
        .with_texts(texts.iter().cloned())
}

fn made(source: &ModelSource, place: &Path, options: OptimizeOptions) -> Report {
    optimize(source.clone(), place, config(), options).unwrap()
}

/// The least cosine of the vectors that two models give.
fn least(a: &Embedder, b: &Embedder, texts: &[String]) -> f64 {
    let (a, b) = (a.embed(texts).unwrap(), b.embed(texts).unwrap());
    let cosines = a.iter().zip(b.iter());
    let cosines = cosines.map(|(a, b)| f64::from(isovec::similarity::cosine(a, b)));
    cosines.fold(1.0, f64::min)
}

#[test]
fn onnx_runtime_computes_products_in_int8_and_other_texts_keep_their_vectors() {
    if !here() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let original = folder.path().join("original");
    fs::create_dir(&original).unwrap();
    let source = written(&wide(), &original);
    let texts = mixed_texts(120);
    let (seen, others) = texts.split_at(60);
    for (activations, operator, fused) in [
        (
            Activations::Static,
            "QuantizeLinear",
            "MatMulIntegerToFloat",
        ),
        (
            Activations::Dynamic,
            "DynamicQuantizeLinear",
            "DynamicQuantizeMatMul",
        ),
    ] {
        let place = folder.path().join(operator);
        let report = made(&source, &place, int8(activations, seen));
        assert!(
            report.after.stored_bytes * 10 < report.before.stored_bytes * 4,
            "{report:?}"
        );
        // Twelve products and the table of words.
        assert_eq!(report.products.len(), 13);
        for product in &report.products {
            assert!(
                product.int8 && product.sqnr.unwrap() >= LEAST_SQNR,
                "{product:?}"
            );
        }
        let file = fs::read(place.join("model.onnx")).unwrap();
        let has = |file: &[u8], word: &str| {
            let mut windows = file.windows(word.len());
            windows.any(|bytes| bytes == word.as_bytes())
        };
        assert!(has(&file, operator), "{operator}");

        // The graph that ONNX Runtime makes of it multiplies whole numbers.
        let kept = tempfile::tempdir().unwrap();
        let mut keeping = config();
        keeping.runtime.session.optimized_model_cache = Some(kept.path().to_path_buf());
        let (before, after) = (load(source.clone(), config()), load(&*place, keeping));
        let optimized = fs::read_dir(kept.path()).unwrap().next().unwrap().unwrap();
        assert!(has(&fs::read(optimized.path()).unwrap(), fused), "{fused}");
        // Texts that it never saw.
        let worst = least(&before, &after, others);
        println!("{operator}: {worst}");
        assert!((0.998..0.999_999).contains(&worst), "{operator}: {worst}");
        // Every engine loads it.
        let portable = Which::Portable.configure(EmbeddingConfig::default());
        let elsewhere = least(&before, &load(&*place, portable), &others[..10]);
        assert!(elsewhere > 0.998, "{operator}: {elsewhere}");
        assert_eq!(after.fingerprint().precision, Precision::Int8);
        let differences = before.fingerprint().differences(after.fingerprint());
        let keys: Vec<String> = differences.into_iter().map(|one| one.key).collect();
        assert_eq!(keys, ["weights"]);

        // The same again: the same bytes. Of other texts: other scales, and another identity.
        let again = folder.path().join("again");
        made(&source, &again, int8(activations, seen));
        assert_eq!(fs::read(again.join("model.onnx")).unwrap(), file);
        fs::remove_dir_all(&again).unwrap();
        let other = made(&source, &again, int8(activations, &others[..5]));
        assert_ne!(other.after.weights_identity, report.after.weights_identity);
        fs::remove_dir_all(&again).unwrap();
    }
}

#[test]
fn minilm_in_int8_keeps_the_bounds() {
    let Some(model) = minilm().filter(|_| here()) else {
        return;
    };
    // Short ones and long ones; three models are made of them, and each is compared.
    let texts = Reference::minilm().some(40).texts;
    let folder = tempfile::tempdir().unwrap();
    for activations in [Activations::Static, Activations::Dynamic] {
        let place = folder.path().join(format!("{activations:?}"));
        let report = made(&model, &place, int8(activations, &texts));
        let quality = report.quality.as_ref().unwrap();
        let (worst, mean) = (quality.cosine_worst.unwrap(), quality.cosine_mean.unwrap());
        println!(
            "{activations:?}: {} bytes, {worst:.4} worst, {mean:.5} mean",
            report.bytes
        );
        assert!(
            worst >= 0.985 && mean >= 0.997 && worst < 0.9999,
            "{quality:?}"
        );
        // Two of its products in f32 take 3.5 MB.
        assert!(report.bytes < 28_000_000, "{report:?}");
        let kept = report.products.iter().filter(|product| !product.int8);
        assert!(kept.clone().count() <= 2);
        assert!(kept.clone().all(|product| product.reason.contains("dB")));
        // Scaled by the weights alone, more is lost.
        if activations == Activations::Static {
            let place = folder.path().join("plain");
            let options = int8(activations, &texts).with_smooth(0.0);
            let plain = made(&model, &place, options);
            let mean = |report: &Report| {
                let products = report.products.iter().filter_map(|product| product.sqnr);
                products.sum::<f64>() / report.products.len() as f64
            };
            let smoothed = mean(&report);
            assert!(mean(&plain) + 1.0 < smoothed, "{plain:?}");
        }
    }
}

#[test]
fn a_model_in_16_bits_is_taken_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let original = folder.path().join("original");
    fs::create_dir(&original).unwrap();
    let source = written(&wide(), &original);
    let portable = || Which::Portable.configure(EmbeddingConfig::default());
    let (half, place) = (folder.path().join("half"), folder.path().join("int8"));
    let options = OptimizeOptions::default();
    optimize(
        source.clone(),
        &half,
        portable().with_dtype(Dtype::F16),
        options,
    )
    .unwrap();
    let texts = mixed_texts(20);
    let options = int8(Activations::Static, &texts);
    let report = optimize(ModelSource::from(half), &place, portable(), options).unwrap();
    assert!(
        report.products.iter().all(|product| product.int8),
        "{report:?}"
    );
    let (before, after) = (load(source, portable()), load(&*place, portable()));
    let worst = least(&before, &after, &texts);
    assert!((0.998..0.999_999).contains(&worst), "{worst}");
}

#[test]
fn each_node_is_looked_at_alone_where_that_is_asked_for() {
    let (folder, original) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = written(&wide(), original.path());
    let texts = mixed_texts(20);
    let portable = || Which::Portable.configure(EmbeddingConfig::default());
    for activations in [Activations::Static, Activations::Dynamic] {
        let options = int8(activations, &texts).without_comparison();
        let at = |name: &str| folder.path().join(format!("{activations:?} {name}"));
        let make = |name: &str, options: OptimizeOptions| {
            optimize(source.clone(), at(name), portable(), options).unwrap()
        };
        // A node that stays in f32 is not looked at, and the model is the one that is made without looking.
        let first = make("first", options.clone());
        let names: Vec<&String> = first.products.iter().map(|product| &product.node).collect();
        let kept = options.with_in_f32([names[0].clone()]);
        let plain = make("plain", kept.clone());
        assert!(plain.products.iter().all(|product| product.alone.is_none()));
        assert!(!plain.to_markdown().contains("alone in int8"));
        let told = make("told", kept.with_each_node());
        let model = |name: &str| fs::read(at(name).join("model.onnx")).unwrap();
        assert!(model("plain") == model("told"));
        for product in &told.products {
            assert_eq!(product.alone.is_some(), product.int8, "{product:?}");
        }
        let markdown = told.to_markdown();
        assert_eq!(markdown.matches("alone in int8").count(), names.len() - 1);
        // As a model that has it alone in int8 says.
        let product = &told.products[2];
        let others = names.iter().filter(|name| **name != &product.node);
        let only = int8(activations, &texts).with_in_f32(others.map(|name| (*name).clone()));
        let quality = make("only", only).quality.unwrap();
        let alone = product.alone.unwrap();
        let (mean, worst) = (quality.cosine_mean.unwrap(), quality.cosine_worst.unwrap());
        assert!((alone.cosine_mean - mean).abs() < 2e-7, "{alone:?} {mean}");
        assert!(
            (alone.cosine_worst - worst).abs() < 2e-7,
            "{alone:?} {worst}"
        );
        assert!(alone.cosine_worst < alone.cosine_mean && alone.cosine_mean < 1.0);
        assert!(product.mse.is_some_and(|error| error > 0.0) && product.sqnr.is_some());
    }
    let error = optimize(
        source.clone(),
        folder.path().join("none"),
        portable(),
        int8(Activations::Dynamic, &[]).with_each_node(),
    );
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("no text to look at each node with"),
        "{error}"
    );
    let alone = OptimizeOptions::default().with_each_node();
    let error = optimize(source, folder.path().join("none"), portable(), alone);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("one by one"), "{error}");
}

#[test]
fn what_is_not_in_int8_is_stored_in_16_bits_where_that_is_asked_for() {
    let (folder, original) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = written(&wide(), original.path());
    let texts = mixed_texts(20);
    let portable = || Which::Portable.configure(EmbeddingConfig::default());
    let first = folder.path().join("first");
    let options = || int8(Activations::Static, &texts).without_comparison();
    let told = optimize(source.clone(), &first, portable(), options()).unwrap();
    assert!(told.quality.is_none() && told.speed.is_none());
    // Two of its products in f32, which half of the bytes are enough for.
    let kept: Vec<String> = told.products[..2]
        .iter()
        .map(|product| product.node.clone())
        .collect();
    let options = || options().with_in_f32(kept.clone());
    let (full, half) = (folder.path().join("f32"), folder.path().join("f16"));
    let before = optimize(source.clone(), &full, portable(), options()).unwrap();
    let config = portable().with_dtype(Dtype::F16);
    let after = optimize(source.clone(), &half, config, options()).unwrap();
    let config = portable().with_dtype(Dtype::Bf16);
    let upper = optimize(source, folder.path().join("bf16"), config, options()).unwrap();
    assert!(
        upper.bytes.abs_diff(after.bytes) < 1000 && upper.bytes != after.bytes,
        "{upper:?}"
    );
    for report in [&before, &after] {
        let left = report.products.iter().filter(|product| !product.int8);
        assert_eq!(
            left.map(|product| product.node.clone()).collect::<Vec<_>>(),
            kept
        );
    }
    // Two matrices of 128 x 128, in 2 bytes instead of 4 each; positions are stored so as well.
    assert!(after.bytes + 2 * 128 * 128 * 2 <= before.bytes, "{after:?}");
    for which in engines()
        .into_iter()
        .filter(|which| *which != Which::WebGpu)
    {
        let config = || which.configure(EmbeddingConfig::default());
        let (one, other) = (load(&*full, config()), load(&*half, config()));
        let worst = least(&one, &other, &texts);
        assert!((0.9999..1.0).contains(&worst), "{}: {worst}", which.name());
        assert_eq!(other.fingerprint().precision, Precision::Int8);
    }
}

#[test]
fn what_cannot_be_done_in_int8_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let original = tempfile::tempdir().unwrap();
    let source = written(&wide(), original.path());
    let portable = || Which::Portable.configure(EmbeddingConfig::default());
    let refused = |source: &ModelSource, config: EmbeddingConfig, options: OptimizeOptions| {
        let place = folder.path().join("out");
        let error = optimize(source.clone(), place, config, options).unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{error}");
        (error.kind(), error.to_string())
    };
    let texts = |texts: &[&str]| -> Vec<String> { texts.iter().map(ToString::to_string).collect() };
    let some = mixed_texts(3);
    let fixed = Activations::Static;
    for (options, kind, words) in [
        (int8(fixed, &[]), "Optimize", "no text to calibrate with"),
        (
            int8(fixed, &texts(&["", " "])),
            "Optimize",
            "0 different text",
        ),
        (
            int8(fixed, &texts(&["a cat", "a cat"])),
            "Optimize",
            "1 different text",
        ),
        (int8(fixed, &some).with_smooth(1.5), "Optimize", "0 to 1"),
        (
            int8(fixed, &some).with_static(8),
            "Config",
            "choose one of the two",
        ),
        (
            OptimizeOptions::default().with_in_f32(["a node"]),
            "Config",
            "only products in int8",
        ),
        (
            int8(fixed, &some).with_in_f32(["a node"]),
            "Optimize",
            "\"a node\"",
        ),
        (
            OptimizeOptions::default().with_seven_bits(),
            "Config",
            "7 bits",
        ),
        (
            OptimizeOptions::default().with_smooth(0.5),
            "Config",
            "smoothing belongs",
        ),
    ] {
        let (found, error) = refused(&source, portable(), options);
        assert!(found == kind && error.contains(words), "{found}: {error}");
    }
    let (_, error) = refused(
        &source,
        portable().with_dtype(Dtype::Int8),
        int8(fixed, &some),
    );
    assert!(error.contains("choose one of the two"), "{error}");

    // A model that computes no numbers, and one whose weights are in int8 already.
    let broken = tempfile::tempdir().unwrap();
    let mut model = wide();
    let norm = model
        .tensors
        .get_mut("encoder.layer.0.attention.output.LayerNorm.bias");
    norm.unwrap().values[3] = f32::NAN;
    let (kind, error) = refused(
        &written(&model, broken.path()),
        portable(),
        int8(fixed, &some),
    );
    assert!(
        kind == "Optimize" && error.contains("while calibrating"),
        "{kind}: {error}"
    );
    let small = tempfile::tempdir().unwrap();
    let place = small.path().join("int8");
    let options = OptimizeOptions::default();
    optimize(source, &place, portable().with_dtype(Dtype::Int8), options).unwrap();
    let (_, error) = refused(&ModelSource::from(&*place), portable(), int8(fixed, &some));
    assert!(error.contains("quantised already"), "{error}");
}
