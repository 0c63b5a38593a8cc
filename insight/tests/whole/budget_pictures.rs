//! A budget over pictures: what is written keeps it, is what its flags make, and is as the report says.

use std::fs;
use std::path::Path;
use std::time::Duration;

use isovec::blocking::{ImageClassifier, optimize};
use isovec::image::{Channels, Image};
use isovec::optimize::budget::{Budget, Point, Technique, Tried};
use isovec::optimize::{Activations, OptimizeOptions, config_of_result};
use isovec::{ClassifyOptions, Dtype, EmbeddingConfig, ModelSource, Picture, Scores, similarity};
use isovec_engine::description::Dim;
use isovec_insight::advisor::{Goal, Trial};
use isovec_insight::blocking::optimize_within;
use isovec_insight::budget::{BudgetOptions, BudgetReport};
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::convolutions::Net;
use isovec_test_models::pictures::{self, SIZE, preprocessor};
use isovec_test_support::{Which, tiny_model};
use serde_json::json;

const LABELS: usize = 12;
const CHANNELS: usize = 48;

/// A model of these files.
fn source(model: (&str, Vec<u8>), config: Vec<u8>) -> ModelSource {
    let preprocessor = preprocessor().to_string().into_bytes();
    let files = [
        model,
        ("config.json", config),
        ("preprocessor_config.json", preprocessor),
    ];
    let files = files.map(|(name, bytes)| (name.to_owned(), bytes.into()));
    ModelSource::bytes("a model of pictures", files)
}

/// A seeded network with labels, wide enough for its kernels to be worth 8 bits.
fn network() -> ModelSource {
    let mut net = Net::new(5, [3, SIZE.0, SIZE.1]);
    let mut x = net.square("x", (CHANNELS, 3), 3, 1, 1);
    for _ in 0..3 {
        x = net.relu(&x);
        x = net.square(&x, (CHANNELS, CHANNELS), 3, 2, 1);
    }
    x = net.relu(&x);
    x = net.node("GlobalAveragePool", &[&x], vec![]);
    x = net.node("Flatten", &[&x], vec![]);
    let logits = net.classifier(&x, (LABELS, CHANNELS));
    let logits = net.node("Identity", &[&logits], vec![]);
    let dims = vec![Dim::Symbolic("batch".into()), Dim::Fixed(LABELS)];
    let labels: Vec<String> = (0..LABELS).map(|label| format!("kind {label}")).collect();
    let labels = labels.iter().enumerate();
    let labels: serde_json::Map<_, _> = labels
        .map(|(id, label)| (id.to_string(), json!(label)))
        .collect();
    let config = json!({"id2label": labels}).to_string().into_bytes();
    source(("model.onnx", net.file(&[(&logits, dims)])), config)
}

fn vit() -> ModelSource {
    let model = pictures::vit();
    let weights = ("model.safetensors", model.file(Stored::F32));
    source(weights, model.config_json())
}

fn images(seed: usize, count: usize) -> Vec<Picture> {
    let (height, width) = SIZE;
    let image = |at: usize| {
        let byte = |place: usize| {
            let (row, column, plane) = (place / 3 / width, place / 3 % width, place % 3);
            let large = (row / 6 * 5 + column / 6 * 3 + plane * 2 + at * 7) % 11 * 18;
            (large + (place * 97 + at * 31) % 61) as u8
        };
        let data = (0..3 * width * height).map(byte).collect();
        let image = Image::new(width, height, Channels::Rgb, data).unwrap();
        Picture::from(image)
    };
    (seed..seed + count).map(image).collect()
}

fn config() -> EmbeddingConfig {
    Which::Portable.configure(EmbeddingConfig::default())
}

fn budget(bounds: &[&str]) -> Budget {
    Budget::new(bounds.iter().map(|bound| bound.parse().unwrap())).unwrap()
}

/// What every candidate has: some pictures calibrate, and others are compared.
fn given() -> OptimizeOptions {
    OptimizeOptions::default()
        .with_pictures(images(0, 12))
        .with_calibrate_pictures(images(40, 8))
}

fn options(optimize: OptimizeOptions) -> BudgetOptions {
    let mut options = BudgetOptions::new(optimize);
    // Times are not looked at.
    options.trial = Trial::of(Goal::Latency);
    options.trial.rounds = 6;
    options.trial.turn = Duration::from_millis(1);
    options
}

fn within(
    source: ModelSource,
    place: &Path,
    bounds: &[&str],
    optimize: OptimizeOptions,
) -> BudgetReport {
    optimize_within(source, place, config(), &budget(bounds), options(optimize)).unwrap()
}

fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum()
}

fn techniques(report: &BudgetReport) -> Vec<Technique> {
    let points = report.points.iter();
    let first = points.filter(|point| point.candidate.kept == 0);
    first.map(|point| point.candidate.technique).collect()
}

#[test]
fn a_classifier_is_compared_by_its_logits_and_what_is_written_keeps_the_budget() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("small");
    let whole = folder.path().join("whole");
    optimize(
        network(),
        &whole,
        config().with_dtype(Dtype::F32),
        OptimizeOptions::default().with_pictures(images(0, 2)),
    )
    .unwrap();
    // 16 bits are too many, whatever they keep.
    let most = size(&whole) * 2 / 5;
    let bounds = [
        "cosine>=0.99",
        "recall@10>=0.5",
        &format!("size<={most}B"),
        "latency<=60s",
    ];
    let report = within(network(), &place, &bounds, given());
    println!("{}", report.to_markdown());
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        2,
        "no candidate is left"
    );
    let chosen = &report.points[report.chosen.expect("a choice")];
    assert_eq!(chosen.candidate.technique, Technique::Int8Static);
    let figures = chosen.figures().unwrap();

    // Against a measurement of our own.
    let logits = |source: ModelSource, config: EmbeddingConfig| {
        let classifier = ImageClassifier::builder(source).config(config).load();
        let options = ClassifyOptions::default().with_scores(Scores::Logits);
        let said = classifier.unwrap().classify_with(&images(0, 12), &options);
        said.unwrap().into_vec()
    };
    let before = logits(network(), config());
    let after = logits(ModelSource::from(&*place), config_of_result(&config()));
    let pairs = before.chunks(LABELS).zip(after.chunks(LABELS));
    let cosines = pairs.map(|(a, b)| f64::from(similarity::cosine(a, b)));
    let worst = cosines.fold(1.0, f64::min);
    assert!((0.99..0.999_999_9).contains(&worst), "{worst}");
    assert!(
        (figures.cosine - worst).abs() < 1e-6,
        "{figures:?}, {worst}"
    );
    assert!(figures.bytes == size(&place) && figures.bytes <= most);
    let written = report.optimized.as_ref().unwrap();
    assert!(written.of_pictures && written.bytes == figures.bytes);
    let quality = written.quality.as_ref().unwrap();
    assert_eq!(quality.cosine_worst, Some(figures.cosine));
    assert_eq!(quality.recall_at_10, figures.recall);

    // The flags that the report names make the same bytes.
    let by_hand = folder.path().join("by-hand");
    let flags = given()
        .with_int8(Activations::Static)
        .with_in_f32(report.in_f32.iter().cloned());
    optimize(network(), &by_hand, config().with_dtype(Dtype::F16), flags).unwrap();
    let file = |place: &Path| fs::read(place.join("model.onnx")).unwrap();
    assert!(file(&by_hand) == file(&place));

    // What its convolutions cannot have is listed with the reason. 4 bits are of texts.
    let all = [
        Technique::F16,
        Technique::Int8,
        Technique::Int8Static,
        Technique::Int8Dynamic,
    ];
    assert_eq!(techniques(&report), all);
    match &report.points.last().unwrap().tried {
        Tried::Refused(why) => assert!(why.contains("Use static scales"), "{why}"),
        tried => panic!("{tried:?}"),
    }
    assert!(report.of_pictures && report.texts == 12);
    let (markdown, html) = (report.to_markdown(), report.to_html());
    for page in [&markdown, &html] {
        assert!(page.contains("Measured on 12 pictures"), "{page}");
        assert!(page.contains("cosine, worst picture"), "{page}");
        assert!(page.contains("time of a picture"), "{page}");
        assert!(!page.contains("of a text") && !page.contains("worst text"));
    }
    assert!(
        html.contains("cosine of the worst picture</text>"),
        "{html}"
    );
}

#[test]
fn vectors_of_a_transformer_have_candidates_of_every_kind() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("small");
    let pruned = given().with_prune(0.3);
    let report = within(vit(), &place, &["cosine>=0.01"], pruned);
    println!("{}", report.to_markdown());
    let all = [
        Technique::F16,
        Technique::Int8,
        Technique::Int8Static,
        Technique::Int8Dynamic,
        Technique::Pruned,
        Technique::PrunedInt8Static,
    ];
    assert_eq!(techniques(&report), all);
    let of = |technique: Technique| {
        let mut points = report.points.iter();
        let point = points.find(|point| point.candidate.technique == technique);
        point.unwrap().figures().expect("measured")
    };
    let bytes = |technique| of(technique).bytes as f64;
    for (all, less) in [
        (Technique::F16, Technique::Pruned),
        (Technique::Int8Static, Technique::PrunedInt8Static),
    ] {
        assert!(bytes(less) < 0.95 * bytes(all), "{less}");
        assert!(of(less).cosine < of(all).cosine, "{less}");
    }
    for technique in all {
        let figures = of(technique);
        assert!((0.3..0.999_999_99).contains(&figures.cosine), "{technique}");
        assert!(figures.recall.is_some(), "{technique}");
    }
    assert!(of(Technique::F16).cosine > 0.999_9, "{report:?}");
}

#[test]
fn layers_that_lose_most_stay_in_f32_until_the_budget_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("small");
    let report = within(network(), &place, &["cosine>=0.999999"], given());
    let fixed = |point: &&Point| point.candidate.technique == Technique::Int8Static;
    let fixed: Vec<&Point> = report.points.iter().filter(fixed).collect();
    let kept: Vec<usize> = fixed.iter().map(|point| point.candidate.kept).collect();
    assert_eq!(kept[..3], [0, 1, 2], "{report:?}");
    let figures: Vec<_> = fixed.iter().filter_map(|point| point.figures()).collect();
    assert!(figures[2].bytes > figures[0].bytes, "{figures:?}");
}

#[test]
fn bad_pictures_are_refused_before_anything_is_tried() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("small");
    let refused = |source: ModelSource, bounds: &[&str], asked: OptimizeOptions| {
        let error = optimize_within(source, &place, config(), &budget(bounds), options(asked));
        let error = error.unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{error}");
        (error.kind(), error.to_string())
    };
    let some = |count| OptimizeOptions::default().with_pictures(images(0, count));
    let (kind, error) = refused(network(), &["recall@10>=0.5"], some(10));
    assert!(
        kind == "Optimize" && error.contains("10 pictures for a bound"),
        "{error}"
    );
    let (kind, error) = refused(network(), &["cosine>=0.5"], some(1));
    assert!(
        kind == "Optimize" && error.contains("1 picture to compare"),
        "{error}"
    );
    let own = OptimizeOptions::default().with_calibrate_pictures(images(0, 3));
    let (_, error) = refused(network(), &["cosine>=0.5"], own.clone());
    assert!(error.contains("0 picture to compare"), "{error}");
    let texts = ["a cat", "a dog"];
    for both in [
        some(3).with_texts(texts),
        some(3).with_calibrate_with(texts),
        some(3).with_keep_tokens_of(texts),
        own.with_texts(texts),
    ] {
        let (kind, error) = refused(network(), &["cosine>=0.5"], both);
        assert!(
            kind == "Config" && error.contains("one of the two"),
            "{error}"
        );
    }
    let (_, error) = refused(tiny_model(), &["cosine>=0.5"], some(3));
    assert!(error.contains("it reads no pictures"), "{error}");
    let mut broken = images(0, 3);
    broken[1] = b"no picture".to_vec().into();
    let broken = OptimizeOptions::default().with_pictures(broken);
    let (kind, error) = refused(network(), &["cosine>=0.5"], broken);
    assert!(kind == "Picture" && error.contains("picture 1"), "{error}");
}
