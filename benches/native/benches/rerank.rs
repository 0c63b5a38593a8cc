//! One query with 100 documents: the shape of cross-encoder/ms-marco-MiniLM-L6-v2 (all-MiniLM-L6-v2 with a seeded head of one label),
//! fp32, all threads. isovec on both engines against fastembed-rs with its defaults (one padded batch), and against
//! sentence-transformers' way on ONNX Runtime: sorted by length, in padded batches of 32. Documents come from the corpus; in the
//! first turn all pairs have about 130 tokens, in the second 20 to 250. Run it with `cargo xtask bench rerank`.

use std::path::Path;

use fastembed::{
    RerankInitOptionsUserDefined, TextRerank, TokenizerFiles, UserDefinedRerankingModel,
};
use isovec::blocking::Reranker;
use isovec::config::EngineChoice;
use isovec::{EmbeddingConfig, ScoreOptions, Scores};
use isovec_bench::{AnyError, environment, minilm, take_turns};
use isovec_model::bundle::{self, BundleOptions};
use isovec_model::onnx::write_model;
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::heads;
use isovec_test_models::models::bert_like;
use isovec_test_models::rng::Rng;
use ort::session::Session;
use ort::value::TensorRef;
use serde_json::json;

const DOCUMENTS: usize = 100;
/// Tokens that a model sees of a pair.
const MAX_TOKENS: usize = 512;
/// The batch of sentence-transformers.
const BATCH: usize = 32;
const QUERY: &str = "how does the program read a file and what does it return?";
/// The largest difference of two contestants' logits.
const NEAR: f32 = 1e-3;

fn main() -> Result<(), AnyError> {
    let folder = tempfile::tempdir()?;
    write(&minilm()?, folder.path())?;
    let corpus = isovec::cache_dir().ok_or("there is no cache folder")?;
    let corpus = std::fs::read_to_string(corpus.join("corpus.txt"))
        .map_err(|error| format!("run `cargo xtask setup corpus` first: {error}"))?;

    let load = |engine| {
        let config = EmbeddingConfig::default()
            .with_engine(engine)
            .with_max_length(MAX_TOKENS);
        Reranker::builder(folder.path()).config(config).load()
    };
    // The first loads the library that the peers use, too.
    let (native, portable) = (
        load(EngineChoice::OnnxRuntime)?,
        load(EngineChoice::Portable)?,
    );
    let mut fastembed = fastembed(folder.path())?;
    let mut sorted = Sorted::load(folder.path())?;

    let lengths = |document: &str| native.count_tokens(document).unwrap_or(0);
    let query = lengths(QUERY) - 1;
    let all: Vec<(usize, &str)> = corpus
        .lines()
        .map(|line| (query + lengths(line), line))
        .filter(|(tokens, _)| (20..=250).contains(tokens))
        .collect();
    for (what, least, most) in [("120 to 140", 120, 140), ("20 to 250", 20, 250)] {
        let of_length = all
            .iter()
            .filter(|(tokens, _)| (least..=most).contains(tokens));
        let chosen = spread(of_length.copied().collect(), least, most);
        let tokens: usize = chosen.iter().map(|(tokens, _)| tokens).sum();
        let documents: Vec<&str> = chosen.iter().map(|&(_, document)| document).collect();
        let options = ScoreOptions::default().with_scores(Scores::Logits);
        let pairs = || documents.iter().map(|&document| (QUERY, document));
        let own = native.score_with(pairs(), &options)?.scores;
        let other = portable.score_with(pairs(), &options)?.scores;
        let mut theirs = vec![0.0; documents.len()];
        for result in fastembed.rerank(QUERY, &documents[..], false, None)? {
            theirs[result.index] = result.score;
        }
        let hand = sorted.score(QUERY, &documents)?;
        for ((own, other), (theirs, hand)) in own.iter().zip(&other).zip(theirs.iter().zip(&hand)) {
            if [other, theirs, hand]
                .iter()
                .any(|score| (*score - own).abs() > NEAR)
            {
                return Err(format!("scores differ: {own}, {other}, {theirs}, {hand}").into());
            }
        }
        println!(
            "{DOCUMENTS} pairs of {what} tokens, {} on average; {} and {}",
            tokens / DOCUMENTS,
            native.provider(),
            portable.provider()
        );
        let turns = take_turns(
            9,
            vec![
                (
                    "isovec on ONNX Runtime",
                    Box::new(|| drop(native.score_with(pairs(), &options))),
                ),
                (
                    "isovec portable",
                    Box::new(|| drop(portable.score_with(pairs(), &options))),
                ),
                (
                    "fastembed-rs 7.5.0",
                    Box::new(|| drop(fastembed.rerank(QUERY, &documents[..], false, None))),
                ),
                (
                    "sorted batches of 32 on ONNX Runtime",
                    Box::new(|| drop(sorted.score(QUERY, &documents))),
                ),
            ],
        );
        print!("{turns}");
    }
    Ok(())
}

/// As many texts as are ranked, of all lengths alike where there are some, in no order of length.
fn spread<'t>(
    mut texts: Vec<(usize, &'t str)>,
    least: usize,
    most: usize,
) -> Vec<(usize, &'t str)> {
    texts.sort_by_key(|(tokens, _)| *tokens);
    let chosen = (0..DOCUMENTS).map(|at| {
        let tokens = least + (most - least) * at / (DOCUMENTS - 1);
        let place = texts.partition_point(|(own, _)| *own < tokens);
        texts.remove(place.min(texts.len() - 1))
    });
    let mut chosen: Vec<_> = chosen.collect();
    let mut rng = Rng::new(7);
    chosen.sort_by_cached_key(|_| (rng.normal() * 1e6) as i64);
    chosen
}

/// The reranker's files: a checkpoint for isovec, and for the others a graph that has the output `logits` alone.
fn write(minilm: &Path, folder: &Path) -> Result<(), AnyError> {
    for file in [
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
    ] {
        std::fs::copy(minilm.join(file), folder.join(file))?;
    }
    // The file pads every text to 128 tokens, and cuts it there.
    let path = folder.join("tokenizer.json");
    let mut tokenizer = tokenizers::Tokenizer::from_file(&path)?;
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None)?;
    tokenizer.save(&path, false)?;
    let config = std::fs::read(minilm.join("config.json"))?;
    let model = heads::with_classifier(bert_like(31, serde_json::from_slice(&config)?), 32, 1)
        .with("architectures", json!(["BertForSequenceClassification"]));
    let model = heads::published(model);
    std::fs::write(folder.join("config.json"), model.config_json())?;
    std::fs::write(folder.join("model.safetensors"), model.file(Stored::F32))?;

    let mut bundle = bundle::from_folder(folder, &BundleOptions::default())?;
    if let Some(graph) = &mut bundle.graph.graph {
        graph.output.retain(|output| output.name == "logits");
    }
    std::fs::create_dir(folder.join("onnx"))?;
    let file = pollster::block_on(write_model(&bundle))?;
    std::fs::write(folder.join("onnx/model.onnx"), file)?;
    Ok(())
}

fn fastembed(folder: &Path) -> Result<TextRerank, AnyError> {
    let file = |name: &str| std::fs::read(folder.join(name));
    let tokenizer = TokenizerFiles {
        tokenizer_file: file("tokenizer.json")?,
        config_file: file("config.json")?,
        special_tokens_map_file: file("special_tokens_map.json")?,
        tokenizer_config_file: file("tokenizer_config.json")?,
    };
    let model = UserDefinedRerankingModel::new(file("onnx/model.onnx")?, tokenizer);
    let mut options = RerankInitOptionsUserDefined::default().with_max_length(MAX_TOKENS);
    options.environment = Some(environment()?.clone());
    Ok(TextRerank::try_new_from_user_defined(model, options)?)
}

/// What sentence-transformers does: pairs in the order of their length, the longest first, in batches that are padded to their
/// longest.
struct Sorted {
    session: Session,
    tokenizer: tokenizers::Tokenizer,
}

impl Sorted {
    fn load(folder: &Path) -> Result<Self, AnyError> {
        let mut tokenizer = tokenizers::Tokenizer::from_file(folder.join("tokenizer.json"))?;
        tokenizer.with_truncation(Some(tokenizers::TruncationParams {
            max_length: MAX_TOKENS,
            ..Default::default()
        }))?;
        let session =
            Session::builder(environment()?)?.commit_from_file(folder.join("onnx/model.onnx"))?;
        Ok(Self { session, tokenizer })
    }

    fn score(&mut self, query: &str, documents: &[&str]) -> Result<Vec<f32>, AnyError> {
        let pairs: Vec<(&str, &str)> = documents.iter().map(|&text| (query, text)).collect();
        let encodings = self.tokenizer.encode_batch_fast(pairs, true)?;
        let mut order: Vec<usize> = (0..encodings.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(encodings[at].len()));
        let mut scores = vec![0.0; documents.len()];
        for batch in order.chunks(BATCH) {
            let longest = batch
                .iter()
                .map(|&at| encodings[at].len())
                .max()
                .unwrap_or(0);
            let block = |of: &dyn Fn(&tokenizers::Encoding) -> Vec<u32>| {
                let rows = batch.iter().flat_map(|&at| {
                    let mut row = of(&encodings[at]);
                    row.resize(longest, 0);
                    row
                });
                rows.map(i64::from).collect::<Vec<i64>>()
            };
            let ids = block(&|encoding| encoding.get_ids().to_vec());
            let mask = block(&|encoding| encoding.get_attention_mask().to_vec());
            let types = block(&|encoding| encoding.get_type_ids().to_vec());
            let shape = [batch.len(), longest];
            let outputs = self.session.run(ort::inputs![
                "input_ids" => TensorRef::from_array_view((shape, &ids[..]))?,
                "attention_mask" => TensorRef::from_array_view((shape, &mask[..]))?,
                "token_type_ids" => TensorRef::from_array_view((shape, &types[..]))?,
            ])?;
            let (_, logits) = outputs["logits"].try_extract_tensor::<f32>()?;
            for (&at, &logit) in batch.iter().zip(logits) {
                scores[at] = logit;
            }
        }
        Ok(scores)
    }
}
