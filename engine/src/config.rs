//! The part of the configuration that engines read. The SDK flattens it into its own.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Which engine to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum EngineChoice {
    /// ONNX Runtime where its library was named (see [`EngineConfig::onnxruntime_library`]),
    /// else the portable engine.
    #[default]
    Auto,
    /// ONNX Runtime, or an error.
    OnnxRuntime,
    /// The portable engine: tract, with no shared library; the one that browsers run.
    Portable,
}

/// How a session computes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SessionConfig {
    /// Threads that work on one operator. `None`: the physical cores, at most 4.
    pub intra_op_threads: Option<usize>,
}

/// What an engine is told when it loads a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct EngineConfig {
    /// Which engine.
    pub engine: EngineChoice,
    /// Path of the ONNX Runtime library. `None`: the `ORT_DYLIB_PATH` variable, then the
    /// set-up's cache. A library that merely lies around on the system is never used.
    pub onnxruntime_library: Option<PathBuf>,
    /// How a session computes.
    pub session: SessionConfig,
}

impl EngineConfig {
    /// The faults of this configuration, in words; empty when it can work.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.session.intra_op_threads == Some(0) {
            faults.push("session.intra_op_threads is 0; leave it out for the default".into());
        }
        if let Some(threads) = self
            .session
            .intra_op_threads
            .filter(|&threads| threads > 1024)
        {
            faults.push(format!(
                "session.intra_op_threads is {threads}; more than 1024 is surely a mistake"
            ));
        }
        if self.engine == EngineChoice::Portable && self.onnxruntime_library.is_some() {
            faults.push(
                "onnxruntime_library is set, but engine is `portable`, which does not use it"
                    .into(),
            );
        }
        faults
    }
}
