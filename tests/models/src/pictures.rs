//! Tiny models of pictures with seeded weights, pictures for them, and what they give at f64: plain loops over pixels,
//! written from the papers, which share nothing with the conversion.
//!
//! ViT <https://arxiv.org/abs/2010.11929>, DeiT <https://arxiv.org/abs/2012.12877>, CLIP
//! <https://arxiv.org/abs/2103.00020>.

use isovec_engine::engine::Batch;
use isovec_engine::tensor::{NamedTensor, Tensor};
use isovec_model::convert::{PATCHES, PatchGrid};
use serde_json::{Value, json};

use crate::checkpoint::Checkpoint;
use crate::models::{HIDDEN, Maker, WIDE};
use crate::reference::{Rows, add, array, layer_norm, linear, pre_norm_layer};
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

/// One of each.
pub fn all() -> Vec<(&'static str, Checkpoint)> {
    vec![
        ("vit", vit()),
        ("deit", deit()),
        ("clip_vision", clip_vision()),
        ("clip", clip()),
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
        "clip" => {
            let mut vision = model.clone();
            vision.config = model.config["vision_config"].clone();
            clip_vector(&vision, picture)
        }
        "clip_vision_model" => clip_vector(model, picture),
        _ => vit_vector(model, picture),
    };
    unit(vector)
}

fn vit_vector(model: &Checkpoint, picture: &[f32]) -> Vec<f64> {
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
    layer_norm(model, "layernorm", epsilon, &x[0])
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

/// The vector of a text, at length 1: CLIP's projection of its last token, which sees those before it.
pub fn text_vector(model: &Checkpoint, ids: &[i64]) -> Vec<f64> {
    let mut text = model.clone();
    text.config = model.config["text_config"].clone();
    let embeddings = "text_model.embeddings";
    let words = &array(&text, &format!("{embeddings}.token_embedding.weight")).values;
    let word = |&id: &i64| wide(&words[id as usize * HIDDEN..][..HIDDEN]);
    let rows: Rows = ids.iter().map(word).collect();
    let positions = format!("{embeddings}.position_embedding.weight");
    let mut x = placed(&text, &positions, &rows);
    let (heads, activation, epsilon) = settings(&text.config);
    for layer in 0..3 {
        let name = format!("text_model.encoder.layers.{layer}");
        let before = |_: usize, from: usize, to: usize, score: f64| match to > from {
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
    unit(linear(&text, "text_projection", &last))
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
