//! Tiny models of pictures with seeded weights, pictures for them, and what they give at f64: plain loops over pixels,
//! written from the papers, which share nothing with the conversion.
//!
//! ViT <https://arxiv.org/abs/2010.11929>, DeiT <https://arxiv.org/abs/2012.12877>, CLIP
//! <https://arxiv.org/abs/2103.00020>, DINOv2 <https://arxiv.org/abs/2304.07193> and its registers
//! <https://arxiv.org/abs/2309.16588>, SigLIP <https://arxiv.org/abs/2303.15343>, DINOv3
//! <https://arxiv.org/abs/2508.10104>.

use isovec_engine::engine::Batch;
use isovec_engine::tensor::{NamedTensor, Tensor};
use isovec_model::convert::{PATCHES, PatchGrid};
use serde_json::{Value, json};

use crate::checkpoint::Checkpoint;
use crate::models::{HIDDEN, Maker, WIDE};
use crate::reference::{
    Rows, activate, add, array, attend, layer_norm, linear, pre_norm_layer, pre_norm_layer_turned,
};
use crate::rng::Rng;

/// Height and width of the pictures.
pub const SIZE: (usize, usize) = (16, 24);
/// Pixels on a side of a square.
const SIDE: usize = 8;
/// Squares of a picture.
const SQUARES: usize = SIZE.0 * SIZE.1 / SIDE / SIDE;
/// Words that CLIP knows: those of the tokenizer in `tests/data/tiny-bert`.
pub const WORDS: usize = 464;
/// The most tokens of a text that CLIP reads.
pub const POSITIONS: usize = 40;
/// Tokens of every text that SigLIP reads.
pub const FILLED: usize = 24;
/// Components of the vectors of all but CLIP.
pub const WIDTH: usize = HIDDEN;
/// Components of CLIP's vectors.
pub const PROJECTION: usize = 20;

/// Names of a layer's modules: norm, query, key, value, output, norm, two feed-forward.
type Names = [&'static str; 8];

const VIT_NAMES: Names = [
    "layernorm_before",
    "attention.attention.query",
    "attention.attention.key",
    "attention.attention.value",
    "attention.output.dense",
    "layernorm_after",
    "intermediate.dense",
    "output.dense",
];

const CLIP_NAMES: Names = [
    "layer_norm1",
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.out_proj",
    "layer_norm2",
    "mlp.fc1",
    "mlp.fc2",
];

const DINO_NAMES: Names = [
    "norm1",
    "attention.attention.query",
    "attention.attention.key",
    "attention.attention.value",
    "attention.output.dense",
    "norm2",
    "mlp.fc1",
    "mlp.fc2",
];

/// The same with a gate.
const GATED_NAMES: Names = {
    let mut names = DINO_NAMES;
    (names[6], names[7]) = ("mlp.weights_in", "mlp.weights_out");
    names
};

const DINOV3_NAMES: Names = [
    "norm1",
    "attention.q_proj",
    "attention.k_proj",
    "attention.v_proj",
    "attention.o_proj",
    "norm2",
    "mlp.up_proj",
    "mlp.down_proj",
];

/// Makes inputs of the seeded models' size.
pub fn preprocessor() -> Value {
    json!({
        "image_processor_type": "ViTImageProcessor",
        "size": {"height": SIZE.0, "width": SIZE.1},
        "resample": 3,
    })
}

fn layers(
    maker: &mut Maker,
    count: usize,
    prefix: &str,
    names: Names,
    (hidden, wide): (usize, usize),
) {
    for layer in 0..count {
        let name = |module: usize| format!("{prefix}.{layer}.{}", names[module]);
        maker.norm(&name(0), hidden, true);
        for square in 1..5 {
            maker.linear(&name(square), hidden, hidden, true);
        }
        maker.norm(&name(5), hidden, true);
        maker.linear(&name(6), hidden, wide, true);
        maker.linear(&name(7), wide, hidden, true);
    }
}

fn vit_like(seed: u64, model_type: &str, special: &[&str]) -> Checkpoint {
    let mut maker = Maker::new(seed);
    for name in special {
        maker.tensor(&format!("embeddings.{name}"), &[1, 1, HIDDEN], 0.0, 0.5);
    }
    let tokens = special.len() + SQUARES;
    maker.tensor(
        "embeddings.position_embeddings",
        &[1, tokens, HIDDEN],
        0.0,
        0.3,
    );
    let kernel = "embeddings.patch_embeddings.projection";
    maker.tensor(
        &format!("{kernel}.weight"),
        &[HIDDEN, 3, SIDE, SIDE],
        0.0,
        0.06,
    );
    maker.tensor(&format!("{kernel}.bias"), &[HIDDEN], 0.0, 0.1);
    layers(&mut maker, 3, "encoder.layer", VIT_NAMES, (HIDDEN, WIDE));
    maker.norm("layernorm", HIDDEN, true);
    // Not a part of what is computed.
    maker.linear("pooler.dense", HIDDEN, HIDDEN, true);
    Checkpoint {
        config: json!({
            "architectures": ["ViTModel"],
            "model_type": model_type,
            "hidden_size": HIDDEN,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": WIDE,
            "hidden_act": "gelu",
            "layer_norm_eps": 1e-12,
            "image_size": [SIZE.0, SIZE.1],
            "patch_size": SIDE,
            "num_channels": 3,
            "qkv_bias": true
        }),
        tensors: maker.tensors,
    }
}

/// A ViT.
pub fn vit() -> Checkpoint {
    vit_like(21, "vit", &["cls_token"])
}

/// A DeiT: a ViT with a second token that is no square.
pub fn deit() -> Checkpoint {
    vit_like(22, "deit", &["cls_token", "distillation_token"])
}

/// The labels of the seeded classifiers.
pub const LABELS: usize = 5;

/// A model of pictures as transformers saves it with a class that classifies: `layers` stand beside the model, whose tensors begin
/// with its type.
fn classifying(mut model: Checkpoint, seed: u64, class: &str, layers: &[&str]) -> Checkpoint {
    let kind = model.config["model_type"].as_str().expect("a model type");
    let prefix = format!("{kind}.");
    let mut maker = Maker::new(seed);
    for layer in layers {
        maker.linear(layer, HIDDEN, LABELS, true);
    }
    let own = model.tensors.into_iter();
    let own = own.map(|(name, tensor)| (format!("{prefix}{name}"), tensor));
    model.tensors = own.chain(maker.tensors).collect();
    let names: serde_json::Map<String, Value> = (0..LABELS)
        .map(|id| (id.to_string(), format!("kind {id}").into()))
        .collect();
    model
        .with("architectures", json!([class]))
        .with("id2label", json!(names))
}

/// Classifiers, by the class that transformers has for them.
pub fn classifiers() -> Vec<(&'static str, Checkpoint)> {
    let both = ["cls_classifier", "distillation_classifier"];
    let all: [(&str, Checkpoint, &[&str]); 3] = [
        ("ViTForImageClassification", vit(), &["classifier"]),
        ("DeiTForImageClassification", deit(), &["classifier"]),
        ("DeiTForImageClassificationWithTeacher", deit(), &both),
    ];
    let all = all.into_iter().enumerate();
    all.map(|(seed, (class, model, layers))| {
        let model = classifying(model, 60 + seed as u64, class, layers);
        (class, model)
    })
    .collect()
}

/// The logits of one of [`classifiers`] for a picture, at f64.
pub fn logits(model: &Checkpoint, picture: &[f32]) -> Vec<f64> {
    let mut encoder = model.clone();
    let kind = model.config["model_type"].as_str().expect("a model type");
    let prefix = format!("{kind}.");
    encoder.tensors = model
        .tensors
        .iter()
        .map(|(name, tensor)| (name.trim_start_matches(&prefix).to_owned(), tensor.clone()))
        .collect();
    let tokens = vit_tokens(&encoder, picture);
    match model.tensors.contains_key("cls_classifier.weight") {
        true => {
            let one = linear(model, "cls_classifier", &tokens[0]);
            let two = linear(model, "distillation_classifier", &tokens[1]);
            add(&one, &two).iter().map(|sum| sum / 2.0).collect()
        }
        false => linear(model, "classifier", &tokens[0]),
    }
}

/// Squares on a side of the pictures that DINOv2 was trained with: more than those that it is given.
const TRAINED: usize = 5;

fn dinov2_like(seed: u64, model_type: &str, registers: usize, gated: bool) -> Checkpoint {
    let mut maker = Maker::new(seed);
    let mut token = |name: &str, shape: &[usize], deviation: f64| {
        maker.tensor(&format!("embeddings.{name}"), shape, 0.0, deviation);
    };
    token("cls_token", &[1, 1, HIDDEN], 0.5);
    token("mask_token", &[1, HIDDEN], 0.5);
    let positions = 1 + TRAINED * TRAINED;
    token("position_embeddings", &[1, positions, HIDDEN], 0.3);
    if registers > 0 {
        token("register_tokens", &[1, registers, HIDDEN], 0.5);
    }
    let kernel = "patch_embeddings.projection";
    token(&format!("{kernel}.weight"), &[HIDDEN, 3, SIDE, SIDE], 0.06);
    token(&format!("{kernel}.bias"), &[HIDDEN], 0.1);
    // Three times as wide: two thirds of that, to the next multiple of 8.
    let (names, wide) = match gated {
        true => (GATED_NAMES, 64),
        false => (DINO_NAMES, 3 * HIDDEN),
    };
    layers(&mut maker, 3, "encoder.layer", names, (HIDDEN, wide));
    for layer in 0..3 {
        let name = |module: &str| format!("encoder.layer.{layer}.{module}");
        if gated {
            // Twice as many outputs.
            for part in ["weight", "bias"] {
                maker
                    .tensors
                    .remove(&name(&format!("mlp.weights_in.{part}")));
            }
            maker.linear(&name("mlp.weights_in"), HIDDEN, 2 * wide, true);
        }
        for scale in ["layer_scale1.lambda1", "layer_scale2.lambda1"] {
            maker.tensor(&name(scale), &[HIDDEN], 0.4, 0.3);
        }
    }
    maker.norm("layernorm", HIDDEN, true);
    Checkpoint {
        config: json!({
            "architectures": ["Dinov2Model"],
            "model_type": model_type,
            "hidden_size": HIDDEN,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "mlp_ratio": 3,
            "hidden_act": "gelu",
            "layer_norm_eps": 1e-6,
            "image_size": TRAINED * SIDE,
            "patch_size": SIDE,
            "num_channels": 3,
            "num_register_tokens": registers,
            "qkv_bias": true,
            "use_swiglu_ffn": gated
        }),
        tensors: maker.tensors,
    }
}

/// A DINOv2, trained with larger pictures than it is given.
pub fn dinov2() -> Checkpoint {
    dinov2_like(26, "dinov2", 0, false)
}

/// A DINOv2 with registers, and with gates as its largest has.
pub fn dinov2_with_registers() -> Checkpoint {
    dinov2_like(27, "dinov2_with_registers", 3, true)
}

fn dinov3_like(seed: u64, registers: usize, gated: bool) -> Checkpoint {
    let mut maker = Maker::new(seed);
    let mut token = |name: &str, shape: &[usize], deviation: f64| {
        maker.tensor(&format!("embeddings.{name}"), shape, 0.0, deviation);
    };
    token("cls_token", &[1, 1, HIDDEN], 0.5);
    token("mask_token", &[1, 1, HIDDEN], 0.5);
    if registers > 0 {
        token("register_tokens", &[1, registers, HIDDEN], 0.5);
    }
    token("patch_embeddings.weight", &[HIDDEN, 3, SIDE, SIDE], 0.06);
    token("patch_embeddings.bias", &[HIDDEN], 0.1);
    layers(&mut maker, 3, "layer", DINOV3_NAMES, (HIDDEN, WIDE));
    for layer in 0..3 {
        let name = |module: &str| format!("layer.{layer}.{module}");
        // As the published ones have them: no bias of keys, and none of queries and values in the one with gates.
        maker.tensors.remove(&name("attention.k_proj.bias"));
        if gated {
            maker.tensors.remove(&name("attention.q_proj.bias"));
            maker.tensors.remove(&name("attention.v_proj.bias"));
            maker.linear(&name("mlp.gate_proj"), HIDDEN, WIDE, true);
        }
        for scale in ["layer_scale1.lambda1", "layer_scale2.lambda1"] {
            maker.tensor(&name(scale), &[HIDDEN], 0.4, 0.3);
        }
    }
    maker.norm("norm", HIDDEN, true);
    Checkpoint {
        config: json!({
            "architectures": ["DINOv3ViTModel"],
            "model_type": "dinov3_vit",
            "hidden_size": HIDDEN,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": WIDE,
            "hidden_act": if gated { "silu" } else { "gelu" },
            "layer_norm_eps": 1e-5,
            "image_size": TRAINED * SIDE,
            "patch_size": SIDE,
            "num_channels": 3,
            "num_register_tokens": registers,
            "rope_theta": 100.0,
            "query_bias": !gated,
            "key_bias": false,
            "value_bias": !gated,
            "proj_bias": true,
            "mlp_bias": true,
            "use_gated_mlp": gated
        }),
        tensors: maker.tensors,
    }
}

/// A DINOv3 with registers.
pub fn dinov3() -> Checkpoint {
    dinov3_like(30, 2, false)
}

/// A DINOv3 with gates.
pub fn dinov3_gated() -> Checkpoint {
    dinov3_like(31, 0, true)
}

/// Sizes of the half of a CLIP that reads pictures.
struct Sizes {
    seed: u64,
    hidden: usize,
    wide: usize,
    layers: usize,
    heads: usize,
    /// Height and width of the pictures, and the side of their squares.
    image: (usize, usize),
    side: usize,
    projection: usize,
}

/// The half of a CLIP that reads pictures.
pub fn clip_vision() -> Checkpoint {
    clip_of(&Sizes {
        seed: 23,
        hidden: HIDDEN,
        wide: WIDE,
        layers: 3,
        heads: 4,
        image: SIZE,
        side: SIDE,
        projection: PROJECTION,
    })
}

/// The same of the sizes of openai/clip-vit-base-patch32, with seeded weights.
pub fn clip_base_32() -> Checkpoint {
    clip_of(&Sizes {
        seed: 25,
        hidden: 768,
        wide: 3072,
        layers: 12,
        heads: 12,
        image: (224, 224),
        side: 32,
        projection: 512,
    })
}

fn clip_of(sizes: &Sizes) -> Checkpoint {
    let &Sizes {
        seed,
        hidden,
        wide,
        layers: count,
        heads,
        image,
        side,
        projection,
    } = sizes;
    let mut maker = Maker::new(seed);
    let embeddings = "vision_model.embeddings";
    let class = format!("{embeddings}.class_embedding");
    maker.tensor(&class, &[hidden], 0.0, 0.5);
    let squares = image.0 * image.1 / side / side;
    maker.table(
        &format!("{embeddings}.position_embedding"),
        1 + squares,
        hidden,
    );
    let kernel = format!("{embeddings}.patch_embedding.weight");
    maker.tensor(&kernel, &[hidden, 3, side, side], 0.0, 0.06);
    maker.norm("vision_model.pre_layrnorm", hidden, true);
    layers(
        &mut maker,
        count,
        "vision_model.encoder.layers",
        CLIP_NAMES,
        (hidden, wide),
    );
    maker.norm("vision_model.post_layernorm", hidden, true);
    maker.linear("visual_projection", hidden, projection, false);
    Checkpoint {
        config: json!({
            "architectures": ["CLIPVisionModelWithProjection"],
            "model_type": "clip_vision_model",
            "hidden_size": hidden,
            "num_hidden_layers": count,
            "num_attention_heads": heads,
            "intermediate_size": wide,
            "hidden_act": "quick_gelu",
            "layer_norm_eps": 1e-5,
            "image_size": [image.0, image.1],
            "patch_size": side,
            "projection_dim": projection
        }),
        tensors: maker.tensors,
    }
}

/// A CLIP with both halves, as most are published: the config of each is a part of the file.
pub fn clip() -> Checkpoint {
    let Checkpoint {
        config,
        mut tensors,
    } = clip_vision();
    let mut vision = config;
    let removed = vision.as_object_mut().expect("an object");
    removed.remove("projection_dim");
    let mut maker = Maker::new(24);
    let embeddings = "text_model.embeddings";
    maker.table(&format!("{embeddings}.token_embedding"), WORDS, HIDDEN);
    maker.table(
        &format!("{embeddings}.position_embedding"),
        POSITIONS,
        HIDDEN,
    );
    let sizes = (HIDDEN, WIDE);
    layers(
        &mut maker,
        3,
        "text_model.encoder.layers",
        CLIP_NAMES,
        sizes,
    );
    maker.norm("text_model.final_layer_norm", HIDDEN, true);
    maker.linear("text_projection", HIDDEN, PROJECTION, false);
    tensors.extend(maker.tensors);
    Checkpoint {
        config: json!({
            "architectures": ["CLIPModel"],
            "model_type": "clip",
            "projection_dim": PROJECTION,
            "vision_config": vision,
            "text_config": {
                "model_type": "clip_text_model",
                "vocab_size": WORDS,
                "hidden_size": HIDDEN,
                "num_hidden_layers": 3,
                "num_attention_heads": 4,
                "intermediate_size": WIDE,
                "hidden_act": "quick_gelu",
                "layer_norm_eps": 1e-5,
                "max_position_embeddings": POSITIONS
            }
        }),
        tensors,
    }
}

/// The half of a SigLIP that reads pictures.
pub fn siglip_vision() -> Checkpoint {
    let mut maker = Maker::new(28);
    let embeddings = "vision_model.embeddings";
    maker.table(&format!("{embeddings}.position_embedding"), SQUARES, HIDDEN);
    let kernel = format!("{embeddings}.patch_embedding");
    let shape = [HIDDEN, 3, SIDE, SIDE];
    maker.tensor(&format!("{kernel}.weight"), &shape, 0.0, 0.06);
    maker.tensor(&format!("{kernel}.bias"), &[HIDDEN], 0.0, 0.1);
    let sizes = (HIDDEN, WIDE);
    layers(
        &mut maker,
        3,
        "vision_model.encoder.layers",
        CLIP_NAMES,
        sizes,
    );
    maker.norm("vision_model.post_layernorm", HIDDEN, true);
    let head = "vision_model.head";
    maker.tensor(&format!("{head}.probe"), &[1, 1, HIDDEN], 0.0, 1.0);
    let packed = format!("{head}.attention.in_proj");
    maker.tensor(&format!("{packed}_weight"), &[3 * HIDDEN, HIDDEN], 0.0, 0.2);
    maker.tensor(&format!("{packed}_bias"), &[3 * HIDDEN], 0.0, 0.1);
    maker.linear(&format!("{head}.attention.out_proj"), HIDDEN, HIDDEN, true);
    maker.norm(&format!("{head}.layernorm"), HIDDEN, true);
    maker.linear(&format!("{head}.mlp.fc1"), HIDDEN, WIDE, true);
    maker.linear(&format!("{head}.mlp.fc2"), WIDE, HIDDEN, true);
    Checkpoint {
        config: json!({
            "architectures": ["SiglipVisionModel"],
            "model_type": "siglip_vision_model",
            "hidden_size": HIDDEN,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": WIDE,
            "hidden_act": "gelu_pytorch_tanh",
            "layer_norm_eps": 1e-6,
            "image_size": [SIZE.0, SIZE.1],
            "patch_size": SIDE
        }),
        tensors: maker.tensors,
    }
}

/// A SigLIP with both halves.
pub fn siglip() -> Checkpoint {
    let Checkpoint {
        config: vision,
        mut tensors,
    } = siglip_vision();
    let mut maker = Maker::new(29);
    let embeddings = "text_model.embeddings";
    maker.table(&format!("{embeddings}.token_embedding"), WORDS, HIDDEN);
    maker.table(&format!("{embeddings}.position_embedding"), FILLED, HIDDEN);
    let sizes = (HIDDEN, WIDE);
    layers(
        &mut maker,
        3,
        "text_model.encoder.layers",
        CLIP_NAMES,
        sizes,
    );
    maker.norm("text_model.final_layer_norm", HIDDEN, true);
    maker.linear("text_model.head", HIDDEN, HIDDEN, true);
    tensors.extend(maker.tensors);
    Checkpoint {
        config: json!({
            "architectures": ["SiglipModel"],
            "model_type": "siglip",
            "vision_config": vision,
            "text_config": {
                "model_type": "siglip_text_model",
                "vocab_size": WORDS,
                "hidden_size": HIDDEN,
                "num_hidden_layers": 3,
                "num_attention_heads": 4,
                "intermediate_size": WIDE,
                "hidden_act": "gelu_pytorch_tanh",
                "layer_norm_eps": 1e-6,
                "max_position_embeddings": FILLED
            }
        }),
        tensors,
    }
}

/// One of each.
pub fn all() -> Vec<(&'static str, Checkpoint)> {
    vec![
        ("vit", vit()),
        ("deit", deit()),
        ("dinov2", dinov2()),
        ("dinov2_with_registers", dinov2_with_registers()),
        ("dinov3", dinov3()),
        ("dinov3_gated", dinov3_gated()),
        ("clip_vision", clip_vision()),
        ("clip", clip()),
        ("siglip_vision", siglip_vision()),
        ("siglip", siglip()),
    ]
}

/// The values of a picture, `[3, height, width]`.
pub fn picture(seed: u64) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    let many = 3 * SIZE.0 * SIZE.1;
    (0..many).map(|_| rng.normal() as f32).collect()
}

/// Pictures as a converted model wants them.
pub fn batch(grid: &PatchGrid, pictures: &[Vec<f32>]) -> Batch {
    let each = grid.tokens() * grid.width();
    let mut values = vec![0.0; pictures.len() * each];
    for (picture, values) in pictures.iter().zip(values.chunks_exact_mut(each)) {
        grid.cut(picture, values);
    }
    let shape = [pictures.len(), grid.tokens(), grid.width()];
    let tensor = Tensor::from_slice(&shape, &values).expect("as many values as the shape says");
    Batch {
        inputs: vec![NamedTensor::new(PATCHES, tensor)],
        row_lengths: vec![grid.tokens(); pictures.len()],
        ..Batch::default()
    }
}

/// The vector of a picture, at length 1: that of the first token after the last normalisation, and CLIP's projection of
/// it.
pub fn vector(model: &Checkpoint, picture: &[f32]) -> Vec<f64> {
    let vector = match model.config["model_type"].as_str().expect("a model type") {
        both @ ("clip" | "siglip") => {
            let mut vision = model.clone();
            vision.config = model.config["vision_config"].clone();
            match both {
                "clip" => clip_vector(&vision, picture),
                _ => siglip_vector(&vision, picture),
            }
        }
        "clip_vision_model" => clip_vector(model, picture),
        "siglip_vision_model" => siglip_vector(model, picture),
        "dinov3_vit" => dinov3_vector(model, picture),
        "dinov2" | "dinov2_with_registers" => dinov2_vector(model, picture),
        _ => vit_vector(model, picture),
    };
    unit(vector)
}

fn vit_vector(model: &Checkpoint, picture: &[f32]) -> Vec<f64> {
    vit_tokens(model, picture).swap_remove(0)
}

/// The hidden vectors of all tokens.
fn vit_tokens(model: &Checkpoint, picture: &[f32]) -> Rows {
    let special = ["embeddings.cls_token", "embeddings.distillation_token"];
    let special = special.iter().filter_map(|name| model.tensors.get(*name));
    let mut rows: Rows = special.map(|special| wide(&special.values)).collect();
    let kernel = "embeddings.patch_embeddings.projection";
    let bias = wide(&array(model, &format!("{kernel}.bias")).values);
    let squares = convolved(model, &format!("{kernel}.weight"), picture);
    rows.extend(squares.iter().map(|row| add(row, &bias)));
    let mut x = placed(model, "embeddings.position_embeddings", &rows);
    for layer in 0..3 {
        let name = format!("encoder.layer.{layer}");
        x = pre_norm_layer(
            model,
            &name,
            VIT_NAMES,
            &x,
            settings(&model.config),
            &sees_all,
        );
    }
    let (_, _, epsilon) = settings(&model.config);
    let normed = x
        .iter()
        .map(|row| layer_norm(model, "layernorm", epsilon, row));
    normed.collect()
}

fn dinov2_vector(model: &Checkpoint, picture: &[f32]) -> Vec<f64> {
    let positions = wide(&array(model, "embeddings.position_embeddings").values);
    let (first, stored) = positions.split_at(HIDDEN);
    let class = wide(&array(model, "embeddings.cls_token").values);
    let mut x = vec![add(&class, first)];
    let registers = model.tensors.get("embeddings.register_tokens");
    let smooth = registers.is_some();
    for register in registers.iter().flat_map(|all| all.values.chunks(HIDDEN)) {
        x.push(wide(register));
    }
    let kernel = "embeddings.patch_embeddings.projection";
    let bias = wide(&array(model, &format!("{kernel}.bias")).values);
    let squares = convolved(model, &format!("{kernel}.weight"), picture);
    for (at, square) in squares.iter().enumerate() {
        let place = (at / (SIZE.1 / SIDE), at % (SIZE.1 / SIDE));
        let place = bicubic(stored, place, smooth);
        x.push(add(&add(square, &bias), &place));
    }
    let gated = model.config["use_swiglu_ffn"] == true;
    let (heads, activation, epsilon) = settings(&model.config);
    let (names, activation) = match gated {
        true => (GATED_NAMES, "swiglu"),
        false => (DINO_NAMES, activation),
    };
    for layer in 0..3 {
        let name = format!("encoder.layer.{layer}");
        let settings = (heads, activation, epsilon);
        x = pre_norm_layer(model, &name, names, &x, settings, &sees_all);
    }
    layer_norm(model, "layernorm", epsilon, &x[0])
}

fn dinov3_vector(model: &Checkpoint, picture: &[f32]) -> Vec<f64> {
    let mut x = vec![wide(&array(model, "embeddings.cls_token").values)];
    let registers = model.tensors.get("embeddings.register_tokens");
    for register in registers.iter().flat_map(|all| all.values.chunks(HIDDEN)) {
        x.push(wide(register));
    }
    let special = x.len();
    let bias = wide(&array(model, "embeddings.patch_embeddings.bias").values);
    let squares = convolved(model, "embeddings.patch_embeddings.weight", picture);
    x.extend(squares.iter().map(|square| add(square, &bias)));
    let (heads, activation, epsilon) = settings(&model.config);
    let turned = |mut rows: Rows| {
        for (at, row) in rows.iter_mut().skip(special).enumerate() {
            // The centre of the square, from -1 to 1 in both directions.
            let columns = SIZE.1 / SIDE;
            let centre = |place: usize, of: usize| (2 * place + 1) as f64 / of as f64 - 1.0;
            let y = centre(at / columns, SIZE.0 / SIDE);
            let x = centre(at % columns, columns);
            turn(row, heads, y, x);
        }
        rows
    };
    for layer in 0..3 {
        let name = format!("layer.{layer}");
        let settings = (heads, activation, epsilon);
        x = pre_norm_layer_turned(model, &name, DINOV3_NAMES, &x, settings, &sees_all, &turned);
    }
    layer_norm(model, "norm", epsilon, &x[0])
}

/// Turns each pair (i, i + half) of each head as a complex number: the first quarter of a head by `y`, the second by `x`, with
/// wavelengths from 1 on that grow to nearly 100.
fn turn(row: &mut [f64], heads: usize, y: f64, x: f64) {
    let size = row.len() / heads;
    let (half, quarter) = (size / 2, size / 4);
    for head in row.chunks_mut(size) {
        for i in 0..half {
            let place = if i < quarter { y } else { x };
            let wavelength = libm::pow(100.0, (i % quarter) as f64 / quarter as f64);
            let angle = 2.0 * std::f64::consts::PI * place / wavelength;
            let (cosine, sine) = (libm::cos(angle), libm::sin(angle));
            let (re, im) = (head[i], head[i + half]);
            head[i] = re * cosine - im * sine;
            head[i + half] = re * sine + im * cosine;
        }
    }
}

/// The position of a square of the picture, between those of the squares of the training: a sum over all of them, of the
/// cubic kernel of their distances in both directions.
fn bicubic(stored: &[f64], place: (usize, usize), smooth: bool) -> Vec<f64> {
    let kernel = |distance: f64, a: f64| match distance.abs() {
        d if d <= 1.0 => (a + 2.0) * d.powi(3) - (a + 3.0) * d.powi(2) + 1.0,
        d if d < 2.0 => a * (d.powi(3) - 5.0 * d.powi(2) + 8.0 * d - 4.0),
        _ => 0.0,
    };
    let shares = |place: usize, pixels: usize| {
        let ratio = TRAINED as f64 / (pixels / SIDE) as f64;
        let centre = (place as f64 + 0.5) * ratio;
        let mut shares = [0.0; TRAINED];
        // Squares beyond the border are the nearest one, or none at all.
        for at in -10..20 {
            let distance = f64::from(at) + 0.5 - centre;
            let inside = (0..TRAINED as i32).contains(&at);
            let nearest = at.clamp(0, TRAINED as i32 - 1) as usize;
            if smooth && inside {
                shares[nearest] += kernel(distance / ratio.max(1.0), -0.5);
            } else if !smooth {
                shares[nearest] += kernel(distance, -0.75);
            }
        }
        let total: f64 = shares.iter().sum();
        shares.map(|share| share / total)
    };
    let (down, across) = (shares(place.0, SIZE.0), shares(place.1, SIZE.1));
    let mut sum = vec![0.0; HIDDEN];
    for (at, square) in stored.chunks(HIDDEN).enumerate() {
        let share = down[at / TRAINED] * across[at % TRAINED];
        for (sum, value) in sum.iter_mut().zip(square) {
            *sum += share * value;
        }
    }
    sum
}

fn clip_vector(model: &Checkpoint, picture: &[f32]) -> Vec<f64> {
    let embeddings = "vision_model.embeddings";
    let mut rows = vec![wide(
        &array(model, &format!("{embeddings}.class_embedding")).values,
    )];
    rows.extend(convolved(
        model,
        &format!("{embeddings}.patch_embedding.weight"),
        picture,
    ));
    let (_, _, epsilon) = settings(&model.config);
    let placed = placed(
        model,
        &format!("{embeddings}.position_embedding.weight"),
        &rows,
    );
    let before = |row: &Vec<f64>| layer_norm(model, "vision_model.pre_layrnorm", epsilon, row);
    let mut x: Rows = placed.iter().map(before).collect();
    for layer in 0..3 {
        let name = format!("vision_model.encoder.layers.{layer}");
        x = pre_norm_layer(
            model,
            &name,
            CLIP_NAMES,
            &x,
            settings(&model.config),
            &sees_all,
        );
    }
    let class = layer_norm(model, "vision_model.post_layernorm", epsilon, &x[0]);
    linear(model, "visual_projection", &class)
}

fn siglip_vector(model: &Checkpoint, picture: &[f32]) -> Vec<f64> {
    let embeddings = "vision_model.embeddings";
    let kernel = format!("{embeddings}.patch_embedding");
    let bias = wide(&array(model, &format!("{kernel}.bias")).values);
    let squares = convolved(model, &format!("{kernel}.weight"), picture);
    let rows: Rows = squares.iter().map(|row| add(row, &bias)).collect();
    let positions = format!("{embeddings}.position_embedding.weight");
    let mut x = placed(model, &positions, &rows);
    let (heads, activation, epsilon) = settings(&model.config);
    for layer in 0..3 {
        let name = format!("vision_model.encoder.layers.{layer}");
        let settings = (heads, activation, epsilon);
        x = pre_norm_layer(model, &name, CLIP_NAMES, &x, settings, &sees_all);
    }
    let after = |row: &Vec<f64>| layer_norm(model, "vision_model.post_layernorm", epsilon, row);
    let x: Rows = x.iter().map(after).collect();
    // Attention of one learned token over all others, with torch's packed weights: queries, keys, values.
    let head = "vision_model.head";
    let weight = &array(model, &format!("{head}.attention.in_proj_weight")).values;
    let bias = &array(model, &format!("{head}.attention.in_proj_bias")).values;
    let project = |part: usize, row: &[f64]| -> Vec<f64> {
        let output = |out: usize| {
            let weight = wide(&weight[out * HIDDEN..][..HIDDEN]);
            let products = weight.iter().zip(row).map(|(weight, value)| weight * value);
            products.sum::<f64>() + f64::from(bias[out])
        };
        (part * HIDDEN..(part + 1) * HIDDEN).map(output).collect()
    };
    let probe = wide(&array(model, &format!("{head}.probe")).values);
    let query = vec![project(0, &probe)];
    let keys: Rows = x.iter().map(|row| project(1, row)).collect();
    let values: Rows = x.iter().map(|row| project(2, row)).collect();
    let context = attend(&query, &keys, &values, heads, sees_all);
    let pooled = linear(model, &format!("{head}.attention.out_proj"), &context[0]);
    let normed = layer_norm(model, &format!("{head}.layernorm"), epsilon, &pooled);
    let between = linear(model, &format!("{head}.mlp.fc1"), &normed);
    let between: Vec<f64> = between.iter().map(|&v| activate(activation, v)).collect();
    add(
        &pooled,
        &linear(model, &format!("{head}.mlp.fc2"), &between),
    )
}

/// The vector of a text, at length 1: of its last token. CLIP's see those before them, and it is projected; SigLIP's see all,
/// so `ids` have to be filled up.
pub fn text_vector(model: &Checkpoint, ids: &[i64]) -> Vec<f64> {
    let mut text = model.clone();
    text.config = model.config["text_config"].clone();
    let siglip = model.config["model_type"] == "siglip";
    assert!(!siglip || ids.len() == FILLED, "{} tokens", ids.len());
    let embeddings = "text_model.embeddings";
    let words = &array(&text, &format!("{embeddings}.token_embedding.weight")).values;
    let word = |&id: &i64| wide(&words[id as usize * HIDDEN..][..HIDDEN]);
    let rows: Rows = ids.iter().map(word).collect();
    let positions = format!("{embeddings}.position_embedding.weight");
    let mut x = placed(&text, &positions, &rows);
    let (heads, activation, epsilon) = settings(&text.config);
    for layer in 0..3 {
        let name = format!("text_model.encoder.layers.{layer}");
        let before = |_: usize, from: usize, to: usize, score: f64| match !siglip && to > from {
            true => f64::NEG_INFINITY,
            false => score,
        };
        let settings = (heads, activation, epsilon);
        x = pre_norm_layer(&text, &name, CLIP_NAMES, &x, settings, &before);
    }
    let last = layer_norm(
        &text,
        "text_model.final_layer_norm",
        epsilon,
        &x[ids.len() - 1],
    );
    let projection = match siglip {
        true => "text_model.head",
        false => "text_projection",
    };
    unit(linear(&text, projection, &last))
}

fn unit(vector: Vec<f64>) -> Vec<f64> {
    let norm = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
    vector.iter().map(|v| v / norm).collect()
}

/// Every token sees every other.
fn sees_all(_: usize, _: usize, _: usize, score: f64) -> f64 {
    score
}

/// Heads, activation, epsilon.
fn settings(config: &Value) -> (usize, &str, f64) {
    (
        config["num_attention_heads"].as_u64().expect("heads") as usize,
        config["hidden_act"].as_str().expect("an activation"),
        config["layer_norm_eps"].as_f64().expect("an epsilon"),
    )
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

fn placed(model: &Checkpoint, name: &str, rows: &Rows) -> Rows {
    let places = wide(&array(model, name).values);
    let places = places.chunks(HIDDEN);
    rows.iter()
        .zip(places)
        .map(|(row, place)| add(row, place))
        .collect()
}

/// The convolution with a stride of its kernel's side: a row for each square.
fn convolved(model: &Checkpoint, name: &str, picture: &[f32]) -> Rows {
    let kernel = array(model, name);
    let (height, width) = SIZE;
    let weight = |out: usize, channel: usize, y: usize, x: usize| {
        kernel.values[((out * 3 + channel) * SIDE + y) * SIDE + x]
    };
    let pixel = |channel: usize, y: usize, x: usize| picture[(channel * height + y) * width + x];
    let mut rows = Rows::new();
    for top in (0..height).step_by(SIDE) {
        for left in (0..width).step_by(SIDE) {
            let sum = |out: usize| {
                let mut sum = 0.0;
                for channel in 0..3 {
                    for y in 0..SIDE {
                        for x in 0..SIDE {
                            let value = f64::from(pixel(channel, top + y, left + x));
                            sum += f64::from(weight(out, channel, y, x)) * value;
                        }
                    }
                }
                sum
            };
            rows.push((0..kernel.shape[0]).map(sum).collect());
        }
    }
    rows
}
