//! Tiny models of late interaction with seeded random weights, in the three formats, and the vectors of a text's tokens at f64,
//! written from the paper (<https://arxiv.org/abs/2004.12832>) and from what Stanford's ColBERT, PyLate and sentence-transformers 6
//! document of themselves.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::checkpoint::{Checkpoint, Stored};
use crate::heads::published;
use crate::models::{self, HIDDEN, Maker};
use crate::reference::{Rows, each, last_hidden_state_seeing, linear};
use crate::tiny::{pretty, tokenizer, tokens, vocabulary};

/// Components of a token's vector.
pub const DIM: usize = 16;

/// Punctuation that passages skip, and a word that is no token.
const SKIPPED: [&str; 4] = [".", ",", "!", "no such token"];

/// Who saved a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// PyLate.
    PyLate,
    /// Stanford's ColBERT.
    Stanford,
    /// sentence-transformers 6.
    SentenceTransformers,
}

/// A model and how it reads texts.
#[derive(Debug, Clone)]
pub struct Late {
    /// Who saved it.
    pub format: Format,
    /// The encoder, and the layers behind it under the names `dense.0`, `dense.1`, ...
    pub model: Checkpoint,
    /// The most tokens of a query.
    pub query_length: usize,
    /// The most tokens of a passage.
    pub passage_length: usize,
    /// Whether queries are filled up, and whether what fills them is seen.
    pub expansion: Option<bool>,
    layers: usize,
}

/// A mistake in the vectors of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// What fills a query is seen by the others, or is not where it should be.
    ExpansionSeenOtherwise,
    /// A query is not filled up.
    NotExpanded,
    /// The marker stands before all tokens.
    MarkerFirst,
    /// Queries have the marker of passages.
    OtherMarker,
    /// Punctuation is not read at all.
    PunctuationNotRead,
    /// Vectors keep their lengths.
    NotNormalised,
}

/// Models of both encoders in all formats, by what is special of each.
pub fn all() -> Vec<(&'static str, Late)> {
    let late = |format, model: Checkpoint, seed, expansion, sizes: &[usize]| {
        let mut maker = Maker::new(seed);
        // Two more words than the tokenizer of `tiny` has: the markers.
        let table = match model.config["model_type"] == "modernbert" {
            true => "embeddings.tok_embeddings",
            false => "embeddings.word_embeddings",
        };
        let words = vocabulary().len() + 2;
        maker.tensor(&format!("{table}.weight"), &[words, HIDDEN], 0.0, 0.1);
        for (at, ends) in sizes.windows(2).enumerate() {
            // PyLate's have a bias where there are several, so that both are met.
            let bias = sizes.len() > 2 && at == 0;
            maker.linear(&format!("dense.{at}"), ends[0], ends[1], bias);
        }
        let mut model = model.with("vocab_size", words);
        model.tensors.extend(maker.tensors);
        Late {
            format,
            model,
            query_length: 6,
            passage_length: 20,
            expansion,
            layers: sizes.len() - 1,
        }
    };
    let (bert, modern) = (models::bert, models::modernbert);
    let wide = |late: Late| Late {
        query_length: 12,
        ..late
    };
    use Format::{PyLate, SentenceTransformers, Stanford};
    vec![
        (
            "unseen expansion",
            wide(late(PyLate, bert(), 200, Some(false), &[HIDDEN, DIM])),
        ),
        (
            "several layers",
            wide(late(PyLate, bert(), 201, Some(true), &[HIDDEN, 24, DIM])),
        ),
        (
            "windows",
            late(PyLate, modern(), 202, Some(false), &[HIDDEN, DIM]),
        ),
        (
            "no expansion",
            wide(late(PyLate, modern(), 203, None, &[HIDDEN, DIM])),
        ),
        (
            "Stanford's",
            wide(late(Stanford, bert(), 204, Some(false), &[HIDDEN, DIM])),
        ),
        (
            "sentence-transformers 6",
            wide(late(
                SentenceTransformers,
                bert(),
                205,
                Some(false),
                &[HIDDEN, DIM],
            )),
        ),
    ]
}

impl Late {
    /// The vectors of a text that are compared, at f64.
    pub fn vectors(&self, text: &str, is_query: bool, mistake: Option<Mistake>) -> Rows {
        let is = |which| mistake == Some(which);
        let words = vocabulary();
        let is_skipped = |word: &str| match self.format {
            // All punctuation, which it does not list.
            Format::Stanford => word.len() == 1 && word.as_bytes()[0].is_ascii_punctuation(),
            _ => SKIPPED.contains(&word),
        };
        let skipped = (0..).zip(&words).filter(|(_, word)| is_skipped(word));
        let skipped: Vec<i64> = skipped.map(|(id, _)| id).collect();
        let of_queries = is_query != is(Mistake::OtherMarker);
        let marker = words.len() as i64 + i64::from(!of_queries);
        let mut own = tokens(&words, text);
        if is(Mistake::PunctuationNotRead) {
            own.retain(|id| !skipped.contains(id));
        }
        let most = if is_query {
            self.query_length
        } else {
            self.passage_length
        };
        own.truncate(most - 3);
        let mut ids = match is(Mistake::MarkerFirst) {
            true => vec![marker, 2],
            false => vec![2, marker],
        };
        ids.extend(own);
        ids.push(3);
        let mut seen = ids.len();
        if let Some(is_seen) = self
            .expansion
            .filter(|_| is_query && !is(Mistake::NotExpanded))
        {
            let mask = words
                .iter()
                .position(|word| word == "[MASK]")
                .expect("a mask");
            ids.resize(most, mask as i64);
            if is_seen != is(Mistake::ExpansionSeenOtherwise) {
                seen = ids.len();
            }
        }
        let mut rows = last_hidden_state_seeing(&self.model, &ids, &vec![0; ids.len()], seen);
        for layer in 0..self.layers {
            rows = each(&rows, |row| {
                let mut row = linear(&self.model, &format!("dense.{layer}"), row);
                if layer + 1 < self.layers {
                    row.iter_mut().for_each(|x| *x = libm::tanh(*x));
                }
                row
            });
        }
        let kept = ids.iter().map(|id| is_query || !skipped.contains(id));
        let kept = rows.iter().zip(kept).filter(|(_, kept)| *kept);
        let kept = kept.map(|(row, _)| {
            let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            let by = if is(Mistake::NotNormalised) {
                1.0
            } else {
                norm
            };
            row.iter().map(|x| x / by).collect()
        });
        kept.collect()
    }

    /// The sum over a query's vectors of the largest product with a vector of a passage.
    pub fn score(query: &Rows, passage: &Rows) -> f64 {
        let products = |a: &Vec<f64>| {
            let products = passage
                .iter()
                .map(|b| a.iter().zip(b).map(|(x, y)| x * y).sum());
            products.fold(f64::NEG_INFINITY, f64::max)
        };
        query.iter().map(products).sum()
    }

    /// The files that are saved of the model.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let encoder = |model: &Checkpoint| {
            let mut model = model.clone();
            model.tensors.retain(|name, _| !name.starts_with("dense."));
            published(model)
        };
        let words = vocabulary();
        let mut tokenizer = tokenizer(&words);
        let added = tokenizer["added_tokens"].as_array_mut().expect("a list");
        for (at, marker) in ["[Q] ", "[D] "].iter().enumerate() {
            added.push(json!({
                "id": words.len() + at, "content": marker, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true
            }));
        }
        let mut files = BTreeMap::from([
            ("tokenizer.json".into(), pretty(&tokenizer)),
            (
                "tokenizer_config.json".into(),
                pretty(&json!({"mask_token": {"content": "[MASK]"}, "pad_token": "[PAD]"})),
            ),
        ]);
        let mut model = encoder(&self.model);
        let mut insert = |name: &str, value: &Value| files.insert(name.to_owned(), pretty(value));
        let mut modules = vec![
            json!({"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}),
        ];
        let mut module = |path: &str, class: &str| {
            let at = modules.len();
            modules.push(json!({"idx": at, "name": at.to_string(), "path": path, "type": class}));
        };
        match self.format {
            Format::PyLate => {
                for layer in 0..self.layers {
                    module(&format!("{}_Dense", layer + 1), "pylate.models.Dense.Dense");
                }
                insert(
                    "config_sentence_transformers.json",
                    &json!({
                        "prompts": {}, "default_prompt_name": null, "similarity_fn_name": "MaxSim",
                        "query_prefix": "[Q] ", "document_prefix": "[D] ",
                        "query_length": self.query_length, "document_length": self.passage_length,
                        "do_query_expansion": self.expansion.is_some(),
                        "attend_to_expansion_tokens": self.expansion == Some(true),
                        "skiplist_words": SKIPPED
                    }),
                );
            }
            Format::Stanford => {
                model.config["architectures"] = json!(["HF_ColBERT"]);
                let layer = self.model.tensors["dense.0.weight"].clone();
                model.tensors.insert("linear.weight".into(), layer);
                insert(
                    "artifact.metadata",
                    &json!({
                        "query_token_id": "[Q] ", "doc_token_id": "[D] ",
                        "query_maxlen": self.query_length, "doc_maxlen": self.passage_length,
                        "mask_punctuation": true, "similarity": "cosine", "interaction": "colbert",
                        "attend_to_mask_tokens": self.expansion == Some(true), "dim": DIM
                    }),
                );
            }
            Format::SentenceTransformers => {
                module("1_Dense", "sentence_transformers.base.modules.dense.Dense");
                module(
                    "2_MultiVectorMask",
                    "sentence_transformers.multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask",
                );
                module("", "sentence_transformers.base.modules.normalize.Normalize");
                insert(
                    "2_MultiVectorMask/config.json",
                    &json!({"skiplist_words": SKIPPED, "skiplist_tasks": ["document"], "keep_only_token_ids": null}),
                );
                insert(
                    "sentence_bert_config.json",
                    &json!({
                        "document_length": self.passage_length,
                        "query_expansion": {
                            "strategy": "fixed", "attend": self.expansion == Some(true),
                            "token": null, "length": self.query_length
                        }
                    }),
                );
                insert(
                    "config_sentence_transformers.json",
                    &json!({
                        "model_type": "MultiVectorEncoder", "similarity_fn_name": "maxsim",
                        "prompts": {"query": "[Q] ", "document": "[D] "}
                    }),
                );
            }
        }
        insert("config.json", &model.config);
        files.insert("model.safetensors".into(), model.file(Stored::F32));
        if self.format == Format::Stanford {
            return files;
        }
        files.insert("modules.json".into(), pretty(&Value::from(modules)));
        for layer in 0..self.layers {
            let weight = &self.model.tensors[&format!("dense.{layer}.weight")];
            let bias = self.model.tensors.get(&format!("dense.{layer}.bias"));
            let last = layer + 1 == self.layers;
            let activation = if last {
                "linear.Identity"
            } else {
                "activation.Tanh"
            };
            let config = json!({
                "in_features": weight.shape[1], "out_features": weight.shape[0], "bias": bias.is_some(),
                "activation_function": format!("torch.nn.modules.{activation}"), "use_residual": false
            });
            let mut tensors = BTreeMap::from([("linear.weight".to_owned(), weight.clone())]);
            tensors.extend(bias.map(|bias| ("linear.bias".to_owned(), bias.clone())));
            let dense = Checkpoint {
                config: config.clone(),
                tensors,
            };
            let path = format!("{}_Dense", layer + 1);
            files.insert(format!("{path}/config.json"), pretty(&config));
            files.insert(format!("{path}/model.safetensors"), dense.file(Stored::F32));
        }
        files
    }
}

/// Passages of the reference in `tests/data/tiny-colbert`.
pub const PASSAGES: [&str; 3] = [
    "the dog is an animal.",
    "money, in the bank!",
    "A cat sleeps in the house, and the children watch it for a long time.",
];

/// Its query.
pub const QUERY: &str = "where is the money?";

/// The model in `tests/data/tiny-colbert`: PyLate's, whose queries are filled with tokens that are not seen.
pub fn tiny() -> Late {
    all().swap_remove(0).1
}

/// Every file of the folder, by its path, with the vectors of some texts and their scores at f64.
pub fn tiny_files() -> BTreeMap<String, Vec<u8>> {
    let late = tiny();
    let query = late.vectors(QUERY, true, None);
    let entry = |text: &str| {
        let vectors = late.vectors(text, false, None);
        json!({"text": text, "score": Late::score(&query, &vectors), "vectors": vectors})
    };
    let reference = json!({
        "made_by": "cargo run -p isovec-test-models --example tiny_model",
        "passages": PASSAGES.map(entry),
        "query": {"text": QUERY, "vectors": query},
    });
    let mut files = late.files();
    files.insert("reference.json".into(), pretty(&reference));
    files
}
