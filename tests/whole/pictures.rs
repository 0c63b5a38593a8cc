//! Pictures become vectors: on every engine those of an independent implementation at f64, whatever else is in the call;
//! and what cannot be read says so.

use isovec::image::{Alpha, Channels, DecodeOptions, Image, ImageError, Processor, Reference};
use isovec::{EmbedOptions, Embedder, EmbeddingConfig, Error, ImageEmbedder, ModelSource, Picture};
use isovec_engine::EngineError;
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::pictures::{self, FILLED, preprocessor};
use isovec_test_support::{data, engines, tiny_model};
use serde_json::{Value, json};

/// The largest difference of a component, and the largest L2 distance, of a unit vector.
const NEAR: (f64, f64) = (1e-6, 5e-6);

fn source(model: &Checkpoint, preprocessor: Option<&Value>) -> ModelSource {
    let mut files = vec![
        ("config.json".to_owned(), model.config_json().into()),
        (
            "model.safetensors".to_owned(),
            model.file(Stored::F32).into(),
        ),
    ];
    let preprocessor = preprocessor.map(|json| json.to_string().into_bytes());
    files.extend(preprocessor.map(|file| ("preprocessor_config.json".to_owned(), file.into())));
    ModelSource::bytes("a model of pictures", files)
}

fn load(model: &Checkpoint) -> ImageEmbedder {
    smol::block_on(ImageEmbedder::load(source(model, Some(&preprocessor())))).unwrap()
}

fn refused(model: &Checkpoint, preprocessor: Option<&Value>) -> Error {
    smol::block_on(ImageEmbedder::load(source(model, preprocessor))).unwrap_err()
}

/// Pixels of many sizes and channels, which do not repeat.
fn images() -> Vec<Image> {
    let sizes = [(1, 1), (40, 3), (24, 16), (7, 90), (33, 31)];
    let kinds = [
        Channels::Rgb,
        Channels::Rgba,
        Channels::Gray,
        Channels::GrayAlpha,
    ];
    let all = sizes
        .iter()
        .flat_map(|size| kinds.map(|kind| (*size, kind)));
    let image = |(at, ((width, height), kind)): (usize, ((usize, usize), Channels))| {
        let bytes = width * height * kind.count();
        let data = (0..bytes).map(|byte| ((byte + at * 31) * 97 % 251) as u8);
        Image::new(width, height, kind, data.collect()).unwrap()
    };
    all.enumerate().map(image).collect()
}

fn expected(model: &Checkpoint, image: &Image) -> Vec<f64> {
    let json = preprocessor().to_string();
    let processor = Processor::from_json(&json, None, Reference::Pillow).unwrap();
    pictures::vector(model, &processor.process(image.view()).unwrap().data)
}

fn assert_near(found: &[f32], wanted: &[f64], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    let apart = || {
        found
            .iter()
            .zip(wanted)
            .map(|(a, b)| (f64::from(*a) - b).abs())
    };
    let largest = apart().fold(0.0, f64::max);
    let l2 = apart().map(|apart| apart * apart).sum::<f64>().sqrt();
    assert!(
        largest <= NEAR.0 && l2 <= NEAR.1,
        "{what}: {largest:e}, {l2:e}"
    );
}

#[test]
fn pictures_have_the_reference_s_vectors_on_every_engine() {
    let images = images();
    for (name, model) in pictures::all() {
        let wanted: Vec<Vec<f64>> = images.iter().map(|image| expected(&model, image)).collect();
        for which in engines() {
            let what = format!("{name} on {}", which.name());
            let builder = ImageEmbedder::builder(source(&model, Some(&preprocessor())));
            let builder = builder.config(which.configure(EmbeddingConfig::default()));
            let embedder = smol::block_on(builder.load()).unwrap();
            let found = smol::block_on(embedder.embed(images.clone())).unwrap();
            assert_eq!(found.dim(), wanted[0].len());
            for (at, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                assert_near(found, wanted, &format!("{what}, picture {at}"));
            }
            let alone = smol::block_on(embedder.embed_one(images[3].clone())).unwrap();
            assert_near(&alone, &wanted[3], &what);
            let tokens = embedder.max_length() as u64;
            let stats = embedder.stats();
            assert_eq!(stats.calls.texts, images.len() as u64 + 1);
            assert_eq!(stats.tokens.real, tokens * stats.calls.texts, "{what}");
        }
    }
}

/// A picture's file, of those that Pillow wrote.
fn file(name: &str) -> Vec<u8> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("input/image/tests/data");
    let list = std::fs::read(folder.join("pictures.json")).unwrap();
    let list: Vec<Value> = serde_json::from_slice(&list).unwrap();
    let entry = list.iter().find(|entry| entry["name"] == name).unwrap();
    let number = |key: &str| entry[key].as_u64().unwrap() as usize;
    let all = std::fs::read(folder.join("pictures.bin")).unwrap();
    all[number("at")..][..number("bytes")].to_vec()
}

#[test]
fn files_have_the_vectors_of_their_pixels_and_are_turned_as_they_ask_for() {
    let model = pictures::vit();
    let embedder = load(&model);
    let (turned, stored) = (file("jpeg/turn6-big"), file("jpeg/turn1-big"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("named-wrongly.png");
    std::fs::write(&path, &turned).unwrap();
    let upright = isovec::image::decode(&turned, &DecodeOptions::default()).unwrap();
    let found = smol::block_on(embedder.embed([
        Picture::from(turned.clone()),
        Picture::open(&path).unwrap(),
        Picture::from(upright.clone()),
        Picture::from(stored.clone()),
    ]))
    .unwrap();
    let rows: Vec<&[f32]> = found.iter().collect();
    assert_eq!(rows[0], rows[1]);
    assert_eq!(rows[0], rows[2]);
    assert_ne!(rows[0], rows[3]);
    assert_near(rows[0], &expected(&model, &upright), "turned");

    let as_stored = DecodeOptions {
        turn: false,
        ..DecodeOptions::default()
    };
    let builder = ImageEmbedder::builder(source(&model, Some(&preprocessor())));
    let other = smol::block_on(builder.decoding(as_stored).load()).unwrap();
    let vector = smol::block_on(other.embed_one(turned)).unwrap();
    assert_eq!(vector, rows[3], "one that is not turned is as it is stored");
    assert_ne!(
        other.fingerprint().identity,
        embedder.fingerprint().identity
    );
    let missing = Picture::open(folder.path().join("none.png")).unwrap_err();
    assert!(matches!(missing, Error::Io { .. }), "{missing}");
}

#[test]
fn what_decides_pixels_is_in_the_fingerprint() {
    let model = pictures::clip();
    let builder = || ImageEmbedder::builder(source(&model, Some(&preprocessor())));
    let bytes = |builder: isovec::ImageEmbedderBuilder| {
        smol::block_on(builder.load())
            .unwrap()
            .fingerprint()
            .identity
            .clone()
    };
    let plain = bytes(builder());
    assert_eq!(bytes(builder()), plain);
    for other in [
        builder().alpha(Alpha::White),
        builder().pixels(Reference::Torchvision),
        builder().decoding(DecodeOptions {
            turn: false,
            ..DecodeOptions::default()
        }),
    ] {
        assert_ne!(bytes(other), plain);
    }
    // What only refuses does not decide.
    let small = DecodeOptions {
        max_pixels: 5,
        ..DecodeOptions::default()
    };
    assert_eq!(bytes(builder().decoding(small)), plain);
    for (key, value) in [
        ("resample", json!(2)),
        ("image_mean", json!([0.4, 0.5, 0.5])),
        ("do_convert_rgb", json!(true)),
    ] {
        let mut changed = preprocessor();
        changed[key] = value;
        let changed = ImageEmbedder::builder(source(&model, Some(&changed)));
        assert_eq!(bytes(changed) == plain, key == "do_convert_rgb", "{key}");
    }
}

#[test]
fn a_picture_that_cannot_be_read_is_named() {
    let embedder = load(&pictures::vit());
    let good = images();
    let cut = &file("png/RGB-17x33")[..200];
    let mixed = [
        Picture::from(good[0].clone()),
        Picture::from(cut.to_vec()),
        Picture::from(good[1].clone()),
    ];
    let error = smol::block_on(embedder.embed(mixed.clone())).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("picture 1: PNG: the file is damaged"),
        "{error}"
    );
    assert_eq!(error.kind(), "Picture");
    // Far behind, where pictures are read in several windows.
    let mut many = vec![Picture::from(good[0].clone()); 100];
    many[70] = Picture::from(b"no picture".to_vec());
    match smol::block_on(embedder.embed(many)).unwrap_err() {
        Error::Picture {
            picture: 70,
            source,
        } => {
            assert!(
                matches!(*source, ImageError::UnknownFormat { .. }),
                "{source}"
            );
        }
        other => panic!("{other}"),
    }
    // Others are embedded all the same.
    let rest = smol::block_on(embedder.embed([mixed[0].clone(), mixed[2].clone()])).unwrap();
    assert_eq!(rest.len(), 2);
    assert_eq!(
        smol::block_on(embedder.embed(Vec::<Picture>::new()))
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn pictures_are_cached_by_their_content() {
    let config = EmbeddingConfig::default().with_embedding_cache_memory(1 << 20);
    let builder = ImageEmbedder::builder(source(&pictures::vit(), Some(&preprocessor())));
    let embedder = smol::block_on(builder.config(config).load()).unwrap();
    let (wide, high) = (vec![9; 18], vec![9; 18]);
    let wide = Picture::from(Image::new(3, 2, Channels::Rgb, wide).unwrap());
    let high = Picture::from(Image::new(2, 3, Channels::Rgb, high).unwrap());
    let file = Picture::from(file("png/RGB-17x33"));
    let all = [wide, high, file];
    let first = smol::block_on(embedder.embed(all.clone())).unwrap();
    let again = smol::block_on(embedder.embed(all)).unwrap();
    assert_eq!(
        first.iter().collect::<Vec<_>>(),
        again.iter().collect::<Vec<_>>()
    );
    let stats = embedder.stats().embedding_cache.unwrap();
    assert_eq!((stats.misses, stats.hits), (3, 3));
}

#[test]
fn options_of_a_call_hold_for_pictures() {
    let embedder = load(&pictures::clip_vision());
    let options = EmbedOptions::default().with_dimension(7);
    let short = smol::block_on(embedder.embed_with(images(), options)).unwrap();
    assert_eq!(short.dim(), 7);
    let cancel = isovec::Cancel::new();
    cancel.cancel();
    let options = EmbedOptions::default().with_cancel(cancel);
    let error = smol::block_on(embedder.embed_with(images(), options)).unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    assert!(embedder.count_tokens("a text").is_err());
}

#[test]
fn the_files_of_the_tiny_clip_are_what_the_generator_writes() {
    let folder = data("tiny-clip");
    let written = isovec_test_models::tiny_clip::files();
    for (name, bytes) in &written {
        let there = std::fs::read(folder.join(name)).unwrap();
        assert!(there == *bytes, "{name} differs");
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), written.len());
}

/// The page's modules are compiled with flags of their own, and their tests compare with the same files.
#[test]
fn identities_are_those_that_pages_have() {
    let texts = smol::block_on(Embedder::load(tiny_model())).unwrap();
    let clip = smol::block_on(ImageEmbedder::load(data("tiny-clip"))).unwrap();
    for (name, found) in [
        ("tiny-bert", texts.fingerprint()),
        ("tiny-clip", clip.fingerprint()),
    ] {
        let path = data("identity").join(format!("{name}.json"));
        let wanted: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(json!(found.identity), wanted, "{name}");
    }
}

/// A model's files, with the tokenizer of the seeded model of texts.
fn with_tokenizer(model: &Checkpoint) -> ModelSource {
    let tokenizer = std::fs::read(data("tiny-bert").join("tokenizer.json")).unwrap();
    let files = [
        ("config.json", model.config_json()),
        ("model.safetensors", model.file(Stored::F32)),
        (
            "preprocessor_config.json",
            preprocessor().to_string().into_bytes(),
        ),
        ("tokenizer.json", tokenizer),
    ];
    let files = files.map(|(name, bytes)| (name.to_owned(), bytes.into()));
    ModelSource::bytes("a model of both", files)
}

#[test]
fn a_text_finds_a_picture_in_the_space_that_they_share() {
    let model = pictures::clip();
    let source = with_tokenizer(&model);
    let images = images();
    for which in engines() {
        let config = || which.configure(EmbeddingConfig::default());
        let texts = Embedder::builder(source.clone()).config(config());
        let texts = smol::block_on(texts.load()).unwrap();
        let seen = ImageEmbedder::builder(source.clone()).config(config());
        let seen = smol::block_on(seen.load()).unwrap();
        assert_eq!(texts.max_length(), pictures::POSITIONS);
        let index = smol::block_on(seen.embed(images.clone())).unwrap();
        let query = smol::block_on(texts.embed_query("the end of the cat")).unwrap();
        let long = "the end of the cat ".repeat(30);
        let cut = smol::block_on(texts.embed([long.as_str()])).unwrap();
        assert_eq!((cut.token_counts()[0], cut.truncated()[0]), (40, true));

        let tokenizer = texts.count_tokens("the end of the cat").unwrap();
        assert_eq!(query.token_counts(), [tokenizer as u32]);
        let hits = index.search_one(&query, images.len()).unwrap();
        // The order of scores of vectors at f64.
        let ids = ids("the end of the cat");
        assert_eq!(ids.len(), tokenizer);
        let wanted = pictures::text_vector(&model, &ids);
        assert_near(query.get(0).unwrap(), &wanted, which.name());
        let score = |image: &Image| {
            let vector = expected(&model, image);
            vector.iter().zip(&wanted).map(|(a, b)| a * b).sum::<f64>()
        };
        for hit in &hits {
            let apart = (f64::from(hit.score) - score(&images[hit.index])).abs();
            assert!(apart < 1e-5, "{}: {apart:e}", which.name());
        }
        assert!(hits.is_sorted_by(|a, b| a.score >= b.score));

        // Others are refused: another model's texts, and other pixels are another set of pictures.
        let other = smol::block_on(Embedder::load(tiny_model())).unwrap();
        let other = smol::block_on(other.embed_query("a cat")).unwrap();
        assert!(matches!(
            index.search_one(&other, 1),
            Err(Error::IncompatibleIndex { .. })
        ));
        let turned = ImageEmbedder::builder(source.clone()).alpha(Alpha::White);
        let turned = smol::block_on(turned.config(config()).load()).unwrap();
        let turned = smol::block_on(turned.embed([images[0].clone()])).unwrap();
        assert!(matches!(
            index.search_one(&turned, 1),
            Err(Error::IncompatibleIndex { .. })
        ));
    }
}

#[test]
fn siglip_s_texts_are_filled_up_and_share_the_space_of_its_pictures() {
    let model = pictures::siglip();
    let words = "the end of the cat";
    let mut filled = ids(words);
    filled.resize(FILLED, 0);
    let wanted = pictures::text_vector(&model, &filled);
    let images = images();
    // A text that is cut is filled up as a short one is.
    for max_length in [None, Some(7)] {
        for which in engines() {
            let mut config = which.configure(EmbeddingConfig::default());
            config.text.max_length = max_length;
            let texts = Embedder::builder(with_tokenizer(&model)).config(config.clone());
            let texts = smol::block_on(texts.load()).unwrap();
            assert_eq!(texts.max_length(), max_length.unwrap_or(FILLED));
            assert_eq!(texts.fingerprint().identity["text"], "strip, lower-case");
            let long = "the end of the cat ".repeat(30);
            let found = smol::block_on(texts.embed([words, long.as_str(), "cat"])).unwrap();
            assert_near(found.get(0).unwrap(), &wanted, which.name());
            assert_eq!(found.token_counts(), [FILLED as u32; 3]);
            assert_eq!(found.truncated(), [false, true, false]);
            // A text that nobody fills up says how many tokens are its own.
            assert_eq!(texts.count_tokens(words).unwrap(), ids(words).len());

            let seen = ImageEmbedder::builder(with_tokenizer(&model)).config(config);
            let seen = smol::block_on(seen.load()).unwrap();
            let index = smol::block_on(seen.embed(images.clone())).unwrap();
            let query = smol::block_on(texts.embed_query(words)).unwrap();
            for hit in index.search_one(&query, images.len()).unwrap() {
                let vector = expected(&model, &images[hit.index]);
                let score = vector.iter().zip(&wanted).map(|(a, b)| a * b).sum::<f64>();
                assert!(
                    (f64::from(hit.score) - score).abs() < 1e-5,
                    "{}",
                    which.name()
                );
            }
        }
    }
}

/// The ids that the seeded model's tokenizer gives.
fn ids(text: &str) -> Vec<i64> {
    let file = std::fs::read(data("tiny-bert").join("tokenizer.json")).unwrap();
    let json: Value = serde_json::from_slice(&file).unwrap();
    let vocabulary = json["model"]["vocab"].as_object().unwrap();
    let id = |word: &str| vocabulary[word].as_i64().unwrap();
    let words = text.split(' ').map(id);
    [id("[CLS]")]
        .into_iter()
        .chain(words)
        .chain([id("[SEP]")])
        .collect()
}

#[test]
fn models_of_texts_and_of_pictures_are_told_apart() {
    let error = smol::block_on(Embedder::load(source(
        &pictures::vit(),
        Some(&preprocessor()),
    )));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("ImageEmbedder"), "{error}");
    let error = smol::block_on(ImageEmbedder::load(tiny_model())).unwrap_err();
    assert!(error.to_string().contains("`Embedder`"), "{error}");
}

#[test]
fn a_preprocessor_that_does_not_fit_is_refused() {
    let model = pictures::vit();
    let error = refused(&model, None);
    assert!(
        matches!(error, Error::Engine(EngineError::MissingFile { .. })),
        "{error}"
    );
    let with = |key: &str, value: Value| {
        let mut json = preprocessor();
        json[key] = value;
        refused(&model, Some(&json)).to_string()
    };
    let other = with("size", json!({"height": 24, "width": 24}));
    assert!(
        other.contains("24 x 24 pixels, and the model reads 24 x 16"),
        "{other}"
    );
    let by_ratio = with("size", json!({"shortest_edge": 16}));
    assert!(by_ratio.contains("depends on the picture"), "{by_ratio}");
    let unknown = with("do_pad", json!(true));
    assert!(unknown.contains("do_pad"), "{unknown}");
    let broken = refused(&model, Some(&json!("x"))).to_string();
    assert!(broken.contains("preprocessor_config.json"), "{broken}");
}
