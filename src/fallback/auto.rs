//! Measures every available provider in a short run and sorts them, fastest first.

use std::time::Duration;

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::{Batch, Engine, Probe};
use serde::{Deserialize, Serialize};
use web_time::Instant;

use super::{Result, load_one};
use crate::backend;
use crate::config::{EngineChoice, ExecutionProvider, RuntimeConfig};
use crate::json;
use crate::record::{self, Record};

/// What is run: a batch as the planner makes them on a processor, by rows and their tokens.
const USUAL: Size = (4, 64);
/// What is run beside it where there is a GPU, to see from where on it is the faster one: by tokens.
const SIZES: [Size; 4] = [(1, 16), (1, 64), USUAL, (8, 128)];
/// Runs of which the fastest counts, after one that does not.
const RUNS: usize = 3;

/// Rows of a batch, and the tokens of each.
type Size = (usize, usize);

/// The chain in the order of what was measured.
pub(super) struct Ranked {
    pub(super) config: RuntimeConfig,
    pub(super) why: String,
    /// What takes small batches from a GPU.
    pub(super) small: Option<Small>,
}

/// The engine of the processor that small batches go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Small {
    pub(super) engine: EngineChoice,
    /// Tokens of the smallest batch that the GPU takes.
    pub(super) until: usize,
}

/// One candidate, by the name that the record gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Candidate {
    engine: EngineChoice,
    provider: ExecutionProvider,
}

impl Candidate {
    /// The name of what it took for batches of a size.
    fn at(self, (rows, length): Size) -> String {
        format!("{} {rows}x{length}", self.name())
    }

    fn name(self) -> String {
        match self.engine {
            _ if self.provider == ExecutionProvider::WebGpu => self.provider.to_string(),
            EngineChoice::Portable => format!("portable/{}", self.provider),
            _ => format!("onnxruntime/{}", self.provider),
        }
    }
}

/// Seconds of a run, by the candidate with the batch's size. A handful: a list is shorter than a map.
#[derive(Default, Serialize, Deserialize)]
struct Times(Vec<(String, f64)>);

impl Times {
    fn of(&self, measured: &str) -> Option<f64> {
        let found = self.0.iter().find(|(name, _)| name == measured);
        found.map(|(_, seconds)| *seconds)
    }
}

/// Measures, or remembers what was measured.
pub(super) async fn rank(
    bundle: &ModelBundle,
    config: &RuntimeConfig,
    cancel: &Cancel,
) -> Result<Ranked> {
    let candidates = candidates(config, bundle.rounds_activations());
    let record = Record::of(
        "providers",
        &bundle.identity,
        config,
        measured_on(config, &candidates),
    );
    let remembered: Option<Times> = record.read().await;
    let known = remembered.is_some();
    let times = match remembered {
        Some(times) => times,
        None => {
            let mut times = Times::default();
            let mut whole = true;
            let mut sizes = &[USUAL][..];
            for (at, candidate) in candidates.iter().enumerate() {
                // What has nothing to be compared with need not be measured.
                if times.0.is_empty() && at + 1 == candidates.len() {
                    break;
                }
                let asked = match candidate.provider {
                    ExecutionProvider::WebGpu => &SIZES,
                    _ => sizes,
                };
                match measure(bundle, config, *candidate, asked, cancel).await {
                    Ok(Some(measured)) => {
                        if candidate.provider == ExecutionProvider::WebGpu {
                            sizes = &SIZES;
                        }
                        for (size, time) in asked.iter().zip(measured) {
                            times.0.push((candidate.at(*size), time.as_secs_f64()));
                        }
                    }
                    Ok(None) => whole = false,
                    Err(error) if cancel.is_cancelled() => return Err(error),
                    // Most machines have no GPU: that is no fault, and does not change.
                    Err(EngineError::ProviderUnavailable { reason, .. })
                        if candidate.provider == ExecutionProvider::WebGpu =>
                    {
                        tracing::debug!(target: "isovec", "{}: {reason}", candidate.name());
                    }
                    Err(error) => {
                        // Tried again at the next start: what is wrong may have been mended.
                        whole = false;
                        tracing::warn!(target: "isovec", "{}: {error}", candidate.name());
                    }
                }
            }
            if whole {
                record.write(&times).await;
            }
            times
        }
    };
    let time = |candidate: &Candidate| times.of(&candidate.at(USUAL));
    let mut ranked: Vec<Candidate> = candidates
        .iter()
        .copied()
        .filter(|candidate| time(candidate).is_some())
        .collect();
    ranked.sort_by(|a, b| {
        time(a)
            .unwrap_or(f64::MAX)
            .total_cmp(&time(b).unwrap_or(f64::MAX))
    });
    let small = share(&mut ranked, &times);
    let Some(best) = ranked.first().copied() else {
        return Ok(Ranked {
            config: config.clone(),
            why: "there was nothing to choose from; the chain is as it was written".into(),
            small: None,
        });
    };
    let mut config = config.clone();
    // An engine other than the best one's cannot stand behind it: a chain is of providers.
    if best.provider == ExecutionProvider::Cpu {
        config.engine = best.engine;
    }
    let mut chain: Vec<ExecutionProvider> = Vec::new();
    for candidate in &ranked {
        if !chain.contains(&candidate.provider) {
            chain.push(candidate.provider);
        }
    }
    // What is behind the processor would never be used.
    if let Some(at) = chain.iter().position(|p| *p == ExecutionProvider::Cpu) {
        chain.truncate(at + 1);
    }
    config.providers.execution_providers = chain;
    let listed: Vec<String> = ranked
        .iter()
        .map(|candidate| {
            let millis = time(candidate).unwrap_or_default() * 1e3;
            format!("{} {millis:.1} ms", candidate.name())
        })
        .collect();
    Ok(Ranked {
        config,
        why: format!(
            "{} for {} rows of {}: {}{}",
            if known {
                "measured at an earlier start"
            } else {
                "measured"
            },
            USUAL.0,
            USUAL.1,
            listed.join(", "),
            match small {
                Some(small) => format!("; batches of less than {} tokens stay there", small.until),
                None => String::new(),
            }
        ),
        small,
    })
}

/// Lets a GPU and the processor share the work, if the GPU is the faster one for large batches: it
/// comes first then, and what the processor is faster at is said. Else the GPU is left out.
fn share(ranked: &mut Vec<Candidate>, times: &Times) -> Option<Small> {
    let of = |provider| move |candidate: &Candidate| candidate.provider == provider;
    let gpu = ranked.iter().position(of(ExecutionProvider::WebGpu))?;
    let processor = *ranked.iter().find(|c| of(ExecutionProvider::Cpu)(c))?;
    let gpu = ranked.remove(gpu);
    // From the largest batch down to the first that the processor is faster at.
    let wins = |size: &Size| match (times.of(&gpu.at(*size)), times.of(&processor.at(*size))) {
        (Some(gpu), Some(processor)) => gpu < processor,
        _ => false,
    };
    let won = SIZES.iter().rev().take_while(|size| wins(size)).last();
    let (rows, length) = *won?;
    ranked.insert(0, gpu);
    let small = Small {
        engine: processor.engine,
        until: rows * length,
    };
    (won != SIZES.first()).then_some(small)
}

/// What is there, within what the configuration allows. Activations are rounded on the processor alone, so that a
/// model which asks for that is not shared with anything else.
fn candidates(config: &RuntimeConfig, rounds_activations: bool) -> Vec<Candidate> {
    let alone = rounds_activations
        && config.engine != EngineChoice::OnnxRuntime
        && config.onnxruntime_library.is_none();
    let allowed = |provider: ExecutionProvider| {
        let chain = &config.providers.execution_providers;
        chain.is_empty() || chain.contains(&provider)
    };
    let mut found = Vec::new();
    // First, because what else is measured depends on whether there is one. Which batches it gets
    // depends on their size, which bits of a vector must not, where they are promised.
    if !alone
        && config.engine != EngineChoice::OnnxRuntime
        && config.session.deterministic_compute != Some(true)
        && backend::webgpu(config).is_ok()
    {
        found.push(Candidate {
            engine: EngineChoice::Auto,
            provider: ExecutionProvider::WebGpu,
        });
    }
    let wants =
        |engine: EngineChoice| config.engine == EngineChoice::Auto || config.engine == engine;
    if !alone
        && wants(EngineChoice::OnnxRuntime)
        && let Ok(onnxruntime) = backend::onnxruntime(config, ExecutionProvider::Cpu)
        && let Probe::Available { providers, .. } = onnxruntime.probe()
    {
        let providers = providers.iter().filter_map(|name| name.parse().ok());
        found.extend(providers.map(|provider| Candidate {
            engine: EngineChoice::OnnxRuntime,
            provider,
        }));
    }
    if wants(EngineChoice::Portable) && config.onnxruntime_library.is_none() {
        found.push(Candidate {
            engine: EngineChoice::Portable,
            provider: ExecutionProvider::Cpu,
        });
    }
    found.retain(|candidate| allowed(candidate.provider));
    found
}

async fn measure(
    bundle: &ModelBundle,
    config: &RuntimeConfig,
    candidate: Candidate,
    sizes: &[Size],
    cancel: &Cancel,
) -> Result<Option<Vec<Duration>>> {
    let mut config = config.clone();
    config.engine = candidate.engine;
    // A measuring run leaves no profile behind.
    config.session.profiling = None;
    let chosen = load_one(bundle, &config, candidate.provider, cancel).await?;
    let engine: &dyn Engine = &*chosen.engine;
    let mut measured = Vec::new();
    for &(rows, length) in sizes {
        let mut best = Duration::MAX;
        for run in 0..=RUNS {
            let Some(batch) = Batch::sample(engine.description(), rows, length)? else {
                return Ok(None);
            };
            let started = Instant::now();
            engine.run(batch, cancel).await?;
            if run > 0 {
                best = best.min(started.elapsed());
            }
        }
        measured.push(best);
    }
    Ok(Some(measured))
}

/// The machine, the candidates and what their speed depends on.
fn measured_on(config: &RuntimeConfig, candidates: &[Candidate]) -> String {
    let onnxruntime = backend::onnxruntime(config, ExecutionProvider::Cpu);
    let version = match onnxruntime.map(|factory| factory.probe()) {
        Ok(Probe::Available { version, .. }) => version,
        _ => "none".into(),
    };
    let names: Vec<String> = candidates
        .iter()
        .map(|candidate| candidate.name())
        .collect();
    format!(
        "{}, onnxruntime {version}, {}, {}",
        record::machine(),
        names.join(" "),
        json::text(&(&config.session, &config.providers)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: Candidate = Candidate {
        engine: EngineChoice::Portable,
        provider: ExecutionProvider::Cpu,
    };
    const GPU: Candidate = Candidate {
        engine: EngineChoice::Auto,
        provider: ExecutionProvider::WebGpu,
    };

    fn shared(gpu: [f64; 4], processor: [f64; 4]) -> (Vec<Candidate>, Option<usize>) {
        let mut times = Times::default();
        for (at, size) in SIZES.iter().enumerate() {
            times.0.push((GPU.at(*size), gpu[at]));
            times.0.push((CPU.at(*size), processor[at]));
        }
        let mut ranked = vec![CPU, GPU];
        let small = share(&mut ranked, &times);
        (ranked, small.map(|small| small.until))
    }

    #[test]
    fn a_gpu_gets_the_batches_that_it_is_faster_at() {
        let processor = [1.0, 2.0, 8.0, 30.0];
        assert_eq!(shared([0.9; 4], processor), (vec![GPU, CPU], None));
        assert_eq!(shared([3.0; 4], processor), (vec![GPU, CPU], Some(256)));
        assert_eq!(shared([20.0; 4], processor), (vec![GPU, CPU], Some(1024)));
        assert_eq!(shared([40.0; 4], processor), (vec![CPU], None));
        // Luck with a small batch does not count.
        let lucky = [0.5, 9.0, 7.0, 9.0];
        assert_eq!(shared(lucky, processor), (vec![GPU, CPU], Some(256)));
    }

    #[test]
    fn alone_it_shares_with_nobody() {
        let mut ranked = vec![GPU];
        assert_eq!(share(&mut ranked, &Times::default()), None);
        assert_eq!(ranked, [GPU]);
    }
}
