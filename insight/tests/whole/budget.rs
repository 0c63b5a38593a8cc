//! A budget on a real model: what is written keeps it, is what its flags make, and is as the report says.

use std::fs;
use std::path::Path;
use std::time::Duration;

use isovec::blocking::{Embedder, optimize};
use isovec::optimize::budget::{Budget, Point, Technique};
use isovec::optimize::{Activations, OptimizeOptions, config_of_result};
use isovec::{Dtype, EmbeddingConfig, ModelSource, Result};
use isovec_insight::advisor::{Goal, Trial};
use isovec_insight::blocking::optimize_within;
use isovec_insight::budget::{BudgetOptions, BudgetReport};
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::models::bert_of;
use isovec_test_support::{Which, mixed_texts, written_with_tiny_files};

/// A seeded BERT that is wide enough for its matrices and its table to be worth 8 bits.
fn model(folder: &Path) -> ModelSource {
    let model = bert_of(11, 600, 128, 2);
    written_with_tiny_files(folder, &model.config_json(), &model.file(Stored::F32))
}

fn config() -> EmbeddingConfig {
    Which::Portable.configure(EmbeddingConfig::default())
}

fn budget(bounds: &[&str]) -> Budget {
    Budget::new(bounds.iter().map(|bound| bound.parse().unwrap())).unwrap()
}

fn options(texts: &[String]) -> BudgetOptions {
    let texts = texts.iter().cloned();
    let mut options = BudgetOptions::new(OptimizeOptions::default().with_texts(texts));
    // Times are not looked at.
    options.trial = Trial::of(Goal::Latency);
    options.trial.rounds = 6;
    options.trial.turn = Duration::from_millis(1);
    options
}

fn within(
    source: &ModelSource,
    place: &Path,
    bounds: &[&str],
    texts: &[String],
) -> Result<BudgetReport> {
    optimize_within(
        source.clone(),
        place,
        config(),
        &budget(bounds),
        options(texts),
    )
}

/// Bytes of all files in a folder.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let sizes = entries.map(|entry| match entry.metadata().unwrap() {
        of if of.is_dir() => size(&entry.path()),
        of => of.len(),
    });
    sizes.sum()
}

#[test]
fn what_is_written_keeps_the_budget_and_is_as_the_report_says() {
    let (original, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = model(original.path());
    let texts = mixed_texts(14);
    let place = folder.path().join("small");
    // Two fifths of the original: 16 bits are too many, whatever they keep.
    let most = size(original.path()) * 2 / 5;
    let bounds = [
        "cosine>=0.99",
        "recall@10>=0.5",
        &format!("size<={most}B"),
        "latency<=60s",
    ];
    let report = within(&source, &place, &bounds, &texts).unwrap();
    let entries = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(entries, 1, "no candidate is left");
    let chosen = &report.points[report.chosen.unwrap()];
    let figures = chosen.figures().unwrap();

    // Against a measurement of our own.
    let load = |source: ModelSource, config| Embedder::builder(source).config(config).load();
    let before = load(source.clone(), config()).unwrap();
    let after = load(ModelSource::from(&*place), config_of_result(&config())).unwrap();
    let (before, after) = (before.embed(&texts).unwrap(), after.embed(&texts).unwrap());
    let cosines = before.iter().zip(after.iter());
    let cosines = cosines.map(|(a, b)| f64::from(isovec::similarity::cosine(a, b)));
    let worst = cosines.fold(1.0, f64::min);
    assert!((0.99..0.999_999).contains(&worst), "{worst}");
    assert!(
        (figures.cosine - worst).abs() < 1e-6,
        "{figures:?}, {worst}"
    );
    assert_eq!(figures.bytes, size(&place));
    assert!(figures.bytes <= most);
    let written = report.optimized.as_ref().unwrap();
    assert_eq!(written.bytes, figures.bytes);
    let quality = written.quality.as_ref().unwrap();
    assert_eq!(quality.cosine_worst, Some(figures.cosine));
    assert_eq!(quality.recall_at_10, figures.recall);
    let stated = report.original.unwrap().bytes;
    assert!(
        stated.abs_diff(size(original.path())) * 20 < stated,
        "{stated}"
    );

    // The flags that the report names make the same bytes.
    let by_hand = folder.path().join("by-hand");
    let mut config = config();
    let mut flags = OptimizeOptions::default().with_texts(texts.iter().cloned());
    config.model.dtype = Some(Dtype::F16);
    match chosen.candidate.technique {
        Technique::Int8 => config.model.dtype = Some(Dtype::Int8),
        Technique::Int4 => flags = flags.with_int4(),
        Technique::Int8Static => flags = flags.with_int8(Activations::Static),
        Technique::Int8Dynamic => flags = flags.with_int8(Activations::Dynamic),
        other => panic!("{other} is too large"),
    }
    flags = flags.with_in_f32(report.in_f32.iter().cloned());
    optimize(source, &by_hand, config, flags).unwrap();
    for name in ["model.onnx", "config.json"] {
        assert_eq!(
            fs::read(by_hand.join(name)).unwrap(),
            fs::read(place.join(name)).unwrap()
        );
    }

    let (markdown, html) = (report.to_markdown(), report.to_html());
    assert!(markdown.contains(&report.why), "{markdown}");
    for page in [&markdown, &html] {
        assert!(page.contains("keeps the budget: cosine"), "{page}");
        assert!(page.contains("chosen, keeps the budget"), "{page}");
    }
    let discs = html.matches("<title>").count();
    let measured = report.points.iter().filter_map(Point::figures).count();
    // The page has a title as well.
    assert_eq!(discs, measured + 1);
    assert!(!html.contains("http") && !html.contains("<script"));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["budget"][0], "cosine>=0.99");
    assert_eq!(json["chosen"], report.chosen.unwrap());
}

#[test]
fn nodes_that_lose_most_stay_in_f32_until_the_budget_is_kept() {
    let (original, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = model(original.path());
    let texts = mixed_texts(6);
    let place = folder.path().join("small");
    let report = within(&source, &place, &["cosine>=0.99999"], &texts).unwrap();
    let fixed = |point: &&Point| point.candidate.technique == Technique::Int8Static;
    let fixed: Vec<&Point> = report.points.iter().filter(fixed).collect();
    let kept: Vec<usize> = fixed.iter().map(|point| point.candidate.kept).collect();
    assert_eq!(kept[..4], [0, 1, 2, 4], "{report:?}");
    let figures: Vec<_> = fixed.iter().filter_map(|point| point.figures()).collect();
    assert!(figures[3].bytes > figures[0].bytes, "{figures:?}");
    assert!(figures[3].cosine > figures[0].cosine, "{figures:?}");
}

#[test]
fn a_budget_that_cannot_be_kept_says_how_near_it_came_and_writes_nothing() {
    let (original, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = model(original.path());
    let place = folder.path().join("small");
    let bounds = ["size<=1kB", "cosine>=0.5"];
    let report = within(&source, &place, &bounds, &mixed_texts(4)).unwrap();
    assert_eq!(report.chosen, None);
    assert!(report.optimized.is_none());
    assert!(
        report.why.contains("comes nearest: size is") && report.why.contains("misses size<=1KB"),
        "{}",
        report.why
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn bad_input_is_refused_before_anything_is_tried() {
    let (original, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = model(original.path());
    let place = folder.path().join("small");
    let refused = |config: EmbeddingConfig, bounds: &[&str], options: BudgetOptions| {
        let source = source.clone();
        let error = optimize_within(source, &place, config, &budget(bounds), options).unwrap_err();
        (error.kind(), error.to_string())
    };
    let texts = mixed_texts(10);
    let (kind, error) = refused(config(), &["recall@10>=0.9"], options(&texts));
    assert!(
        kind == "Optimize" && error.contains("more than 10"),
        "{error}"
    );
    let same = vec!["a cat".to_owned(); 3];
    let (_, error) = refused(config(), &["cosine>=0.9"], options(&same));
    assert!(error.contains("1 different text"), "{error}");
    let (kind, error) = refused(
        config().with_dtype(Dtype::F16),
        &["cosine>=0.9"],
        options(&texts),
    );
    assert!(kind == "Config" && error.contains("model.dtype"), "{error}");
    let mut smooth = options(&texts);
    smooth.optimize = smooth.optimize.with_smooth(0.5);
    assert_eq!(refused(config(), &["cosine>=0.9"], smooth).0, "Config");
    let mut few = options(&texts);
    few.trial.rounds = 2;
    assert_eq!(refused(config(), &["cosine>=0.9"], few).0, "Config");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("mine"), "").unwrap();
    let (kind, error) = refused(config(), &["cosine>=0.9"], options(&texts));
    assert!(
        kind == "Io" && error.contains("something is in this folder"),
        "{error}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_share_that_is_taken_out_makes_candidates_of_its_own() {
    let (original, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = model(original.path());
    let place = folder.path().join("small");
    let mut options = options(&mixed_texts(14));
    options.optimize.prune = Some(0.1);
    let report = optimize_within(
        source,
        &place,
        config(),
        &budget(&["cosine>=0.01"]),
        options,
    )
    .unwrap();
    let of = |technique: Technique| {
        let mut points = report.points.iter();
        points
            .find(|point| point.candidate.technique == technique)
            .unwrap()
            .figures()
            .unwrap()
    };
    // The others keep all of it.
    let bytes = |technique| of(technique).bytes as f64;
    for (all, less) in [
        (Technique::F16, Technique::Pruned),
        (Technique::Int8Static, Technique::PrunedInt8Static),
    ] {
        assert!(bytes(less) < 0.95 * bytes(all), "{report:?}");
        assert!(of(less).cosine < of(all).cosine, "{report:?}");
    }
    assert!(of(Technique::F16).cosine > 0.999_9, "{report:?}");
}
