//! A tiny masked language model of each family with seeded random weights, the files that sentence-transformers puts beside it,
//! and the weights of words at f64, written from the classes' documentation
//! (<https://huggingface.co/docs/transformers>) and from `SpladePooling` of sentence-transformers.

use std::collections::BTreeMap;

use serde_json::json;

use crate::checkpoint::{Checkpoint, Stored};
use crate::gte::gte;
use crate::heads::published;
use crate::models::{self, HIDDEN, Maker};
use crate::reference::{activate, array, last_hidden_state, layer_norm, linear};
use crate::tiny::{pretty, tokenise, tokenizer, vocabulary};

/// Words of every model: more than are multiplied at a time, and more than the tokenizer of [`tiny`](crate::tiny) has.
pub const WORDS: usize = 2148;

/// How words are weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weighing {
    /// By the sum over tokens, and not by the maximum.
    pub sum: bool,
    /// By two logarithms, and not by one.
    pub twice: bool,
}

/// By the maximum of one logarithm.
pub const MAX: Weighing = Weighing {
    sum: false,
    twice: false,
};

/// A mistake in the weights of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// Tokens are summed before the logarithm.
    LogarithmAfterSum,
    /// A token of padding is pooled too.
    PaddingPooled,
    /// The vocabulary's bias is left out.
    NoBias,
    /// The first and the last token, which are special, are not pooled.
    SpecialLeftOut,
}

/// A model of each class, by the class's name, and a BERT whose vocabulary has a matrix of its own. Tensors are named without a
/// prefix.
pub fn all() -> Vec<(&'static str, Checkpoint)> {
    let with = |model: Checkpoint, seed, class: &'static str, make: &dyn Fn(&mut Maker)| {
        let mut maker = Maker::new(seed);
        let table = match class {
            "ModernBertForMaskedLM" => "embeddings.tok_embeddings",
            _ => "embeddings.word_embeddings",
        };
        maker.tensor(&format!("{table}.weight"), &[WORDS, HIDDEN], 0.0, 0.1);
        make(&mut maker);
        let mut model = model
            .with("architectures", json!([class]))
            .with("vocab_size", WORDS);
        model.tensors.extend(maker.tensors);
        (class, model)
    };
    let bias = |maker: &mut Maker, name: &str| maker.tensor(name, &[WORDS], -0.5, 0.3);
    let bert = |maker: &mut Maker| {
        maker.linear("cls.predictions.transform.dense", HIDDEN, HIDDEN, true);
        maker.norm("cls.predictions.transform.LayerNorm", HIDDEN, true);
    };
    let roberta = |maker: &mut Maker| {
        maker.linear("lm_head.dense", HIDDEN, HIDDEN, true);
        maker.norm("lm_head.layer_norm", HIDDEN, true);
        bias(maker, "lm_head.bias");
    };
    let own_matrix = models::bert().with("tie_word_embeddings", false);
    vec![
        with(models::bert(), 100, "BertForMaskedLM", &|maker| {
            bert(maker);
            bias(maker, "cls.predictions.bias");
        }),
        with(own_matrix, 101, "BertForMaskedLM", &|maker| {
            bert(maker);
            let matrix = "cls.predictions.decoder.weight";
            maker.tensor(matrix, &[WORDS, HIDDEN], 0.0, 0.1);
            bias(maker, "cls.predictions.decoder.bias");
        }),
        with(
            models::distilbert(),
            102,
            "DistilBertForMaskedLM",
            &|maker| {
                maker.linear("vocab_transform", HIDDEN, HIDDEN, true);
                maker.norm("vocab_layer_norm", HIDDEN, true);
                bias(maker, "vocab_projector.bias");
            },
        ),
        with(models::roberta(), 103, "XLMRobertaForMaskedLM", &roberta),
        with(models::mpnet(), 104, "MPNetForMaskedLM", &roberta),
        with(
            models::modernbert(),
            105,
            "ModernBertForMaskedLM",
            &|maker| {
                maker.linear("head.dense", HIDDEN, HIDDEN, false);
                maker.norm("head.norm", HIDDEN, false);
                bias(maker, "decoder.bias");
            },
        ),
        with(gte(), 108, "NewForMaskedLM", &|maker| {
            maker.linear("lm_head.dense", HIDDEN, HIDDEN, true);
            maker.norm("lm_head.norm", HIDDEN, true);
            bias(maker, "lm_head.decoder.bias");
        }),
    ]
}

/// A BERT with tied weights and a vocabulary of so many words.
pub fn bert_of_words(words: usize) -> Checkpoint {
    let mut maker = Maker::new(106);
    maker.linear("cls.predictions.transform.dense", HIDDEN, HIDDEN, true);
    maker.norm("cls.predictions.transform.LayerNorm", HIDDEN, true);
    maker.tensor("cls.predictions.bias", &[words], -0.5, 0.3);
    let mut model =
        models::bert_of(107, words, HIDDEN, 1).with("architectures", json!(["BertForMaskedLM"]));
    model.tensors.extend(maker.tensors);
    model
}

/// The weight of every word for a text of these tokens.
pub fn weights(model: &Checkpoint, ids: &[i64], types: &[i64], weighing: Weighing) -> Vec<f64> {
    weights_with(model, ids, types, weighing, None)
}

/// The same with a mistake.
pub fn weights_with(
    model: &Checkpoint,
    ids: &[i64],
    types: &[i64],
    Weighing { sum, twice }: Weighing,
    mistake: Option<Mistake>,
) -> Vec<f64> {
    let (mut ids, mut types) = (ids.to_vec(), types.to_vec());
    if mistake == Some(Mistake::PaddingPooled) {
        ids.push(0);
        types.push(0);
    }
    let mut numbers: Vec<Vec<f64>> = last_hidden_state(model, &ids, &types)
        .iter()
        .map(|row| logits(model, row, mistake != Some(Mistake::NoBias)))
        .collect();
    if mistake == Some(Mistake::SpecialLeftOut) {
        numbers.pop();
        numbers.remove(0);
    }
    let logarithm = |x: f64| match twice {
        true => libm::log1p(libm::log1p(x)),
        false => libm::log1p(x),
    };
    let word = |at: usize| {
        let positive = numbers.iter().map(|row| row[at].max(0.0));
        match (sum, mistake) {
            (false, _) => positive.map(logarithm).fold(0.0, f64::max),
            (true, Some(Mistake::LogarithmAfterSum)) => logarithm(positive.sum()),
            (true, _) => positive.map(logarithm).sum(),
        }
    };
    (0..words_of(model)).map(word).collect()
}

fn words_of(model: &Checkpoint) -> usize {
    model.config["vocab_size"].as_u64().expect("a size") as usize
}

/// The number of each word at one token.
fn logits(model: &Checkpoint, hidden: &[f64], with_bias: bool) -> Vec<f64> {
    let config = &model.config;
    let number = |key: &str| config[key].as_f64().expect("an epsilon");
    let words = "embeddings.word_embeddings.weight";
    let (dense, act, norm, epsilon, matrix, bias) =
        match config["model_type"].as_str().expect("a model type") {
            "bert" => {
                let own = config.get("tie_word_embeddings").is_some();
                let matrix = match own {
                    true => "cls.predictions.decoder.weight",
                    false => words,
                };
                let bias = match own {
                    true => "cls.predictions.decoder.bias",
                    false => "cls.predictions.bias",
                };
                let act = config["hidden_act"].as_str().expect("an activation");
                let [dense, norm] = [
                    "cls.predictions.transform.dense",
                    "cls.predictions.transform.LayerNorm",
                ];
                (dense, act, norm, number("layer_norm_eps"), matrix, bias)
            }
            "xlm-roberta" | "mpnet" => (
                "lm_head.dense",
                "gelu",
                "lm_head.layer_norm",
                number("layer_norm_eps"),
                words,
                "lm_head.bias",
            ),
            "new" => (
                "lm_head.dense",
                config["hidden_act"].as_str().expect("an activation"),
                "lm_head.norm",
                number("layer_norm_eps"),
                words,
                "lm_head.decoder.bias",
            ),
            "distilbert" => (
                "vocab_transform",
                config["activation"].as_str().expect("an activation"),
                "vocab_layer_norm",
                1e-12,
                words,
                "vocab_projector.bias",
            ),
            "modernbert" => (
                "head.dense",
                "gelu",
                "head.norm",
                number("norm_eps"),
                "embeddings.tok_embeddings.weight",
                "decoder.bias",
            ),
            other => panic!("no reference for {other}"),
        };
    let active: Vec<f64> = linear(model, dense, hidden)
        .into_iter()
        .map(|x| activate(act, x))
        .collect();
    let normed = layer_norm(model, norm, epsilon, &active);
    let (matrix, bias) = (array(model, matrix), array(model, bias));
    let word = |at: usize| {
        let row = &matrix.values[at * HIDDEN..(at + 1) * HIDDEN];
        let products = row.iter().zip(&normed).map(|(&w, x)| f64::from(w) * x);
        products.sum::<f64>() + f64::from(u8::from(with_bias)) * f64::from(bias.values[at])
    };
    (0..words_of(model)).map(word).collect()
}

/// The files that sentence-transformers saves of a model.
pub fn files(model: &Checkpoint, Weighing { sum, twice }: Weighing) -> BTreeMap<String, Vec<u8>> {
    let model = published(model.clone());
    let modules = json!([
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.sparse_encoder.models.MLMTransformer"},
        {"idx": 1, "name": "1", "path": "1_SpladePooling", "type": "sentence_transformers.sparse_encoder.models.SpladePooling"}
    ]);
    let pooling = json!({
        "pooling_strategy": if sum { "sum" } else { "max" },
        "activation_function": if twice { "log1p_relu" } else { "relu" },
        "word_embedding_dimension": words_of(&model)
    });
    let prompts = json!({
        "model_type": "SparseEncoder",
        "prompts": {"query": "the query ", "document": ""},
        "default_prompt_name": null,
        "similarity_fn_name": "dot"
    });
    BTreeMap::from([
        ("config.json".into(), pretty(&model.config)),
        ("config_sentence_transformers.json".into(), pretty(&prompts)),
        ("model.safetensors".into(), model.file(Stored::F32)),
        ("modules.json".into(), pretty(&modules)),
        ("1_SpladePooling/config.json".into(), pretty(&pooling)),
        ("tokenizer.json".into(), pretty(&tokenizer(&vocabulary()))),
    ])
}

/// Texts of the reference in `tests/data/tiny-splade`.
pub const TEXTS: [&str; 4] = [
    "the dog is an animal",
    "money in the bank",
    "",
    "A cat sleeps in the house, and the children watch it for a long time.",
];

/// The model in `tests/data/tiny-splade`, whose words are those of the tokenizer.
pub fn tiny() -> Checkpoint {
    bert_of_words(vocabulary().len())
}

/// Every file of the folder, by its path, with the weights of words of some texts at f64.
pub fn tiny_files() -> BTreeMap<String, Vec<u8>> {
    let (model, vocabulary) = (tiny(), vocabulary());
    let entry = |text: &str| {
        let ids = tokenise(&vocabulary, text);
        let weights = weights(&model, &ids, &vec![0; ids.len()], MAX);
        json!({"text": text, "tokens": ids.len(), "weights": weights})
    };
    let reference = json!({
        "made_by": "cargo run -p isovec-test-models --example tiny_model",
        "vocabulary_size": vocabulary.len(),
        "texts": TEXTS.map(entry),
    });
    let mut files = files(&model, MAX);
    files.insert("reference.json".into(), pretty(&reference));
    files
}

/// The weight of a token of a query in [`routed`]: 0 for each eighth.
pub fn query_weight(id: usize) -> f32 {
    (id % 8) as f32 / 4.0
}

/// The files of a model whose queries are looked up in a table, with the transformer in a folder, or in the root for "".
pub fn routed(model: &Checkpoint, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = files(model, MAX);
    let pooling = files.remove("1_SpladePooling/config.json");
    let tokens = files["tokenizer.json"].clone();
    if !folder.is_empty() {
        for name in ["config.json", "model.safetensors", "tokenizer.json"] {
            let file = files.remove(name).expect("a file");
            files.insert(format!("{folder}/{name}"), file);
        }
    }
    let modules =
        json!([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Router"}]);
    let module = "sentence_transformers.sparse_encoder.models";
    let (pooled, looked_up) = ("document_1_SpladePooling", "query_0_SparseStaticEmbedding");
    let routes = json!({
        "types": {
            looked_up: format!("{module}.SparseStaticEmbedding.SparseStaticEmbedding"),
            folder: format!("{module}.MLMTransformer.MLMTransformer"),
            pooled: format!("{module}.SpladePooling.SpladePooling")
        },
        "structure": {"query": [looked_up], "document": [folder, pooled]},
        "parameters": {"default_route": "document", "allow_empty_key": true}
    });
    let weights: Vec<u8> = (0..words_of(model))
        .flat_map(|id| query_weight(id).to_le_bytes())
        .collect();
    let shape = vec![words_of(model)];
    let table = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape, &weights);
    let table = [("weight", table.expect("a table"))];
    let table = safetensors::serialize(table, None).expect("a file");
    files.extend([
        ("modules.json".to_owned(), pretty(&modules)),
        ("router_config.json".to_owned(), pretty(&routes)),
        (format!("{pooled}/config.json"), pooling.expect("a pooling")),
        (
            format!("{looked_up}/config.json"),
            pretty(&json!({"frozen": true})),
        ),
        (format!("{looked_up}/tokenizer.json"), tokens),
        (format!("{looked_up}/model.safetensors"), table),
    ]);
    files
}
