//! Tiny decoders that score pairs, with seeded random weights, one of them in `tests/data/tiny-decoder-reranker`: one whose answer is the score, as sentence-transformers 5.4 publishes it, and
//! one with a layer of scores, as transformers does; and their scores at f64, written from the documentation
//! (<https://sbert.net/docs/package_reference/cross_encoder/modules.html>, <https://huggingface.co/docs/transformers>).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::checkpoint::{Checkpoint, Stored};
use crate::decoders::qwen3;
use crate::models::{HIDDEN, Maker};
use crate::reference::{array, last_hidden_state, linear};
use crate::tiny::{self, pretty};

/// The instruction of a call without one.
pub const TASK: &str = "find the page that has the answer";

/// The instruction of the model's prompt `short`.
pub const SHORT: &str = "one word";

/// An instruction of a caller's.
const INSTRUCTION: &str = "which is it?";

/// The query of the reference.
pub const QUERY: &str = "which animal is in the house";
/// Its documents.
pub const DOCUMENTS: [&str; 5] = [
    "the dog is an animal",
    "money in the bank",
    "",
    "a cat is in the house",
    "money in the bank",
];

/// The words around a query and a document.
const OPENING: &str = "[CLS] say on or off: is the page about the question [SEP]";

/// The tokens that say yes and no.
pub const ANSWERS: [&str; 2] = ["on", "off"];

/// The chat template.
pub fn template() -> String {
    let first = |role: &str| {
        format!(
            "messages | selectattr(\"role\", \"eq\", \"{role}\") | map(attribute=\"content\") | first"
        )
    };
    format!(
        "{{%- set query = {} -%}}\n{{%- set document = {} -%}}\n{{%- set task = {} | default(\"{TASK}\") -%}}\n\
         {OPENING}\ntask: {{{{ task }}}}\nquestion: {{{{ query }}}}\npage: {{{{ document }}}} [SEP]\n[MASK]\n",
        first("query"),
        first("document"),
        first("system"),
    )
}

/// What that template writes.
pub fn written(task: &str, query: &str, document: &str) -> String {
    format!("{OPENING}\ntask: {task}\nquestion: {query}\npage: {document} [SEP]\n[MASK]")
}

/// The files beside the weights of a decoder whose answer is the score. `no` is whether one token speaks against.
pub fn files(model: &Checkpoint, no: bool) -> BTreeMap<String, Vec<u8>> {
    let modules = json!([
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"},
        {"idx": 1, "name": "1", "path": "1_LogitScore",
         "type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"},
    ]);
    let [yes, no] = [Some(ANSWERS[0]), no.then_some(ANSWERS[1])].map(|answer| answer.map(id));
    let score =
        json!({"true_token_id": yes, "false_token_id": no, "module_input_name": "causal_logits"});
    let own = json!({
        "model_type": "CrossEncoder", "prompts": {"short": SHORT}, "default_prompt_name": null,
        "activation_fn": "torch.nn.modules.linear.Identity",
    });
    let mut files = plain_files(model);
    let mut add = |name: &str, content: Vec<u8>| files.insert(name.to_owned(), content);
    add("modules.json", json(&modules));
    add("1_LogitScore/config.json", json(&score));
    add("config_sentence_transformers.json", json(&own));
    add("chat_template.jinja", template().into_bytes());
    files
}

/// Every file of the folder, by its path.
pub fn tiny_files() -> BTreeMap<String, Vec<u8>> {
    let model = tiny::of_words(qwen3());
    let score =
        |task: &str, document: &str| answer(&model, &ids(&written(task, QUERY, document)), true);
    let entry = |document: &str| {
        json!({
            "text": document,
            "tokens": ids(&written(TASK, QUERY, document)).len(),
            "logit": score(TASK, document),
            "instructed": score(INSTRUCTION, document),
            "short": score(SHORT, document),
        })
    };
    let reference = json!({
        "made_by": "cargo run -p isovec-test-models --example tiny_model",
        "query": QUERY,
        "instruction": INSTRUCTION,
        "documents": DOCUMENTS.map(entry),
    });
    let mut files = files(&model, true);
    for (name, content) in &mut files {
        if name.ends_with(".json") {
            let value: Value = serde_json::from_slice(content).expect("it is JSON");
            *content = pretty(&value);
        }
    }
    files.insert("reference.json".into(), pretty(&reference));
    files
}

/// The weights, the config and the tokenizer.
pub fn plain_files(model: &Checkpoint) -> BTreeMap<String, Vec<u8>> {
    let mut published = model.clone();
    published.tensors = published
        .tensors
        .into_iter()
        .map(
            |(name, array)| match name.starts_with("lm_head.") || name.starts_with("score.") {
                true => (name, array),
                false => (format!("model.{name}"), array),
            },
        )
        .collect();
    let tokenizer = tiny::tokenizer(&tiny::vocabulary());
    BTreeMap::from([
        ("config.json".into(), published.config_json()),
        ("model.safetensors".into(), published.file(Stored::F32)),
        ("tokenizer.json".into(), json(&tokenizer)),
    ])
}

fn json(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("it is JSON")
}

fn id(word: &str) -> usize {
    let vocabulary = tiny::vocabulary();
    let at = vocabulary.iter().position(|known| known == word);
    at.expect("a word of the vocabulary")
}

/// The same with a vocabulary's matrix that is not the table of words.
pub fn untied(model: Checkpoint) -> Checkpoint {
    let mut maker = Maker::new(301);
    maker.linear("lm_head", HIDDEN, tiny::vocabulary().len(), false);
    let mut model = model.with("tie_word_embeddings", false);
    model.tensors.extend(maker.tensors);
    model
}

/// The same with a layer of one score, in the class of this name.
pub fn with_score(model: Checkpoint, class: &str) -> Checkpoint {
    let mut maker = Maker::new(302);
    maker.linear("score", HIDDEN, 1, false);
    let mut model = model
        .with("architectures", json!([class]))
        .with("id2label", json!({"0": "LABEL_0"}));
    model.tensors.extend(maker.tensors);
    model
}

/// The ids of a text with the special tokens that are in it, and no others.
pub fn ids(text: &str) -> Vec<i64> {
    tiny::tokens(&tiny::vocabulary(), text)
}

/// How much rather the decoder says yes than no, or how much it says yes.
pub fn answer(model: &Checkpoint, ids: &[i64], no: bool) -> f64 {
    let matrix = match model.config["tie_word_embeddings"] == true {
        true => "embed_tokens.weight",
        false => "lm_head.weight",
    };
    let matrix = &array(model, matrix).values;
    let rows = last_hidden_state(model, ids, &vec![0; ids.len()]);
    let last = rows.last().expect("a token");
    let logit = |word: &str| -> f64 {
        let row = &matrix[id(word) * HIDDEN..][..HIDDEN];
        row.iter().zip(last).map(|(&w, x)| f64::from(w) * x).sum()
    };
    logit(ANSWERS[0]) - if no { logit(ANSWERS[1]) } else { 0.0 }
}

/// The number of the layer of scores at the last token.
pub fn score(model: &Checkpoint, ids: &[i64]) -> f64 {
    let rows = last_hidden_state(model, ids, &vec![0; ids.len()]);
    linear(model, "score", rows.last().expect("a token"))[0]
}
