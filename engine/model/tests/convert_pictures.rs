//! What the conversion of models of pictures refuses, and what it makes of their files. Their vectors are compared with an
//! implementation at f64 where engines run them: `web/encoder/tests/families.rs`, `web/gpu/tests/gpu_families.rs` and
//! `tests/whole/pictures.rs`.

use isovec_engine::EngineError;
use isovec_engine::budget::Budget;
use isovec_engine::description::{Dim, describe};
use isovec_engine::tensor::DType;
use isovec_model::convert::{
    Half, PATCHES, PatchGrid, architecture, convert, convert_within, space,
};
use isovec_model::head::Pooling;
use isovec_test_models::bundles;
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::pictures::{self, POSITIONS, SIZE, WORDS};
use serde_json::{Value, json};

fn error(model: &Checkpoint) -> EngineError {
    let converted = convert(&model.config_json(), model.tensor_set(Stored::F32));
    converted.expect_err("it is refused")
}

#[test]
fn the_graph_says_how_it_wants_pictures() {
    for (name, model) in pictures::all() {
        let bundle = bundles::half(&model, Stored::F32, Pooling::Cls, Half::Pictures);
        let grid = PatchGrid::of(&bundle.graph).expect(name);
        assert_eq!(grid.pixels(), SIZE, "{name}");
        assert_eq!(grid.special, if name == "deit" { 2 } else { 1 });
        let [input] = &describe(&bundle).inputs[..] else {
            panic!("{name} has several inputs");
        };
        assert_eq!((&input.name[..], input.dtype), (PATCHES, Some(DType::F32)));
        let dims = input.dims.as_deref().expect("dims");
        assert_eq!(
            dims[1..],
            [Dim::Fixed(grid.tokens()), Dim::Fixed(grid.width())]
        );
        assert_eq!(space(&bundle.graph), (name == "clip").then_some("clip"));
    }
}

#[test]
fn a_file_of_both_halves_gives_either_and_both_are_of_one_architecture() {
    let model = pictures::clip();
    let texts = convert(&model.config_json(), model.tensor_set(Stored::F32)).expect("texts");
    assert_eq!(texts.max_sequence, POSITIONS);
    assert_eq!(PatchGrid::of(&texts.graph), None);
    assert_eq!(space(&texts.graph), Some("clip"));
    let entry = |key: &str| {
        let mut entries = texts.graph.metadata_props.iter();
        entries
            .find(|entry| entry.key == key)
            .map(|entry| entry.value.clone())
    };
    assert_eq!(
        entry(isovec_model::convert::VOCABULARY),
        Some(WORDS.to_string())
    );
    let output = &texts.graph.graph.as_ref().expect("a graph").output[0];
    assert_eq!(output.name, "text_embeds");

    let plain = architecture(&model.config_json());
    for (half, key, other) in [
        ("text_config", "num_attention_heads", json!(2)),
        ("vision_config", "hidden_act", json!("gelu")),
    ] {
        let mut changed = model.clone();
        changed.config[half][key] = other;
        assert_ne!(architecture(&changed.config_json()), plain, "{half}.{key}");
    }
    // What says the same as the default is no other architecture.
    let mut same = model.clone();
    same.config["vision_config"]["hidden_act"] = Value::Null;
    assert_eq!(architecture(&same.config_json()), plain);
}

#[test]
fn what_is_not_converted_is_refused_by_its_key() {
    for (key, value, named) in [
        ("num_channels", json!(1), "num_channels"),
        ("patch_size", json!(5), "patch_size"),
        ("patch_size", json!([8, 4]), "patch_size"),
        ("patch_size", json!(0), "patch_size"),
        ("image_size", json!([16]), "image_size"),
        ("image_size", json!([16, "x"]), "image_size"),
        ("image_size", json!(1 << 20), "image_size"),
        ("num_attention_heads", json!(5), "num_attention_heads"),
        ("hidden_act", json!("mish"), "hidden_act"),
        ("qkv_bias", json!("yes"), "qkv_bias"),
    ] {
        let error = error(&pictures::vit().with(key, value)).to_string();
        assert!(error.contains(named), "{key}: {error}");
    }
    let mut nested = pictures::clip();
    nested.config["vision_config"] = json!("none");
    assert!(error(&nested).to_string().contains("vision_config"));
}

#[test]
fn a_tensor_that_is_missing_or_of_another_shape_is_named() {
    for (model, name) in [
        (pictures::vit(), "embeddings.cls_token"),
        (pictures::deit(), "embeddings.distillation_token"),
        (
            pictures::vit(),
            "embeddings.patch_embeddings.projection.bias",
        ),
        (pictures::clip_vision(), "visual_projection.weight"),
        (pictures::clip(), "text_projection.weight"),
    ] {
        let mut without = model.clone();
        without.tensors.remove(name).expect("a tensor");
        let missing = error(&without).to_string();
        assert!(missing.contains(name), "{name}: {missing}");
        let mut shaped = model;
        shaped
            .tensors
            .get_mut(name)
            .expect("a tensor")
            .shape
            .insert(0, 1);
        let other = convert(&shaped.config_json(), shaped.tensor_set(Stored::F32));
        assert!(other.is_err(), "{name}");
    }
    // A picture of another size has other positions.
    let larger = error(&pictures::vit().with("image_size", json!([24, 24]))).to_string();
    assert!(larger.contains("position_embeddings"), "{larger}");
}

#[test]
fn half_precision_is_widened() {
    let model = pictures::clip().rounded(Stored::F16);
    let mut budget = Budget::for_files(1 << 20);
    let tensors = model.tensor_set(Stored::F16);
    let config = model.config_json();
    let converted = convert_within(&config, tensors, Half::Pictures, &mut budget);
    let output = &converted
        .expect("it converts")
        .graph
        .graph
        .expect("a graph")
        .output[0];
    assert_eq!(output.name, "image_embeds");
}
