//! The parity suite on every engine of this machine: the real MiniLM and the tiny seeded model.

use isovec::{Embedder, EmbeddingConfig, ExportOptions, ModelSource};
use isovec_parity::Reference;
use isovec_test_support::{Which, engines, tiny_model};

fn check(source: &ModelSource, reference: &Reference, which: Which, config: EmbeddingConfig) {
    let config = which
        .configure(config)
        .with_max_batch_size(32)
        .with_max_batch_tokens(32 * 512);
    let report = pollster::block_on(async {
        let embedder = Embedder::builder(source.clone())
            .config(config)
            .load()
            .await
            .unwrap();
        assert_eq!(embedder.provider().engine, which.name());
        if which == Which::Portable {
            let version = &embedder.provider().version;
            assert!(version.starts_with("isovec "), "{version} runs an encoder");
        }
        isovec_parity::run(&embedder, reference).await.unwrap()
    });
    println!("{}: {report}", which.name());
    assert!(
        report.broken().is_empty(),
        "{}: {}",
        which.name(),
        report.broken().join("; ")
    );
}

#[test]
fn the_tiny_model_on_every_engine() {
    for which in engines() {
        check(
            &tiny_model(),
            &Reference::tiny(),
            which,
            EmbeddingConfig::default(),
        );
    }
}

#[test]
fn minilm_on_every_engine() {
    let Some(model) = isovec_test_support::minilm() else {
        return;
    };
    let all = Reference::minilm();
    for which in engines() {
        // A GPU in software takes seconds for each text.
        let reference = match which {
            Which::WebGpu => all.some(16),
            _ => all.clone(),
        };
        check(&model, &reference, which, EmbeddingConfig::default());
    }
}

/// One text a batch, and all of them in one: the planner must not show in the vectors.
#[test]
fn the_batch_limits_do_not_show() {
    for which in engines() {
        for (size, tokens) in [(1, 1), (5, 64), (1000, 1_000_000)] {
            let config = which.configure(EmbeddingConfig::default());
            let config = config
                .with_max_batch_size(size)
                .with_max_batch_tokens(tokens);
            let reference = Reference::tiny();
            let embedder = isovec::blocking::Embedder::builder(tiny_model())
                .config(config)
                .load()
                .unwrap();
            let got = embedder.embed(&reference.texts).unwrap();
            let want = (0..reference.texts.len()).map(|row| reference.vector(row));
            let deviation = isovec_parity::Deviation::between(got.iter(), want);
            assert!(
                deviation.within(&isovec_parity::BOUNDS),
                "{}, {size} texts: {deviation}",
                which.name()
            );
        }
    }
}

/// An exported file is the same model: same bytes every time, same vectors, same fingerprint.
#[test]
fn an_exported_model_is_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [folder.path().join("one"), folder.path().join("two")];
    for path in &paths {
        isovec::blocking::export(
            tiny_model(),
            path,
            EmbeddingConfig::default(),
            ExportOptions::default(),
        )
        .unwrap();
    }
    let bytes = paths
        .each_ref()
        .map(|path| std::fs::read(path.join("model.onnx")).unwrap());
    assert!(bytes[0] == bytes[1], "two exports differ");
    for which in engines() {
        let exported = ModelSource::from(paths[0].as_path());
        check(
            &exported,
            &Reference::tiny(),
            which,
            EmbeddingConfig::default(),
        );
        let config = which.configure(EmbeddingConfig::default());
        let original = isovec::blocking::Embedder::builder(tiny_model())
            .config(config.clone())
            .load()
            .unwrap();
        let exported = isovec::blocking::Embedder::builder(exported)
            .config(config)
            .load()
            .unwrap();
        let (original, exported) = (original.fingerprint(), exported.fingerprint());
        assert_eq!(original.identity, exported.identity);
        assert_eq!(original.precision, exported.precision);
        // Which weights an export was made of only its file says.
        assert!(original.claimed.is_empty());
        assert!(exported.claimed.keys().eq(["weights"]));
    }
}
