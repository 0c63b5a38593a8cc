//! `isovec::optimize` with passes: graphs as exporters leave them lose nodes, and give the same vectors on every engine.

use std::fs;
use std::path::{Path, PathBuf};

use isovec::blocking::{ImageEmbedder, optimize};
use isovec::image::{Channels, Image};
use isovec::optimize::{Activations, Level, OptimizeOptions, Pass, Report};
use isovec::{Dtype, EmbeddingConfig, Error, ExportOptions, ModelSource, Picture};
use isovec_engine::description::Dim;
use isovec_engine::onnx::proto::{
    AttributeProto, AttributeType, GraphProto, ModelProto, NodeProto,
};
use isovec_test_models::convolutions::Net;
use isovec_test_models::pictures::{SIZE, preprocessor};
use isovec_test_support::{Which, engines, minilm, mixed_texts, tiny_model};
use prost::Message;

fn on(which: Which) -> EmbeddingConfig {
    which.configure(EmbeddingConfig::default())
}

fn passes(level: Level, texts: &[String]) -> OptimizeOptions {
    OptimizeOptions::default()
        .with_level(level)
        .with_texts(texts.iter().cloned())
}

/// What a pass is said to have changed.
fn changes(report: &Report, pass: Pass) -> usize {
    let found = report.passes.iter().find(|passed| passed.pass == pass);
    found.map_or(0, |passed| passed.changes)
}

/// A graph as PyTorch's exporter leaves it: constants are nodes, shapes are read off values, a layer normalisation is nine operators.
fn spread(file: &[u8]) -> Vec<u8> {
    let mut model = ModelProto::decode(file).unwrap();
    let graph = model.graph.as_mut().unwrap();
    let mut made = GraphProto::default();
    let mut count = 0;
    for node in std::mem::take(&mut graph.node) {
        let mut add = |op: &str, inputs: &[&str], attribute: Option<AttributeProto>| -> String {
            count += 1;
            let output = format!("spread.{count}");
            made.node.push(NodeProto {
                op_type: op.into(),
                input: inputs.iter().map(|&input| input.into()).collect(),
                output: vec![output.clone()],
                attribute: attribute.into_iter().collect(),
                ..NodeProto::default()
            });
            output
        };
        match node.op_type.as_str() {
            "LayerNormalization" => {
                let (x, scale, shift) = (&node.input[0], &node.input[1], &node.input[2]);
                let axes = add("Constant", &[], Some(whole("value_ints", &[-1])));
                let mean = add("ReduceMean", &[x, &axes], None);
                let centred = add("Sub", &[x, &mean], None);
                let two = add("Constant", &[], Some(number(2.0)));
                let squared = add("Pow", &[&centred, &two], None);
                let variance = add("ReduceMean", &[&squared, &axes], None);
                let epsilon = add(
                    "Constant",
                    &[],
                    Some(number(node.float("epsilon").unwrap())),
                );
                let sum = add("Add", &[&variance, &epsilon], None);
                let root = add("Sqrt", &[&sum], None);
                let unit = add("Div", &[&centred, &root], None);
                let scaled = add("Mul", &[&unit, scale], None);
                add("Add", &[&scaled, shift], None);
                made.node
                    .last_mut()
                    .unwrap()
                    .output
                    .clone_from(&node.output);
            }
            _ => {
                // What changes nothing, in the middle of what does.
                let same = add("Identity", &[&node.input[0]], None);
                let mut node = node;
                node.input[0] = same;
                made.node.push(node);
            }
        }
    }
    graph.node = made.node;
    for set in &mut model.opset_import {
        if set.domain.is_empty() {
            set.version = set.version.max(18);
        }
    }
    model.encode_to_vec()
}

fn number(value: f32) -> AttributeProto {
    AttributeProto {
        name: "value_float".into(),
        r#type: AttributeType::Float as i32,
        f: value,
        ..AttributeProto::default()
    }
}

fn whole(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        r#type: AttributeType::Ints as i32,
        ints: values.to_vec(),
        ..AttributeProto::default()
    }
}

/// A model of texts as an ONNX file of many operators, in a folder of its own.
fn spread_into(folder: &Path, source: ModelSource) -> ModelSource {
    let config = on(Which::Portable);
    let exported = isovec::blocking::export(source, folder, config, ExportOptions::default());
    let files = exported.unwrap().files;
    let file: &PathBuf = files
        .iter()
        .find(|file| file.extension().is_some_and(|end| end == "onnx"))
        .unwrap();
    let bytes = spread(&fs::read(file).unwrap());
    fs::remove_file(file).unwrap();
    fs::write(file, bytes).unwrap();
    folder.into()
}

fn content(folder: &Path) -> Vec<u8> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files = files.filter(|path| path.extension().is_some_and(|end| end == "onnx"));
    fs::read(files.next().unwrap()).unwrap()
}

#[test]
fn a_spread_graph_loses_its_nodes_and_gives_the_same_vectors_on_every_engine() {
    let Some(model) = minilm() else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    fs::create_dir(&original).unwrap();
    let source = spread_into(&original, model);
    let texts = mixed_texts(24);
    for which in engines() {
        let folder = place.path().join(which.name());
        let report = optimize(
            source.clone(),
            &folder,
            on(which),
            passes(Level::All, &texts),
        )
        .unwrap();
        println!("{}", report.to_markdown());
        assert_eq!(changes(&report, Pass::LayerNorms), 13, "{report:?}");
        assert_eq!(changes(&report, Pass::Gelus), 6, "{report:?}");
        assert!(changes(&report, Pass::Identities) > 50 && changes(&report, Pass::Constants) > 13);
        let quality = report.quality.as_ref().unwrap();
        assert!(quality.cosine_worst.unwrap() > 1.0 - 1e-6, "{quality:?}");
        let step = report
            .steps
            .iter()
            .find(|step| step.technique == "passes")
            .unwrap();
        assert!(
            step.applied && step.detail.contains("layer-norms"),
            "{step:?}"
        );
        assert_ne!(
            report.before.weights_identity,
            report.after.weights_identity
        );
        // The same bytes, whichever engine measures.
        let again = place.path().join("again");
        let alone = OptimizeOptions::default().with_level(Level::All);
        optimize(source.clone(), &again, on(Which::Portable), alone).unwrap();
        assert!(content(&again) == content(&folder));
        fs::remove_dir_all(again).unwrap();
    }
}

#[test]
fn a_level_or_a_pass_alone_does_what_it_says_and_nothing_where_nothing_is_to_do() {
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    fs::create_dir(&original).unwrap();
    let source = spread_into(&original, tiny_model());
    let texts = mixed_texts(12);
    let made = |name: &str, options: OptimizeOptions| {
        let folder = place.path().join(name);
        optimize(
            source.clone(),
            &folder,
            on(Which::Portable),
            options.with_texts(texts.clone()),
        )
        .unwrap()
    };
    // The level basic changes no bit.
    let basic = made("basic", OptimizeOptions::default().with_level(Level::Basic));
    assert_eq!(basic.quality.as_ref().unwrap().identical, 12, "{basic:?}");
    assert_eq!(basic.passes.len(), 4);
    assert!(changes(&basic, Pass::Identities) > 0 && changes(&basic, Pass::LayerNorms) == 0);
    let one = made(
        "one",
        OptimizeOptions::default().with_pass(Pass::LayerNorms),
    );
    assert_eq!(one.passes.len(), 1);
    assert!(changes(&one, Pass::LayerNorms) > 0);
    // A second time there is nothing to do, and the model is the same.
    let options = OptimizeOptions::default().with_level(Level::Basic);
    let again = optimize(
        place.path().join("basic"),
        place.path().join("twice"),
        on(Which::Portable),
        options,
    )
    .unwrap();
    assert_eq!(again.before.weights_identity, again.after.weights_identity);
    let step = &again.steps[0];
    assert!(
        !step.applied && step.detail.starts_with("nothing was found"),
        "{step:?}"
    );
    let options = OptimizeOptions::default()
        .with_level(Level::None)
        .with_keep_tokens_of(texts.clone());
    let folder = place.path().join("none");
    let none = optimize(tiny_model(), folder, on(Which::Portable), options).unwrap();
    assert!(!none.steps[0].applied && none.passes.is_empty());
}

#[test]
fn passes_go_with_every_other_technique() {
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    fs::create_dir(&original).unwrap();
    let source = spread_into(&original, tiny_model());
    let texts = mixed_texts(40);
    let mut techniques: Vec<(&str, EmbeddingConfig, OptimizeOptions)> = vec![
        (
            "tokens",
            on(Which::Portable),
            OptimizeOptions::default().with_keep_tokens_of(texts.clone()),
        ),
        (
            "int4",
            on(Which::Portable),
            OptimizeOptions::default().with_int4(),
        ),
        (
            "f16",
            on(Which::Portable).with_dtype(Dtype::F16),
            OptimizeOptions::default(),
        ),
        (
            "pruned",
            on(Which::Portable),
            OptimizeOptions::default().with_prune(0.02),
        ),
    ];
    if engines().contains(&Which::OnnxRuntime) {
        let int8 = OptimizeOptions::default().with_int8(Activations::Static);
        techniques.push(("int8", on(Which::OnnxRuntime), int8));
    }
    for (name, config, options) in techniques {
        let options = options.with_texts(texts.clone());
        let cosine = |which: &str, options: OptimizeOptions| {
            let folder = place.path().join(format!("{name}-{which}"));
            let report = optimize(source.clone(), &folder, config.clone(), options);
            let report = report.unwrap_or_else(|error| panic!("{name}, {which}: {error}"));
            report.quality.unwrap().cosine_worst.unwrap()
        };
        let with = cosine("with", options.clone().with_level(Level::All));
        // Without passes the spread graph may be one that the technique does not know.
        println!("{name}: {with}");
        assert!(with > 0.98, "{name}: {with}");
    }
}

/// A small network as exporters of PaddlePaddle leave them: constants are nodes, normalisations stand behind convolutions, hard swishes
/// are four operators, and each activation is followed by a factor and a summand.
fn network() -> Vec<u8> {
    let mut net = Net::new(41, [3, SIZE.0, SIZE.1]);
    net.opset = 12;
    let mut x = net.square("x", (16, 3), 3, 2, 1);
    x = net.norm(&x, 16);
    for (outputs, groups) in [(16, 16), (40, 1), (40, 40)] {
        let three = net.number(3.0);
        let sum = net.node("Add", &[&x, &three], vec![]);
        let (least, most) = (net.number(0.0), net.number(6.0));
        let gate = net.node("Clip", &[&sum, &least, &most], vec![]);
        let product = net.node("Mul", &[&x, &gate], vec![]);
        let six = net.number(6.0);
        let y = net.node("Div", &[&product, &six], vec![]);
        let (by, more) = (net.number(1.3), net.number(-0.2));
        let y = net.node("Mul", &[&y, &by], vec![]);
        let y = net.node("Add", &[&y, &more], vec![]);
        let inputs = if outputs == 40 && groups == 1 {
            16
        } else {
            outputs
        };
        x = net.square(&y, (outputs, inputs), 3, 1, groups);
        x = net.norm(&x, outputs);
    }
    let y = net.node("GlobalAveragePool", &[&x], vec![]);
    let y = net.node("Flatten", &[&y], vec![]);
    net.file(&[(
        y.as_str(),
        vec![Dim::Symbolic("batch".into()), Dim::Fixed(40)],
    )])
}

#[test]
fn a_network_of_pictures_loses_what_stands_around_its_convolutions() {
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    fs::create_dir(&original).unwrap();
    fs::write(original.join("model.onnx"), network()).unwrap();
    fs::write(
        original.join("preprocessor_config.json"),
        preprocessor().to_string(),
    )
    .unwrap();
    fs::write(original.join("config.json"), "{}").unwrap();
    let image = |at: usize| {
        let data = (0..3 * SIZE.0 * SIZE.1)
            .map(|place| (place * (at * 2 + 3) % 251) as u8)
            .collect();
        Picture::from(Image::new(SIZE.1, SIZE.0, Channels::Rgb, data).unwrap())
    };
    let images: Vec<Picture> = (0..6).map(image).collect();
    // The GPU runs no convolutions.
    for which in [Which::OnnxRuntime, Which::Portable]
        .into_iter()
        .filter(|which| engines().contains(which))
    {
        let folder = place.path().join(which.name());
        let options = OptimizeOptions::default()
            .with_level(Level::Extended)
            .with_pictures(images.clone());
        let report = optimize(original.as_path(), &folder, on(which), options).unwrap();
        assert_eq!(changes(&report, Pass::HardSwishes), 3, "{report:?}");
        // Four normalisations, three factors.
        assert_eq!(changes(&report, Pass::Convolutions), 7, "{report:?}");
        let load = |folder: &Path| {
            ImageEmbedder::builder(folder)
                .config(on(which))
                .load()
                .unwrap()
        };
        let (before, after) = (load(&original), load(&folder));
        let (before, after) = (
            before.embed(&images).unwrap(),
            after.embed(&images).unwrap(),
        );
        for (before, after) in before.iter().zip(after.iter()) {
            let far = before.iter().zip(after).map(|(a, b)| (a - b).abs());
            let far = far.fold(0.0, f32::max);
            assert!(far < 1e-6, "{}: {far}", which.name());
        }
    }
}

#[test]
fn what_cannot_go_together_is_refused_before_anything_is_read() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("made");
    let options = OptimizeOptions::default()
        .with_level(Level::Basic)
        .with_static(8);
    let error = optimize(tiny_model(), &folder, on(Which::Portable), options).unwrap_err();
    assert!(matches!(error, Error::Config(_)), "{error:?}");
    assert!(
        error.to_string().contains("a static model has no graph"),
        "{error}"
    );
    assert!(!folder.exists());
}
