//! A tiny jina-embeddings-v3 with seeded random weights, and its last hidden state at f64, written from the papers (jina-embeddings-v3
//! <https://arxiv.org/abs/2409.10173>, LoRA <https://arxiv.org/abs/2106.09685>) and from the names and shapes of the published tensors.

use serde_json::{Value, json};

use crate::checkpoint::{Array, Checkpoint};
use crate::models::{HIDDEN, Maker, VOCABULARY, WIDE};
use crate::reference::{
    Rows, activate, add, array, attend, counted, each, layer_norm, size, sum, turn,
};

/// The names of its adapters. A text without one has [`NONE`] for its number.
pub const ADAPTERS: [&str; 3] = ["retrieval.query", "retrieval.passage", "separation"];

/// The number that stands for no adapter.
pub const NONE: i64 = ADAPTERS.len() as i64;

/// A model of a configuration's sizes.
pub fn jina_v3_like(seed: u64, config: Value) -> Checkpoint {
    let (hidden, wide) = (
        size(&config, "hidden_size"),
        size(&config, "intermediate_size"),
    );
    let rank = size(&config, "lora_rank");
    let adapters = config["lora_adaptations"].as_array().map_or(0, Vec::len);
    let mut maker = Maker::new(seed);
    let table = |maker: &mut Maker, name: &str, rows: usize| {
        let name = format!("{name}.parametrizations.weight");
        maker.tensor(&format!("{name}.original"), &[rows, hidden], 0.0, 0.03);
        let shape = [adapters, rows, rank];
        maker.tensor(&format!("{name}.0.lora_A"), &shape, 0.0, 0.1);
        let shape = [adapters, rank, hidden];
        maker.tensor(&format!("{name}.0.lora_B"), &shape, 0.0, 0.2);
    };
    table(
        &mut maker,
        "embeddings.word_embeddings",
        size(&config, "vocab_size"),
    );
    let types = size(&config, "type_vocab_size");
    table(&mut maker, "embeddings.token_type_embeddings", types);
    maker.norm("emb_ln", hidden, true);
    for layer in 0..size(&config, "num_hidden_layers") {
        let name = |module: &str| format!("encoder.layers.{layer}.{module}");
        for (module, input, output) in [
            ("mixer.Wqkv", hidden, 3 * hidden),
            ("mixer.out_proj", hidden, hidden),
            ("mlp.fc1", hidden, wide),
            ("mlp.fc2", wide, hidden),
        ] {
            let weight = name(&format!("{module}.parametrizations.weight"));
            let deviation = 1.2 / (input as f64).sqrt();
            let original = format!("{weight}.original");
            maker.tensor(&original, &[output, input], 0.0, deviation);
            let shape = [adapters, rank, input];
            maker.tensor(&format!("{weight}.0.lora_A"), &shape, 0.0, deviation);
            let shape = [adapters, output, rank];
            maker.tensor(&format!("{weight}.0.lora_B"), &shape, 0.0, 1.0);
            maker.tensor(&name(&format!("{module}.bias")), &[output], 0.0, 0.1);
        }
        maker.norm(&name("norm1"), hidden, true);
        maker.norm(&name("norm2"), hidden, true);
    }
    Checkpoint {
        config,
        tensors: maker.tensors,
    }
}

/// A tiny model with three adapters.
pub fn jina_v3() -> Checkpoint {
    jina_v3_like(79, config())
}

/// What `config.json` of a tiny model says.
pub fn config() -> Value {
    json!({
        "architectures": ["XLMRobertaModel"],
        "auto_map": {"AutoModel": "jinaai/xlm-roberta-flash-implementation--modeling_lora.XLMRobertaLoRA"},
        "model_type": "xlm-roberta",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": WIDE,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-5,
        "max_position_embeddings": 64,
        "position_embedding_type": "rotary",
        "rotary_emb_base": 500.0,
        "type_vocab_size": 1,
        "pad_token_id": 1,
        "lora_adaptations": ADAPTERS,
        "lora_rank": 2,
        "lora_alpha": 1,
        "load_trained_adapters": true,
        "use_reg_tokens": false
    })
}

/// A tiny jina-reranker-v2: no adapters, XLM-R's positions, and its head of one label. The published config names no `model_type`.
pub fn jina_reranker() -> Checkpoint {
    let mut config = config();
    for (key, value) in [
        (
            "architectures",
            json!(["XLMRobertaForSequenceClassification"]),
        ),
        (
            "auto_map",
            json!({
                "AutoConfig": "configuration_xlm_roberta.XLMRobertaFlashConfig",
                "AutoModel": "modeling_xlm_roberta.XLMRobertaModel"
            }),
        ),
        ("position_embedding_type", json!("absolute")),
        ("max_position_embeddings", json!(66)),
        ("lora_adaptations", Value::Null),
        ("id2label", json!({"0": "LABEL_0"})),
    ] {
        config[key] = value;
    }
    let mut maker = Maker::new(303);
    maker.table("embeddings.word_embeddings", VOCABULARY, HIDDEN);
    maker.table("embeddings.token_type_embeddings", 1, HIDDEN);
    maker.table("embeddings.position_embeddings", 66, HIDDEN);
    maker.norm("emb_ln", HIDDEN, true);
    for layer in 0..size(&config, "num_hidden_layers") {
        let name = |module: &str| format!("encoder.layers.{layer}.{module}");
        maker.linear(&name("mixer.Wqkv"), HIDDEN, 3 * HIDDEN, true);
        maker.linear(&name("mixer.out_proj"), HIDDEN, HIDDEN, true);
        maker.linear(&name("mlp.fc1"), HIDDEN, WIDE, true);
        maker.linear(&name("mlp.fc2"), WIDE, HIDDEN, true);
        maker.norm(&name("norm1"), HIDDEN, true);
        maker.norm(&name("norm2"), HIDDEN, true);
    }
    maker.linear("classifier.dense", HIDDEN, HIDDEN, true);
    maker.linear("classifier.out_proj", HIDDEN, 1, true);
    Checkpoint {
        config,
        tensors: maker.tensors,
    }
}

/// `W[out][in]` of a layer with what an adapter adds to it.
fn weight(model: &Checkpoint, layer: &str, adapter: i64) -> impl Fn(usize, usize) -> f64 {
    let name = |part: &str| format!("{layer}.parametrizations.weight.{part}");
    let plain = model.tensors.get(&format!("{layer}.weight"));
    let own = plain.unwrap_or_else(|| array(model, &name("original")));
    let adapted = ["0.lora_A", "0.lora_B"].map(|part| match plain {
        Some(own) => own,
        None => array(model, &name(part)),
    });
    let [down, up] = adapted;
    let rank = size(&model.config, "lora_rank");
    let scale = model.config["lora_alpha"].as_f64().expect("a number") / rank as f64;
    let adapter = usize::try_from(adapter)
        .ok()
        .filter(|&at| plain.is_none() && at < down.shape[0]);
    let at = |array: &Array, place: [usize; 3]| {
        let (rows, columns) = (array.shape[1], array.shape[2]);
        f64::from(array.values[(place[0] * rows + place[1]) * columns + place[2]])
    };
    // A table has the rank along the last axis of its first matrix, a layer along the middle one.
    let is_table = layer.starts_with("embeddings.");
    move |out, input| {
        let more = adapter.map_or(0.0, |adapter| {
            let products = (0..rank).map(|k| match is_table {
                true => at(down, [adapter, out, k]) * at(up, [adapter, k, input]),
                false => at(up, [adapter, out, k]) * at(down, [adapter, k, input]),
            });
            products.sum::<f64>()
        });
        f64::from(own.values[out * own.shape[1] + input]) + scale * more
    }
}

/// The last hidden state; `adapters` has the number of each token's adapter.
pub(crate) fn hidden_state(model: &Checkpoint, ids: &[i64], adapters: &[i64]) -> Rows {
    let config = &model.config;
    let epsilon = config["layer_norm_eps"].as_f64().expect("an epsilon");
    let act = config["hidden_act"].as_str().expect("an activation");
    let base = config["rotary_emb_base"].as_f64().expect("a base");
    let turns = config["position_embedding_type"] == "rotary";
    let places = counted(ids, size(config, "pad_token_id") as i64);
    let heads = size(config, "num_attention_heads");
    let hidden = size(config, "hidden_size");
    let row = |table: &str, at: usize, adapter: i64| -> Vec<f64> {
        let weight = weight(model, table, adapter);
        (0..hidden).map(|column| weight(at, column)).collect()
    };
    let linear = |layer: &str, x: &Rows| -> Rows {
        let bias = &array(model, &format!("{layer}.bias")).values;
        let product = |(x, &adapter): (&Vec<f64>, &i64)| {
            let weight = weight(model, layer, adapter);
            let row = bias.iter().enumerate().map(|(out, &bias)| {
                let products = x.iter().enumerate().map(|(i, x)| weight(out, i) * x);
                products.sum::<f64>() + f64::from(bias)
            });
            row.collect()
        };
        x.iter().zip(adapters).map(product).collect()
    };
    let embedded = ids
        .iter()
        .zip(adapters)
        .zip(places)
        .map(|((&id, &adapter), place)| {
            let word = row("embeddings.word_embeddings", id as usize, adapter);
            let kind = row("embeddings.token_type_embeddings", 0, adapter);
            let mut sum = add(&word, &kind);
            if !turns {
                sum = add(&sum, &row("embeddings.position_embeddings", place, adapter));
            }
            layer_norm(model, "emb_ln", epsilon, &sum)
        });
    let mut x: Rows = embedded.collect();
    for layer in 0..size(config, "num_hidden_layers") {
        let name = |module: &str| format!("encoder.layers.{layer}.{module}");
        let norm = |rows: &Rows, part: &str| {
            each(rows, |row| layer_norm(model, &name(part), epsilon, row))
        };
        let packed = linear(&name("mixer.Wqkv"), &x);
        let [query, key, value] = [0, 1, 2].map(|part| {
            each(&packed, |row| {
                row[part * hidden..(part + 1) * hidden].to_vec()
            })
        });
        let angle = |i: usize, size: usize| libm::pow(base, -2.0 * i as f64 / size as f64);
        let (query, key) = match turns {
            true => (turn(&query, heads, &angle), turn(&key, heads, &angle)),
            false => (query, key),
        };
        let context = attend(&query, &key, &value, heads, |_, _, _, score| score);
        let attended = linear(&name("mixer.out_proj"), &context);
        x = norm(&sum(&x, &attended), "norm1");
        let wide = linear(&name("mlp.fc1"), &x);
        let active = each(&wide, |row| row.iter().map(|&v| activate(act, v)).collect());
        let fed = linear(&name("mlp.fc2"), &active);
        x = norm(&sum(&x, &fed), "norm2");
    }
    x
}
