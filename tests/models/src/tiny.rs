//! The model in `tests/data/tiny-bert`: a BERT with seeded random weights and a small WordPiece
//! vocabulary, complete with the files that sentence-transformers puts beside a model, and its
//! vectors at f64 for some texts. It makes the parity suite run without any download.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::checkpoint::{Checkpoint, Stored};
use crate::models::{Maker, bert_of};
use crate::reference::{last_hidden_state, mean_normalised};

const MAX_TOKENS: usize = 64;
const HIDDEN: usize = 32;
const QUERY_PROMPT: &str = "query: ";

const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// Common English words.
const WORDS: &str = "the of and to in is it you that he was for on are with as his they be at one \
have this from or had by hot but some what there we can out other were all your when up use word \
how said an each she which do their time if will way about many then them would write like so \
these her long make thing see him two has look more day could go come did my sound no most number \
who over know water than call first people may down side been now find any new work part take get \
place made live where after back little only round man year came show every good me give our under \
name very through just form much great think say help low line before turn cause same mean differ \
move right boy old too does tell sentence set three want air well also play small end put home read \
hand port large spell add even land here must big high such follow act why ask men change went \
light kind off need house picture try us again animal point mother world near build self earth \
father head stand own page should country found answer school grow study still learn plant cover \
food sun four thought let keep eye never last door between city tree cross since hard start might \
story saw far sea draw left late run while press close night real life few stop open seem together \
next white children begin got walk example ease paper often always music those both mark book \
letter until mile river car feet care second group carry took rain eat room friend began idea fish \
mountain north once base hear horse cut sure watch color face wood main model vector text search \
query dog cat king queen money bank data code server browser machine language";

/// Pieces that continue a word.
const ENDINGS: &str = "s ed ing er est ly tion sion ment ness able ible al ial ful less ous ive ity \
ies es en or ar ist ism ize ise ate ure age ance ence ant ent th st nd rd ll re ve";

/// Texts whose vectors are in `reference.json`. Only ASCII and CJK, which [`tokenise`] splits the
/// way BERT's tokeniser does.
pub(crate) const TEXTS: [&str; 24] = [
    "the dog is an animal",
    "a cat is an animal too",
    "The KING and the Queen of the land.",
    "money in the bank",
    "the bank of the river",
    "Search vectors in the browser, the same as on the server!",
    "",
    " ",
    "a",
    "?",
    "...!!!",
    "2026-11-21 12:34:56",
    "write code that other people can read",
    "kindness, movement, readable, playing, walked, hardest",
    "xylophone quizzes jinx zephyr",
    "tabs\tand\nnew\r\nlines",
    "e=mc^2 & f(x) = {x | x > 0}",
    "\u{6771}\u{4eac} is a city",
    "user@example.com https://example.com/path?query=1#part",
    "I don't know; it's what they've said.",
    "one two three four one two three four one two three four",
    "this sentence is long enough to be cut: the mountain and the river and the sea and the sun and \
     the rain and the tree and the horse and the fish and the bird and the house and the city and \
     the country and the world and the earth and the air and the light and the night and the day and \
     the year and the time and the life and the end",
    "supercalifragilisticexpialidocious",
    "[CLS] and [SEP] are only words here? no: they are special",
];

/// The vocabulary in the order of its ids.
pub fn vocabulary() -> Vec<String> {
    let mut words: Vec<String> = SPECIAL.iter().map(|&word| word.to_owned()).collect();
    let mut push = |word: String| {
        if !words.contains(&word) {
            words.push(word);
        }
    };
    for code in 0x21u8..0x7f {
        let c = char::from(code);
        if !c.is_ascii_uppercase() {
            push(c.to_string());
        }
    }
    for c in ('0'..='9').chain('a'..='z') {
        push(format!("##{c}"));
    }
    for ending in ENDINGS.split_whitespace() {
        push(format!("##{ending}"));
    }
    for word in WORDS.split_whitespace() {
        push(word.to_owned());
    }
    words
}

/// Splits a text into ids as BERT's uncased tokeniser does: special tokens first, then lower case,
/// words and punctuation, and the longest piece that fits from the left.
pub fn tokenise(vocabulary: &[String], text: &str) -> Vec<i64> {
    let mut ids = tokens(vocabulary, text);
    ids.truncate(MAX_TOKENS - 2);
    let mut all = vec![2];
    all.extend(ids);
    all.push(3);
    all
}

/// The ids of a text's own tokens, however many there are.
pub fn tokens(vocabulary: &[String], text: &str) -> Vec<i64> {
    let id = |piece: &str| vocabulary.iter().position(|word| word == piece);
    let mut ids = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let special = SPECIAL
            .iter()
            .filter_map(|&word| rest.find(word).map(|at| (at, word)))
            .min();
        let (plain, word) = match special {
            Some((at, word)) => (&rest[..at], word),
            None => (rest, ""),
        };
        for word in basic_words(plain) {
            ids.extend(pieces(&word, &id));
        }
        ids.extend(id(word));
        rest = &rest[plain.len() + word.len()..];
    }
    ids.into_iter().map(|id| id as i64).collect()
}

fn basic_words(text: &str) -> Vec<String> {
    let mut spaced = String::new();
    for c in text.to_ascii_lowercase().chars() {
        // Punctuation and CJK characters stand alone.
        if c.is_ascii_punctuation() || ('\u{4e00}'..='\u{9fff}').contains(&c) {
            spaced.extend([' ', c, ' ']);
        } else {
            spaced.push(c);
        }
    }
    spaced.split_whitespace().map(str::to_owned).collect()
}

fn pieces(word: &str, id: &dyn Fn(&str) -> Option<usize>) -> Vec<usize> {
    let chars: Vec<char> = word.chars().collect();
    let mut found = Vec::new();
    let mut from = 0;
    while from < chars.len() {
        let longest = (from + 1..=chars.len()).rev().find_map(|to| {
            let piece: String = chars[from..to].iter().collect();
            let piece = if from > 0 {
                format!("##{piece}")
            } else {
                piece
            };
            id(&piece).map(|id| (to, id))
        });
        match longest {
            Some((to, id)) => {
                found.push(id);
                from = to;
            }
            // A word with a part that no piece covers is unknown as a whole.
            None => return vec![1],
        }
    }
    found
}

/// The model itself.
pub fn model() -> Checkpoint {
    bert_of(20_261_121, vocabulary().len(), HIDDEN, 2)
}

/// Every file of the folder, by its path.
pub fn files() -> BTreeMap<String, Vec<u8>> {
    let model = model();
    let vocabulary = vocabulary();
    let transformer = json!([
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
    ]);
    let pooling = json!({
        "word_embedding_dimension": HIDDEN,
        "pooling_mode_cls_token": false,
        "pooling_mode_mean_tokens": true,
        "pooling_mode_max_tokens": false,
        "pooling_mode_mean_sqrt_len_tokens": false,
        "pooling_mode_weightedmean_tokens": false,
        "pooling_mode_lasttoken": false,
        "include_prompt": true
    });
    let sentence_transformers = json!({
        "__version__": {"sentence_transformers": "5.0.0", "transformers": "4.50.0", "pytorch": "2.6.0"},
        "prompts": {"query": QUERY_PROMPT, "document": ""},
        "default_prompt_name": null,
        "similarity_fn_name": "cosine"
    });
    BTreeMap::from([
        ("config.json".into(), pretty(&model.config)),
        ("model.safetensors".into(), model.file(Stored::F32)),
        ("tokenizer.json".into(), pretty(&tokenizer(&vocabulary))),
        ("modules.json".into(), pretty(&transformer)),
        ("1_Pooling/config.json".into(), pretty(&pooling)),
        (
            "sentence_bert_config.json".into(),
            pretty(&json!({"max_seq_length": MAX_TOKENS, "do_lower_case": false})),
        ),
        (
            "config_sentence_transformers.json".into(),
            pretty(&sentence_transformers),
        ),
        (
            "reference.json".into(),
            pretty(&reference(&model, &vocabulary)),
        ),
    ])
}

/// A JSON file that people read.
pub(crate) fn pretty(value: &Value) -> Vec<u8> {
    let mut text = serde_json::to_string_pretty(&sorted(value)).expect("it is JSON");
    text.push('\n');
    text.into_bytes()
}

/// Keys in alphabetical order, which is serde_json's own unless some crate in the build turns its
/// `preserve_order` on.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let keys: BTreeMap<&String, &Value> = map.iter().collect();
            keys.into_iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        Value::Array(values) => values.iter().map(sorted).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

/// Texts, their ids, and their vectors (mean over tokens, length 1).
fn reference(model: &Checkpoint, vocabulary: &[String]) -> Value {
    let entry = |text: &str, prompt: &str| {
        let ids = tokenise(vocabulary, &format!("{prompt}{text}"));
        let rows = last_hidden_state(model, &ids, &vec![0; ids.len()]);
        json!({"text": text, "ids": ids, "vector": mean_normalised(&rows)})
    };
    json!({
        "made_by": "cargo run -p isovec-test-models --example tiny_model",
        "texts": TEXTS.map(|text| entry(text, "")),
        "queries": [entry("money in the bank", QUERY_PROMPT), entry("", QUERY_PROMPT)],
    })
}

/// A tiny model of any family with a row for each of these words.
pub fn of_words(model: Checkpoint) -> Checkpoint {
    let tables = [
        "embeddings.word_embeddings",
        "embeddings.tok_embeddings",
        "embed_tokens",
        "shared",
    ];
    let holds = |table: &&&str| model.tensors.contains_key(&format!("{table}.weight"));
    let table = tables.iter().find(holds).expect("a table of words");
    let words = vocabulary().len();
    let mut maker = Maker::new(90);
    maker.table(table, words, HIDDEN);
    let mut model = model.with("vocab_size", words);
    model.tensors.extend(maker.tensors);
    model
}

/// The file `tokenizer.json` for these words, as `BertTokenizerFast` writes it.
pub fn tokenizer(vocabulary: &[String]) -> Value {
    let special: Vec<Value> = SPECIAL
        .iter()
        .enumerate()
        .map(|(id, word)| {
            json!({
                "id": id, "content": word, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true
            })
        })
        .collect();
    let ids: serde_json::Map<String, Value> = vocabulary
        .iter()
        .enumerate()
        .map(|(id, word)| (word.clone(), id.into()))
        .collect();
    let token = |word: &str, kind: u8| json!({"SpecialToken": {"id": word, "type_id": kind}});
    let text = |name: &str, kind: u8| json!({"Sequence": {"id": name, "type_id": kind}});
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": special,
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [token("[CLS]", 0), text("A", 0), token("[SEP]", 0)],
            "pair": [
                token("[CLS]", 0), text("A", 0), token("[SEP]", 0),
                text("B", 1), token("[SEP]", 1)
            ],
            "special_tokens": {
                "[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}
            }
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": ids
        }
    })
}
