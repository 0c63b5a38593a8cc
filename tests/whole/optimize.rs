//! `isovec::optimize`: what it writes loads on every engine, is as small as it says, and keeps what it promises to keep.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use isovec::blocking::{Embedder, optimize};
use isovec::error::Error;
use isovec::optimize::{OptimizeOptions, Report};
use isovec::{Dtype, EmbeddingConfig, ModelSource};
use isovec_parity::Reference;
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::models::bert_like;
use isovec_test_models::rng::Rng;
use isovec_test_support::{Which, engines, minilm, tiny_model};
use serde_json::{Value, json};

fn load(source: impl Into<ModelSource>, which: Which) -> Embedder {
    let config = which.configure(EmbeddingConfig::default());
    Embedder::builder(source).config(config).load().unwrap()
}

fn vectors(embedder: &Embedder, texts: &[String]) -> Vec<Vec<u32>> {
    let set = embedder.embed(texts).unwrap();
    set.iter()
        .map(|row| row.iter().map(|x| x.to_bits()).collect())
        .collect()
}

fn trimmed(source: &ModelSource, folder: &Path, corpus: &[String]) -> Report {
    let options = OptimizeOptions::default().with_keep_tokens_of(corpus);
    // The portable engine measures: it is there on every machine.
    let config = Which::Portable.configure(EmbeddingConfig::default());
    optimize(source.clone(), folder, config, options).unwrap()
}

/// The files of a folder and their content.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(place) = open.pop() {
        for entry in fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => {
                    let name = path.strip_prefix(folder).unwrap().display().to_string();
                    found.insert(name, fs::read(path).unwrap());
                }
            }
        }
    }
    found
}

#[test]
fn minilm_with_fewer_tokens_gives_the_same_bits_on_every_engine() {
    let Some(model) = minilm() else {
        return;
    };
    let corpus: Vec<String> = Reference::minilm().some(15).texts;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("small");
    let report = trimmed(&model, &place, &corpus);
    assert!(
        report.after.bytes() * 10 < report.before.bytes() * 6,
        "{report:?}"
    );
    let quality = report.quality.as_ref().unwrap();
    assert_eq!(quality.identical, quality.texts, "{quality:?}");
    assert_eq!(quality.recall_at_10, Some(1.0));
    let written: usize = content(&place).values().map(Vec::len).sum();
    assert_eq!(written as u64, report.bytes);
    for which in engines() {
        let (before, after) = (load(model.clone(), which), load(&*place, which));
        assert_eq!(
            vectors(&before, &corpus),
            vectors(&after, &corpus),
            "{which:?}"
        );
        // Other texts may have other vectors, so the sets are not comparable.
        let (a, b) = (before.fingerprint(), after.fingerprint());
        let keys: Vec<String> = a.differences(b).into_iter().map(|one| one.key).collect();
        assert_eq!(keys, ["tokenizer", "weights"], "{which:?}");
        // What no text of the corpus has is spelt.
        assert!(after.embed(["xylophonists 東京 \u{1f600}"]).is_ok());
    }
}

/// A model in the form of XLM-R's: 250,002 tokens, of which the first four and the last are special.
fn many_tokens(folder: &Path) -> ModelSource {
    const PIECES: usize = 250_001;
    let model = bert_like(
        3,
        json!({
            "architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta", "vocab_size": PIECES + 1,
            "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64,
            "hidden_act": "gelu", "max_position_embeddings": 66, "type_vocab_size": 1, "layer_norm_eps": 1e-5,
            "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "position_embedding_type": "absolute"
        }),
    );
    let mut rng = Rng::new(9);
    let mut vocab = vec![
        json!(["<s>", 0.0]),
        json!(["<pad>", 0.0]),
        json!(["</s>", 0.0]),
        json!(["<unk>", 0.0]),
    ];
    // Words of three languages' letters and many that no text has.
    let letters: Vec<char> = "\u{2581}abcdefghijklmnopqrstuvwxyzäöüéабвгд中文字"
        .chars()
        .collect();
    let mut seen = std::collections::BTreeSet::new();
    while vocab.len() < PIECES {
        let length = 1 + rng.below(5) as usize;
        let piece: String = (0..length)
            .map(|_| letters[rng.below(letters.len() as u64) as usize])
            .collect();
        if seen.insert(piece.clone()) {
            let score = -((5.0 + rng.unit() * 9.0) as f32);
            vocab.push(json!([piece, f64::from(score)]));
        }
    }
    let added = |id: usize, content: &str| json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [added(0, "<s>"), added(1, "<pad>"), added(2, "</s>"), added(3, "<unk>"), added(PIECES, "<mask>")],
        "normalizer": null,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always", "split": true},
        "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": true, "add_prefix_space": true},
        "decoder": null,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": vocab},
    });
    fs::write(folder.join("config.json"), model.config_json()).unwrap();
    fs::write(folder.join("model.safetensors"), model.file(Stored::F32)).unwrap();
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let tiny = isovec_test_support::data("tiny-bert");
    fs::create_dir(folder.join("1_Pooling")).unwrap();
    for name in ["modules.json", "1_Pooling/config.json"] {
        fs::copy(tiny.join(name), folder.join(name)).unwrap();
    }
    ModelSource::from(folder)
}

#[test]
fn a_table_of_250_002_tokens_loses_most_bytes_and_no_bit_of_what_is_kept() {
    let original = tempfile::tempdir().unwrap();
    let model = many_tokens(original.path());
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("small");
    let mut rng = Rng::new(1);
    let corpus: Vec<String> = (0..200)
        .map(|_| {
            let words = (0..1 + rng.below(9)).map(|_| {
                let letters = (0..1 + rng.below(8)).map(|_| char::from(b'a' + rng.below(26) as u8));
                letters.collect::<String>()
            });
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    let report = trimmed(&model, &place, &corpus);
    assert!(
        report.after.bytes() * 10 <= report.before.bytes() * 4,
        "{report:?}"
    );
    let config: Value = serde_json::from_slice(&content(&place)["config.json"]).unwrap();
    assert_eq!(
        (&config["pad_token_id"], &config["eos_token_id"]),
        (&json!(1), &json!(2))
    );
    assert!(config["vocab_size"].as_u64().unwrap() < 100_000, "{config}");
    for which in engines() {
        let (before, after) = (load(model.clone(), which), load(&*place, which));
        assert_eq!(
            vectors(&before, &corpus),
            vectors(&after, &corpus),
            "{which:?}"
        );
    }
    // The same again: the same bytes.
    let again = folder.path().join("again");
    trimmed(&model, &again, &corpus);
    assert_eq!(content(&again), content(&place));
    // What was trimmed to these texts cannot lose more of them.
    let twice = folder.path().join("twice");
    let report = trimmed(&ModelSource::from(&*place), &twice, &corpus);
    assert!(!report.steps[0].applied, "{report:?}");
    assert_eq!(content(&twice), content(&place));
}

#[test]
fn a_language_keeps_the_tokens_in_its_letters() {
    let original = tempfile::tempdir().unwrap();
    let model = many_tokens(original.path());
    let folder = tempfile::tempdir().unwrap();
    let config = || Which::Portable.configure(EmbeddingConfig::default());
    let made = |name: &str, languages: &[&str], texts: &[&str]| {
        let place = folder.path().join(name);
        let mut options = OptimizeOptions::default()
            .with_keep_languages(languages.iter().copied())
            .without_comparison();
        if !texts.is_empty() {
            options = options.with_keep_tokens_of(texts.iter().copied());
        }
        let report = optimize(model.clone(), &place, config(), options).unwrap();
        let file: Value = serde_json::from_slice(&content(&place)["tokenizer.json"]).unwrap();
        let pieces = file["model"]["vocab"].as_array().unwrap().iter();
        let pieces: std::collections::BTreeSet<String> = pieces
            .map(|piece| piece[0].as_str().unwrap().to_owned())
            .collect();
        (report, pieces, place)
    };
    let (report, english, place) = made("en", &["en"], &[]);
    assert!(
        report.after.bytes() * 2 < report.before.bytes(),
        "{report:?}"
    );
    // Letters of foreign words stay as tokens of their own; others have none but for the piece with the lowest score.
    assert!(english.contains("<s>") && english.contains("é") && english.contains("ü"));
    let foreign = |piece: &&String| {
        piece.chars().count() > 1 && piece.chars().any(|c| c.is_alphabetic() && !c.is_ascii())
    };
    assert!(english.iter().filter(foreign).count() <= 1, "{english:?}");
    assert!(!english.contains("中") && !english.contains("д"));
    assert!(english.len() > 10_000);
    // Texts in its letters have the same bits.
    let texts = ["the dog and the cat", "a bad cab faded", "x"].map(String::from);
    let (before, after) = (
        load(model.clone(), Which::Portable),
        load(&*place, Which::Portable),
    );
    assert_eq!(vectors(&before, &texts), vectors(&after, &texts));
    // Of several languages all tokens, and those of texts as well.
    let (_, german, _) = made("de", &["de"], &[]);
    let (_, both, _) = made("de and ru", &["de", "ru"], &[]);
    assert!(
        german.is_superset(
            &english
                .iter()
                .filter(|piece| piece.is_ascii())
                .cloned()
                .collect()
        )
    );
    assert!(
        german.iter().any(|piece| piece.contains("äb"))
            && !german.iter().any(|piece| piece.contains("дв"))
    );
    assert!(both.is_superset(&german) && both.iter().any(|piece| piece.contains("дв")));
    let (_, with_texts, _) = made("en and texts", &["en"], &["中"]);
    assert!(with_texts.contains("中") && with_texts.is_superset(&english));
    for wrong in ["", "xx", "english", "e n"] {
        let options = OptimizeOptions::default().with_keep_languages([wrong]);
        let place = folder.path().join("wrong");
        let error = optimize(model.clone(), &place, config(), options).unwrap_err();
        assert!(
            error.to_string().contains("no letters are known"),
            "{wrong:?}: {error}"
        );
        assert!(!place.exists());
    }
}

#[test]
fn fewer_tokens_and_fewer_bits_go_together() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("small");
    let corpus = ["the dog and the cat", "money in the bank"];
    let config = Which::Portable.configure(EmbeddingConfig::default().with_dtype(Dtype::Int8));
    let options = OptimizeOptions::default().with_keep_tokens_of(corpus);
    let report = optimize(tiny_model(), &place, config, options).unwrap();
    let applied = |name: &str| {
        report
            .steps
            .iter()
            .any(|step| step.technique == name && step.applied)
    };
    assert!(applied("vocabulary") && applied("precision"), "{report:?}");
    assert!(!applied("static"));
    let worst = report.quality.unwrap().cosine_worst.unwrap();
    assert!((0.98..1.0).contains(&worst), "{worst}");
    load(&*place, Which::Portable).embed(corpus).unwrap();
}

#[test]
fn a_static_model_is_small_and_agrees_with_its_teacher_on_single_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let words = [
        "dog", "cat", "king", "queen", "money", "bank", "river", "sea", "tree", "fish", "horse",
        "city",
    ];
    for (dtype, trim) in [
        (Dtype::F32, false),
        (Dtype::F16, false),
        (Dtype::Bf16, false),
        (Dtype::Int8, true),
    ] {
        let place = folder.path().join(format!("{dtype}"));
        let config = Which::Portable.configure(EmbeddingConfig::default().with_dtype(dtype));
        let mut options = OptimizeOptions::default().with_static(24).with_texts(words);
        if trim {
            options = options.with_keep_tokens_of(words);
        }
        let make =
            |place: &Path| optimize(tiny_model(), place, config.clone(), options.clone()).unwrap();
        let report = make(&place);
        assert_eq!(
            report.bytes,
            content(&place).values().map(Vec::len).sum::<usize>() as u64
        );
        let quality = report.quality.unwrap();
        assert_eq!(quality.cosine_mean, None);
        // Words are single tokens here. Their vectors are centred now, which changes the order; rows of other tokens would
        // have none in common with it (0, give or take 0.12).
        let order = quality.rank_correlation.unwrap();
        assert!(order > 0.45, "{dtype}: {order}");
        for which in engines() {
            let embedder = load(&*place, which);
            assert_eq!(embedder.dimension(), 24);
            embedder
                .embed(["the dog and the cat", "xylophone"])
                .unwrap();
        }
        let again = folder.path().join("again");
        make(&again);
        assert_eq!(content(&again), content(&place));
        fs::remove_dir_all(again).unwrap();
    }
    let sizes = ["f32", "f16", "bf16", "int8"]
        .map(|name| content(&folder.path().join(name))["model.safetensors"].len());
    assert!(
        sizes[1] < sizes[0] && sizes[2].abs_diff(sizes[1]) < 100,
        "{sizes:?}"
    );
    assert!(sizes[3] < sizes[1], "{sizes:?}");
    // A static model has none to be made of, and vectors have no more components than the teacher's.
    for (source, dimension, words) in [
        (
            ModelSource::from(folder.path().join("f32")),
            8,
            "static model already",
        ),
        // The last layer's normalisation takes one of 32 directions.
        (tiny_model(), 32, "1 to 31"),
    ] {
        let options = OptimizeOptions::default().with_static(dimension);
        let config = Which::Portable.configure(EmbeddingConfig::default());
        let error = optimize(source, folder.path().join("none"), config, options).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn what_cannot_be_done_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("out");
    let kept =
        |texts: &[&str]| OptimizeOptions::default().with_keep_tokens_of(texts.iter().copied());
    let refused =
        |source: ModelSource, config: EmbeddingConfig, options: OptimizeOptions| -> Error {
            let error = optimize(source, &place, config, options).unwrap_err();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{error}");
            error
        };
    let plain = || Which::Portable.configure(EmbeddingConfig::default());
    let error = refused(tiny_model(), plain(), OptimizeOptions::default());
    assert_eq!(error.kind(), "Config");
    for (texts, words) in [
        (&[][..], "no text"),
        (&["", " "], "no text"),
        (&["a cat", "a cat"], "1 different text"),
    ] {
        let error = refused(tiny_model(), plain(), kept(texts));
        assert_eq!(error.kind(), "Optimize");
        assert!(error.to_string().contains(words), "{error}");
    }
    // A model whose table is quantised already.
    let small = tempfile::tempdir().unwrap();
    let small = small.path().join("int8");
    let int8 = plain().with_dtype(Dtype::Int8);
    optimize(tiny_model(), &small, int8, OptimizeOptions::default()).unwrap();
    let error = refused(
        ModelSource::from(&*small),
        plain(),
        kept(&["a cat", "a dog"]),
    );
    assert!(
        error.to_string().contains("made by DequantizeLinear"),
        "{error}"
    );
    // A folder with something in it stays as it is.
    fs::create_dir(&place).unwrap();
    fs::write(place.join("mine.txt"), "mine").unwrap();
    let error = optimize(tiny_model(), &place, plain(), kept(&["a cat", "a dog"])).unwrap_err();
    assert_eq!(error.kind(), "Io");
    assert_eq!(content(&place).len(), 1);
}
