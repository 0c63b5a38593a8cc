//! The input of the advisor. Any part may be missing; the report lists the missing parts.

use serde::{Deserialize, Serialize};

use isovec::config::EffectiveConfig;
use isovec::engine::{Capabilities, ModelDescription, ProviderInfo};
use isovec::hardware::HardwareInfo;
use isovec::inspect::{ProcessMemory, most_batch_tokens};
use isovec::stats::Stats;
use isovec::{Embedder, EmbeddingConfig};

use super::profile::ProfileSummary;
use super::workload::Workload;

/// The known facts about an embedder and its environment. `from` takes the facts that the embedder itself has; add
/// the others if they are available. It is written and read as JSON, so it can come from another machine, or from a
/// page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AnalysisContext {
    /// The requested configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<EmbeddingConfig>,
    /// The configuration in effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective: Option<EffectiveConfig>,
    /// The capabilities of the engine with the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// The provider that computes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderInfo>,
    /// The model's graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelDescription>,
    /// Statistics: latencies, memory, batches, padding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<Stats>,
    /// The summary of a profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileSummary>,
    /// The machine, or the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<HardwareInfo>,
    /// The texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// The memory of the whole process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<ProcessMemory>,
    /// Whether suggestions are [tried](super::OptimizationReport::verify) afterwards. Then one that costs much is made on less
    /// evidence, because the trial gives the rest.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trials: bool,
}

/// A part of the context that a rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// [`AnalysisContext::effective`].
    Effective,
    /// [`AnalysisContext::capabilities`].
    Capabilities,
    /// [`AnalysisContext::provider`].
    Provider,
    /// [`AnalysisContext::model`].
    Model,
    /// [`AnalysisContext::stats`], of something that was embedded.
    Stats,
    /// [`AnalysisContext::profile`], with the operators in it.
    Profile,
    /// [`AnalysisContext::hardware`].
    Hardware,
    /// [`AnalysisContext::workload`].
    Workload,
    /// [`AnalysisContext::memory`].
    Memory,
}

impl Part {
    /// How to come by it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Effective | Self::Capabilities | Self::Provider | Self::Model => {
                "take it from a loaded model: AnalysisContext::from"
            }
            Self::Stats => "embed something first, then take AnalysisContext::from",
            Self::Profile => {
                "record one with Embedder::profile while texts are embedded; ONNX Runtime reports its operators with session.profiling"
            }
            Self::Hardware => "HardwareInfo::detect",
            Self::Workload => "Workload::of the texts that are embedded",
            Self::Memory => "the memory of the process, now and at its peak",
        }
    }

    /// Its name in the context.
    pub fn name(self) -> &'static str {
        match self {
            Self::Effective => "effective",
            Self::Capabilities => "capabilities",
            Self::Provider => "provider",
            Self::Model => "model",
            Self::Stats => "stats",
            Self::Profile => "profile",
            Self::Hardware => "hardware",
            Self::Workload => "workload",
            Self::Memory => "memory",
        }
    }
}

/// What an embedder knows of itself: its configuration and what came of it, its model, and what was counted so far.
impl From<&Embedder> for AnalysisContext {
    fn from(embedder: &Embedder) -> Self {
        Self {
            config: Some(embedder.config().clone()),
            effective: Some(embedder.effective_config().clone()),
            capabilities: Some(embedder.capabilities().clone()),
            provider: Some(embedder.provider().clone()),
            model: Some(embedder.description().clone()),
            stats: Some(embedder.stats()),
            memory: ProcessMemory::now(),
            ..Self::default()
        }
    }
}

impl AnalysisContext {
    /// Adds a profile.
    #[must_use]
    pub fn with_profile(mut self, profile: impl Into<ProfileSummary>) -> Self {
        self.profile = Some(profile.into());
        self
    }

    /// Adds the hardware.
    #[must_use]
    pub fn with_hardware(mut self, hardware: HardwareInfo) -> Self {
        self.hardware = Some(hardware);
        self
    }

    /// Adds a description of the texts.
    #[must_use]
    pub fn with_workload(mut self, workload: Workload) -> Self {
        self.workload = Some(workload);
        self
    }

    /// Adds the memory of the process.
    #[must_use]
    pub fn with_memory(mut self, memory: ProcessMemory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Says that suggestions are tried afterwards.
    #[must_use]
    pub fn with_trials(mut self) -> Self {
        self.trials = true;
        self
    }

    /// Whether that part is there.
    pub fn has(&self, part: Part) -> bool {
        match part {
            Part::Effective => self.effective.is_some(),
            Part::Capabilities => self.capabilities.is_some(),
            Part::Provider => self.provider.is_some(),
            Part::Model => self.model.is_some(),
            Part::Stats => self
                .stats
                .as_ref()
                .is_some_and(|stats| stats.calls.batches > 0),
            Part::Profile => self
                .profile
                .as_ref()
                .is_some_and(|profile| !profile.operators.is_empty()),
            Part::Hardware => self.hardware.is_some(),
            Part::Workload => self.workload.is_some(),
            Part::Memory => self.memory.is_some(),
        }
    }

    /// The value in effect of a knob, if it parses as this type.
    pub fn used<T: std::str::FromStr>(&self, knob: &str) -> Option<T> {
        let effective = self.effective.as_ref()?;
        effective.get(knob)?.used.parse().ok()
    }

    /// The most tokens of a batch, whether one number is in effect or one for each length of texts.
    pub fn max_batch_tokens(&self) -> Option<usize> {
        let knob = self.effective.as_ref()?.get("batching.max_batch_tokens")?;
        most_batch_tokens(&knob.used)
    }

    /// The requested value of a knob.
    pub fn asked(&self, knob: &str) -> Option<&str> {
        self.effective.as_ref()?.get(knob)?.asked.as_deref()
    }

    /// Whether the processor computes, by ONNX Runtime or by the portable engine.
    pub fn on_processor(&self) -> bool {
        let Some(provider) = &self.provider else {
            return false;
        };
        let name = provider.provider.to_ascii_lowercase();
        name.starts_with("cpu") || name.starts_with("wasm")
    }

    /// Whether ONNX Runtime computes.
    pub fn on_onnxruntime(&self) -> bool {
        let engine = self.provider.as_ref().map(|provider| &*provider.engine);
        engine == Some("onnxruntime")
    }

    /// Texts of a call, on average.
    pub fn texts_of_a_call(&self) -> Option<f64> {
        let calls = &self.stats.as_ref()?.calls;
        (calls.embedded > 0).then(|| calls.texts as f64 / calls.embedded as f64)
    }

    /// Positions of a batch that were computed, on average, padding included.
    pub fn tokens_of_a_batch(&self) -> Option<f64> {
        let stats = self.stats.as_ref()?;
        let all = stats.tokens.real + stats.tokens.padding;
        (stats.calls.batches > 0).then(|| all as f64 / stats.calls.batches as f64)
    }

    /// Texts of a batch, on average.
    pub fn texts_of_a_batch(&self) -> Option<f64> {
        let calls = &self.stats.as_ref()?.calls;
        (calls.batches > 0).then(|| calls.texts as f64 / calls.batches as f64)
    }

    /// Cores that this process may keep busy: physical ones, since two threads of one core share its arithmetic
    /// units.
    pub fn cores(&self) -> Option<usize> {
        let usable = self.hardware_threads()?;
        let physical = self.hardware.as_ref()?.cpu.physical_cores;
        Some(physical.map_or(usable, |cores| cores.min(usable)))
    }

    /// Threads that this process may run at the same time, two on a core where it has two.
    pub fn hardware_threads(&self) -> Option<usize> {
        let cpu = &self.hardware.as_ref()?.cpu;
        cpu.usable_cores.or(cpu.logical_cores)
    }

    /// Bytes of memory that can still be had, and that there are in all, as far as the control group allows.
    pub fn free_memory(&self) -> Option<(u64, u64)> {
        let memory = &self.hardware.as_ref()?.memory;
        let within = |bytes: u64| memory.limit_bytes.map_or(bytes, |limit| bytes.min(limit));
        Some((within(memory.available_bytes?), within(memory.total_bytes?)))
    }

    /// Whether isovec's own kernels run on a GPU that computes with 16-bit floats.
    pub fn gpu_computes_f16(&self) -> bool {
        let gpu = self
            .stats
            .as_ref()
            .and_then(|stats| stats.engine.gpu.as_ref());
        let Some(gpu) = gpu.filter(|gpu| !gpu.software) else {
            return false;
        };
        let adapters = self
            .hardware
            .as_ref()
            .and_then(|hardware| hardware.adapters.as_deref());
        adapters.unwrap_or_default().iter().any(|adapter| {
            let is_it = adapter
                .name
                .as_ref()
                .is_none_or(|name| *name == gpu.adapter);
            adapter.shader_f16 && is_it
        })
    }

    /// Whether there is an embedding cache.
    pub fn keeps_vectors(&self) -> bool {
        ["embedding_cache.memory", "embedding_cache.disk"]
            .iter()
            .any(|knob| self.used::<u64>(knob).is_some())
    }

    /// Whether it runs in a page, where runs take turns.
    pub fn in_page(&self) -> bool {
        self.hardware
            .as_ref()
            .is_some_and(|hardware| hardware.page.is_some())
    }

    /// Whether the page is cut off from others; `None` where there is no page.
    pub fn isolated(&self) -> Option<bool> {
        self.hardware.as_ref()?.page.as_ref()?.cross_origin_isolated
    }
}
