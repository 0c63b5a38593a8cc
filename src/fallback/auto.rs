//! What is there, tried in a short measured run, fastest first.

use std::collections::BTreeMap;
use std::time::Duration;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::{EngineChoice, EngineConfig, ExecutionProvider};
use isovec_engine::engine::{Batch, Engine, Probe};
use web_time::Instant;

use super::{Result, load_one};
use crate::backend;
use crate::record::{self, Record};

/// What is run: a batch as the planner makes them on a processor.
const ROWS: usize = 4;
const ROW_LENGTH: usize = 64;
/// Runs of which the fastest counts, after one that does not.
const RUNS: usize = 3;

/// The chain in the order of what was measured.
pub(super) struct Ranked {
    pub(super) config: EngineConfig,
    pub(super) why: String,
}

/// One candidate, by the name that the record on disk gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Candidate {
    engine: EngineChoice,
    provider: ExecutionProvider,
}

impl Candidate {
    fn name(self) -> String {
        match self.engine {
            EngineChoice::Portable => format!("portable/{}", self.provider),
            _ => format!("onnxruntime/{}", self.provider),
        }
    }
}

/// Measures, or remembers what was measured.
pub(super) async fn rank(
    bundle: &ModelBundle,
    config: &EngineConfig,
    cancel: &Cancel,
) -> Result<Ranked> {
    let candidates = candidates(config);
    let record = Record::of(
        "providers",
        &bundle.identity,
        measured_on(config, &candidates),
    );
    let remembered: Option<BTreeMap<String, f64>> = record.as_ref().and_then(Record::read);
    let known = remembered.is_some();
    let times = match remembered {
        Some(times) => times,
        None => {
            let mut times = BTreeMap::new();
            let mut whole = true;
            for candidate in &candidates {
                match measure(bundle, config, *candidate, cancel).await {
                    Ok(Some(time)) => {
                        times.insert(candidate.name(), time.as_secs_f64());
                    }
                    Ok(None) => whole = false,
                    Err(error) if cancel.is_cancelled() => return Err(error),
                    Err(error) => {
                        // Tried again at the next start: what is wrong may have been mended.
                        whole = false;
                        tracing::warn!(target: "isovec", "{}: {error}", candidate.name());
                    }
                }
            }
            if let Some(record) = &record
                && whole
            {
                record.write(&times);
            }
            times
        }
    };
    let time = |candidate: &Candidate| times.get(&candidate.name()).copied();
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
    let Some(best) = ranked.first().copied() else {
        return Ok(Ranked {
            config: config.clone(),
            why: "nothing could be measured; the chain is as it was written".into(),
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
            "{} for {ROWS} rows of {ROW_LENGTH}: {}",
            if known {
                "measured at an earlier start"
            } else {
                "measured"
            },
            listed.join(", ")
        ),
    })
}

/// What is there, within what the configuration allows.
fn candidates(config: &EngineConfig) -> Vec<Candidate> {
    let allowed = |provider: ExecutionProvider| {
        let chain = &config.providers.execution_providers;
        chain.is_empty() || chain.contains(&provider)
    };
    let mut found = Vec::new();
    let wants =
        |engine: EngineChoice| config.engine == EngineChoice::Auto || config.engine == engine;
    if wants(EngineChoice::OnnxRuntime)
        && let Ok(onnxruntime) = backend::onnxruntime()
        && let Probe::Available { providers, .. } = onnxruntime.probe(config)
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
    config: &EngineConfig,
    candidate: Candidate,
    cancel: &Cancel,
) -> Result<Option<Duration>> {
    let mut config = config.clone();
    config.engine = candidate.engine;
    // A measuring run leaves no profile behind.
    config.session.profiling = None;
    let chosen = load_one(bundle, &config, candidate.provider, cancel).await?;
    let engine: &dyn Engine = &*chosen.engine;
    let mut best = None::<Duration>;
    for run in 0..=RUNS {
        let Some(batch) = Batch::sample(engine.description(), ROWS, ROW_LENGTH)? else {
            return Ok(None);
        };
        let started = Instant::now();
        engine.run(batch, cancel).await?;
        let took = started.elapsed();
        if run > 0 {
            best = Some(best.map_or(took, |best| best.min(took)));
        }
    }
    Ok(best)
}

/// The machine, the candidates and what their speed depends on.
fn measured_on(config: &EngineConfig, candidates: &[Candidate]) -> String {
    let version = match backend::onnxruntime().map(|factory| factory.probe(config)) {
        Ok(Probe::Available { version, .. }) => version,
        _ => "none".into(),
    };
    let names: Vec<String> = candidates
        .iter()
        .map(|candidate| candidate.name())
        .collect();
    format!(
        "{}, onnxruntime {version}, {}, {:?}, {:?}",
        record::machine(),
        names.join(" "),
        config.session,
        config.providers,
    )
}
