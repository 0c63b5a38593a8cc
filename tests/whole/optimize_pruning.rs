//! `isovec::optimize` that takes out columns, heads and layers: fewer bytes on every engine, and vectors that change least.

use std::fs;
use std::path::Path;

use isovec::blocking::{Embedder, ImageClassifier, optimize};
use isovec::image::{Channels, Image};
use isovec::optimize::{Activations, Level, OptimizeOptions, Report, Unit};
use isovec::{Dtype, EmbeddingConfig, ModelSource, Picture};
use isovec_parity::Reference;
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::models::bert_of;
use isovec_test_models::pictures::{self, SIZE, preprocessor};
use isovec_test_support::{Which, data, engines, minilm, mixed_texts, written_with_tiny_files};

fn config(which: Which) -> EmbeddingConfig {
    which.configure(EmbeddingConfig::default())
}

fn prune(share: f64, texts: &[String]) -> OptimizeOptions {
    OptimizeOptions::default()
        .with_prune(share)
        .with_texts(texts.iter().cloned())
}

fn written(folder: &Path, model: &Checkpoint) -> ModelSource {
    written_with_tiny_files(folder, &model.config_json(), &model.file(Stored::F32))
}

fn kept(report: &Report, unit: Unit) -> (usize, usize) {
    let parts = report.pruned.iter().filter(|part| part.unit == unit);
    parts.fold((0, 0), |(kept, all), part| {
        (kept + part.kept, all + part.units)
    })
}

/// A model with columns and heads that others make up for: the second half of the columns of each layer has what the first half has,
/// and the last head is the first one.
fn redundant() -> Checkpoint {
    let mut model = bert_of(11, 600, 128, 2);
    let heads = model.config["num_attention_heads"].as_u64().unwrap() as usize;
    for (name, array) in &mut model.tensors {
        let rows = array.shape[0];
        let width = array.values.len() / rows;
        if name.contains("intermediate.dense") {
            array
                .values
                .copy_within(..rows / 2 * width, rows / 2 * width);
        }
        let of_heads = ["query", "key", "value"]
            .iter()
            .any(|part| name.contains(part));
        if of_heads {
            let head = rows / heads * width;
            array.values.copy_within(..head, rows * width - head);
        }
    }
    model
}

#[test]
fn what_others_make_up_for_goes_without_a_loss_on_every_engine() {
    let (folder, original) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = written(original.path(), &redundant());
    let texts = mixed_texts(40);
    let place = folder.path().join("pruned");
    let made = |place: &Path| {
        optimize(
            source.clone(),
            place,
            config(Which::Portable),
            prune(0.1, &texts),
        )
        .unwrap()
    };
    let report = made(&place);
    println!("{}", report.to_markdown());
    let (before, after) = (report.before.stored_bytes, report.after.stored_bytes);
    assert!(after as f64 <= 0.905 * before as f64, "{report:?}");
    let (columns, all_columns) = kept(&report, Unit::Columns);
    assert!(columns < all_columns, "{report:?}");
    let worst = report.quality.as_ref().unwrap().cosine_worst.unwrap();
    assert!(worst > 0.999, "{worst}");

    let embed = |source: ModelSource, which: Which| {
        let embedder = Embedder::builder(source)
            .config(config(which))
            .load()
            .unwrap();
        embedder.embed(&texts).unwrap()
    };
    let vectors = embed(ModelSource::from(&*place), Which::Portable);
    for which in engines() {
        let found = embed(ModelSource::from(&*place), which);
        for (a, b) in vectors.iter().zip(found.iter()) {
            let most = a
                .iter()
                .zip(b)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f32::max);
            assert!(most < 2e-6, "{}: {most}", which.name());
        }
    }
    let again = folder.path().join("again");
    made(&again);
    let file = |place: &Path| fs::read(place.join("model.onnx")).unwrap();
    assert_eq!(file(&again), file(&place));
    // It can be pruned again, and quantised.
    let twice = folder.path().join("twice");
    let small = ModelSource::from(&*place);
    let options = prune(0.05, &texts).with_int8(Activations::Static);
    let report = optimize(
        small,
        &twice,
        config(Which::Portable).with_dtype(Dtype::F16),
        options,
    )
    .unwrap();
    assert!(report.after.stored_bytes * 3 < after, "{report:?}");
    assert!(!embed(ModelSource::from(&*twice), Which::Portable).is_empty());
}

#[test]
fn a_layer_that_does_nothing_is_left_out() {
    let (folder, original) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut model = bert_of(11, 600, 128, 3);
    for (name, array) in &mut model.tensors {
        if name.contains("layer.1.") && name.contains("output.dense") {
            array.values.fill(0.0);
        }
        // What was normed before stays as it is.
        if name.contains("LayerNorm.weight") {
            array.values.fill(1.0);
        }
        if name.contains("LayerNorm.bias") {
            array.values.fill(0.0);
        }
    }
    let source = written(original.path(), &model);
    let texts = mixed_texts(20);
    let place = folder.path().join("pruned");
    let report = optimize(source, &place, config(Which::Portable), prune(0.25, &texts)).unwrap();
    println!("{}", report.to_markdown());
    let gone: Vec<&str> = report
        .pruned
        .iter()
        .filter(|part| part.kept == 0)
        .map(|part| part.matrix.as_str())
        .collect();
    assert!(
        !gone.is_empty() && gone.iter().all(|name| name.contains("layer.1.")),
        "{gone:?}"
    );
    assert!(report.quality.unwrap().cosine_worst.unwrap() > 0.9999);
}

#[test]
fn what_does_not_go_together_is_refused_and_leaves_nothing() {
    let (folder, original) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = written(original.path(), &bert_of(11, 600, 128, 2));
    let out = folder.path().join("out");
    let refused = |options: OptimizeOptions| {
        let error = optimize(source.clone(), &out, config(Which::Portable), options).unwrap_err();
        assert!(!out.exists());
        error.to_string()
    };
    let texts = mixed_texts(8);
    assert!(refused(OptimizeOptions::default().with_prune(0.1)).contains("no text to prune with"));
    assert!(refused(prune(0.1, &texts).with_static(8)).contains("columns and heads"));
    assert!(refused(prune(1.5, &texts)).contains("between 0 and 1"));
    assert!(refused(prune(0.99, &texts)).contains("can be taken out"));
    let same = vec!["the same".to_owned(); 5];
    assert!(refused(prune(0.1, &same)).contains("different text"));
}

#[test]
fn minilm_without_a_tenth_of_its_bytes_keeps_most_of_its_vectors() {
    let Some(model) = minilm() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("pruned");
    let texts = Reference::minilm().texts;
    let options = prune(0.1, &texts[..40])
        .with_texts(texts.iter().cloned())
        .with_calibrate_with(texts.iter().step_by(2).cloned());
    let report = optimize(model, &place, config(Which::Portable), options).unwrap();
    println!("{}", report.to_markdown());
    let (before, after) = (report.before.stored_bytes, report.after.stored_bytes);
    assert!(after as f64 <= 0.9 * before as f64, "{report:?}");
    let quality = report.quality.unwrap();
    assert!(quality.cosine_mean.unwrap() > 0.93, "{quality:?}");
}

/// Pictures with large and small patterns.
fn images(count: usize) -> Vec<Picture> {
    let (height, width) = SIZE;
    let image = |at: usize| {
        let byte = |place: usize| {
            let (row, column) = (place / 3 / width, place / 3 % width);
            ((row / 5 * (3 + at) + column / 7 * 5 + place % 3 * 11) % 13 * 17 + place * 31 % 40)
                as u8
        };
        let data = (0..3 * width * height).map(byte).collect();
        Picture::from(Image::new(width, height, Channels::Rgb, data).unwrap())
    };
    (0..count).map(image).collect()
}

#[test]
fn a_network_of_pictures_loses_channels_and_keeps_its_labels_on_every_engine() {
    let folder = tempfile::tempdir().unwrap();
    let network = || ModelSource::from(data("tiny-network"));
    // The GPU runs no convolutions.
    let here = engines()
        .into_iter()
        .filter(|&which| which != Which::WebGpu);
    for which in here {
        let place = folder.path().join(which.name());
        let options = OptimizeOptions::default()
            .with_prune(0.1)
            .with_pictures(images(12));
        let report = optimize(network(), &place, config(which), options).unwrap();
        println!("{}", report.to_markdown());
        let (before, after) = (report.before.weights_bytes, report.after.weights_bytes);
        assert!(after as f64 <= 0.9 * before as f64, "{report:?}");
        let (channels, all_channels) = kept(&report, Unit::Channels);
        assert!(channels < all_channels, "{report:?}");
        let quality = report.quality.as_ref().unwrap();
        assert!(
            report.of_pictures && quality.cosine_worst.unwrap() > 0.8,
            "{quality:?}"
        );
        let load = |source: ModelSource| {
            let builder = ImageClassifier::builder(source).config(config(which));
            builder.load().unwrap()
        };
        let (original, small) = (load(network()), load(ModelSource::from(&*place)));
        assert_eq!(original.labels(), small.labels());
        assert!(small.classify(&images(3)).is_ok());
    }
    // Channels go with int8, and with passes that fold the normalisations first.
    let place = folder.path().join("folded");
    let options = OptimizeOptions::default()
        .with_level(Level::Extended)
        .with_prune(0.1)
        .with_pictures(images(12));
    let report = optimize(network(), &place, config(Which::Portable), options).unwrap();
    assert!(kept(&report, Unit::Channels).0 > 0);
    let place = folder.path().join("int8");
    let options = OptimizeOptions::default()
        .with_int8(Activations::Static)
        .with_prune(0.1)
        .with_pictures(images(12));
    let report = optimize(network(), &place, config(Which::Portable), options).unwrap();
    assert!(report.products.iter().any(|product| product.int8));
}

#[test]
fn a_transformer_of_pictures_loses_columns_and_heads() {
    let folder = tempfile::tempdir().unwrap();
    let model = pictures::vit();
    let files = [
        ("config.json", model.config_json()),
        ("model.safetensors", model.file(Stored::F32)),
        (
            "preprocessor_config.json",
            preprocessor().to_string().into(),
        ),
    ];
    let files = files.map(|(name, bytes)| (name.to_owned(), bytes.into()));
    let place = folder.path().join("pruned");
    let options = OptimizeOptions::default()
        .with_prune(0.1)
        .with_pictures(images(12));
    let source = ModelSource::bytes("a model of pictures", files);
    let report = optimize(source, &place, config(Which::Portable), options).unwrap();
    println!("{}", report.to_markdown());
    let (columns, all) = kept(&report, Unit::Columns);
    assert!(columns < all || kept(&report, Unit::Heads).0 < kept(&report, Unit::Heads).1);
    assert!(report.quality.unwrap().cosine_worst.unwrap() > 0.8);
}
