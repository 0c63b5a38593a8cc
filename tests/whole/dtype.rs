//! Weights stored small: what they take, what they cost, and that they stay the same model.

use std::path::Path;

use isovec::blocking::{Embedder, export};
use isovec::fingerprint::Precision;
use isovec::{Dtype, EmbeddingConfig, ExportOptions, Exported, ModelSource};
use isovec_parity::Reference;
use isovec_test_support::{Which, engines, minilm, tiny_model, written_with_tiny_files};

/// What the project promises of a precision.
struct Bounds {
    dtype: Dtype,
    precision: Precision,
    /// Largest L2 distance of a text's vector.
    l2: f64,
    /// Least cosine of a text, and that of all texts on average.
    worst: f64,
    mean: f64,
    /// Bytes of the model's folder.
    folder: u64,
}

const BOUNDS: [Bounds; 4] = [
    Bounds {
        dtype: Dtype::F16,
        precision: Precision::F16,
        l2: 5e-3,
        worst: 0.99998,
        mean: 0.99999,
        folder: 47_000_000,
    },
    Bounds {
        dtype: Dtype::Bf16,
        precision: Precision::Bf16,
        l2: 2e-2,
        worst: 0.9998,
        mean: 0.9999,
        folder: 47_000_000,
    },
    Bounds {
        dtype: Dtype::Int8,
        precision: Precision::Int8,
        l2: 0.1415,
        worst: 0.990,
        mean: 0.9985,
        folder: 24_000_000,
    },
    Bounds {
        dtype: Dtype::Int8Fast,
        precision: Precision::Int8Fast,
        l2: 0.1415,
        worst: 0.990,
        mean: 0.9985,
        folder: 24_000_000,
    },
];

fn exported(source: &ModelSource, folder: &Path, dtype: Dtype) -> Exported {
    let config = EmbeddingConfig::default().with_dtype(dtype);
    export(source.clone(), folder, config, ExportOptions::default()).unwrap()
}

fn load(source: impl Into<ModelSource>, which: Which, config: EmbeddingConfig) -> Embedder {
    Embedder::builder(source)
        .config(which.configure(config))
        .load()
        .unwrap()
}

#[test]
fn minilm_in_small_weights_keeps_its_vectors_on_every_engine() {
    let Some(model) = minilm() else {
        return;
    };
    let all = Reference::minilm();
    let folder = tempfile::tempdir().unwrap();
    for bounds in BOUNDS {
        let name = bounds.dtype.to_string();
        let place = folder.path().join(&name);
        let written = exported(&model, &place, bounds.dtype);
        assert_eq!(written.precision, bounds.precision);
        assert!(written.bytes < bounds.folder, "{name}: {written:?}");
        for which in engines() {
            // A processor that plays a GPU is slow: a second for a few texts.
            let reference = match which {
                Which::WebGpu => all.some(15),
                _ => all.some(60),
            };
            let embedder = load(&place, which, EmbeddingConfig::default());
            let got = embedder.embed(&reference.texts).unwrap();
            let (mut worst, mut sum, mut l2) = (1f64, 0f64, 0f64);
            for (row, vector) in got.iter().enumerate() {
                let want = reference.vector(row);
                let cosine = cosine(vector, want);
                worst = worst.min(cosine);
                sum += cosine;
                let square = |(a, b): (&f32, &f64)| (f64::from(*a) - b).powi(2);
                l2 = l2.max(vector.iter().zip(want).map(square).sum::<f64>().sqrt());
            }
            let mean = sum / reference.texts.len() as f64;
            let said = format!(
                "{name} on {}: {} bytes, cosine {worst:.6} worst, {mean:.6} mean, L2 {l2:.2e}",
                which.name(),
                written.bytes
            );
            println!("{said}");
            let kept = worst >= bounds.worst && mean >= bounds.mean && l2 <= bounds.l2;
            assert!(kept, "{said}");
            // A bound that everything keeps would see nothing.
            assert!(l2 > 1e-5, "{said}: are the weights small at all?");
        }
    }
}

fn cosine(a: &[f32], b: &[f64]) -> f64 {
    let (mut product, mut aa, mut bb) = (0f64, 0f64, 0f64);
    for (&a, &b) in a.iter().zip(b) {
        let a = f64::from(a);
        product += a * b;
        aa += a * a;
        bb += b * b;
    }
    product / (aa * bb).sqrt()
}

#[test]
fn a_small_model_is_the_same_model_in_another_precision() {
    let folder = tempfile::tempdir().unwrap();
    // The tiny model has no product of whole numbers, whose activations could be rounded.
    for bounds in &BOUNDS[..3] {
        let places =
            ["one", "two"].map(|name| folder.path().join(format!("{}-{name}", bounds.dtype)));
        let written = places
            .each_ref()
            .map(|place| exported(&tiny_model(), place, bounds.dtype));
        let files = places
            .each_ref()
            .map(|place| std::fs::read(place.join("model.onnx")).unwrap());
        assert!(files[0] == files[1], "{}: two exports differ", bounds.dtype);
        let total: u64 = written[0]
            .files
            .iter()
            .map(|file| file.metadata().unwrap().len())
            .sum();
        assert_eq!(written[0].bytes, total);

        for which in engines() {
            let full = load(tiny_model(), which, EmbeddingConfig::default());
            let small = load(&places[0], which, EmbeddingConfig::default());
            assert_eq!(small.fingerprint().identity, full.fingerprint().identity);
            assert_eq!(full.fingerprint().precision, Precision::F32);
            assert_eq!(small.fingerprint().precision, bounds.precision);

            // A query in small weights against an index in large ones: compared, and said.
            let index = full.embed(["a cat", "the end of the world"]).unwrap();
            let query = small.embed(["a cat"]).unwrap();
            let difference = index
                .check_compatible(query.fingerprint())
                .unwrap()
                .unwrap();
            assert_eq!(
                (difference.here, difference.there),
                (Precision::F32, bounds.precision)
            );
            let nearest = index.search(&query, 1).unwrap();
            assert_eq!(nearest[0][0].index, 0);
        }
    }
}

/// The tiny model in a folder, each weight rounded to bfloat16.
fn published_in_bf16(folder: &Path) -> ModelSource {
    let tiny = isovec_test_support::data("tiny-bert");
    let mut file = std::fs::read(tiny.join("model.safetensors")).unwrap();
    let weights = 8 + u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    for value in file[weights..].as_chunks_mut::<4>().0 {
        value[..2].fill(0);
    }
    let config = std::fs::read(tiny.join("config.json")).unwrap();
    std::fs::create_dir(folder).unwrap();
    written_with_tiny_files(folder, &config, &file)
}

#[test]
fn what_is_published_in_bf16_keeps_every_bit_in_half_of_the_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let [published, made] = ["published", "made"].map(|name| folder.path().join(name));
    let source = published_in_bf16(&published);
    let written = exported(&source, &made, Dtype::Bf16);
    let [large, small] = [&published, &made]
        .map(|folder| {
            folder.join(["model.safetensors", "model.onnx"][usize::from(folder == &made)])
        })
        .map(|file| std::fs::metadata(file).unwrap().len());
    assert!(small < large * 3 / 4, "{small} of {large}");
    assert_eq!(written.precision, Precision::Bf16);
    for which in engines() {
        let [full, half] = [&published, &made]
            .map(|folder| load(folder.as_path(), which, EmbeddingConfig::default()));
        for text in ["a cat", "the end of the world"] {
            let [full, half] = [&full, &half].map(|model| model.embed_one(text).unwrap());
            assert_eq!(full, half, "{which:?}");
        }
    }
    // At load as well.
    let config = |dtype| EmbeddingConfig::default().with_dtype(dtype);
    let [full, half] = [Dtype::F32, Dtype::Bf16].map(|dtype| used(&source, config(dtype)));
    assert_eq!(
        (half.0.as_str(), half.1, half.2),
        ("bf16", true, Precision::Bf16)
    );
    assert_eq!(full.3, half.3);
}

#[test]
fn precision_that_is_gone_does_not_come_back_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    exported(&tiny_model(), folder.path(), Dtype::Int8);
    let config = EmbeddingConfig::default().with_dtype(Dtype::F32);
    let embedder = load(folder.path(), Which::Portable, config);
    let knob = embedder.effective_config().get("model.dtype").unwrap();
    assert_eq!(
        (knob.used.as_str(), knob.honoured),
        ("int8", false),
        "{knob:?}"
    );
}

/// The knob in effect, and the class of the vectors.
fn used(source: &ModelSource, config: EmbeddingConfig) -> (String, bool, Precision, Vec<f32>) {
    let embedder = Embedder::builder(source.clone())
        .config(config)
        .load()
        .unwrap();
    let effective = embedder.effective_config();
    let knob = effective.get("model.dtype").unwrap();
    let precision = embedder.fingerprint().precision;
    let vector = embedder.embed_one("a text of some words").unwrap();
    (knob.used.clone(), knob.honoured, precision, vector)
}

/// Whether ONNX Runtime has products of whole numbers that gain something here.
fn multiplies_bytes() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let wide = std::arch::is_x86_feature_detected!("avx512vnni");
        let narrow = std::arch::is_x86_feature_detected!("avxvnni");
        wide || narrow
    }
    #[cfg(target_arch = "aarch64")]
    {
        std::arch::is_aarch64_feature_detected!("dotprod")
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        false
    }
}

#[test]
fn activations_are_rounded_where_it_was_asked_for_and_can_be() {
    let check = |source: &ModelSource, which: &str, config: EmbeddingConfig, expected: &str| {
        let (knob, honoured, precision, _) = used(source, config);
        assert_eq!(
            (knob.as_str(), &*precision.to_string()),
            (expected, expected),
            "{which}"
        );
        assert_eq!(honoured, expected == "int8-fast", "{which}");
    };
    let fast = EmbeddingConfig::default().with_dtype(Dtype::Int8Fast);
    check(
        &tiny_model(),
        "no such product",
        Which::Portable.configure(fast.clone()),
        "int8",
    );
    let Some(model) = minilm() else {
        return;
    };
    for which in engines() {
        let expected = match which {
            Which::Portable => "int8-fast",
            Which::OnnxRuntime if multiplies_bytes() => "int8-fast",
            _ => "int8",
        };
        check(
            &model,
            which.name(),
            which.configure(fast.clone()),
            expected,
        );
    }
    // Where nobody chose an engine, it is the one that can.
    check(&model, "by default", fast.clone(), "int8-fast");
    let mut measured = fast;
    measured.runtime.providers.provider_auto_selection = Some(true);
    check(&model, "measured", measured, "int8-fast");
}

#[test]
fn a_file_in_int8_is_computed_either_way() {
    let Some(model) = minilm() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let of = |source: &ModelSource, dtype: Option<Dtype>| {
        let mut config = Which::Portable.configure(EmbeddingConfig::default());
        config.model.dtype = dtype;
        let (used, honoured, precision, vector) = used(source, config);
        assert!(honoured, "{dtype:?}: {used}");
        assert_eq!(used, precision.to_string());
        (used, vector)
    };
    let [int8, fast] = [Dtype::Int8, Dtype::Int8Fast].map(|dtype| {
        let place = folder.path().join(dtype.to_string());
        let written = exported(&model, &place, dtype);
        assert_eq!(written.precision.to_string(), dtype.to_string());
        ModelSource::from(place)
    });
    let (wide, rounded) = (of(&int8, None), of(&fast, None));
    assert_eq!((&*wide.0, &*rounded.0), ("int8", "int8-fast"));
    assert_ne!(wide.1, rounded.1);
    assert_eq!(of(&fast, Some(Dtype::Int8)), wide);
    assert_eq!(of(&int8, Some(Dtype::Int8Fast)), rounded);
    assert_eq!(of(&model, Some(Dtype::Int8Fast)), rounded);
}
