//! Pictures get labels, and convolutional networks give features: on every engine the numbers of an independent implementation at
//! f64, from files as exporters write them; and a model that cannot be used says why.

use futures_util::future::{join_all, join4};
use isovec::image::{Channels, Image, Processor, Reference};
use isovec::{
    ClassifyOptions, EmbeddingConfig, Error, ImageClassifier, ImageEmbedder, ModelSource, Picture,
    Scores,
};
use isovec_engine::description::Dim;
use isovec_engine::onnx::proto::GraphProto;
use isovec_engine::tensor::DType;
use isovec_model::onnx::builder::{float, ints, value_info};
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::convolutions::Net;
use isovec_test_models::pictures::{self, LABELS, SIZE, preprocessor};
use isovec_test_models::tiny_network::{self, FEATURES, Network, network};
use isovec_test_support::{Which, data, engines};
use serde_json::{Value, json};

/// The largest difference to a value at f64, as a part of the largest.
const NEAR: f64 = 2e-6;

fn image(width: usize, height: usize) -> Image {
    let data = (0..3 * width * height).map(|byte| (byte * 97 % 251) as u8);
    Image::new(width, height, Channels::Rgb, data.collect()).unwrap()
}

fn images() -> [Image; 4] {
    [(24, 16), (40, 3), (7, 90), (1, 1)].map(|(width, height)| image(width, height))
}

fn values(image: &Image) -> Vec<f32> {
    let json = preprocessor().to_string();
    let processor = Processor::from_json(&json, None, Reference::Pillow).unwrap();
    processor.process(image.view()).unwrap().data
}

fn assert_near(found: &[f32], wanted: &[f64], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    let scale = wanted
        .iter()
        .fold(1.0_f64, |most, value| most.max(value.abs()));
    for (at, (&found, wanted)) in found.iter().zip(wanted).enumerate() {
        let apart = (f64::from(found) - wanted).abs() / scale;
        assert!(apart <= NEAR, "{what}, {at}: {found}, exactly {wanted}");
    }
}

fn unit(values: Vec<f64>) -> Vec<f64> {
    let norm = values.iter().map(|value| value * value).sum::<f64>().sqrt();
    values.iter().map(|value| value / norm).collect()
}

/// A model of these files, with the preprocessor of the seeded models.
fn source<const N: usize>(files: [(&str, Vec<u8>); N]) -> ModelSource {
    let preprocessor = preprocessor().to_string().into_bytes();
    let files = files
        .into_iter()
        .map(|(name, bytes)| (name.to_owned(), bytes));
    let files = files.chain([("preprocessor_config.json".to_owned(), preprocessor)]);
    ModelSource::bytes(
        "a model of pictures",
        files.map(|(name, bytes)| (name, bytes.into())),
    )
}

fn named(count: usize) -> Vec<u8> {
    let names: serde_json::Map<String, Value> = (0..count)
        .map(|id| (id.to_string(), format!("kind {id}").into()))
        .collect();
    json!({ "id2label": names }).to_string().into_bytes()
}

fn classifier(source: impl Into<ModelSource>, which: Which) -> isovec::Result<ImageClassifier> {
    let config = which.configure(EmbeddingConfig::default());
    smol::block_on(ImageClassifier::builder(source).config(config).load())
}

fn embedder(source: impl Into<ModelSource>, which: Which) -> isovec::Result<ImageEmbedder> {
    let config = which.configure(EmbeddingConfig::default());
    smol::block_on(ImageEmbedder::builder(source).config(config).load())
}

fn logits(classifier: &ImageClassifier, images: &[Image]) -> Vec<Vec<f32>> {
    let options = ClassifyOptions::default().with_scores(Scores::Logits);
    let said = smol::block_on(classifier.classify_with(images.to_vec(), options)).unwrap();
    (0..said.len())
        .map(|at| said.scores(at).unwrap().to_vec())
        .collect()
}

/// Engines that run convolutional networks.
fn engines_of_networks() -> impl Iterator<Item = Which> {
    engines()
        .into_iter()
        .filter(|which| *which != Which::WebGpu)
}

#[test]
fn vision_transformers_have_the_reference_s_logits_on_every_engine() {
    let images = images();
    for (class, model) in pictures::classifiers() {
        let of = |image| pictures::logits(&model, &values(image));
        let wanted: Vec<Vec<f64>> = images.iter().map(of).collect();
        for which in engines() {
            let what = format!("{class} on {}", which.name());
            let files = [
                ("config.json", model.config_json()),
                ("model.safetensors", model.file(Stored::F32)),
            ];
            let classifier = classifier(source(files), which).unwrap();
            assert_eq!(classifier.labels().len(), LABELS);
            assert_eq!(classifier.labels()[3], "kind 3");
            assert_ne!(
                classifier.provider().provider.to_string(),
                "tract",
                "{what}"
            );
            for (found, wanted) in logits(&classifier, &images).iter().zip(&wanted) {
                assert_near(found, wanted, &what);
            }
        }
    }
}

#[test]
fn a_transformer_with_a_classifier_gives_the_vectors_of_its_encoder() {
    let (_, model) = pictures::classifiers().swap_remove(0);
    let files = [
        ("config.json", model.config_json()),
        ("model.safetensors", model.file(Stored::F32)),
    ];
    let embedder = embedder(source(files), Which::Portable).unwrap();
    let found = smol::block_on(embedder.embed_one(image(24, 16))).unwrap();
    assert_near(
        &found,
        &pictures::vector(&pictures::vit(), &values(&image(24, 16))),
        "ViT",
    );
}

#[test]
fn networks_have_the_reference_s_logits_whatever_their_outputs_are_called() {
    let images = images();
    let mut net = network();
    let Network {
        logits: name,
        probabilities,
        ..
    } = &net;
    let (name, probabilities) = (name.clone(), probabilities.clone());
    // As some exporters name outputs.
    let named_last = net.net.node("Identity", &[&probabilities], vec![]);
    let wanted: Vec<Vec<f64>> = images
        .iter()
        .map(|image| net.net.exact(&name, &values(image)))
        .collect();
    let labels = tiny_network::LABELS.len();
    for which in engines_of_networks() {
        for output in [&name, &probabilities, &named_last] {
            let files = [
                ("model.onnx", net.file(&[(output, &[labels])])),
                ("config.json", named(labels)),
            ];
            let classifier = classifier(source(files), which).unwrap();
            for (found, wanted) in logits(&classifier, &images).iter().zip(&wanted) {
                assert_near(found, wanted, &format!("{output} on {}", which.name()));
            }
            let best = smol::block_on(classifier.classify_one(images[1].clone())).unwrap();
            let sum: f32 = best.iter().map(|label| label.score).sum();
            assert!((sum - 1.0).abs() < 1e-6, "probabilities, once: {best:?}");
            let most = (0..labels)
                .max_by(|&a, &b| wanted[1][a].total_cmp(&wanted[1][b]))
                .unwrap();
            assert_eq!(best[0].label, format!("kind {most}"));
        }
    }
}

#[test]
fn networks_have_the_reference_s_features_whichever_output_has_them() {
    let images = images();
    let mut net = network();
    let Network {
        maps,
        features,
        logits,
        probabilities,
        ..
    } = &net;
    let [maps, features, logits, probabilities] =
        [maps, features, logits, probabilities].map(String::clone);
    let labels = tiny_network::LABELS.len();
    let of = |net: &Network, image| unit(net.net.exact(&features, &values(image)));
    let wanted: Vec<Vec<f64>> = images.iter().map(|image| of(&net, image)).collect();
    for which in engines_of_networks() {
        for (output, extents) in [
            (&maps, &[FEATURES, SIZE.0 / 4, SIZE.1 / 4][..]),
            (&features, &[FEATURES]),
            // Their last layer is left out.
            (&logits, &[labels]),
            (&probabilities, &[labels]),
        ] {
            let files = [
                ("model.onnx", net.file(&[(output, extents)])),
                ("config.json", named(labels)),
            ];
            let embedder = embedder(source(files), which).unwrap();
            assert_eq!(embedder.dimension(), FEATURES);
            let found = smol::block_on(embedder.embed(images.clone())).unwrap();
            for (found, wanted) in found.iter().zip(&wanted) {
                assert_near(found, wanted, &format!("{output} on {}", which.name()));
            }
            let alone = smol::block_on(embedder.embed_one(images[2].clone())).unwrap();
            if which == Which::Portable {
                assert_eq!(alone, found.iter().nth(2).unwrap(), "the same bits alone");
            }
            let stats = embedder.stats();
            assert_eq!(stats.tokens.padding, 0, "pictures have none");
        }
    }
}

#[test]
fn the_first_token_of_hidden_states_stands_for_the_picture() {
    // The squares of a transformer, as an exporter writes them.
    let mut net = Net::new(12, [3, SIZE.0, SIZE.1]);
    let squares = net.conv("x", [10, 3, 8, 8], true, vec![ints("strides", &[8, 8])]);
    let flat = net.ints(&[0, 10, -1]);
    let rows = net.node("Reshape", &[&squares, &flat], vec![]);
    let tokens = net.node("Transpose", &[&rows], vec![ints("perm", &[0, 2, 1])]);
    let dims = vec![symbol("batch"), Dim::Fixed(6), Dim::Fixed(10)];
    let file = net.file(&[(&tokens, dims)]);
    for which in engines_of_networks() {
        let embedder = embedder(source([("model.onnx", file.clone())]), which).unwrap();
        for image in images() {
            let mut exact = net.exact(&tokens, &values(&image));
            exact.truncate(10);
            let found = smol::block_on(embedder.embed_one(image)).unwrap();
            assert_near(&found, &unit(exact), which.name());
        }
    }
}

#[test]
fn hidden_states_that_have_to_be_pooled_are_no_features() {
    let mut net = Net::new(13, [3, SIZE.0, SIZE.1]);
    let squares = net.conv("x", [10, 3, 8, 8], true, vec![ints("strides", &[8, 8])]);
    let flat = net.ints(&[0, 10, -1]);
    let rows = net.node("Reshape", &[&squares, &flat], vec![]);
    let tokens = net.node("Transpose", &[&rows], vec![ints("perm", &[0, 2, 1])]);
    let mean = net.node("GlobalAveragePool", &[&squares], vec![]);
    let pooled = net.node("Flatten", &[&mean], vec![]);
    rename(net.graph(), &tokens, "last_hidden_state");
    rename(net.graph(), &pooled, "pooler_output");
    let hidden = (
        "last_hidden_state",
        vec![symbol("batch"), Dim::Fixed(6), Dim::Fixed(10)],
    );
    let pooler = ("pooler_output", vec![symbol("batch"), Dim::Fixed(10)]);
    let files = |file| {
        let config = br#"{"model_type": "siglip_vision_model"}"#.to_vec();
        source([("model.onnx", file), ("config.json", config)])
    };
    let both = files(net.file(&[hidden.clone(), pooler]));
    let found = embedder(both, Which::Portable).unwrap();
    let found = smol::block_on(found.embed_one(image(24, 16))).unwrap();
    let exact = net.exact("pooler_output", &values(&image(24, 16)));
    assert_near(&found, &unit(exact), "what was pooled");
    let error = embedder(files(net.file(&[hidden])), Which::Portable).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("last_hidden_state [batch, 6, 10]"),
        "{error}"
    );
}

/// Gives a value another name.
fn rename(graph: &mut GraphProto, from: &str, to: &str) {
    for node in &mut graph.node {
        let names = node.input.iter_mut().chain(&mut node.output);
        names
            .filter(|name| *name == from)
            .for_each(|name| *name = to.into());
    }
}

/// The file of a network that classifies, with another graph.
fn changed(change: impl FnOnce(&mut GraphProto)) -> Vec<u8> {
    let mut net = network();
    change(net.net.graph());
    let logits = net.logits.clone();
    net.file(&[(&logits, &[tiny_network::LABELS.len()])])
}

fn symbol(name: &str) -> Dim {
    Dim::Symbolic(name.into())
}

#[test]
fn open_extents_are_those_of_the_preprocessor() {
    let open = changed(|graph| {
        let dims = ["batch_size", "num_channels", "height", "width"].map(symbol);
        graph.input[0] = value_info("x", DType::F32, &dims);
    });
    let one = changed(|graph| {
        let dims = [
            Dim::Fixed(1),
            Dim::Fixed(3),
            Dim::Fixed(SIZE.0),
            Dim::Fixed(SIZE.1),
        ];
        graph.input[0] = value_info("x", DType::F32, &dims);
    });
    let net = network();
    let name = net.logits.clone();
    let images = images();
    for which in engines_of_networks() {
        for (what, file) in [("open", &open), ("one picture at a time", &one)] {
            let classifier = classifier(source([("model.onnx", file.clone())]), which).unwrap();
            assert_eq!(classifier.labels()[4], "LABEL_4");
            for (found, image) in logits(&classifier, &images).iter().zip(&images) {
                let wanted = net.net.exact(&name, &values(image));
                assert_near(found, &wanted, &format!("{what} on {}", which.name()));
            }
        }
    }
}

#[test]
fn outputs_are_chosen_by_their_names() {
    let mut net = network();
    let [maps, features, name] = [&net.maps, &net.features, &net.logits].map(String::clone);
    for (from, to) in [
        (&maps, "last_hidden_state"),
        (&features, "pooler_output"),
        (&name, "logits"),
    ] {
        rename(net.net.graph(), from, to);
    }
    let file = net.file(&[
        ("pooler_output", &[FEATURES]),
        ("last_hidden_state", &[FEATURES, SIZE.0 / 4, SIZE.1 / 4]),
        ("logits", &[tiny_network::LABELS.len()]),
    ]);
    let image = image(33, 21);
    let wanted = (
        net.net.exact("logits", &values(&image)),
        unit(net.net.exact("pooler_output", &values(&image))),
    );
    let source = || source([("model.onnx", file.clone())]);
    let classifier = classifier(source(), Which::Portable).unwrap();
    assert_near(
        &logits(&classifier, std::slice::from_ref(&image))[0],
        &wanted.0,
        "logits",
    );
    let embedder = embedder(source(), Which::Portable).unwrap();
    assert_near(
        &smol::block_on(embedder.embed_one(image)).unwrap(),
        &wanted.1,
        "features",
    );
}

#[test]
fn what_is_no_classifier_of_pictures_says_so() {
    let says = |file: Vec<u8>, what: &[&str]| {
        let error = classifier(source([("model.onnx", file)]), Which::Portable).unwrap_err();
        let text = error.to_string();
        assert!(what.iter().all(|part| text.contains(part)), "{text}");
        error
    };
    let input = |dims: [usize; 3]| {
        let dims = [
            symbol("batch"),
            Dim::Fixed(dims[0]),
            Dim::Fixed(dims[1]),
            Dim::Fixed(dims[2]),
        ];
        changed(move |graph| graph.input[0] = value_info("x", DType::F32, &dims))
    };
    says(
        input([4, 16, 24]),
        &["[batch, 4, 16, 24]", "[batch, 3, height, width]"],
    );
    let error = says(input([3, 32, 24]), &["24 x 16", "24 x 32"]);
    assert!(matches!(error, Error::Preprocessor { .. }), "{error}");
    let two = changed(|graph| {
        let other = value_info("other", DType::F32, &[symbol("batch")]);
        graph.input.push(other);
    });
    says(two, &["x [batch, 3, 16, 24], other [batch]"]);
    let bytes = changed(|graph| {
        let dims = [
            symbol("batch"),
            Dim::Fixed(3),
            Dim::Fixed(16),
            Dim::Fixed(24),
        ];
        graph.input[0] = value_info("x", DType::U8, &dims);
    });
    says(bytes, &["no pictures"]);
    let mut net = network();
    let maps = net.maps.clone();
    let maps = net.file(&[(&maps, &[FEATURES, SIZE.0 / 4, SIZE.1 / 4])]);
    says(maps, &["have no number for each label"]);

    let texts = smol::block_on(ImageClassifier::load(data("tiny-classifier"))).unwrap_err();
    assert!(texts.to_string().contains("no pictures"), "{texts}");
    let files = [("model.onnx", changed(|_| {})), ("config.json", named(4))];
    let error = classifier(source(files), Which::Portable).unwrap_err();
    assert!(error.to_string().contains("id2label"), "{error}");
    let config = EmbeddingConfig::default().with_dimension(3);
    let source = source([("model.onnx", changed(|_| {}))]);
    let error = smol::block_on(ImageClassifier::builder(source).config(config).load()).unwrap_err();
    assert!(error.to_string().contains("text.dimension"), "{error}");
}

#[test]
fn a_network_without_a_layer_to_leave_out_gives_no_features() {
    let mut net = Net::new(9, [3, SIZE.0, SIZE.1]);
    let x = net.conv("x", [5, 3, 3, 3], false, vec![ints("strides", &[2, 2])]);
    let x = net.node("GlobalAveragePool", &[&x], vec![]);
    let x = net.node("Flatten", &[&x], vec![]);
    let x = net.node("LeakyRelu", &[&x], vec![float("alpha", 0.1)]);
    let file = net.file(&[(&x, vec![symbol("batch"), Dim::Fixed(5)])]);
    let files = [("model.onnx", file), ("config.json", named(5))];
    let error = embedder(source(files), Which::Portable).unwrap_err();
    assert!(error.to_string().contains("ImageClassifier"), "{error}");
}

#[test]
fn the_other_pictures_of_a_stream_are_unharmed() {
    use futures_util::StreamExt;
    let classifier = smol::block_on(ImageClassifier::load(data("tiny-network"))).unwrap();
    let broken = Picture::from(b"GIF89a".to_vec());
    let pictures = [
        Picture::from(image(9, 9)),
        broken.clone(),
        Picture::from(image(3, 8)),
    ];
    let stream = futures_util::stream::iter(pictures.clone()).map(Ok::<_, Error>);
    let all: Vec<_> = smol::block_on(
        classifier
            .try_classify_stream(stream, ClassifyOptions::default())
            .collect(),
    );
    assert_eq!(all.len(), 3);
    let labels = |at: usize| all[at].as_ref().unwrap().labels.clone();
    assert!(
        matches!(all[1], Err(Error::Picture { picture: 1, .. })),
        "{:?}",
        all[1]
    );
    for at in [0, 2] {
        let alone = smol::block_on(classifier.classify_one(pictures[at].clone())).unwrap();
        assert_eq!(labels(at), alone);
    }
    let error = smol::block_on(classifier.classify([image(2, 2).into(), broken])).unwrap_err();
    assert!(
        matches!(error, Error::Picture { picture: 1, .. }),
        "{error}"
    );
    let none = smol::block_on(classifier.classify(Vec::<Picture>::new())).unwrap();
    assert!(none.is_empty() && none.labels() == tiny_network::LABELS);
}

#[test]
fn calls_are_joined_and_a_broken_picture_fails_its_own() {
    let network = data("tiny-network");
    let classifier = classifier(network.clone(), Which::Portable).unwrap();
    let embedder = embedder(network, Which::Portable).unwrap();
    let images: Vec<Image> = (1..50).map(|width| image(width, 7)).collect();
    let said = smol::block_on(classifier.classify(images.clone())).unwrap();
    let vectors = smol::block_on(embedder.embed(images.clone())).unwrap();
    let (labelling, embedding) = (classifier.batcher(), embedder.batcher());
    smol::block_on(async {
        let one = images
            .iter()
            .map(|image| labelling.classify([image.clone()]));
        let two = images.iter().map(|image| embedding.embed([image.clone()]));
        let broken = Picture::from(b"GIF89a".to_vec());
        let bad = [
            images[0].clone().into(),
            broken.clone(),
            images[1].clone().into(),
        ];
        // More than are decoded together.
        let many = embedding.embed(images.clone());
        let (one, two) = (join_all(one), join_all(two));
        let (one, two, bad, many) = join4(one, two, labelling.classify(bad), many).await;
        for (at, (one, two)) in one.into_iter().zip(two).enumerate() {
            assert_eq!(one.unwrap().scores(0), said.scores(at), "picture {at}");
            assert_eq!(
                two.unwrap().iter().next(),
                vectors.iter().nth(at),
                "picture {at}"
            );
        }
        assert!(
            matches!(bad, Err(Error::Picture { picture: 1, .. })),
            "{bad:?}"
        );
        assert_eq!(many.unwrap().as_slice(), vectors.as_slice());
        let late = images.iter().cloned().map(Picture::from).chain([broken]);
        let late = embedding.embed(late).await;
        assert!(
            matches!(late, Err(Error::Picture { picture: 49, .. })),
            "{late:?}"
        );
    });
    assert!(labelling.counts().batches > 0, "{:?}", labelling.counts());
    let effective = embedder.effective_config();
    let queue = effective.get("batching.max_queue_tokens").unwrap();
    // 64 MiB of 4608 bytes, each of one position.
    assert_eq!(queue.used, "14563");
}

#[test]
fn the_files_of_the_tiny_network_are_what_the_generator_writes() {
    let folder = data("tiny-network");
    for (name, contents) in tiny_network::files() {
        let stored = std::fs::read(folder.join(&name)).unwrap();
        assert!(stored == contents, "{name}: run the example tiny_model");
    }
}
