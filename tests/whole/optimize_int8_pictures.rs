//! `isovec::optimize` of models of pictures in int8: ONNX Runtime computes their layers so, and vectors and labels stay what they
//! were, nearly.

use std::fs;
use std::path::Path;

use isovec::blocking::{ImageClassifier, ImageEmbedder, optimize};
use isovec::fingerprint::Precision;
use isovec::image::{Channels, Image};
use isovec::optimize::{Activations, OptimizeOptions, Report};
use isovec::{Dtype, EmbeddingConfig, Error, ModelSource, Picture};
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::convolutions::Net;
use isovec_test_models::pictures::{self, SIZE, preprocessor};
use isovec_test_support::{Which, data, engines, tiny_model};

/// Pictures with large and small patterns, and with noise.
fn images(seed: usize, count: usize) -> Vec<Picture> {
    let (height, width) = SIZE;
    let image = |at: usize| {
        let byte = |place: usize| {
            let (row, column, plane) = (place / 3 / width, place / 3 % width, place % 3);
            let large = (row / 6 * 5 + column / 6 * 3 + plane * 2 + at * 7) % 11 * 18;
            (large + (place * 97 + at * 31) % 61) as u8
        };
        let data = (0..3 * width * height).map(byte).collect();
        Image::new(width, height, Channels::Rgb, data)
            .unwrap()
            .into()
    };
    (seed..seed + count).map(image).collect()
}

fn int8(images: Vec<Picture>) -> OptimizeOptions {
    OptimizeOptions::default()
        .with_int8(Activations::Static)
        .with_pictures(images)
}

fn here() -> bool {
    engines().contains(&Which::OnnxRuntime)
}

fn on(which: Which) -> EmbeddingConfig {
    which.configure(EmbeddingConfig::default())
}

/// The tiny network of the tests: convolutions of one group and of as many as channels, norms, a sum, and labels.
fn network() -> ModelSource {
    data("tiny-network").into()
}

fn checkpoint(model: &Checkpoint) -> ModelSource {
    let files = [
        ("config.json", model.config_json()),
        ("model.safetensors", model.file(Stored::F32)),
        (
            "preprocessor_config.json",
            preprocessor().to_string().into(),
        ),
    ];
    ModelSource::bytes(
        "a model of pictures",
        files.map(|(name, bytes)| (name.to_owned(), bytes.into())),
    )
}

fn embedder(source: impl Into<ModelSource>, config: EmbeddingConfig) -> ImageEmbedder {
    ImageEmbedder::builder(source)
        .config(config)
        .load()
        .unwrap()
}

fn classifier(source: impl Into<ModelSource>, config: EmbeddingConfig) -> ImageClassifier {
    ImageClassifier::builder(source)
        .config(config)
        .load()
        .unwrap()
}

/// The least cosine of the vectors that two models give.
fn least(a: &ImageEmbedder, b: &ImageEmbedder, images: &[Picture]) -> f64 {
    let (a, b) = (a.embed(images).unwrap(), b.embed(images).unwrap());
    let cosines = a.iter().zip(b.iter());
    let cosines = cosines.map(|(a, b)| f64::from(isovec::similarity::cosine(a, b)));
    cosines.fold(1.0, f64::min)
}

/// How often a file has a word.
fn count(file: &Path, word: &str) -> usize {
    let file = fs::read(file).unwrap();
    let words = file.windows(word.len());
    words.filter(|bytes| *bytes == word.as_bytes()).count()
}

#[test]
fn onnx_runtime_computes_layers_in_int8_and_other_pictures_keep_their_labels() {
    if !here() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("int8");
    let made = |place: &Path, seed| -> Report {
        optimize(
            network(),
            place,
            on(Which::OnnxRuntime),
            int8(images(seed, 12)).with_each_node(),
        )
        .unwrap()
    };
    let report = made(&place, 0);
    // Four convolutions and the last product.
    assert_eq!(report.products.len(), 5);
    assert!(report.products.iter().all(|layer| layer.int8), "{report:?}");
    let quality = report.quality.as_ref().unwrap();
    assert!(report.of_pictures && quality.texts == 12 && quality.identical == 0);
    assert!(quality.cosine_worst.unwrap() > 0.999, "{quality:?}");
    assert!(report.to_markdown().contains("| pictures a second |"));
    // One layer loses less than all of them.
    let all = quality.cosine_mean.unwrap();
    for layer in &report.products {
        let alone = layer.alone.unwrap().cosine_mean;
        assert!(all < alone && alone < 1.0, "{layer:?} of {all}");
        assert!(layer.mse.is_some_and(|error| error > 0.0));
    }

    // The graph that ONNX Runtime makes of it has all of its layers in int8.
    let kept = tempfile::tempdir().unwrap();
    let mut keeping = on(Which::OnnxRuntime);
    keeping.runtime.session.optimized_model_cache = Some(kept.path().to_path_buf());
    let after = classifier(&*place, keeping);
    let optimized = fs::read_dir(kept.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    assert_eq!(count(&optimized, "QLinearConv"), 4);
    for fused in ["QLinearAdd", "QLinearGlobalAveragePool", "QGemm"] {
        assert_eq!(count(&optimized, fused), 1, "{fused}");
    }
    // Pictures that it never saw, on every engine; features come of it as before.
    let others = images(40, 9);
    let before = classifier(network(), on(Which::OnnxRuntime));
    assert_eq!(after.labels(), before.labels());
    assert_eq!(after.fingerprint().precision, Precision::Int8);
    let wanted = before.classify(&others).unwrap().into_vec();
    for which in engines()
        .into_iter()
        .filter(|which| *which != Which::WebGpu)
    {
        let found = classifier(&*place, on(which))
            .classify(&others)
            .unwrap()
            .into_vec();
        let apart = wanted.iter().zip(&found).map(|(a, b)| (a - b).abs());
        let apart = apart.fold(0.0, f32::max);
        assert!((1e-5..0.02).contains(&apart), "{}: {apart}", which.name());
        let features = least(
            &embedder(network(), on(which)),
            &embedder(&*place, on(which)),
            &others,
        );
        assert!(
            (0.999..0.999_999_9).contains(&features),
            "{}: {features}",
            which.name()
        );
    }

    // The same again: the same bytes. Of other pictures: other scales, and another identity.
    let again = folder.path().join("again");
    made(&again, 0);
    let file = |place: &Path| fs::read(place.join("model.onnx")).unwrap();
    assert_eq!(file(&place), file(&again));
    fs::remove_dir_all(&again).unwrap();
    let other = made(&again, 100);
    assert_ne!(other.after.weights_identity, report.after.weights_identity);
}

#[test]
fn features_of_a_network_and_vectors_of_transformers_keep_their_directions() {
    let folder = tempfile::tempdir().unwrap();
    // Without labels: maps that are averaged when it is loaded, behind a sum that nothing reads any more.
    let mut net = Net::new(7, [3, SIZE.0, SIZE.1]);
    let x = net.conv("x", [16, 3, 3, 3], true, vec![]);
    let x = net.silu(&x);
    let y = net.conv(&x, [16, 16, 1, 1], true, vec![]);
    let sum = net.node("Add", &[&x, &y], vec![]);
    // Its zero points are so many that they are a weight.
    let maps = net.conv(&sum, [1040, 16, 1, 1], true, vec![]);
    let dims =
        [("batch", 0), ("", 1040), ("", SIZE.0 - 2), ("", SIZE.1 - 2)].map(|(name, extent)| {
            match extent {
                0 => isovec_engine::description::Dim::Symbolic(name.into()),
                extent => isovec_engine::description::Dim::Fixed(extent),
            }
        });
    let file = net.file(&[(&maps, dims.to_vec())]);
    let files = [
        ("model.onnx", file),
        (
            "preprocessor_config.json",
            preprocessor().to_string().into(),
        ),
    ];
    let maps = ModelSource::bytes(
        "maps",
        files.map(|(name, bytes)| (name.to_owned(), bytes.into())),
    );
    for (name, source, products) in [
        ("maps", maps, 3),
        ("vit", checkpoint(&pictures::vit()), 19),
        ("clip", checkpoint(&pictures::clip()), 19),
    ] {
        let place = folder.path().join(name);
        let report = optimize(
            source.clone(),
            &place,
            on(Which::Portable),
            int8(images(0, 12)),
        )
        .unwrap();
        let small = report
            .products
            .iter()
            .filter(|product| product.int8)
            .count();
        assert_eq!(small, products, "{name}: {report:?}");
        let (before, after) = (
            embedder(source, on(Which::Portable)),
            embedder(&*place, on(Which::Portable)),
        );
        let worst = least(&before, &after, &images(40, 9));
        assert!((0.99..0.999_999).contains(&worst), "{name}: {worst}");
    }
}

#[test]
fn other_weights_are_stored_in_16_bits_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let half = || on(Which::Portable).with_dtype(Dtype::F16);
    let kept = ["10.Conv_1.node"];
    for (name, options) in [
        (
            "f16",
            OptimizeOptions::default().with_pictures(images(0, 4)),
        ),
        ("both", int8(images(0, 4)).with_in_f32(kept)),
    ] {
        let place = folder.path().join(name);
        let report = optimize(network(), &place, half(), options).unwrap();
        let quality = report.quality.unwrap();
        assert!(
            quality.cosine_worst.unwrap() > 0.999 && quality.identical == 0,
            "{quality:?}"
        );
        let left = report.products.iter().filter(|layer| !layer.int8);
        let left: Vec<&str> = left.map(|layer| layer.node.as_str()).collect();
        assert_eq!(left, &kept[..left.len()], "{name}");
    }
}

#[test]
fn pictures_of_their_own_calibrate_and_others_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str, source: ModelSource, options: OptimizeOptions| {
        let place = folder.path().join(name);
        let report = optimize(source, &place, on(Which::Portable), options).unwrap();
        (fs::read(place.join("model.onnx")).unwrap(), report.quality)
    };
    let prune = || OptimizeOptions::default().with_prune(0.1);
    let vit = || checkpoint(&pictures::vit());
    let dynamic = || OptimizeOptions::default().with_int8(Activations::Dynamic);
    for (name, source, options) in [
        ("int8", network(), int8(Vec::new())),
        ("dynamic", vit(), dynamic()),
        ("pruned", vit(), prune()),
    ] {
        let with = |place: &str, compared: Vec<Picture>, own: Vec<Picture>| {
            let options = options.clone().with_pictures(compared);
            let options = options.with_calibrate_pictures(own);
            made(&format!("{name}-{place}"), source.clone(), options)
        };
        let of_both = with("both", images(0, 12), Vec::new());
        let apart = with("apart", images(40, 9), images(0, 12));
        assert!(of_both.0 == apart.0, "{name}: the same pictures calibrate");
        let quality = apart.1.unwrap();
        assert_eq!((quality.texts, of_both.1.unwrap().texts), (9, 12), "{name}");
        let others = with("others", images(40, 9), Vec::new());
        assert!(others.0 != apart.0, "{name}: other pictures calibrate");
        // The figures are of what is compared.
        let alone = with("alone", Vec::new(), images(0, 12));
        assert!(alone.0 == apart.0 && alone.1.is_none(), "{name}");
    }
}

#[test]
fn what_cannot_be_done_with_pictures_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |source: ModelSource, options: OptimizeOptions, kind: &str, words: &str| {
        let place = folder.path().join("out");
        let error = optimize(source, place, on(Which::Portable), options).unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{error}");
        let found = (error.kind(), error.to_string());
        assert!(found.0 == kind && found.1.contains(words), "{found:?}");
    };
    let some = || int8(images(0, 3));
    let texts = ["a cat", "a dog"];
    let of_texts = OptimizeOptions::default()
        .with_int8(Activations::Static)
        .with_texts(texts);
    refused(
        tiny_model(),
        some(),
        "UnsupportedModel",
        "it reads no pictures",
    );
    refused(network(), of_texts, "Optimize", "texts were given");
    refused(
        network(),
        int8(Vec::new()),
        "Optimize",
        "0 picture to calibrate",
    );
    refused(
        network(),
        int8(images(0, 1)),
        "Optimize",
        "1 picture to calibrate",
    );
    refused(
        network(),
        some().with_calibrate_pictures(images(9, 1)),
        "Optimize",
        "1 picture to calibrate",
    );
    refused(
        network(),
        int8(images(0, 1)).with_calibrate_pictures(images(9, 3)),
        "Optimize",
        "1 picture to compare",
    );
    refused(
        network(),
        some().with_texts(texts),
        "Config",
        "one of the two",
    );
    let own = int8(Vec::new()).with_calibrate_pictures(images(9, 3));
    refused(network(), own.with_texts(texts), "Config", "one of the two");
    let whole = OptimizeOptions::default().with_pictures(images(0, 3));
    let observed = whole.clone().with_calibrate_pictures(images(9, 3));
    let half = on(Which::Portable).with_dtype(Dtype::F16);
    let error = optimize(network(), folder.path().join("out"), half, observed).unwrap_err();
    let (kind, words) = (error.kind(), error.to_string());
    assert!(kind == "Config" && words.contains("pictures to calibrate with belong"));
    for options in [whole.clone().with_int4(), whole.with_static(4)] {
        refused(network(), options, "Config", "pictures go with");
    }
    refused(
        network(),
        some().with_smooth(0.5),
        "Optimize",
        "all its layers are convolutions",
    );
    refused(
        network(),
        some().with_in_f32(["a node"]),
        "Optimize",
        "\"a node\"",
    );
    refused(
        network(),
        some().with_int8(Activations::Dynamic),
        "Optimize",
        "Use static scales",
    );
    let mut broken = images(0, 3);
    broken[1] = b"no picture".to_vec().into();
    let options = some().with_pictures(broken);
    let error = optimize(
        network(),
        folder.path().join("out"),
        on(Which::Portable),
        options,
    )
    .unwrap_err();
    assert!(
        matches!(error, Error::Picture { picture: 1, .. }),
        "{error}"
    );
    // A classifier has no pooling.
    let mut pooled = on(Which::Portable);
    pooled.text.normalize = Some(true);
    let error = optimize(network(), folder.path().join("out"), pooled, some()).unwrap_err();
    assert_eq!(error.kind(), "Config", "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn weights_in_fewer_bits_are_computed_by_isovec_s_own_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(0, 8);
    for dtype in [Dtype::F16, Dtype::Int8] {
        let place = folder.path().join(format!("{dtype}"));
        let options = OptimizeOptions::default().with_pictures(images.clone());
        let config = on(Which::Portable).with_dtype(dtype);
        let report = optimize(network(), &place, config, options).unwrap();
        assert!(report.quality.unwrap().cosine_worst.unwrap() > 0.999);
        // No runtime for other models is needed for what was written.
        let small = classifier(&*place, on(Which::Portable));
        let provider = small.provider().provider.to_string();
        assert_ne!(provider, "tract", "{dtype}");
    }
}
