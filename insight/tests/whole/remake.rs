//! Suggestions that are another model, tried: the model is made, measured, and gone.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use isovec::blocking::Embedder;
use isovec::hardware::HardwareInfo;
use isovec::{Cancel, Dtype, EmbeddingConfig, ModelSource, Result};
use isovec_insight::advisor::{
    Advisor, AnalysisContext, Category, OptimizationReport, Patch, Recipe, Scales, Suggestion,
    Trial, VectorChange, Verdict,
};
use isovec_test_support::{Which, engines, minilm, mixed_texts, tiny_model};

/// Says to a child which folder for temporary files is its own.
const OWN: &str = "ISOVEC_TEST_OWN_TEMPORARY_FILES";

/// Runs the rest of a test in a process with a folder for temporary files of its own, in which no model may be left. Returns whether this
/// is that process.
fn in_own_process(test: &str) -> bool {
    if env::var_os(OWN).is_some() {
        return true;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    for name in [OWN, "TMPDIR", "TMP", "TEMP"] {
        command.env(name, folder.path());
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let also = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{also}");
    assert!(said.contains("1 passed"), "{said}");
    let left = models(folder.path());
    assert!(left.is_empty(), "{left:?} is left");
    false
}

/// What is in a folder for temporary files of models that are made. ONNX Runtime has files of its own there.
fn models(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("isovec")).collect()
}

/// A trial whose times are not looked at.
fn short() -> Trial {
    let mut trial = Trial::default();
    trial.rounds = 6;
    trial.turn = Duration::from_millis(2);
    // As if other vectors were a reason to end.
    trial.gives_up = true;
    trial
}

fn load(source: ModelSource, which: Which) -> Embedder {
    // Asked for, and all the same no precision that another model is stored in.
    let config = which.configure(EmbeddingConfig::default().with_dtype(Dtype::F32));
    Embedder::builder(source).config(config).load().unwrap()
}

fn verify(
    report: &mut OptimizationReport,
    source: ModelSource,
    baseline: &Embedder,
    texts: &[String],
    trial: &Trial,
) -> Result<Vec<String>> {
    let mut heard = Vec::new();
    let baseline = baseline.clone().into();
    let tried = report.verify(source, &baseline, texts, trial, |title| {
        heard.push(title.to_owned());
    });
    pollster::block_on(tried)?;
    Ok(heard)
}

/// A report of one suggestion: products in int8.
fn asked(recipe: Recipe) -> OptimizationReport {
    let mut report = OptimizationReport::default();
    report.add([
        Suggestion::new("one", Category::Precision, "Make another model")
            .changing(VectorChange::Identity)
            .with_recipe(recipe),
    ]);
    report
}

/// What is said where it could not be tried.
fn refused(report: &OptimizationReport) -> &str {
    let found = &report.suggestions[0];
    assert!(
        found.verified.is_none() && found.quality.is_none() && found.sizes.is_none(),
        "{found:?}"
    );
    let why = found.warnings.last().unwrap();
    assert!(why.starts_with("It could not be tried: "), "{why}");
    why
}

#[test]
fn products_in_int8_are_made_measured_and_gone() {
    let Some(model) = minilm().filter(|_| engines().contains(&Which::OnnxRuntime)) else {
        return;
    };
    if !in_own_process("remake::products_in_int8_are_made_measured_and_gone") {
        return;
    }
    let texts = mixed_texts(24);
    let baseline = load(model.clone(), Which::OnnxRuntime);
    baseline.embed(&texts).unwrap();
    let mut hardware = pollster::block_on(HardwareInfo::detect()).unwrap();
    hardware.cpu.simd.push("avx512vnni".into());
    let context = AnalysisContext::from(&baseline).with_hardware(hardware);
    let id = "products-in-int8";
    // So few tokens are worth no model, but where it is tried.
    assert!(Advisor::new().analyze(&context).suggestion(id).is_none());
    let mut report = Advisor::new().analyze(&context.with_trials());
    report.suggestions.retain(|suggestion| suggestion.id == id);
    let title = report.suggestions[0].title.clone();

    let heard = verify(&mut report, model, &baseline, &texts, &short()).unwrap();
    assert_eq!(heard, [title]);
    let found = &report.suggestions[0];
    let trial = found.verified.as_ref().unwrap();
    assert_eq!(
        (trial.rounds, trial.baseline.len(), trial.candidate.len()),
        (6, 6, 6)
    );
    assert!(trial.low.is_some() && trial.high.is_some(), "{trial}");
    assert_eq!(trial.verdict, Verdict::OtherVectors);
    assert!(!trial.compatible, "the weights are others");
    let quality = found.quality.unwrap();
    let (worst, mean) = (quality.cosine_worst.unwrap(), quality.cosine_mean.unwrap());
    assert!((0.98..0.999_99).contains(&worst), "{quality}");
    assert!(worst < mean && mean < 1.0, "{quality}");
    assert!(quality.recall_at_10.unwrap() > 0.5, "{quality}");
    assert!(quality.texts > 20, "{quality}");
    let sizes = found.sizes.unwrap();
    assert!(sizes.after * 3 < sizes.before, "{sizes}");
    let page = report.to_markdown();
    for said in [
        "**Measured:**",
        &quality.to_string(),
        &sizes.to_string(),
        "Vectors change",
    ] {
        assert!(page.contains(said), "{said} is not in\n{page}");
    }
    assert!(!page.contains("not measured"), "{page}");
    let json = serde_json::to_string(&report).unwrap();
    let read: OptimizationReport = serde_json::from_str(&json).unwrap();
    // Numbers are read back to the last digit but one.
    let again = read.suggestions[0].quality.unwrap();
    assert_eq!(again.to_string(), quality.to_string());
}

#[test]
fn a_cancelled_trial_leaves_no_model() {
    let Some(model) = minilm().filter(|_| engines().contains(&Which::OnnxRuntime)) else {
        return;
    };
    if !in_own_process("remake::a_cancelled_trial_leaves_no_model") {
        return;
    }
    let baseline = load(model.clone(), Which::OnnxRuntime);
    let mut trial = short();
    let cancel = Cancel::new();
    trial.cancel = Some(cancel.clone());
    // As Ctrl-C does, when there is something to leave.
    let hand = std::thread::spawn(move || {
        let temporary = env::temp_dir();
        while models(&temporary).is_empty() {
            std::thread::yield_now();
        }
        cancel.cancel();
    });
    let mut report = asked(Recipe::int8(Scales::Dynamic));
    let error = verify(&mut report, model, &baseline, &mixed_texts(300), &trial).unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    assert!(report.suggestions[0].verified.is_none());
    hand.join().unwrap();
}

#[test]
fn what_cannot_be_tried_says_why() {
    let model = tiny_model();
    let texts = mixed_texts(6);
    let int8 = Recipe::int8(Scales::Static);
    let portable = load(model.clone(), Which::Portable);
    let mut report = asked(int8);
    verify(&mut report, model.clone(), &portable, &texts, &short()).unwrap();
    let why = refused(&report);
    assert!(
        why.contains("the engine portable computes here") && why.contains("ORT_DYLIB_PATH"),
        "{why}"
    );
    let mut report = asked(int8);
    let same = vec!["a cat".to_owned(); 3];
    verify(&mut report, model.clone(), &portable, &same, &short()).unwrap();
    assert!(refused(&report).contains("1 different text"), "{report:?}");
    if engines().contains(&Which::OnnxRuntime) {
        let mut report = asked(Recipe::default());
        let runtime = load(model.clone(), Which::OnnxRuntime);
        verify(&mut report, model, &runtime, &texts, &short()).unwrap();
        let why = refused(&report);
        assert!(why.contains("nothing is to be optimised"), "{why}");
    }
}

#[test]
fn smaller_weights_are_compared_as_well_and_stay_rejected() {
    let model = tiny_model();
    let texts = mixed_texts(6);
    let portable = load(model.clone(), Which::Portable);
    let patched = |vectors| {
        let mut report = OptimizationReport::default();
        let patch = Patch::of([("model.dtype", "int8")]);
        report.add([
            Suggestion::new("one", Category::Precision, "Store it smaller")
                .changing(vectors)
                .with_patch(patch),
        ]);
        report
    };
    let mut report = patched(VectorChange::Precision);
    verify(&mut report, model.clone(), &portable, &texts, &short()).unwrap();
    let found = &report.suggestions[0];
    let quality = found.quality.unwrap();
    assert_eq!(quality.texts, 6);
    assert!(quality.cosine_worst.unwrap() < 0.999_999, "{quality}");
    assert!(found.sizes.is_none());
    let page = report.to_markdown();
    assert!(page.contains("rejected, vectors are others"), "{page}");
    assert!(page.contains(&quality.to_string()), "{page}");

    // One text has no others to be compared with, and is timed all the same.
    let mut report = patched(VectorChange::Precision);
    verify(&mut report, model.clone(), &portable, &texts[..1], &short()).unwrap();
    assert!(report.suggestions[0].verified.is_some() && report.suggestions[0].quality.is_none());
    // Where vectors stay what they are nothing is to be said of them.
    let mut report = patched(VectorChange::None);
    verify(&mut report, model, &portable, &texts, &short()).unwrap();
    assert!(report.suggestions[0].verified.is_some() && report.suggestions[0].quality.is_none());
}
