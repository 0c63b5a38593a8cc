//! The command line as clap reads it.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::commands::bench::limits::{MOST_CALLERS, MOST_ROUNDS, MOST_SECONDS};
use crate::config::Preset;
use crate::profile::ProfileArgs;

/// Text embeddings: the same vectors here, on the server and in the browser.
#[derive(Debug, Parser)]
#[command(
    name = "isovec",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the model cannot be loaded, 4 slower than what it was \
    compared with (bench --compare), 130 interrupted.\n\
    ISOVEC_LOG=debug shows what happens underneath."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Turn texts into vectors: one row out for each row in, in order, empty ones included.
    ///
    /// Rows are read, embedded and written as a stream, in flat memory. A row that cannot be read or
    /// embedded ends the run with its number; the rows before it are written.
    ///
    /// While a .jsonl or .npy file is written, FILE.progress beside it says how far it is. It goes
    /// when the file is complete; after Ctrl-C, a crash or a full disk it stays, and the same command
    /// with --resume goes on from there: no row is lost or written twice. Without --resume the file
    /// is written anew.
    Embed(Embed),
    /// Give texts labels with scores, by a model that was trained to tell them apart: sentiment, topic, language.
    ///
    /// Rows are read, classified and written as a stream, in flat memory, in their order. A row that cannot be read or
    /// classified ends the run with its number; the rows before it are written.
    Classify(Classify),
    /// How alike two texts are.
    Similarity(SimilarityArgs),
    /// Find the passages of files that are nearest to a query.
    Search(Search),
    /// Write a model as one ONNX file, pooling and normalisation inside.
    Export(Export),
    /// Measure this machine with a model and texts of yours: batches, lengths, callers.
    ///
    /// --save keeps every turn under a name, --compare measures the same again and says of each figure how much slower
    /// or faster it is, with a confidence interval: all of them together are right with 95 %. The exit code is 4 where
    /// any is slower by more than --threshold for certain.
    Bench(Box<Bench>),
    /// What would make it faster or smaller on this machine, with your model and texts.
    ///
    /// Embeds the texts for some seconds and looks at what was counted. Every suggestion quotes what it
    /// is based on. What it would bring is an expectation, until --verify has tried it.
    Advise(Advise),
    /// The configuration that is fastest on this machine, with your model and texts.
    ///
    /// Tries what `advise` suggests and the neighbours of the knobs that matter, keeps what is faster
    /// with the same vectors, and goes on until nothing is. Begins with --preset and --config.
    Tune(Tune),
    /// What would run: model, engine, provider, hardware, and every knob with its reason.
    Info(Info),
    /// What the model is made of, node by node: operators, extents, parameters, FLOPs, bytes, and who runs them.
    ///
    /// Shows the graph as the engine runs it that would be chosen for this model and these options: isovec's own plan
    /// on the portable engine and the GPU, the optimised graph on ONNX Runtime. With --profile, how long each node
    /// takes.
    Graph(GraphArgs),
    /// What there is to compute with: the machine, and which engines and providers of this build can be used on it, with
    /// the reason where one cannot. Loads no model.
    Features(Features),
    /// What a trace says: times by stage, the slowest requests, the critical path, how full batches
    /// were. With a second trace, what changed.
    ///
    /// Reads what --profile writes, ONNX Runtime's own profiles (session.profiling) and Chrome's
    /// traces, as a stream: a trace may be larger than the memory. One that was cut off is read up
    /// to the cut.
    Trace(Trace),
}

/// Which model, and what runs it.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// A folder (written as a path: ./model), or a model id of the hub. Without it: all-MiniLM-L6-v2,
    /// from where set-up put it, else from the hub.
    #[arg(long, value_name = "FOLDER|ID", env = "ISOVEC_MODEL")]
    pub(crate) model: Option<String>,

    /// A configuration to begin with; --config and the options override it.
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

    /// Tokens of a text that the model sees [default: as the model says].
    #[arg(long, value_name = "N")]
    pub(crate) max_length: Option<usize>,

    /// Keep only the first components (matryoshka models).
    #[arg(long, value_name = "N")]
    pub(crate) dimension: Option<usize>,

    /// How weights are stored [default: as the model's file has them].
    #[arg(long, value_enum)]
    pub(crate) dtype: Option<DtypeArg>,

    /// Branch, tag or commit of the model id [default: main].
    #[arg(long, value_name = "REVISION")]
    pub(crate) revision: Option<String>,

    /// Use only what is in the cache.
    #[arg(long)]
    pub(crate) offline: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArg {
    /// ONNX Runtime where its library was named, else the portable engine.
    Auto,
    /// ONNX Runtime, or an error.
    Onnxruntime,
    /// The portable engine: nothing to install.
    Portable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DtypeArg {
    /// The smallest form with vectors as good that the hub has.
    Auto,
    /// As they are published.
    F32,
    /// 16-bit floats: half the bytes.
    F16,
    /// 8-bit integers, a scale for every output of a matrix: a quarter of the bytes.
    Int8,
}

/// Where texts come from.
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
pub(crate) struct Embed {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// How vectors are written [default: by the ending of --out, else jsonl].
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,

    /// Where they are written [default: standard output].
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Go on where an interrupted run into --out stopped: same input, model and options. For .jsonl
    /// and .npy files.
    #[arg(long)]
    pub(crate) resume: bool,

    /// The role of the texts, which chooses the model's prompt.
    #[arg(long, value_enum, default_value_t = RoleArg::Default)]
    pub(crate) role: RoleArg,

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
    /// isovec's own index, which the SDK and the npm package open (safetensors). Kept in memory
    /// until the end.
    Safetensors,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleArg {
    Default,
    Query,
    Passage,
}

#[derive(Debug, clap::Args)]
#[command(mut_arg("model", |model| model.required(true).help(
    "A folder (written as a path: ./model), or a model id of the hub: a model that was trained to classify"
)))]
// Labels have no components.
#[command(mut_arg("dimension", |dimension| dimension.hide(true)))]
pub(crate) struct Classify {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// How labels are written [default: by the ending of --out, else a table].
    #[arg(long, value_enum)]
    pub(crate) format: Option<LabelsFormat>,

    /// Where they are written [default: standard output].
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// What scores are [default: what the kind of problem in the model's config.json asks for].
    #[arg(long, value_enum)]
    pub(crate) scores: Option<ScoresArg>,

    /// Labels of each text, the highest score first [default: 1 in a table and in CSV, all in JSON].
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
    /// What is looked for.
    pub(crate) query: String,

    /// Files and folders to look in. Folders are walked; what .gitignore names, and what is no
    /// text, is left out.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// How many passages to show.
    #[arg(long = "top-k", short = 'k', value_name = "N", default_value_t = 5)]
    pub(crate) top_k: usize,

    /// What a passage is.
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

#[derive(Debug, clap::Args)]
#[command(mut_arg("texts", |texts| texts.required_unless_present_any(["list", "with"])))]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Turns that everything takes; the middle one counts [default: 3; with --save 8, with --compare the baseline's].
    #[arg(long, value_name = "N", value_parser = turns)]
    pub(crate) rounds: Option<usize>,

    /// How long a turn may take, about; as many of the texts as fit into it are used [default: 2, with --compare the
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

    /// Write a page with charts and tables, which needs nothing but itself.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) kept: KeptArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// What is kept of a benchmark, and what it is compared with.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Comparing")]
pub(crate) struct KeptArgs {
    /// Keep every turn under this name, in isovec's cache folder; in a file if it has a separator or ends in .json.
    #[arg(long, value_name = "NAME")]
    pub(crate) save: Option<String>,

    /// Compare with what was kept under this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) compare: Option<String>,

    /// Measure nothing: compare with what was kept under this other name.
    #[arg(long, value_name = "NAME", requires = "compare", conflicts_with_all = MEASURING)]
    pub(crate) with: Option<String>,

    /// How much slower a figure may be, in percent, before the exit code is 4.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent, requires = "compare")]
    pub(crate) threshold: f64,

    /// Compare although it was measured on another machine, and say so.
    #[arg(long, requires = "compare")]
    pub(crate) allow_other_machine: bool,

    /// List what is kept.
    #[arg(long, conflicts_with_all = MEASURING, conflicts_with_all = ["compare", "with", "html"])]
    pub(crate) list: bool,
}

/// What means nothing where nothing is measured. (The model may be named by the environment, and is left out.)
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

fn positive(text: &str) -> Result<f64, String> {
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
    /// What counts.
    #[arg(long, value_enum, default_value_t = GoalArg::Throughput)]
    pub(crate) goal: GoalArg,

    /// Pairs of turns of a trial.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = rounds)]
    pub(crate) rounds: usize,

    /// How long a turn takes, about; as many of the texts as fit into it are used.
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

    /// Look at what was written down elsewhere, an AnalysisContext as JSON, instead of embedding anything.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["verify", "files", "texts"])]
    pub(crate) context: Option<PathBuf>,

    /// Try every change of the configuration against what runs now, in turns on the same texts, and say
    /// by how much it is faster.
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

    /// How long it may take, about.
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0, value_parser = positive)]
    pub(crate) time: f64,

    /// Try smaller forms of the weights and arithmetic in fewer bits as well; --tolerance says how far
    /// vectors may move.
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
fn rounds(text: &str) -> Result<usize, String> {
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
    /// How it is shown.
    #[arg(long, value_enum, default_value_t = GraphFormat::Text)]
    pub(crate) format: GraphFormat,

    /// Where it is written [default: standard output].
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Texts of the batch that FLOPs and bytes are counted for.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    pub(crate) rows: usize,

    /// Tokens of each of them.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = at_least_one)]
    pub(crate) tokens: usize,

    /// The graph as the model's file has it, with its pooling head, before any engine.
    #[arg(long)]
    pub(crate) onnx: bool,

    /// Every layer of its own, and every node, in the text.
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
    /// A page that loads nothing from anywhere.
    Html,
    /// Everything that is known, for programs.
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

    /// Only what ends after this time since the trace's first event, such as 1.5s or 200ms.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) start: Option<std::time::Duration>,

    /// Only what begins before this time since the trace's first event.
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
