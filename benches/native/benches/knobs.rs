//! What a knob gains: all-MiniLM-L6-v2, fp32, the default against the default with one knob changed, in turns. Memory is that
//! of processes of their own, which this program starts. Run it with `cargo xtask bench knobs`.

use std::hint::black_box;
use std::path::Path;

use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec::config::EngineChoice;
use isovec_bench::{
    AnyError, Contestant, Memory, PART, TEXT, Texts, median, memory, minilm, run_part, take_turns,
};

/// Texts of a call: most of up to 24 words, one in 32 of up to 200.
const CALL: usize = 96;
/// Rounds of a text, of a call, and of loading.
const ROUNDS: [usize; 3] = [200, 9, 9];
/// Processes for each setting.
const SAMPLES: usize = 3;

/// A setting's name, and the change that it is.
type Setting = (&'static str, fn(EmbeddingConfig) -> EmbeddingConfig);

const SETTINGS: [Setting; 11] = [
    ("the default", |config| config),
    ("session.graph_optimization_level = 0", |config| {
        config.with_graph_optimization_level(0)
    }),
    ("session.cpu_arena = false", |config| {
        config.with_cpu_arena(false)
    }),
    ("session.deterministic_compute = true", |config| {
        config.with_deterministic_compute(true)
    }),
    ("io.io_binding = false", |config| {
        config.with_io_binding(false)
    }),
    ("io.zero_copy = false", |config| {
        config.with_zero_copy(false)
    }),
    ("io.pre_allocated_*_buffers = 0", |config| {
        config
            .with_pre_allocated_input_buffers(0)
            .with_pre_allocated_output_buffers(0)
    }),
    ("io.batch_optimization = false", |config| {
        config.with_batch_optimization(false)
    }),
    ("memory.memory_pool = false", |config| {
        config
            .with_memory_pool(false)
            .with_pre_allocated_input_buffers(0)
            .with_pre_allocated_output_buffers(0)
    }),
    ("memory.memory_prediction = false", |config| {
        config.with_memory_prediction(false)
    }),
    ("memory.mmap = false", |config| config.with_mmap(false)),
];

fn main() -> Result<(), AnyError> {
    let model = minilm()?;
    if let Ok(part) = std::env::var(PART) {
        return measure_memory(&model, part.parse()?);
    }
    let embedders: Vec<Embedder> = (0..SETTINGS.len())
        .map(|setting| load(&model, setting))
        .collect::<Result<_, _>>()?;
    println!("{}", embedders[0].provider());
    let texts: Vec<String> = Texts::new(24, 200).take(CALL).collect();
    let [one, many, start] = ROUNDS;

    let one_text = |setting: usize| {
        drop(black_box(
            embedders[setting].embed_one(TEXT).expect("a short text"),
        ));
    };
    let one_call = |setting: usize| {
        drop(black_box(
            embedders[setting].embed(&texts).expect("short texts"),
        ));
    };
    println!("\none text of 16 tokens, {one} rounds");
    print!("{}", take_turns(one, contestants(one_text)));
    println!("\na call of {CALL} texts, {many} rounds");
    print!("{}", take_turns(many, contestants(one_call)));
    println!("\nloading and a first text, {start} rounds");
    let first = |setting| {
        let embedder = load(&model, setting).expect("it was loaded before");
        drop(black_box(embedder.embed_one(TEXT).expect("a short text")));
    };
    print!("{}", take_turns(start, contestants(first)));

    println!(
        "\nmemory of a process after that call, in MiB: resident, of it pages of mapped files"
    );
    for (setting, (name, _)) in SETTINGS.iter().enumerate() {
        let mut measured = [Vec::new(), Vec::new()];
        for _ in 0..SAMPLES {
            let wrote = run_part(&setting.to_string())?;
            let numbers = wrote.split_once(' ').ok_or("a part wrote nothing")?;
            for (number, list) in [numbers.0, numbers.1].iter().zip(&mut measured) {
                list.push(number.trim().parse()?);
            }
        }
        let [now, files] = measured.map(median);
        println!("{name:<48} {now:>7.1} {files:>7.1}");
    }
    Ok(())
}

fn contestants<'a>(work: impl Fn(usize) + Copy + 'a) -> Vec<Contestant<'a>> {
    let all = SETTINGS.iter().enumerate();
    all.map(|(setting, (name, _))| -> Contestant<'a> { (name, Box::new(move || work(setting))) })
        .collect()
}

fn load(model: &Path, setting: usize) -> Result<Embedder, AnyError> {
    let config = EmbeddingConfig::default()
        .with_engine(EngineChoice::OnnxRuntime)
        .with_intra_op_threads(1)
        .with_pool_size(1)
        .with_max_batch_tokens(256);
    let (_, change) = SETTINGS[setting];
    Ok(Embedder::builder(model).config(change(config)).load()?)
}

fn measure_memory(model: &Path, setting: usize) -> Result<(), AnyError> {
    let embedder = load(model, setting)?;
    let texts: Vec<String> = Texts::new(24, 200).take(CALL).collect();
    embedder.embed(&texts)?;
    let Memory { now, of_files, .. } = memory()?;
    println!("{now} {of_files}");
    Ok(())
}
