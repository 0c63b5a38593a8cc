//! The command line as clap reads it.

use std::path::PathBuf;
#[cfg(any(feature = "serve", feature = "route"))]
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use isovec::optimize::budget::Bound;
use isovec::optimize::{Level, Pass};
use isovec::{CompactForm, Prompt, Scores};
use serde::{Deserialize, Serialize};

use crate::commands::bench::limits::{MOST_CALLERS, MOST_ROUNDS, MOST_SECONDS};
use crate::config::Preset;
use crate::profile::ProfileArgs;

/// Text embeddings: the same vectors on the command line, on a server and in the browser.
#[derive(Debug, Parser)]
#[command(
    name = "isovec",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the model cannot be loaded, 4 slower than the baseline \
    (bench --compare) or no model within the budget (optimize --budget), 130 interrupted.\n\
    ISOVEC_LOG=debug shows what happens underneath."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Turn texts into vectors: one output row for each input row, in order, including empty ones.
    ///
    /// Rows are read, embedded and written as a stream, in constant memory. A row that cannot be read or embedded
    /// ends the run with its number; the rows before it are written.
    ///
    /// While a .jsonl or .npy file is written, FILE.progress beside it stores the progress. It is removed when the
    /// file is complete. After Ctrl-C, a crash or a full disk it stays, and the same command with --resume continues
    /// from there: no row is lost or written twice. Without --resume the file is written from the start.
    Embed(Embed),
    /// Give texts labels with scores, by a model that was trained for them: sentiment, topic, language.
    ///
    /// Rows are read, classified and written as a stream, in flat memory, in their order. A row that cannot be read or
    /// classified ends the run with its number; the rows before it are written.
    Classify(Classify),
    /// Print the similarity of two texts.
    Similarity(SimilarityArgs),
    /// Find the passages of files that are nearest to a query.
    Search(Search),
    /// Put documents in the order of their relevance to a query, by a model that reads each with the query (a cross-encoder).
    Rerank(Rerank),
    /// Read the text of pictures, with a box around each line.
    ///
    /// Takes PP-OCR's three networks, as the Python package rapidocr-onnxruntime 1.4.4 has them. A picture that cannot be read is
    /// named and left out, and the exit code is then 1.
    #[cfg(feature = "ocr")]
    Ocr(Ocr),
    /// Write a model as one ONNX file, including pooling and normalisation.
    Export(Export),
    /// Write a smaller or faster model, and report what that changed on your own texts.
    ///
    /// Takes out the tokens that your texts do not have (--keep-tokens-of), makes a static model (--static), and stores
    /// weights in fewer bits (--dtype).
    /// The folder loads as a model, gets its name when it is complete, and has the same bytes on every run. The report
    /// has sizes, what was applied and what was not, and with texts the cosine, the neighbours and the time before and
    /// after.
    Optimize(Box<Optimize>),
    /// Measure this machine with your model and texts: batches, lengths, callers.
    ///
    /// --save stores every turn under a name. --compare measures the same again and shows for each figure how much
    /// slower or faster it is, with a confidence interval; all intervals together hold with 95 % confidence. The exit
    /// code is 4 if any figure is certainly slower by more than --threshold.
    Bench(Box<Bench>),
    /// Suggest changes that make embedding faster or smaller on this machine, with your model and texts.
    ///
    /// Embeds the texts for some seconds and examines the statistics. Every suggestion quotes its evidence.
    /// Improvements are expectations until --verify has measured them.
    Advise(Advise),
    /// Find the fastest configuration on this machine, with your model and texts.
    ///
    /// Tries the suggestions of `advise` and neighbouring values of the knobs that matter, keeps changes that are
    /// faster with the same vectors, and repeats this until none is. Starts from --preset and --config.
    Tune(Tune),
    /// Show what would run: model, engine, provider, hardware, and every knob with its reason.
    Info(Info),
    /// Show the model's graph, node by node: operators, shapes, parameters, FLOPs, bytes, and providers.
    ///
    /// Shows the graph that the engine for this model and these options runs: isovec's own program on the portable
    /// engine and the GPU, the optimised graph on ONNX Runtime. With --profile, also the time of each node.
    Graph(GraphArgs),
    /// Show the hardware, and which engines and providers of this build work on it, with the reason if one does not.
    /// Loads no model.
    Features(Features),
    /// Summarise a trace: times by stage, the slowest requests, the critical path, the padding of batches. With a
    /// second trace, show the changes.
    ///
    /// Reads traces of --profile, ONNX Runtime's own profiles (session.profiling) and Chrome's traces, as a stream: a
    /// trace may be larger than the memory. A truncated trace is read up to its end.
    Trace(Trace),
    /// Turn texts in many files into vectors in many files, exactly once, by runs that may be killed at any point.
    ///
    /// SPEC is a TOML file: the input (Parquet, JSON lines), the output, the columns, the model. The input is cut into units of
    /// work, and each has an output of its own. The same command goes on with what is left. Several of them may run at the
    /// same time.
    #[cfg(feature = "jobs")]
    #[command(subcommand)]
    Job(Job),
    /// Answer requests over HTTP: an embedding server for OpenAI's clients and those of text-embeddings-inference.
    ///
    /// The port opens at once; /health/ready is 200 when the model computes. A request is let in as a whole or gets 429.
    /// Ctrl-C and SIGTERM let nobody in any more, and end the program when everybody inside was answered; a second one
    /// ends it at once. Standard error has a line for each request, without texts and keys.
    #[cfg(feature = "serve")]
    Serve(Box<Serve>),
    /// Send requests to several servers: one address before many replicas of `isovec serve`, without a model of its own.
    ///
    /// A replica is in rotation while /health/ready of it is 200. A request whose replica fails is sent to another, within its
    /// deadline. A replica with other models than the first one is refused. Ctrl-C and SIGTERM let nobody in any more, and end the
    /// program when everybody inside was answered; a second one ends it at once. /status and /metrics say how the replicas are.
    #[cfg(feature = "route")]
    Route(Box<Route>),
}

/// The model, and the engine that runs it.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// A folder (written as a path: ./model), or a model id of the hub. Without it: all-MiniLM-L6-v2, from the
    /// set-up's cache, else from the hub.
    #[arg(long, value_name = "FOLDER|ID", env = "ISOVEC_MODEL")]
    pub(crate) model: Option<String>,

    #[command(flatten)]
    pub(crate) knobs: KnobArgs,
}

/// How a model is loaded.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct KnobArgs {
    /// A starting configuration; --config and the options override it.
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) preset: Option<Preset>,

    /// A file of knobs, TOML or JSON by its ending; the options override it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The engine to run it [default: auto].
    #[arg(long, value_enum)]
    pub(crate) engine: Option<EngineArg>,

    /// Threads that work on one operator [default: physical cores, at most 4].
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// Tokens of a text that the model sees [default: from the model].
    #[arg(long, value_name = "N")]
    pub(crate) max_length: Option<usize>,

    /// Keep only the first components (matryoshka models).
    #[arg(long, value_name = "N")]
    pub(crate) dimension: Option<usize>,

    /// How weights are stored [default: as in the model's file].
    #[arg(long, value_enum)]
    pub(crate) dtype: Option<DtypeArg>,

    /// Branch, tag or commit of the model id [default: main].
    #[arg(long, value_name = "REVISION")]
    pub(crate) revision: Option<String>,

    /// Use only what is in the cache.
    #[arg(long)]
    pub(crate) offline: bool,

    /// Hash the weights, also where files that did not change were hashed before.
    #[arg(long)]
    pub(crate) verify_weights: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArg {
    /// ONNX Runtime if its library was named, else the portable engine.
    Auto,
    /// ONNX Runtime, or an error.
    Onnxruntime,
    /// The portable engine, which needs nothing installed.
    Portable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DtypeArg {
    /// The smallest published form of equal quality.
    Auto,
    /// As published.
    F32,
    /// 16-bit floats: half the bytes.
    F16,
    /// The upper halves of 32-bit floats: half the bytes, and exact for checkpoints that are published so.
    Bf16,
    /// 8-bit integers, a scale for every output of a matrix: a quarter of the bytes.
    Int8,
    /// The same bytes, and activations rounded to 8 bits: faster where the processor multiplies bytes.
    Int8Fast,
    /// 4 bits a value on average, for a small download; of `export` alone, as `optimize --int4 --dtype f16` makes it without texts.
    Int4,
}

/// The source of the texts.
#[derive(Debug, clap::Args)]
pub(crate) struct InputArgs {
    /// The texts; `-` reads standard input, one text a line.
    #[arg(value_name = "TEXT", required_unless_present = "files")]
    pub(crate) texts: Vec<String>,

    /// Read texts from files: .jsonl (see --field), .csv (see --field), else one text a line.
    #[arg(long = "file", short = 'f', value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// How standard input and files are read [default: by the file's ending].
    #[arg(long, value_enum)]
    pub(crate) input_format: Option<InputFormat>,

    /// The JSON field or CSV column that holds the text.
    #[arg(long, default_value = "text")]
    pub(crate) field: String,
}

#[derive(Debug, clap::Args)]
#[cfg_attr(feature = "image", command(mut_arg("texts", |texts| texts.required_unless_present_any(["files", "images"]))))]
pub(crate) struct Embed {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Embed pictures instead of texts: files, and folders with all that is in them. PNG, JPEG, WebP and GIF, whatever
    /// they are called. One that cannot be read is named and left out, and the exit code is then 1.
    #[cfg(feature = "image")]
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with_all = ["texts", "files", "resume", "role", "sparse", "multi_vector"])]
    pub(crate) images: Vec<PathBuf>,

    /// Give every text weights of words instead of a vector, by a SPLADE model (named with --model). Written as JSON lines.
    #[arg(long, conflicts_with = "resume", requires = "model")]
    pub(crate) sparse: bool,

    /// Give every token of a text a vector, by a model of late interaction such as ColBERT (named with --model). Written as JSON lines,
    /// or with --out and its ending .safetensors as a set to search in. --role query reads texts as queries.
    #[arg(long, conflicts_with_all = ["resume", "sparse"], requires = "model")]
    pub(crate) multi_vector: bool,

    /// Keep so many of the largest weights of each text.
    #[arg(long, value_name = "N", requires = "sparse", value_parser = at_least_one)]
    pub(crate) top_k: Option<usize>,

    /// Write so many of the heaviest words beside the weights, for people.
    #[arg(long, value_name = "N", requires = "sparse", value_parser = at_least_one)]
    pub(crate) words: Option<usize>,

    /// How vectors are written [default: by the ending of --out, else jsonl].
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,

    /// Write vectors in a quarter (int8) or a thirty-second (binary) of their bytes. For .safetensors files.
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "sparse")]
    pub(crate) compact: Option<CompactArg>,

    /// Where they are written [default: standard output].
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Continue an interrupted run into --out, with the same input, model and options. For .jsonl and .npy files.
    #[arg(long)]
    pub(crate) resume: bool,

    /// The role of the texts, which chooses the model's prompt.
    #[arg(long, value_enum, default_value_t = RoleArg::Default)]
    pub(crate) role: RoleArg,

    /// Another prompt of the model's, or one of its adapters, by its name.
    #[arg(long, value_name = "NAME", conflicts_with = "role")]
    pub(crate) prompt: Option<String>,

    /// Print a summary of the run as JSON on standard error.
    #[arg(long)]
    pub(crate) json: bool,

    /// Print what was counted (sessions, buffers, provider, padding, times) as JSON on standard
    /// error; with --json, inside it.
    #[arg(long)]
    pub(crate) stats: bool,

    #[command(flatten)]
    pub(crate) profile: ProfileArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompactArg {
    /// 8-bit whole numbers and a scale for each vector.
    Int8,
    /// The sign of each component.
    Binary,
}

impl CompactArg {
    /// As the SDK names it.
    pub(crate) fn form(self) -> CompactForm {
        match self {
            Self::Int8 => CompactForm::Int8,
            Self::Binary => CompactForm::Binary,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    Lines,
    Jsonl,
    Csv,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// A JSON object a line, with at least "embedding".
    Jsonl,
    /// NumPy, float32 [n, dim]. Needs --out.
    Npy,
    /// Columns `text` and `embedding`.
    #[cfg(feature = "columns")]
    Parquet,
    /// Arrow IPC: a file with --out, else a stream.
    #[cfg(feature = "columns")]
    Arrow,
    /// isovec's own index, which the SDK and the npm package open (safetensors). Held in memory until the end.
    Safetensors,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RoleArg {
    #[default]
    Default,
    Query,
    Passage,
}

impl RoleArg {
    /// The prompt of the role.
    pub(crate) fn prompt(self) -> Prompt {
        match self {
            Self::Default => Prompt::Default,
            Self::Query => Prompt::Query,
            Self::Passage => Prompt::Passage,
        }
    }
}

impl Embed {
    /// The prompt before the texts.
    pub(crate) fn prompt(&self) -> Prompt {
        match &self.prompt {
            Some(name) => Prompt::Named(name.clone()),
            None => self.role.prompt(),
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(mut_arg("model", |model| model.required(true).help(
    "A folder (written as a path: ./model), or a model id of the hub: a model that was trained to classify"
)))]
// Labels have no components.
#[command(mut_arg("dimension", |dimension| dimension.hide(true)))]
#[cfg_attr(feature = "image", command(mut_arg("texts", |texts| texts.required_unless_present_any(["files", "images"]))))]
pub(crate) struct Classify {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Classify pictures instead of texts: files, and folders with all that is in them. PNG, JPEG, WebP and GIF, whatever
    /// they are called. One that cannot be read is named and left out, and the exit code is then 1.
    #[cfg(feature = "image")]
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with_all = ["texts", "files"])]
    pub(crate) images: Vec<PathBuf>,

    /// How labels are written [default: by the ending of --out, else a table].
    #[arg(long, value_enum)]
    pub(crate) format: Option<LabelsFormat>,

    /// Where they are written [default: standard output].
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// What scores are [default: what the kind of problem in the model's config.json asks for].
    #[arg(long, value_enum)]
    pub(crate) scores: Option<ScoresArg>,

    /// Labels of each text or picture, the highest score first [default: 1 in a table and in CSV, all in JSON].
    #[arg(long = "top-k", short = 'k', value_name = "N", value_parser = at_least_one)]
    pub(crate) top_k: Option<usize>,

    /// Print what was counted (sessions, buffers, provider, padding, times) as JSON on standard error.
    #[arg(long)]
    pub(crate) stats: bool,

    #[command(flatten)]
    pub(crate) profile: ProfileArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

impl Classify {
    pub(crate) fn scores(&self) -> Option<Scores> {
        self.scores.map(|scores| match scores {
            ScoresArg::Softmax => Scores::Softmax,
            ScoresArg::Sigmoid => Scores::Sigmoid,
            ScoresArg::Logits => Scores::Logits,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LabelsFormat {
    /// Columns for people: label, score, and how the text begins.
    Table,
    /// A JSON object a line: the row's own fields, or "text", and "labels".
    Jsonl,
    /// The same objects as one array.
    Json,
    /// Columns `text`, `label`, `score` and `truncated`, a record for each text and label.
    Csv,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScoresArg {
    /// Probabilities that add up to 1: one label is right.
    Softmax,
    /// A probability for each label by itself: several may be right.
    Sigmoid,
    /// The model's own numbers, as they are.
    Logits,
}

#[cfg(feature = "ocr")]
#[derive(Debug, clap::Args)]
// Pictures have no tokens, and text has no components.
#[command(mut_arg("dimension", |dimension| dimension.hide(true)), mut_arg("max_length", |length| length.hide(true)))]
pub(crate) struct Ocr {
    /// Pictures: files, and folders with all that is in them. PNG, JPEG, WebP and GIF, whatever they are called.
    #[arg(required = true, value_name = "IMAGE")]
    pub(crate) images: Vec<PathBuf>,

    /// How the text is written [default: by the ending of --out, else text].
    #[arg(long, value_enum)]
    pub(crate) format: Option<TextFormat>,

    /// Where it is written [default: standard output].
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Leave out lines with a lower score than this, from 0 to 1 [default: 0.5].
    #[arg(long, value_name = "SCORE")]
    pub(crate) min_score: Option<f64>,

    /// Take every line to be upright, and load no network that finds out.
    #[arg(long, conflicts_with = "orientation")]
    pub(crate) upright: bool,

    /// The folder with the three networks (written as a path: ./model), or a model id of the hub. Without it: where `cargo xtask
    /// setup` put them.
    #[arg(long, value_name = "FOLDER|ID", help_heading = "Model")]
    pub(crate) model: Option<String>,

    /// The network that finds lines [default: ch_PP-OCRv4_det_infer.onnx].
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) detector: Option<String>,

    /// The network that knows which way up a line is [default: ch_ppocr_mobile_v2.0_cls_infer.onnx].
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) orientation: Option<String>,

    /// The network that reads lines [default: ch_PP-OCRv4_rec_infer.onnx].
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) recognizer: Option<String>,

    #[command(flatten)]
    pub(crate) knobs: KnobArgs,
}

#[cfg(feature = "ocr")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// The lines alone, with an empty line between two pictures.
    Text,
    /// A JSON object a picture and line: "image", "width", "height" and "lines", each with "text", "score" and "corners".
    Jsonl,
    /// The same objects as one array.
    Json,
    /// hOCR 1.2: XHTML with boxes, a page for each picture.
    Hocr,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SimilarityArgs {
    /// A text.
    pub(crate) a: String,
    /// Another.
    pub(crate) b: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Print what was counted (sessions, buffers, provider, padding, times) as JSON on standard
    /// error; with --json, inside it.
    #[arg(long)]
    pub(crate) stats: bool,

    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Search {
    /// The query.
    pub(crate) query: String,

    /// Files and folders to search. Folders are searched recursively, without files that .gitignore names and files
    /// that are not text.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Search pictures instead of passages: with a text, by a model that reads both (CLIP), or with a picture, whose file is
    /// then the query. Pictures that cannot be read are named and left out.
    #[cfg(feature = "image")]
    #[arg(long, conflicts_with = "by")]
    pub(crate) images: bool,

    /// How many passages, or pictures, to show.
    #[arg(long = "top-k", short = 'k', value_name = "N", default_value_t = 5)]
    pub(crate) top_k: usize,

    /// Put what the vectors find in a better order: a cross-encoder, by its folder or id, reads the query with each of the
    /// best --candidates. Slower, and nearer to what is meant.
    #[arg(long, value_name = "FOLDER|ID")]
    #[cfg_attr(feature = "image", arg(conflicts_with = "images"))]
    pub(crate) rerank: Option<String>,

    /// Passages that --rerank reads; at least as many as are shown.
    #[arg(long, value_name = "N", default_value_t = 50, requires = "rerank", value_parser = at_least_one)]
    pub(crate) candidates: usize,

    /// The unit of a passage.
    #[arg(long, value_enum, default_value_t = Unit::Paragraph)]
    pub(crate) by: Unit,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Print what was counted (sessions, buffers, provider, padding, times) as JSON on standard
    /// error; with --json, inside it.
    #[arg(long)]
    pub(crate) stats: bool,

    #[command(flatten)]
    pub(crate) profile: ProfileArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    /// Lines between blank lines.
    Paragraph,
    /// Each line that is not blank.
    Line,
}

#[derive(Debug, clap::Args)]
#[command(mut_arg("model", |model| model.required(true).help(
    "A folder (written as a path: ./model), or a model id of the hub: a cross-encoder"
)))]
#[command(mut_arg("texts", |texts| texts.value_name("DOCUMENT").help(
    "The documents; `-` reads standard input, one document a line"
)))]
#[command(mut_arg("files", |files| files.help(
    "Read documents from files: .jsonl (see --field), .csv (see --field), else one document a line"
)))]
#[command(mut_arg("field", |field| field.help("The JSON field or CSV column that holds the document")))]
// Scores have no components.
#[command(mut_arg("dimension", |dimension| dimension.hide(true)))]
pub(crate) struct Rerank {
    /// The query.
    pub(crate) query: String,

    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// The instruction of a model that takes one; before the query of one without a chat template.
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt")]
    pub(crate) instruction: Option<String>,

    /// A prompt of the model's, by its name, in place of --instruction.
    #[arg(long, value_name = "NAME")]
    pub(crate) prompt: Option<String>,

    /// How many documents to show, the best first [default: all].
    #[arg(long = "top-n", short = 'n', value_name = "N", value_parser = at_least_one)]
    pub(crate) top_n: Option<usize>,

    /// What scores are; the order is the same [default: what the model's config.json asks for].
    #[arg(long, value_enum)]
    pub(crate) scores: Option<RelevanceArg>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Print what was counted (sessions, buffers, provider, padding, times) as JSON on standard
    /// error; with --json, inside it.
    #[arg(long)]
    pub(crate) stats: bool,

    #[command(flatten)]
    pub(crate) profile: ProfileArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RelevanceArg {
    /// Between 0 and 1.
    Sigmoid,
    /// The model's own numbers, as they are.
    Logits,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// The folder to write: model.onnx and the files that an embedder needs beside it.
    #[arg(long, short = 'o', value_name = "FOLDER")]
    pub(crate) out: PathBuf,

    /// Leave pooling and normalisation out; the output is last_hidden_state.
    #[arg(long)]
    pub(crate) no_head: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Optimize {
    /// The model, as --model names one.
    #[arg(value_name = "MODEL")]
    pub(crate) original: Option<String>,

    /// The folder to write; it must be new or empty.
    #[arg(long, short = 'o', value_name = "FOLDER")]
    pub(crate) out: PathBuf,

    /// Leave fewer nodes in the graph, by the passes of a level: none, basic (no operator computes other bits), extended (operators are
    /// joined, which rounds differently) or all. Passes are made before all else, and the report says what each saved.
    #[arg(long, value_name = "LEVEL", value_parser = one_of_levels(), conflicts_with = "static_dimension")]
    pub(crate) level: Option<Level>,

    /// A pass by its name, with --level or without; may be repeated.
    #[arg(long = "pass", value_name = "PASS", value_parser = one_of_passes(), conflicts_with = "static_dimension")]
    pub(crate) passes: Vec<Pass>,

    /// A TOML file with these options, under their names in snake case (keep_tokens_of, static_dimension, int8); an option that is
    /// given here wins over its value there. Its paths are relative to its own folder.
    #[arg(long, value_name = "FILE")]
    pub(crate) recipe: Option<PathBuf>,

    /// Texts like those that will be embedded: tokens that none of them has are taken out of the tokenizer and the model.
    /// Texts whose tokens are kept have the same vectors, bit for bit. .jsonl and .csv (see --field), else one text a line.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) keep_tokens_of: Vec<PathBuf>,

    /// Languages whose texts will be embedded, as en,de or zh-Hant: tokens in the letters of others are taken out, but for those of
    /// --keep-tokens-of.
    #[arg(long, value_name = "LANGUAGE", value_delimiter = ',')]
    pub(crate) keep_languages: Vec<String>,

    /// Make a static model: a vector of so many components for each token, and no transformer. Many times as fast, and
    /// less accurate: the report says how much on your texts. --dtype int8 makes the table a quarter.
    #[arg(long = "static", value_name = "COMPONENTS", value_parser = at_least_one)]
    pub(crate) static_dimension: Option<usize>,

    /// Take out columns, heads of attention, channels of convolutions and layers that the vectors of --calibrate, --texts or --images miss
    /// least, until this share of the bytes of all weights is gone, and of the multiplications with them: 10% or 0.1. The model is smaller and every engine computes less; the
    /// report says what it lost and whether it is faster.
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "static_dimension")]
    pub(crate) prune: Option<f64>,

    /// Make products of whole numbers of 8 bits, in an ONNX file for ONNX Runtime: twice as fast and more on processors with
    /// VNNI. static takes the scales of activations from --texts, or from --images for a model of pictures, whose convolutions are in
    /// int8 as well; dynamic measures them at each run, so that texts go through the model one at a time. What would lose too
    /// much stays in f32, and the report lists it.
    #[arg(long, value_enum, value_name = "SCALES")]
    pub(crate) int8: Option<Scales>,

    /// The strength, 0 to 1, with which --int8 moves scales from activations into weights (SmoothQuant) [default: with texts,
    /// the one with the least predicted noise, for each input].
    #[arg(long, value_name = "STRENGTH", value_parser = strength)]
    pub(crate) smooth: Option<f64>,

    /// Store matrices and tables in 4 bits a value on average, in blocks of 64 with a scale each, for a download of a seventh of the
    /// bytes. With texts they are rounded so that products change least on those. Engines compute with them in f32. --dtype f16 stores
    /// the other matrices in 16 bits.
    #[arg(long, conflicts_with_all = ["int8", "static_dimension"])]
    pub(crate) int4: bool,

    /// Bits of a value on average, 3 to 6, that --int4 stores; scales take a quarter of a bit more [default: 4].
    #[arg(long, value_name = "BITS", value_parser = average_bits)]
    pub(crate) bits: Option<f64>,

    /// A node that --int8 leaves in f32, by its name in the report; may be repeated.
    #[arg(long, value_name = "NODE")]
    pub(crate) in_f32: Vec<String>,

    /// Give the weights of --int8 7 bits instead of 8, for processors without VNNI: there ONNX Runtime cuts off sums of products of 8 bits.
    #[arg(long)]
    pub(crate) seven_bits: bool,

    /// Look at each node that --int8 makes alone: the report says what the vectors are with that node alone in int8. It takes a load and
    /// 32 texts or pictures for each node.
    #[arg(long)]
    pub(crate) each_node: bool,

    /// Search for the fastest model that keeps a bound: cosine>=0.995 (the worst text's or picture's), recall@10>=0.98, size<=12MB,
    /// latency<=5ms (of a call with one text or picture); may be repeated. Tries --dtype, --int4 (of texts) and --int8 in all forms,
    /// with --prune also without that share, and leaves nodes in f32 where a bound needs it. Every candidate is compared and timed on
    /// --texts, or on --images. Where none keeps all bounds nothing is written, and the exit code is 4.
    #[arg(long, value_name = "BOUND", conflicts_with_all = ["static_dimension", "int8", "int4", "dtype"])]
    pub(crate) budget: Vec<Bound>,

    /// Pairs of turns of a candidate and the original, with --budget [default: 12].
    #[arg(long, value_name = "N", value_parser = rounds)]
    pub(crate) rounds: Option<usize>,

    /// The approximate time of a turn, with --budget [default: 0.25].
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub(crate) seconds: Option<f64>,

    /// Texts to compare and time both models with [default: those of --keep-tokens-of].
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) texts: Vec<PathBuf>,

    /// Texts to calibrate --prune, --int8 and --int4 with: others than --texts, so that the comparison says what new texts will see
    /// [default: those of --texts].
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) calibrate: Vec<PathBuf>,

    /// Pictures to compare and time both models and all candidates of --budget with, of a model that reads pictures, and to calibrate --prune and --int8 with: files,
    /// and folders with all that is in them. At most 1,000 are taken, evenly from all of them.
    #[cfg(feature = "image")]
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with_all = ["texts", "calibrate", "keep_tokens_of", "keep_languages", "static_dimension", "int4"])]
    pub(crate) images: Vec<PathBuf>,

    /// Pictures to calibrate --prune and --int8 with: others than --images, so that the comparison says what new pictures will see
    /// [default: those of --images]. At most 1,000 are taken, evenly from all of them.
    #[cfg(feature = "image")]
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with_all = ["texts", "calibrate", "keep_tokens_of", "keep_languages", "static_dimension", "int4"])]
    pub(crate) calibrate_images: Vec<PathBuf>,

    /// The JSON field or CSV column that holds the text [default: text].
    #[arg(long)]
    pub(crate) field: Option<String>,

    /// Write the report to a file as well: .json, .html, else Markdown.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Print the report as JSON instead of Markdown.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

fn one_of_levels() -> impl TypedValueParser<Value = Level> {
    PossibleValuesParser::new(Level::ALL.map(Level::name)).try_map(|name| name.parse())
}

fn one_of_passes() -> impl TypedValueParser<Value = Pass> {
    PossibleValuesParser::new(Pass::ALL.map(Pass::name)).try_map(|name| name.parse())
}

/// Where the scales of activations in int8 come from.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Scales {
    /// From the texts.
    Static,
    /// From each run.
    Dynamic,
}

#[derive(Debug, clap::Args)]
#[command(mut_arg("texts", |texts| texts.required_unless_present_any(["list", "with"])))]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Turns of every measurement; the median counts [default: 3; with --save 8, with --compare the baseline's].
    #[arg(long, value_name = "N", value_parser = turns)]
    pub(crate) rounds: Option<usize>,

    /// The approximate time of a turn; it uses as many of the texts as fit [default: 2, with --compare the
    /// baseline's].
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub(crate) seconds: Option<f64>,

    /// Callers that ask at the same time [default: 64, with --compare the baseline's].
    #[arg(long, value_name = "N", value_parser = callers)]
    pub(crate) callers: Option<usize>,

    /// Measure calls of 1, 2, 4 … 64 texts of 16 to 256 tokens each as well: latency against throughput.
    #[arg(long)]
    pub(crate) curves: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a self-contained page with charts and tables.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) kept: KeptArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// Saving a benchmark, and its baseline.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Comparing")]
pub(crate) struct KeptArgs {
    /// Save every turn under this name, in isovec's cache folder; in a file if it has a separator or ends in .json.
    #[arg(long, value_name = "NAME")]
    pub(crate) save: Option<String>,

    /// Compare with the benchmark of this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) compare: Option<String>,

    /// Measure nothing: compare with the benchmark of this other name.
    #[arg(long, value_name = "NAME", requires = "compare", conflicts_with_all = MEASURING)]
    pub(crate) with: Option<String>,

    /// How much slower a figure may be, in percent, before the exit code is 4.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent, requires = "compare")]
    pub(crate) threshold: f64,

    /// Compare although the baseline was measured on another machine, and say so.
    #[arg(long, requires = "compare")]
    pub(crate) allow_other_machine: bool,

    /// List the saved benchmarks.
    #[arg(long, conflicts_with_all = MEASURING, conflicts_with_all = ["compare", "with", "html"])]
    pub(crate) list: bool,
}

/// Options without effect if nothing is measured. (The model may come from the environment, and is not included.)
const MEASURING: [&str; 16] = [
    "texts",
    "files",
    "input_format",
    "rounds",
    "seconds",
    "callers",
    "curves",
    "save",
    "preset",
    "config",
    "engine",
    "threads",
    "max_length",
    "dimension",
    "dtype",
    "revision",
];

fn turns(text: &str) -> Result<usize, String> {
    match at_least_one(text)? {
        turns if turns <= MOST_ROUNDS => Ok(turns),
        _ => Err(format!("has to be at most {MOST_ROUNDS}")),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=1000.0).contains(&percent) => Ok(percent),
        Ok(_) => Err("has to be at least 0 and at most 1000".into()),
        Err(error) => Err(format!("{error}")),
    }
}

/// Each has a thread of its own.
fn callers(text: &str) -> Result<usize, String> {
    match at_least_one(text)? {
        callers if callers <= MOST_CALLERS => Ok(callers),
        _ => Err(format!("has to be at most {MOST_CALLERS}")),
    }
}

pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("has to be at least 1".into()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

/// A share, as `10%` or `0.1`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let (number, whole) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(share) if share > 0.0 && share < whole => Ok(share / whole),
        Ok(_) => Err("has to be more than 0 and less than all: 10% or 0.1".into()),
        Err(error) => Err(format!("{error}: give a share like 10% or 0.1")),
    }
}

/// How strongly scales are moved.
pub(crate) fn strength(text: &str) -> Result<f64, String> {
    within(text, 0.0, 1.0)
}

/// Bits of a value on average.
pub(crate) fn average_bits(text: &str) -> Result<f64, String> {
    within(text, 3.0, 6.0)
}

fn within(text: &str, least: f64, most: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        Ok(_) => Err(format!("has to be from {least} to {most}")),
        Err(error) => Err(format!("{error}")),
    }
}

pub(crate) fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= MOST_SECONDS => Ok(seconds),
        Ok(_) => Err(format!("has to be more than 0 and at most {MOST_SECONDS}")),
        Err(error) => Err(format!("{error}")),
    }
}

/// How two configurations are compared.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Trials")]
pub(crate) struct TrialArgs {
    /// The goal.
    #[arg(long, value_enum, default_value_t = GoalArg::Throughput)]
    pub(crate) goal: GoalArg,

    /// Pairs of turns of a trial.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = rounds)]
    pub(crate) rounds: usize,

    /// The approximate time of a turn; it uses as many of the texts as fit.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, value_parser = positive)]
    pub(crate) seconds: f64,

    /// The largest L2 distance of two vectors of a text that still counts as the same [default: 1e-4].
    #[arg(long, value_name = "L2", value_parser = positive)]
    pub(crate) tolerance: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GoalArg {
    /// Texts a second, many in a call.
    Throughput,
    /// The time of a call with one text.
    Latency,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImpactArg {
    Low,
    Medium,
    High,
    Critical,
}

impl From<ImpactArg> for isovec_insight::advisor::Impact {
    fn from(impact: ImpactArg) -> Self {
        match impact {
            ImpactArg::Low => Self::Low,
            ImpactArg::Medium => Self::Medium,
            ImpactArg::High => Self::High,
            ImpactArg::Critical => Self::Critical,
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(mut_arg("texts", |texts| texts.required_unless_present_any(["files", "context"])))]
pub(crate) struct Advise {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Analyse a saved AnalysisContext (JSON) instead of embedding texts.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["verify", "files", "texts"])]
    pub(crate) context: Option<PathBuf>,

    /// Test every change of the configuration against the current one, in turns on the same texts, and show by how
    /// much it is faster. Where products in int8 may be faster, the model is made as well, in the folder for temporary files,
    /// compared, and removed.
    #[arg(long)]
    pub(crate) verify: bool,

    /// Only suggestions from this impact on.
    #[arg(long, value_enum, value_name = "IMPACT")]
    pub(crate) min_impact: Option<ImpactArg>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) trial: TrialArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Tune {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Write the configuration to this file, .toml or .json, for --config and the SDK.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// The approximate time limit.
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0, value_parser = positive)]
    pub(crate) time: f64,

    /// Try smaller forms of the weights and arithmetic in fewer bits as well; --tolerance is the allowed change of
    /// vectors.
    #[arg(long, requires = "tolerance")]
    pub(crate) allow_precision: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) trial: TrialArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// Fewer prove nothing.
pub(crate) fn rounds(text: &str) -> Result<usize, String> {
    match at_least_one(text)? {
        rounds if (6..=1000).contains(&rounds) => Ok(rounds),
        _ => Err("has to be from 6 to 1000; fewer can prove nothing".into()),
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Info {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GraphArgs {
    /// The output format.
    #[arg(long, value_enum, default_value_t = GraphFormat::Text)]
    pub(crate) format: GraphFormat,

    /// Where it is written [default: standard output].
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Texts in the batch for counts of FLOPs and bytes.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    pub(crate) rows: usize,

    /// Tokens of each of them.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = at_least_one)]
    pub(crate) tokens: usize,

    /// The graph in the model's file, with its pooling head, before an engine changes it.
    #[arg(long)]
    pub(crate) onnx: bool,

    /// Show every layer and every node in the text.
    #[arg(long)]
    pub(crate) expand: bool,

    /// Times of the nodes: a trace that `isovec embed --profile` wrote with the same model and options.
    #[arg(long, value_name = "FILE", conflicts_with = "onnx")]
    pub(crate) profile: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// A tree; equal layers once.
    Text,
    /// A flowchart that GitHub and others draw.
    Mermaid,
    /// A page that loads nothing.
    Html,
    /// All data, for programs.
    Json,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Features {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// A configuration to try engines with; --config overrides it.
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) preset: Option<Preset>,

    /// A file of knobs, TOML or JSON by its ending: its library and devices are the ones that are tried.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Trace {
    /// The trace, JSON.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Another one, to compare the first with.
    #[arg(value_name = "OTHER")]
    pub(crate) other: Option<PathBuf>,

    /// Only these stages: tokenize, queue, batch, wait, run, operator, copy, request, or the
    /// categories of another program's trace. Several are separated by commas.
    #[arg(long, value_name = "STAGE", value_delimiter = ',')]
    pub(crate) stage: Vec<String>,

    /// Only spans that end after this time since the trace's first event, such as 1.5s or 200ms.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) start: Option<std::time::Duration>,

    /// Only spans that begin before this time since the trace's first event.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) end: Option<std::time::Duration>,

    /// Only this request, and the batches that its texts were in.
    #[arg(long, value_name = "ID")]
    pub(crate) request: Option<u64>,

    /// Lines of each list, at most.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(feature = "jobs")]
#[derive(Debug, Subcommand)]
pub(crate) enum Job {
    /// Do what is left of a job. After Ctrl-C, a crash or a kill the same command goes on.
    ///
    /// A unit whose input is at fault is told, and the others are done; the exit code is then 1. If a store or the model fails
    /// on everything, the run ends with the unit at which it did.
    Run(JobArgs),
    /// Show how far a job is: units that are done, left and failed, rows, and outputs of input that has changed. Loads no
    /// model.
    Status(JobArgs),
    /// Say what a job takes on more workers than there are: time, worker-hours, rows computed twice, and what becomes the limit.
    ///
    /// A simulation of what the workers of a job do, from measured or given costs. The spec says how units are cut; how many texts
    /// and workers there are is said here. All costs stand in the answer, those that are assumed among them.
    Plan(JobPlan),
}

#[cfg(feature = "jobs")]
#[derive(Debug, clap::Args)]
pub(crate) struct JobPlan {
    /// The job, TOML. Its input needs to be there only with --measure.
    #[arg(value_name = "SPEC")]
    pub(crate) spec: PathBuf,

    /// Measure this machine: loads the model, embeds the first rows of the input, and times the store of the output. Nothing of
    /// the job is written.
    #[arg(long)]
    pub(crate) measure: bool,

    /// Rows to measure with.
    #[arg(long, value_name = "N", default_value = "2000", requires = "measure")]
    pub(crate) rows: std::num::NonZeroUsize,

    /// A file of costs, TOML; over what was measured.
    #[arg(long, value_name = "FILE")]
    pub(crate) costs: Option<PathBuf>,

    /// A cost, as a line of such a file: --cost failures_per_hour=0.1. Over the file; several times for several costs.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) cost: Vec<String>,

    /// Numbers of texts [default: 1000000,10000000,100000000,1000000000, as far as they can be simulated].
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub(crate) texts: Vec<u64>,

    /// Numbers of workers: processes, each with as many threads as the spec says.
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "1,10,100,1000"
    )]
    pub(crate) workers: Vec<u32>,

    /// Another seed is another run of chance: who takes which unit, and who dies when.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(feature = "jobs")]
#[derive(Debug, clap::Args)]
pub(crate) struct JobArgs {
    /// The job, TOML. Paths in it are relative to the working directory.
    #[arg(value_name = "SPEC")]
    pub(crate) spec: PathBuf,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(feature = "serve")]
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// The address to listen on; 0.0.0.0 and :: are all of the machine's.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: std::net::IpAddr,

    /// The port; 0 is any that is free.
    #[arg(long, value_name = "N", default_value_t = 8080)]
    pub(crate) port: u16,

    /// A folder (written as a path: ./model), or a model id of the hub; several times for several models. A request that names
    /// none of them gets the first that does what its route is for. Without it: ISOVEC_MODEL, else all-MiniLM-L6-v2.
    #[arg(long, value_name = "FOLDER|ID", help_heading = "Model")]
    pub(crate) model: Vec<String>,

    /// A TOML file with a table [[models]] for each model: source, name, aliases, task, dtype, device, loaded, config. SIGHUP
    /// reads it again.
    #[arg(long, value_name = "FILE", help_heading = "Model", conflicts_with_all = ["model", "name", "task"])]
    pub(crate) models: Option<PathBuf>,

    /// Let clients load and unload these models (POST /v2/repository/models/NAME/load).
    #[arg(long, help_heading = "Model")]
    pub(crate) model_control: bool,

    /// Bytes that loaded models may hold; one that does not fit is not loaded [default: no bound].
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) memory_budget: Option<u64>,

    /// What the model is for [default: what its config.json says].
    #[arg(long, value_enum, help_heading = "Model")]
    pub(crate) task: Option<TaskArg>,

    /// The name that clients call the model by [default: its id, or the name of its folder].
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    #[cfg(feature = "tls")]
    pub(crate) tls: TlsArgs,

    #[command(flatten)]
    #[cfg(feature = "otlp")]
    pub(crate) otlp: OtlpArgs,

    /// A file of API keys, one a line, of which requests have to carry one.
    #[arg(long, value_name = "FILE")]
    pub(crate) api_keys: Option<PathBuf>,

    /// The part of the limits that the requests of one API key may have, where there are two keys or more [default: 0.5].
    #[arg(long, value_name = "PART")]
    pub(crate) key_share: Option<f64>,

    /// Requests that are in work at the same time [default: 1024].
    #[arg(long, value_name = "N")]
    pub(crate) max_requests: Option<usize>,

    /// Their texts, all together [default: 8192].
    #[arg(long, value_name = "N")]
    pub(crate) max_texts: Option<usize>,

    /// Bytes of all bodies that are read or computed [default: 64 MiB].
    #[arg(long, value_name = "N")]
    pub(crate) max_bytes: Option<usize>,

    /// Bytes of one body [default: 16 MiB].
    #[arg(long, value_name = "N")]
    pub(crate) max_body: Option<usize>,

    /// Connections that are open at the same time [default: 4096].
    #[arg(long, value_name = "N")]
    pub(crate) max_connections: Option<usize>,

    /// How long a request may take; its header x-request-timeout can only shorten it [default: 60s].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) request_timeout: Option<Duration>,

    /// How long a client may take for a request's head, and for its body, and how long it may take nothing of its answer [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) read_timeout: Option<Duration>,

    /// How long a probe may take through the queue and the engine before the server is not ready [default: 5s].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) probe_timeout: Option<Duration>,

    /// How long requests in work may go on after Ctrl-C or SIGTERM [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) drain_timeout: Option<Duration>,

    /// How the log is written.
    #[arg(long, value_enum, default_value_t = LogArg::Text)]
    pub(crate) log: LogArg,

    #[command(flatten)]
    pub(crate) knobs: KnobArgs,
}

#[cfg(feature = "serve")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskArg {
    /// Vectors.
    Embed,
    /// The relevance of documents to a query.
    Rerank,
    /// Labels.
    Classify,
    /// Weights of words.
    Sparse,
    /// A vector for each token.
    MultiVector,
    /// Vectors of pictures.
    #[cfg(feature = "image")]
    EmbedImages,
}

/// Where traces go to.
#[cfg(all(feature = "otlp", any(feature = "route", feature = "serve")))]
#[derive(Debug, clap::Args)]
pub(crate) struct OtlpArgs {
    /// A collector that gets a trace of each request, by OTLP over HTTP: http://127.0.0.1:4318.
    #[arg(long, value_name = "URL")]
    pub(crate) otlp_endpoint: Option<String>,
}

/// What a port proves to be.
#[cfg(all(feature = "tls", any(feature = "route", feature = "serve")))]
#[derive(Debug, clap::Args)]
pub(crate) struct TlsArgs {
    /// A file of certificates as PEM, the server's own first: the port speaks TLS. SIGHUP reads both files again.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The certificate's key as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

#[cfg(feature = "route")]
#[derive(Debug, clap::Args)]
pub(crate) struct Route {
    /// A replica, and how many requests it gets for each one of the others: http://HOST:PORT or http://HOST:PORT=WEIGHT. Once for
    /// each.
    #[arg(long, value_name = "URL[=WEIGHT]", required = true)]
    pub(crate) to: Vec<String>,

    /// A file of certificates as PEM; a replica with https:// has to prove itself by one that they signed [default: the system's].
    #[arg(long, value_name = "FILE")]
    #[cfg(feature = "tls")]
    pub(crate) trust: Option<PathBuf>,

    /// The address to listen on; 0.0.0.0 and :: are all of the machine's.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: std::net::IpAddr,

    /// The port; 0 is any that is free.
    #[arg(long, value_name = "N", default_value_t = 8000)]
    pub(crate) port: u16,

    #[command(flatten)]
    #[cfg(feature = "tls")]
    pub(crate) tls: TlsArgs,

    #[command(flatten)]
    #[cfg(feature = "otlp")]
    pub(crate) otlp: OtlpArgs,

    /// Which replica a request goes to.
    #[arg(long, value_enum, default_value_t = StrategyArg::LeastLoaded)]
    pub(crate) strategy: StrategyArg,

    /// Compress bodies between router and replicas, in both directions: zstd or gzip, and a level: zstd=9 [level: 3].
    #[arg(long, value_name = "CODING[=LEVEL]")]
    pub(crate) compress: Option<String>,

    /// Join small requests to /v1/embeddings that come within this time, for the same model with the same options.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) join: Option<Duration>,

    /// Second tries, as a part of all requests [default: 0.2].
    #[arg(long, value_name = "PART")]
    pub(crate) retry_budget: Option<f32>,

    /// Requests that are in work at the same time [default: 4096].
    #[arg(long, value_name = "N")]
    pub(crate) max_requests: Option<usize>,

    /// Bytes of all requests' bodies that are held [default: 256 MiB].
    #[arg(long, value_name = "N")]
    pub(crate) max_bytes: Option<usize>,

    /// Bytes of one body [default: 16 MiB].
    #[arg(long, value_name = "N")]
    pub(crate) max_body: Option<usize>,

    /// Connections of clients that are open at the same time [default: 4096].
    #[arg(long, value_name = "N")]
    pub(crate) max_connections: Option<usize>,

    /// How long a request may take, all tries together; its header x-request-timeout can only shorten it [default: 60s].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) request_timeout: Option<Duration>,

    /// How long a client may take for a request's head, and for its body, and how long it may take nothing of its answer [default: 10s].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) read_timeout: Option<Duration>,

    /// How long a connection to a replica may take to open [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) connect_timeout: Option<Duration>,

    /// The time between two probes of a replica [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) probe_interval: Option<Duration>,

    /// How long a replica may take to answer a probe [default: 2s].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) probe_timeout: Option<Duration>,

    /// How long requests in work may go on after Ctrl-C or SIGTERM [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) drain_timeout: Option<Duration>,

    /// How the log is written.
    #[arg(long, value_enum, default_value_t = LogArg::Text)]
    pub(crate) log: LogArg,
}

#[cfg(feature = "route")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyArg {
    /// The one with fewer requests for its weight, of two that are drawn at random.
    LeastLoaded,
    /// All in turn, each as often as its weight says.
    RoundRobin,
}

#[cfg(any(feature = "serve", feature = "route"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogArg {
    /// Lines for people.
    Text,
    /// A JSON object a line.
    Json,
}
