//! The model in `tests/data/tiny-network`: a seeded convolutional network that classifies, as an ONNX file, and its logits and
//! features at f64 for some of the pictures in `input/image/tests/data`.

use std::collections::BTreeMap;

use isovec_engine::description::Dim;
use isovec_engine::onnx::proto::AttributeProto;
use isovec_image::{ReadOptions, Reader};
use isovec_model::onnx::builder::{int, ints};
use serde_json::json;

use crate::convolutions::Net;
use crate::picture_files::stored;
use crate::pictures::{SIZE, preprocessor};
use crate::tiny::pretty;

/// The labels in the order of the logits.
pub const LABELS: [&str; 5] = ["bark", "leaf", "snow", "stone", "water"];

/// Features before the last layer.
pub const FEATURES: usize = 24;

/// Pictures of several formats, turned, gray and with alpha.
const PICTURES: [&str; 5] = [
    "jpeg/420-20-baseline-2x3",
    "jpeg/turn-xmp",
    "png/RGBA-48x40",
    "webp/lossless-31x9",
    "resize/200x150",
];

/// A network and the names of its values.
pub struct Network {
    /// The graph.
    pub net: Net,
    /// `[batch, 24, 6, 4]`.
    pub maps: String,
    /// Their means, `[batch, 24]`.
    pub features: String,
    /// `[batch, 5]`.
    pub logits: String,
    /// Their softmax.
    pub probabilities: String,
}

/// A MobileNet of one block, with squeeze and excite.
pub fn network() -> Network {
    let mut net = Net::new(41, [3, SIZE.0, SIZE.1]);
    let step = |stride: i64, groups: i64| -> Vec<AttributeProto> {
        vec![
            ints("strides", &[stride; 2]),
            ints("pads", &[1; 4]),
            int("group", groups),
        ]
    };
    let mut x = net.conv("x", [8, 3, 3, 3], false, step(2, 1));
    x = net.norm(&x, 8);
    x = net.relu6(&x);
    x = net.conv(&x, [16, 8, 1, 1], false, vec![]);
    x = net.norm(&x, 16);
    let block = net.node("HardSwish", &[&x], vec![]);
    x = net.conv(&block, [16, 1, 3, 3], true, step(1, 16));
    x = net.node("Add", &[&x, &block], vec![]);
    x = net.conv(&x, [FEATURES, 16, 3, 3], true, step(2, 1));
    let maps = net.relu(&x);
    let mean = net.node("GlobalAveragePool", &[&maps], vec![]);
    let features = net.node("Flatten", &[&mean], vec![int("axis", 1)]);
    let logits = net.classifier(&features, (LABELS.len(), FEATURES));
    let probabilities = net.node("Softmax", &[&logits], vec![int("axis", 1)]);
    Network {
        net,
        maps,
        features,
        logits,
        probabilities,
    }
}

impl Network {
    /// The file of a model with these outputs, each `[batch, extents...]`.
    pub fn file(&mut self, outputs: &[(&str, &[usize])]) -> Vec<u8> {
        let outputs = outputs.iter().map(|(name, extents)| {
            let batch = Dim::Symbolic("batch".into());
            let extents = extents.iter().map(|&extent| Dim::Fixed(extent));
            (*name, [batch].into_iter().chain(extents).collect())
        });
        self.net.file(&outputs.collect::<Vec<(&str, Vec<Dim>)>>())
    }
}

/// Every file of the folder, by its path.
pub fn files() -> BTreeMap<String, Vec<u8>> {
    let mut network = network();
    let [features, logits, probabilities] =
        [&network.features, &network.logits, &network.probabilities].map(String::clone);
    let preprocessor = pretty(&preprocessor());
    let reader = Reader::new(&preprocessor, None, &ReadOptions::default()).expect("a preprocessor");
    let pictures = stored(&PICTURES).into_iter().map(|picture| {
        let values = reader.file(&picture.file).expect("a picture").data;
        let mut about = picture.about;
        about["logits"] = json!(network.net.exact(&logits, &values));
        about["features"] = json!(network.net.exact(&features, &values));
        about
    });
    let reference = json!({
        "made_by": "cargo run -p isovec-test-models --example tiny_model",
        "pictures": pictures.collect::<Vec<_>>(),
    });
    let names: BTreeMap<String, &str> = LABELS
        .iter()
        .enumerate()
        .map(|(id, label)| (id.to_string(), *label))
        .collect();
    let config = json!({"model_type": "tiny_network", "id2label": names});
    BTreeMap::from([
        ("config.json".into(), pretty(&config)),
        (
            "model.onnx".into(),
            network.file(&[(&probabilities, &[LABELS.len()])]),
        ),
        ("preprocessor_config.json".into(), preprocessor),
        ("reference.json".into(), pretty(&reference)),
    ])
}
