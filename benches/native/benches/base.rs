//! The shape of BERT-base beside all-MiniLM-L6-v2: a text of 16 and of 128 tokens on both engines and on `ort` by hand,
//! and what a process takes of memory over the weights' bytes. BERT-base has seeded weights in all-MiniLM-L6-v2's
//! tokenizer and head: its vectors mean nothing, its times and its memory are those of any model of that shape. Every
//! figure of memory is of a process of its own. Run it with `cargo xtask bench base`.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec::config::EngineChoice;
use isovec_bench::{AnyError, PART, Raw, TEXT, median, memory, minilm, run_part, take_turns};
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::full_size;

/// Processes for each figure of memory.
const SAMPLES: usize = 3;
/// Runs of each contestant by the tokens of the text.
const ROUNDS: [(usize, usize); 2] = [(16, 60), (128, 30)];
/// Calls after which a process has taken all that it takes.
const CALLS: usize = 10;
const ENGINES: [(&str, EngineChoice); 2] = [
    ("onnxruntime", EngineChoice::OnnxRuntime),
    ("portable", EngineChoice::Portable),
];

fn main() -> Result<(), AnyError> {
    if let Ok(part) = std::env::var(PART) {
        let (engine, folder) = part.split_once(' ').ok_or("a part and a folder")?;
        let folder = Path::new(folder);
        return match ENGINES.iter().find(|(name, _)| *name == engine) {
            Some(&(_, choice)) => memory_of(folder, choice),
            None => {
                latency(folder, Some(1))?;
                latency(folder, None)
            }
        };
    }
    let minilm = minilm()?;
    let scratch = tempfile::tempdir()?;
    let base = scratch.path().join("bert-base");
    write_base(&minilm, &base)?;
    for (name, folder) in [("all-MiniLM-L6-v2", minilm), ("BERT-base", base)] {
        println!("{name}");
        print!("{}", run_part(&format!("latency {}", folder.display()))?);
        for (engine, _) in ENGINES {
            println!("{}", memory_line(engine, &folder)?);
        }
    }
    Ok(())
}

/// A model folder of BERT-base's shape; all that is not its size is all-MiniLM-L6-v2's.
fn write_base(minilm: &Path, folder: &Path) -> Result<(), AnyError> {
    let (_, make) = full_size::ALL[0];
    let model = make();
    copy(minilm, folder)?;
    fs::write(folder.join("config.json"), model.config_json())?;
    fs::write(folder.join("model.safetensors"), model.file(Stored::F32))?;
    let pooling = folder.join("1_Pooling/config.json");
    let mut head: serde_json::Value = serde_json::from_slice(&fs::read(&pooling)?)?;
    head["word_embedding_dimension"] = 768.into();
    fs::write(pooling, head.to_string())?;
    Ok(())
}

/// The small files of a folder and its folders.
fn copy(from: &Path, to: &Path) -> Result<(), AnyError> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            copy(&path, &to.join(entry.file_name()))?;
        } else if path
            .extension()
            .is_some_and(|ending| ending == "json" || ending == "txt")
        {
            fs::copy(&path, to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// With the threads of an operator that were named, or the default.
fn load(folder: &Path, engine: EngineChoice, threads: Option<usize>) -> Result<Embedder, AnyError> {
    let mut config = EmbeddingConfig::default().with_engine(engine);
    if let Some(threads) = threads {
        config = config.with_intra_op_threads(threads);
    }
    Ok(Embedder::builder(PathBuf::from(folder))
        .config(config)
        .load()?)
}

/// A text of so many tokens, the two special ones included.
fn text(embedder: &Embedder, tokens: usize) -> Result<String, AnyError> {
    let text = match tokens {
        16 => TEXT.to_owned(),
        _ => "cat ".repeat(tokens - 2),
    };
    match embedder.count_tokens(&text)? {
        found if found == tokens => Ok(text),
        found => Err(format!("a text of {tokens} tokens has {found}").into()),
    }
}

fn latency(folder: &Path, threads: Option<usize>) -> Result<(), AnyError> {
    let onnxruntime = load(folder, EngineChoice::OnnxRuntime, threads)?;
    let portable = load(folder, EngineChoice::Portable, threads)?;
    let threads = onnxruntime.effective_config();
    let threads = threads.get("session.intra_op_threads");
    let threads = threads.map_or("1", |knob| knob.used.as_str()).parse()?;
    let raw = Raw::load(folder, threads, 256)?;
    for (tokens, rounds) in ROUNDS {
        let text = text(&onnxruntime, tokens)?;
        println!(
            "1 x {tokens} tokens, {threads} threads; median time, and median of the ratios of {rounds} rounds"
        );
        let medians = take_turns(
            rounds,
            vec![
                (
                    "tokenizers + raw session.run",
                    Box::new(|| drop(black_box(raw.embed(&text)))),
                ),
                (
                    "isovec on ONNX Runtime",
                    Box::new(|| drop(black_box(onnxruntime.embed_one(&text)))),
                ),
                (
                    "isovec, portable engine",
                    Box::new(|| drop(black_box(portable.embed_one(&text)))),
                ),
            ],
        );
        print!("{medians}");
    }
    Ok(())
}

/// The peak of a process that has loaded the model and embedded texts of both lengths, and the weights' bytes.
fn memory_of(folder: &Path, engine: EngineChoice) -> Result<(), AnyError> {
    let embedder = load(folder, engine, None)?;
    let loaded = memory()?;
    for (tokens, _) in ROUNDS {
        let text = text(&embedder, tokens)?;
        for _ in 0..CALLS {
            embedder.embed_one(&text)?;
        }
    }
    let weights = embedder.description().weights_bytes as f64 / (1024.0 * 1024.0);
    let now = memory()?;
    println!("{weights} {} {} {}", loaded.now, now.now, now.peak);
    Ok(())
}

fn memory_line(engine: &str, folder: &Path) -> Result<String, AnyError> {
    let mut columns: [Vec<f64>; 4] = Default::default();
    for _ in 0..SAMPLES {
        let line = run_part(&format!("{engine} {}", folder.display()))?;
        let values: Vec<f64> = line
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let &[weights, loaded, now, peak] = &values[..] else {
            return Err(format!("the part wrote {line}").into());
        };
        for (column, value) in columns.iter_mut().zip([weights, loaded, now, peak]) {
            column.push(value);
        }
    }
    let [weights, loaded, now, peak] = columns.map(median);
    Ok(format!(
        "{engine}: weights {weights:.1} MiB; resident {loaded:.1} MiB when loaded, {now:.1} after {} texts; peak \
         {peak:.1} MiB, {:.1} over the weights (medians of {SAMPLES} processes)",
        CALLS * ROUNDS.len(),
        peak - weights
    ))
}
