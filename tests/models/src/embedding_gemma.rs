//! A tiny EmbeddingGemma as it is published: byte pairs with bytes for what has no piece, both ways, the mean, two dense layers
//! without bias, prompts; and its vectors at f64.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::checkpoint::{Checkpoint, Stored};
use crate::decoders::gemma3;
use crate::models::{HIDDEN, Maker};
use crate::reference::{last_hidden_state, linear};
use crate::tiny::{self, pretty};

/// The size between the dense layers.
const WIDE: usize = 48;
/// The longest text, in tokens.
const MAX_TOKENS: usize = 128;
const SPECIAL: [&str; 4] = ["<pad>", "<eos>", "<bos>", "<unk>"];
const END: i64 = 1;
const BEGIN: i64 = 2;

/// The prompt of queries, as the model's card has it.
pub const QUERY: &str = "task: search result | query: ";
/// The prompt of documents.
pub const DOCUMENT: &str = "title: none | text: ";

/// The pieces of the tokenizer.
#[derive(Debug)]
pub struct Pieces {
    vocabulary: Vec<String>,
    merges: Vec<(String, String)>,
}

impl Default for Pieces {
    /// Characters, and the words of [`tiny`] with a space before them, letter by letter.
    fn default() -> Self {
        let mut vocabulary: Vec<String> = SPECIAL.map(str::to_owned).to_vec();
        vocabulary.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
        let letters = ('a'..='z').chain(['▁', ':', '|', '.', ',', 'é']);
        vocabulary.extend(letters.map(String::from));
        let mut known: BTreeSet<String> = vocabulary.iter().cloned().collect();
        let mut merges = Vec::new();
        let is_word = |word: &String| word.chars().all(|c| c.is_ascii_lowercase());
        for word in tiny::vocabulary().into_iter().filter(is_word) {
            let mut piece = "▁".to_owned();
            for letter in word.chars() {
                let longer = format!("{piece}{letter}");
                if known.insert(longer.clone()) {
                    merges.push((piece, letter.to_string()));
                    vocabulary.push(longer.clone());
                }
                piece = longer;
            }
        }
        Self { vocabulary, merges }
    }
}

impl Pieces {
    /// The ids of a text: the earliest merge first, the leftmost of several, until there is none.
    pub fn tokenise(&self, text: &str) -> Vec<i64> {
        let id = |piece: &str| self.vocabulary.iter().position(|known| known == piece);
        let mut pieces: Vec<String> = Vec::new();
        for letter in text.replace(' ', "▁").chars() {
            let letter = letter.to_string();
            match id(&letter) {
                Some(_) => pieces.push(letter),
                None => pieces.extend(letter.bytes().map(|byte| format!("<0x{byte:02X}>"))),
            }
        }
        let rank = |pair: &[String]| {
            let mut merges = self.merges.iter();
            merges.position(|(left, right)| *left == pair[0] && *right == pair[1])
        };
        while let Some((_, at)) = pieces
            .windows(2)
            .enumerate()
            .filter_map(|(at, pair)| Some((rank(pair)?, at)))
            .min()
        {
            let right = pieces.remove(at + 1);
            pieces[at].push_str(&right);
        }
        let ids = pieces
            .iter()
            .map(|piece| id(piece).expect("a piece") as i64);
        let ids = ids.take(MAX_TOKENS - 2);
        [BEGIN].into_iter().chain(ids).chain([END]).collect()
    }

    /// The file `tokenizer.json`, in the form of Gemma's.
    fn tokenizer(&self) -> Value {
        let special = SPECIAL.iter().enumerate().map(|(id, word)| {
            json!({
                "id": id, "content": word, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true
            })
        });
        let ids: serde_json::Map<String, Value> = self
            .vocabulary
            .iter()
            .enumerate()
            .map(|(id, piece)| (piece.clone(), id.into()))
            .collect();
        let merges = self.merges.iter().map(|(left, right)| json!([left, right]));
        let token = |word: &str| json!({"SpecialToken": {"id": word, "type_id": 0}});
        let text = |name: &str, kind: u8| json!({"Sequence": {"id": name, "type_id": kind}});
        json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": special.collect::<Vec<_>>(),
            "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            "pre_tokenizer": {
                "type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
                "invert": false
            },
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [token("<bos>"), text("A", 0), token("<eos>")],
                "pair": [
                    token("<bos>"), text("A", 0), token("<eos>"),
                    token("<bos>"), text("B", 1), token("<eos>")
                ],
                "special_tokens": {
                    "<bos>": {"id": "<bos>", "ids": [BEGIN], "tokens": ["<bos>"]},
                    "<eos>": {"id": "<eos>", "ids": [END], "tokens": ["<eos>"]}
                }
            },
            "decoder": {
                "type": "Sequence",
                "decoders": [
                    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                    {"type": "ByteFallback"},
                    {"type": "Fuse"}
                ]
            },
            "model": {
                "type": "BPE", "dropout": null, "unk_token": "<unk>",
                "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": true,
                "byte_fallback": true, "ignore_merges": false, "vocab": ids,
                "merges": merges.collect::<Vec<_>>()
            }
        })
    }
}

/// A model with its tokenizer and its dense layers.
#[derive(Debug)]
pub struct EmbeddingGemma {
    pieces: Pieces,
    model: Checkpoint,
    dense: [Checkpoint; 2],
}

impl Default for EmbeddingGemma {
    fn default() -> Self {
        let pieces = Pieces::default();
        let words = pieces.vocabulary.len();
        let mut maker = Maker::new(91);
        maker.table("embed_tokens", words, HIDDEN);
        let mut model = gemma3()
            .with("vocab_size", words)
            .with("max_position_embeddings", MAX_TOKENS);
        model.tensors.extend(maker.tensors);
        let dense = |seed, input: usize, output: usize| {
            let mut maker = Maker::new(seed);
            maker.linear("linear", input, output, false);
            Checkpoint {
                config: json!({
                    "in_features": input, "out_features": output, "bias": false,
                    "activation_function": "torch.nn.modules.linear.Identity"
                }),
                tensors: maker.tensors,
            }
        };
        Self {
            pieces,
            model,
            dense: [dense(92, HIDDEN, WIDE), dense(93, WIDE, HIDDEN)],
        }
    }
}

impl EmbeddingGemma {
    /// The files, by their path.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let module = |at: usize, path: &str, class: &str| {
            let class = format!("sentence_transformers.models.{class}");
            json!({"idx": at, "name": at.to_string(), "path": path, "type": class})
        };
        let mut files = BTreeMap::from([
            ("config.json", pretty(&self.model.config)),
            ("model.safetensors", self.model.file(Stored::F32)),
            ("tokenizer.json", pretty(&self.pieces.tokenizer())),
            (
                "modules.json",
                pretty(&json!([
                    module(0, "", "Transformer"),
                    module(1, "1_Pooling", "Pooling"),
                    module(2, "2_Dense", "Dense"),
                    module(3, "3_Dense", "Dense"),
                    module(4, "4_Normalize", "Normalize"),
                ])),
            ),
            (
                "1_Pooling/config.json",
                pretty(&json!({
                    "word_embedding_dimension": HIDDEN, "pooling_mode_cls_token": false,
                    "pooling_mode_mean_tokens": true, "include_prompt": true
                })),
            ),
            (
                "sentence_bert_config.json",
                pretty(&json!({"max_seq_length": MAX_TOKENS, "do_lower_case": false})),
            ),
            (
                "config_sentence_transformers.json",
                pretty(&json!({
                    "prompts": {"query": QUERY, "document": DOCUMENT}, "default_prompt_name": null,
                    "similarity_fn_name": "cosine"
                })),
            ),
        ]);
        for (dense, [config, weights]) in self.dense.iter().zip([
            ["2_Dense/config.json", "2_Dense/model.safetensors"],
            ["3_Dense/config.json", "3_Dense/model.safetensors"],
        ]) {
            files.insert(config, pretty(&dense.config));
            files.insert(weights, dense.file(Stored::F32));
        }
        let owned = files.into_iter();
        owned
            .map(|(name, bytes)| (name.to_owned(), bytes))
            .collect()
    }

    /// The vector of a text, its prompt included.
    pub fn vector(&self, text: &str) -> Vec<f64> {
        let ids = self.pieces.tokenise(text);
        let rows = last_hidden_state(&self.model, &ids, &vec![0; ids.len()]);
        let column = |at: usize| rows.iter().map(|row| row[at]).sum::<f64>() / rows.len() as f64;
        let mean: Vec<f64> = (0..HIDDEN).map(column).collect();
        let vector = self
            .dense
            .iter()
            .fold(mean, |x, dense| linear(dense, "linear", &x));
        let length = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
        vector.iter().map(|v| v / length).collect()
    }
}
