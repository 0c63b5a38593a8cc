//! What the conversion of models of pictures refuses, and what it makes of their files. Their vectors are compared with an
//! implementation at f64 where engines run them: `web/encoder/tests/families.rs`, `web/gpu/tests/gpu_families.rs` and
//! `tests/whole/pictures.rs`.

use isovec_engine::EngineError;
use isovec_engine::budget::Budget;
use isovec_engine::description::{Dim, describe};
use isovec_engine::tensor::DType;
use isovec_model::convert::{
    Half, PATCHES, PatchGrid, architecture, convert, convert_within, filled, space,
};
use isovec_model::head::Pooling;
use isovec_test_models::bundles;
use isovec_test_models::checkpoint::{Checkpoint, Stored};
use isovec_test_models::pictures::{self, FILLED, POSITIONS, SIZE, WORDS};
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
        let special = match name {
            "deit" => 2,
            "dinov2_with_registers" => 4,
            "dinov3" => 3,
            "siglip_vision" | "siglip" => 0,
            _ => 1,
        };
        assert_eq!(grid.special, special, "{name}");
        let [input] = &describe(&bundle).inputs[..] else {
            panic!("{name} has several inputs");
        };
        assert_eq!((&input.name[..], input.dtype), (PATCHES, Some(DType::F32)));
        let dims = input.dims.as_deref().expect("dims");
        assert_eq!(
            dims[1..],
            [Dim::Fixed(grid.tokens()), Dim::Fixed(grid.width())]
        );
        let both = matches!(name, "clip" | "siglip");
        assert_eq!(space(&bundle.graph), both.then_some(name));
    }
}

#[test]
fn a_file_of_both_halves_gives_either_and_both_are_of_one_architecture() {
    let model = pictures::clip();
    let texts = convert(&model.config_json(), model.tensor_set(Stored::F32)).expect("texts");
    assert_eq!(texts.max_sequence, POSITIONS);
    assert_eq!(PatchGrid::of(&texts.graph), None);
    assert_eq!(space(&texts.graph), Some("clip"));
    assert_eq!(filled(&texts.graph), None);
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
fn siglip_s_graph_says_how_long_its_texts_are() {
    let model = pictures::siglip();
    let texts = convert(&model.config_json(), model.tensor_set(Stored::F32)).expect("texts");
    assert_eq!(space(&texts.graph), Some("siglip"));
    let positions = (filled(&texts.graph), texts.max_sequence);
    assert_eq!(positions, (Some(FILLED), FILLED));
    // A file may claim anything.
    let mut claims = texts.graph;
    for entry in &mut claims.metadata_props {
        entry.value = "65536".into();
    }
    assert_eq!(filled(&claims), None);
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
    for (key, value, named) in [
        ("mlp_ratio", json!(0.001), "mlp_ratio"),
        ("mlp_ratio", json!(1e12), "mlp_ratio"),
        ("use_swiglu_ffn", json!("yes"), "use_swiglu_ffn"),
        ("num_register_tokens", json!(-1), "num_register_tokens"),
        ("hidden_act", json!("mish"), "hidden_act"),
        ("num_attention_heads", json!(5), "num_attention_heads"),
    ] {
        let plain = pictures::dinov2_with_registers().with("use_swiglu_ffn", false);
        let error = error(&plain.with(key, value)).to_string();
        assert!(error.contains(named), "{key}: {error}");
    }
    for (key, value) in [
        ("num_attention_heads", json!(16)),
        ("proj_bias", json!(false)),
        ("mlp_bias", json!(false)),
        ("rope_theta", json!(0)),
        ("use_gated_mlp", json!(3)),
        ("num_register_tokens", json!("some")),
    ] {
        let error = error(&pictures::dinov3().with(key, value)).to_string();
        let named = match key {
            "num_attention_heads" => "heads of size 2",
            key => key,
        };
        assert!(error.contains(named), "{key}: {error}");
    }
    let headless = pictures::siglip_vision().with("vision_use_head", false);
    assert!(error(&headless).to_string().contains("vision_use_head"));
    let mut long = pictures::siglip();
    long.config["text_config"]["max_position_embeddings"] = json!(65_536);
    assert!(error(&long).to_string().contains("max_position_embeddings"));
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
        (pictures::dinov2(), "encoder.layer.1.layer_scale2.lambda1"),
        (
            pictures::dinov2_with_registers(),
            "embeddings.register_tokens",
        ),
        (pictures::dinov3(), "layer.1.attention.q_proj.bias"),
        (pictures::dinov3_gated(), "layer.2.mlp.gate_proj.weight"),
        (pictures::clip_vision(), "visual_projection.weight"),
        (pictures::clip(), "text_projection.weight"),
        (pictures::siglip(), "text_model.head.bias"),
        (pictures::siglip_vision(), "vision_model.head.probe"),
        (
            pictures::siglip_vision(),
            "vision_model.head.attention.in_proj_bias",
        ),
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
fn dinov2_is_made_for_the_pictures_that_the_preprocessor_makes() {
    let model = pictures::dinov2();
    let pixels = |preprocessor: &Value| {
        let mut budget = Budget::for_files(1 << 20);
        let (config, tensors) = (model.config_json(), model.tensor_set(Stored::F32));
        let file = preprocessor.to_string();
        let made = convert_within(
            &config,
            file.as_bytes(),
            tensors,
            Half::Pictures,
            &mut budget,
        );
        made.map(|made| PatchGrid::of(&made.graph).expect("a grid").pixels())
    };
    let shortest = json!({"shortest_edge": 30});
    for (preprocessor, wanted) in [
        (json!({"size": {"height": 16, "width": 48}}), (16, 48)),
        (json!({"size": 24}), (24, 24)),
        (
            json!({"size": shortest, "crop_size": {"height": 24, "width": 8}}),
            (24, 8),
        ),
        (json!({"size": shortest, "crop_size": 32}), (32, 32)),
        (
            json!({"size": 8, "crop_size": 32, "do_center_crop": false}),
            (8, 8),
        ),
        // What says no size plainly leaves that of the training, and its reader compares.
        (json!({"size": shortest}), (40, 40)),
        (json!("x"), (40, 40)),
        (Value::Null, (40, 40)),
        (json!({"size": 0}), (40, 40)),
        (json!({"size": 1 << 20}), (40, 40)),
    ] {
        assert_eq!(
            pixels(&preprocessor).expect("it converts"),
            wanted,
            "{preprocessor}"
        );
    }
    let error = pixels(&json!({"size": 20})).expect_err("no whole squares");
    assert!(error.to_string().contains("patch_size"), "{error}");
}

#[test]
fn half_precision_is_widened() {
    let model = pictures::clip().rounded(Stored::F16);
    let mut budget = Budget::for_files(1 << 20);
    let tensors = model.tensor_set(Stored::F16);
    let config = model.config_json();
    let converted = convert_within(&config, &[], tensors, Half::Pictures, &mut budget);
    let output = &converted
        .expect("it converts")
        .graph
        .graph
        .expect("a graph")
        .output[0];
    assert_eq!(output.name, "image_embeds");
}
