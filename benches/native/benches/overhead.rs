//! What the SDK costs over a raw `session.run` plus tokenising: all-MiniLM-L6-v2, fp32, one
//! thread, one text of 16 tokens. The same exported graph with its pooling head, the same
//! library, the same process. Run it with `cargo xtask bench overhead`.

use std::hint::black_box;
use std::path::PathBuf;

use isovec::blocking::Embedder;
use isovec::{EmbeddingConfig, EngineChoice, ExportOptions};
use isovec_bench::take_turns;
use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;
use ort::value::TensorRef;

/// Sixteen WordPiece tokens with the two special ones.
const TEXT: &str = "semantic search finds what you mean, not only what you wrote";

type AnyError = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), AnyError> {
    let model = isovec::cache_dir()
        .map(|cache| cache.join("models/all-MiniLM-L6-v2"))
        .filter(|folder| folder.is_dir())
        .ok_or("run `cargo xtask setup` first: all-MiniLM-L6-v2 is not there")?;
    let config = EmbeddingConfig::default()
        .with_engine(EngineChoice::OnnxRuntime)
        .with_intra_op_threads(1);
    // First, so that the library is loaded by the time the raw session asks for it.
    let embedder = Embedder::load(model.as_path(), config.clone())?;
    let tokens = embedder.count_tokens(TEXT)?;

    let folder = tempfile::tempdir()?;
    isovec::blocking::export(
        model.as_path(),
        folder.path(),
        config,
        ExportOptions::default(),
    )?;
    let mut raw = Raw::load(
        folder.path().join("model.onnx"),
        model.join("tokenizer.json"),
    )?;
    let ours = embedder.embed_one(TEXT)?;
    let theirs = raw.embed()?;
    let difference = ours
        .iter()
        .zip(&theirs)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max);
    println!(
        "{}; {tokens} tokens; largest difference {difference:.1e}",
        embedder.provider()
    );

    let medians = take_turns(
        400,
        vec![
            (
                "tokenizers + raw session.run",
                Box::new(|| drop(black_box(raw.embed()))),
            ),
            (
                "isovec, blocking",
                Box::new(|| drop(black_box(embedder.embed_one(TEXT)))),
            ),
        ],
    );
    print!("{medians}");
    Ok(())
}

/// What a careful user would write by hand.
struct Raw {
    session: Session,
    tokenizer: tokenizers::Tokenizer,
}

impl Raw {
    fn load(model: PathBuf, tokenizer: PathBuf) -> Result<Self, AnyError> {
        let mut tokenizer = tokenizers::Tokenizer::from_file(tokenizer)?;
        tokenizer.with_padding(None);
        tokenizer.with_truncation(Some(tokenizers::TruncationParams {
            max_length: 256,
            ..Default::default()
        }))?;
        let environment = ort::init().build()?;
        let session = Session::builder(&environment)?
            .with_optimization_level(GraphOptimizationLevel::Level3)
            .map_err(|error| error.to_string())?
            .with_intra_threads(1)
            .map_err(|error| error.to_string())?
            .commit_from_file(model)?;
        Ok(Self { session, tokenizer })
    }

    fn embed(&mut self) -> Result<Vec<f32>, AnyError> {
        let encoding = self.tokenizer.encode_fast(TEXT, true)?;
        let wide = |values: &[u32]| {
            values
                .iter()
                .map(|&value| i64::from(value))
                .collect::<Vec<i64>>()
        };
        let (ids, mask, types) = (
            wide(encoding.get_ids()),
            wide(encoding.get_attention_mask()),
            wide(encoding.get_type_ids()),
        );
        let shape = [1, ids.len()];
        let outputs = self.session.run(ort::inputs![
            "input_ids" => TensorRef::from_array_view((shape, &ids[..]))?,
            "attention_mask" => TensorRef::from_array_view((shape, &mask[..]))?,
            "token_type_ids" => TensorRef::from_array_view((shape, &types[..]))?,
        ])?;
        let (_, vector) = outputs["sentence_embedding"].try_extract_tensor::<f32>()?;
        Ok(vector.to_vec())
    }
}
