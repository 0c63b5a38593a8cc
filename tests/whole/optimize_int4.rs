//! `isovec::optimize` with matrices in 4 bits on average: a seventh of the bytes, which every engine expands to the same values.

use std::fs;

use isovec::blocking::{Embedder, optimize};
use isovec::fingerprint::Precision;
use isovec::optimize::{Activations, OptimizeOptions};
use isovec::{Dtype, EmbeddingConfig, ModelSource};
use isovec_parity::Reference;
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::models::bert_of;
use isovec_test_support::{Which, engines, minilm, mixed_texts, written_with_tiny_files};

/// Texts to calibrate MiniLM with: every matrix is tried with each of them, so that few have to do.
const FEW: usize = 12;

#[test]
fn four_bits_take_few_bytes_and_all_engines_expand_them_alike() {
    let (folder, original) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let model = bert_of(11, 600, 128, 2);
    let (config, weights) = (model.config_json(), model.file(Stored::F32));
    let source = written_with_tiny_files(original.path(), &config, &weights);
    let texts = mixed_texts(20);
    let place = folder.path().join("int4");
    let config = |which: Which| which.configure(EmbeddingConfig::default());
    let int4 = || {
        OptimizeOptions::default()
            .with_int4()
            .with_texts(texts.iter().cloned())
    };
    let make = |place: &std::path::Path, dtype| {
        let mut config = config(Which::Portable);
        config.model.dtype = dtype;
        optimize(source.clone(), place, config, int4()).unwrap()
    };
    let report = make(&place, Some(Dtype::F16));
    assert_eq!(report.dimension, Some(128));
    let (before, after) = (report.before.stored_bytes, report.after.stored_bytes);
    // 4 bits, and a quarter of a bit for the scales; norms, biases and the graph stay.
    assert!(after * 5 < before, "{report:?}");
    assert!(
        report.matrices.iter().all(|matrix| matrix.bits().is_some()),
        "{report:?}"
    );
    let worst = report.quality.as_ref().unwrap().cosine_worst.unwrap();
    println!("{before} -> {after}: {worst}");
    assert!((0.9..0.9999).contains(&worst), "{worst}");

    let load = |which| {
        let loaded = Embedder::builder(&*place).config(config(which)).load();
        loaded.unwrap()
    };
    let vectors = load(Which::Portable).embed(&texts).unwrap();
    for which in engines() {
        let embedder = load(which);
        assert_eq!(embedder.fingerprint().precision, Precision::Int8);
        let found = embedder.embed(&texts).unwrap();
        for (a, b) in vectors.iter().zip(found.iter()) {
            let cosine = isovec::similarity::cosine(a, b);
            assert!(cosine > 0.999_99, "{}: {cosine}", which.name());
        }
    }
    let again = folder.path().join("again");
    make(&again, Some(Dtype::F16));
    let file = |place: &std::path::Path| fs::read(place.join("model.onnx")).unwrap();
    assert_eq!(file(&again), file(&place));

    // Options that do not go together, and a model that is in 4 bits already.
    let out = folder.path().join("out");
    let refused = |source: &ModelSource, dtype: Option<Dtype>, options: OptimizeOptions| {
        let mut config = config(Which::Portable);
        config.model.dtype = dtype;
        let error = optimize(source.clone(), &out, config, options).unwrap_err();
        assert!(!out.exists());
        error.to_string()
    };
    assert!(refused(&source, Some(Dtype::Int8), int4()).contains("4 bits"));
    assert!(refused(&source, None, int4().with_int8(Activations::Static)).contains("4 bits"));
    assert!(refused(&source, None, int4().with_static(8)).contains("4 bits"));
    let small = ModelSource::from(&*place);
    assert!(refused(&small, None, int4()).contains("quantised already"));
}

#[test]
fn minilm_in_four_bits_has_a_seventh_of_the_bytes_and_loses_less_with_texts() {
    let Some(model) = minilm() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str, calibrate: Vec<String>| {
        let options = OptimizeOptions::default()
            .with_int4()
            .with_texts(Reference::minilm().texts)
            .with_calibrate_with(calibrate);
        let config = Which::Portable
            .configure(EmbeddingConfig::default())
            .with_dtype(Dtype::F16);
        let report = optimize(model.clone(), folder.path().join(name), config, options).unwrap();
        let quality = report.quality.clone().unwrap();
        println!("{name}: {} bytes, {quality:?}", report.bytes);
        // With the SDK's 0.65 MB no more than 14 MB.
        assert!(report.bytes < 13_290_000, "{report:?}");
        let for_texts = report.matrices.iter().filter(|matrix| matrix.for_texts);
        assert_eq!(for_texts.count(), 36, "{report:?}");
        for matrix in &report.matrices {
            assert_eq!(matrix.alone.len(), matrix.parts.len(), "{matrix:?}");
            let fits = |cosine: &f64| (0.98..1.0).contains(cosine);
            assert!(matrix.alone.iter().all(fits), "{matrix:?}");
            assert!(matrix.mse.is_some_and(|error| error > 0.0), "{matrix:?}");
        }
        (
            1.0 - quality.cosine_mean.unwrap(),
            quality.recall_at_10.unwrap(),
        )
    };
    // Texts that have nothing in common with those that are compared, and some of the latter.
    let other = made("other", paragraphs());
    let own = made("own", Reference::minilm().some(FEW).texts);
    assert!(other.0 < 0.02 && other.1 > 0.85, "{other:?}");
    assert!(own.0 < other.0, "{own:?} {other:?}");
}

/// The lines of the book that are sentences.
fn paragraphs() -> Vec<String> {
    let book = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let mut pages: Vec<_> = fs::read_dir(book)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    pages.sort();
    let pages = pages.iter().map(|page| fs::read_to_string(page).unwrap());
    let lines = pages.flat_map(|page| page.lines().map(str::to_owned).collect::<Vec<_>>());
    lines
        .filter(|line| line.len() > 60 && line.starts_with(char::is_alphabetic))
        .take(FEW)
        .collect()
}
