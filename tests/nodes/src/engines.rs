//! The engines, each with its way to run a test.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use isovec_encoder::{CompileError, NoTurns, Program, Unlowered};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::engine::{Batch, Engine, EngineFactory, Probe, RunOutput};
use isovec_engine::onnx::proto::{DataType, TensorProto};
use isovec_engine::{EngineError, Result};
use isovec_gpu::{Alone, Options, WebGpu};
use isovec_native::OnnxRuntime;
use isovec_optimize::simplify::{Pass, simplify};
use isovec_web::Portable;
use isovec_web::executor::threads::Threads;

use crate::cases::{self, Case};
use crate::direct::{Direct, OWN, direct};
use crate::lists::{Fates, Verdict};
use crate::rows::{Layout, Wrapped, wrappings};

/// The version of ONNX Runtime whose list is committed.
pub const ONNXRUNTIME: &str = "1.31.1";

/// Wrappings of a test that are run on the processor, where the reader takes so many: each has to be
/// right.
const MOST_RUN: usize = 6;

/// Runs all tests, one after another.
pub fn run_all(folder: &Path, run: &dyn Fn(&Case) -> Verdict) -> Fates {
    run_share(folder, run, [0, 1])
}

/// Runs every `of`-th test from number `share` on, one after another.
pub fn run_share(folder: &Path, run: &dyn Fn(&Case) -> Verdict, [share, of]: [usize; 2]) -> Fates {
    let names = cases::names(folder).into_iter().skip(share).step_by(of);
    let fates = names.map(|name| {
        let case = cases::read(folder, &name);
        let verdict = catch_unwind(AssertUnwindSafe(|| run(&case)));
        let verdict = verdict.unwrap_or_else(|_| Verdict::Differs("it panics".into()));
        (name, verdict)
    });
    fates.collect()
}

fn config() -> EngineConfig {
    let mut config = EngineConfig::default();
    config.session.intra_op_threads = Some(1);
    config
}

fn load(factory: &dyn EngineFactory, bundle: &ModelBundle) -> Result<Arc<dyn Engine>> {
    pollster::block_on(factory.load(bundle, &config(), &Cancel::new()))
}

/// ONNX Runtime, the version whose list there is; `None`, aloud, where it is not there.
///
/// # Panics
/// The same where `ISOVEC_REQUIRE_ONNXRUNTIME=1`.
pub fn onnxruntime() -> Option<impl Fn(&Case) -> Verdict> {
    let factory = OnnxRuntime::default();
    let found = match factory.probe() {
        Probe::Available { version, .. } if version == ONNXRUNTIME => None,
        Probe::Available { version, .. } => {
            Some(format!("the list is of {ONNXRUNTIME}, this is {version}"))
        }
        Probe::Unavailable { reason, .. } => {
            assert!(!required("ISOVEC_REQUIRE_ONNXRUNTIME"), "{reason}");
            Some(reason)
        }
        other => Some(format!("{other:?}")),
    };
    if let Some(why) = found {
        eprintln!("not run on ONNX Runtime: {why}");
        return None;
    }
    Some(move |case: &Case| run_direct(&factory, case, &|_| true))
}

/// The same, of the tests whose graph passes change, after all of them; `None` of a test: they find nothing in it.
///
/// # Panics
/// As [`onnxruntime`].
pub fn simplified() -> Option<impl Fn(&Case) -> Option<Verdict>> {
    let _is_there = onnxruntime()?;
    let factory = OnnxRuntime::default();
    Some(move |case: &Case| {
        let mut direct = direct(case, &|_| true).ok()?;
        let cancel = Cancel::new();
        let passes = simplify(&direct.bundle, &Pass::ALL, &cancel);
        let (bundle, told) = match pollster::block_on(passes) {
            Ok(made) => made,
            Err(error) => return Some(Verdict::Differs(error.to_string())),
        };
        let found = told.iter().any(|passed| passed.changes > 0);
        direct.bundle = bundle;
        found.then(|| run(&factory, case, direct))
    })
}

/// tract, by the engine that runs it for models that are no encoders.
pub fn tract() -> impl Fn(&Case) -> Verdict {
    let factory = Portable::new(Arc::new(Threads));
    move |case| {
        // A graph of ids alone may be taken for an encoder, which would not run on tract.
        let ids = |tensor: &TensorProto| {
            let whole = [DataType::Int64 as i32, DataType::Int32 as i32];
            whole.contains(&tensor.data_type) && tensor.dims.len() == 2
        };
        run_direct(&factory, case, &|tensor| !ids(tensor))
    }
}

fn run_direct(
    factory: &dyn EngineFactory,
    case: &Case,
    feeds: &dyn Fn(&TensorProto) -> bool,
) -> Verdict {
    match direct(case, feeds) {
        Ok(direct) => run(factory, case, direct),
        Err(why) => Verdict::Refused(why),
    }
}

fn run(factory: &dyn EngineFactory, case: &Case, mut direct: Direct) -> Verdict {
    let batch = std::mem::take(&mut direct.batch);
    let engine = match load(factory, &direct.bundle) {
        Ok(engine) => engine,
        Err(error) => return refused(&error),
    };
    let version = &engine.provider().version;
    assert!(!version.starts_with("isovec"), "{}: {version}", case.name);
    match engine.run_blocking(batch, &Cancel::new()) {
        Ok(output) => compared(direct.compare(&output)),
        Err(error) => refused(&error),
    }
}

/// isovec's own programs on the processor.
pub fn portable() -> impl Fn(&Case) -> Verdict {
    let factory = Portable::new(Arc::new(Threads));
    move |case| {
        let run = |wrapped: &Wrapped, batch: Batch| {
            let engine = load(&factory, &wrapped.bundle)?;
            let version = &engine.provider().version;
            assert!(version.starts_with("isovec"), "{}: {version}", case.name);
            engine.run_blocking(batch, &Cancel::new())
        };
        run_wrapped(case, MOST_RUN, &run)
    }
}

/// The same programs on whatever GPU there is; `None`, aloud, where there is none.
///
/// # Panics
/// The same where `ISOVEC_REQUIRE_GPU=1`.
pub fn wgpu(folder: &Path) -> Option<impl Fn(&Case) -> Verdict> {
    let options = Options {
        // Test machines have a processor that plays a GPU, if anything.
        software_adapter: true,
        ..Options::default()
    };
    let factory = WebGpu::new(Box::new(Alone));
    let factory = factory.with_options(options).with_one_device();
    let config = config();
    let load = move |wrapped: &Wrapped| {
        pollster::block_on(factory.load_model(&wrapped.bundle, &config, &Cancel::new()))
    };
    // Whether there is an adapter is known when one has loaded something.
    let some = cases::read(folder, "test_abs");
    let some = wrappings(&some, 0)[0]
        .wrap(&some)
        .expect("a graph of one operator");
    if let Err(error) = load(&some) {
        assert!(!required("ISOVEC_REQUIRE_GPU"), "{error}");
        eprintln!("not run on a GPU: {error}");
        return None;
    }
    Some(move |case: &Case| {
        let run =
            |wrapped: &Wrapped, batch: Batch| load(wrapped)?.run_blocking(batch, &Cancel::new());
        run_wrapped(case, 1, &run)
    })
}

/// Runs a test's outputs one by one, each in the wrappings that the reader takes: at most `most` with
/// tokens, and as many without.
fn run_wrapped(
    case: &Case,
    most: usize,
    run: &dyn Fn(&Wrapped, Batch) -> Result<RunOutput>,
) -> Verdict {
    let first = case.inputs.first().and_then(|given| given.tensor.as_ref());
    if first.is_some_and(|tensor| tensor.dims.contains(&0)) {
        return Verdict::Refused("there are no rows of an input without elements".into());
    }
    for output in 0..case.outputs.len() {
        let mut whys = Whys::default();
        let mut ran = [0, 0];
        for wrapping in wrappings(case, output) {
            let ran = &mut ran[usize::from(wrapping.layout == Layout::Row)];
            if *ran == most {
                continue;
            }
            let wrapped = match wrapping.wrap(case) {
                Ok(wrapped) => wrapped,
                Err(why) => {
                    whys.add(2, why);
                    continue;
                }
            };
            let (cancel, mut turns) = (Cancel::new(), NoTurns);
            let program = Program::read(&wrapped.bundle, &cancel, &mut turns);
            if let Err(error) = pollster::block_on(program) {
                if whys.unlowered(error) {
                    break;
                }
                continue;
            }
            *ran += 1;
            let batch = match wrapped.batch() {
                Ok(batch) => batch,
                Err(why) => return Verdict::Refused(why),
            };
            match run(&wrapped, batch) {
                // What the program is for is not what the test feeds.
                Err(error @ EngineError::InvalidInput { .. }) => return refused(&error),
                Err(error) => return Verdict::Differs(one_line(&error.to_string())),
                Ok(output) => {
                    if let Err(how) = wrapped.compare(&output) {
                        return Verdict::Differs(how);
                    }
                }
            }
        }
        if ran == [0, 0] {
            return Verdict::Refused(whys.most_telling());
        }
    }
    Verdict::Passes
}

/// Why wrappings were refused. The reader's word on the test's own operators tells most.
#[derive(Default)]
struct Whys(Option<(usize, String)>);

impl Whys {
    fn add(&mut self, rank: usize, why: String) {
        if self.0.as_ref().is_none_or(|(known, _)| rank < *known) {
            self.0 = Some((rank, why));
        }
    }

    /// Whether no other wrapping can do better: an operator that is not known at all.
    fn unlowered(&mut self, error: CompileError) -> bool {
        let ours = |node: &str| node.starts_with(OWN);
        match error {
            CompileError::Unlowered(Unlowered::Operator { operator, .. }) => {
                self.add(0, format!("operator {operator} is not known"));
                return true;
            }
            CompileError::Unlowered(Unlowered::Use {
                operator,
                node,
                why,
            }) => {
                // The shapes in brackets differ from test to test.
                let why = why.split(" (of ").next().unwrap_or(&why);
                let rank = if ours(&node) { 3 } else { 1 };
                self.add(rank, format!("{operator}: {why}"));
            }
            other => self.add(4, one_line(&other.to_string())),
        }
        false
    }

    fn most_telling(self) -> String {
        let none = "it has no input that could be rows of a table";
        self.0.map_or_else(|| none.into(), |(_, why)| why)
    }
}

fn compared(result: Result<(), String>) -> Verdict {
    match result {
        Ok(()) => Verdict::Passes,
        Err(how) => Verdict::Differs(how),
    }
}

fn refused(error: &EngineError) -> Verdict {
    Verdict::Refused(one_line(&error.to_string()))
}

/// The first line, or as much of it as is worth keeping.
fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(160).collect::<String>().trim().to_owned()
}

/// Whether a missing engine is a failure.
fn required(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}
