//! Seeded models as bundles, whose outputs are texts' vectors.

use std::collections::BTreeMap;

use isovec_engine::budget::Budget;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::weights::WeightsIdentity;
use isovec_model::convert::{Half, convert_within};
use isovec_model::head::{HeadSpec, Pooling, attach_head};

use crate::checkpoint::{Checkpoint, Stored};
use crate::pictures::preprocessor;

/// A model with a head that pools and normalises.
pub fn bundle(model: &Checkpoint, stored: Stored, pooling: Pooling) -> ModelBundle {
    half(model, stored, pooling, Half::Texts)
}

/// The same of a half of a model with two. One of pictures reads those of [`preprocessor`].
pub fn half(model: &Checkpoint, stored: Stored, pooling: Pooling, half: Half) -> ModelBundle {
    let tensors = model.tensor_set(stored);
    let mut budget = Budget::for_files(tensors.byte_len().max(1 << 20));
    let (config, pixels) = (model.config_json(), preprocessor().to_string());
    let converted = convert_within(&config, pixels.as_bytes(), tensors, half, &mut budget);
    let converted = converted.expect("a model of a known family");
    let mut bundle = ModelBundle {
        graph: converted.graph,
        weights: converted.weights,
        identity: WeightsIdentity("test".into()),
        files: BTreeMap::new(),
        model_file: "model.safetensors".into(),
        origin: "a model of the tests".into(),
    };
    attach_head(&mut bundle, &HeadSpec::new(pooling, true)).expect("a head that fits");
    bundle
}
