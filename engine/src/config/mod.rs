//! The part of the configuration that engines read. The SDK flattens it into its own.

mod io;
mod memory;
mod providers;
mod session;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use io::IoConfig;
pub use memory::MemoryConfig;
pub use providers::{
    CudaOptions, ExecutionProvider, ProvidersConfig, TensorRtOptions, UnknownProvider,
    WebGpuOptions, suggest,
};
pub use session::SessionConfig;

/// The faults of a configuration, in words.
type Faults = Vec<String>;

/// Which engine to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum EngineChoice {
    /// ONNX Runtime if its library was named (see [`EngineConfig::onnxruntime_library`]), else the portable engine.
    #[default]
    Auto,
    /// ONNX Runtime, or an error.
    OnnxRuntime,
    /// The portable engine, which needs no shared library and also runs in browsers.
    Portable,
}

/// The configuration of an engine when it loads a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct EngineConfig {
    /// Which engine. Default: `auto`.
    pub engine: EngineChoice,
    /// Path of the ONNX Runtime library. `None`: the `ORT_DYLIB_PATH` variable, then the set-up's cache. An installed
    /// library that was not named is never used.
    pub onnxruntime_library: Option<PathBuf>,
    /// Cache results of loading and running (the fastest provider, measured batch sizes, the vectors that a GPU is
    /// checked against, its compiled kernels) for the next start: in isovec's cache folder, in a page in the
    /// browser's cache. `None`: true.
    pub remember: Option<bool>,
    /// How a session computes.
    pub session: SessionConfig,
    /// The providers to use.
    pub providers: ProvidersConfig,
    /// How tensors reach it and return.
    pub io: IoConfig,
    /// The memory that it may use.
    pub memory: MemoryConfig,
}

impl EngineConfig {
    /// Whether results are cached for the next start.
    pub fn remembers(&self) -> bool {
        self.remember.unwrap_or(true)
    }

    /// The faults of this configuration, in words; empty when it can work.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        self.session.check(&mut faults);
        self.providers.check(&mut faults);
        self.io.check(&mut faults, self.memory.pools());
        self.memory.check(&mut faults);
        if self.engine == EngineChoice::Portable {
            if self.onnxruntime_library.is_some() {
                faults.push(
                    "onnxruntime_library is set, but engine is `portable`, which does not use it"
                        .into(),
                );
            }
            for provider in self.providers.chain() {
                if provider.needs_onnxruntime() {
                    faults.push(format!(
                        "providers.execution_providers names {provider}, which only ONNX Runtime \
                         has, but engine is `portable`"
                    ));
                }
            }
        }
        if self.engine == EngineChoice::OnnxRuntime
            && self.providers.chain().contains(&ExecutionProvider::WebGpu)
        {
            faults.push(
                "providers.execution_providers names webgpu, which is isovec's own, but engine is \
                 `onnxruntime`, whose path is called ort-webgpu"
                    .into(),
            );
        }
        faults
    }
}

/// Checks that a number is neither zero nor absurdly large.
fn count(faults: &mut Faults, knob: &str, asked: Option<usize>, most: usize) {
    match asked {
        Some(0) => faults.push(format!("{knob} is 0; leave it out for the default")),
        Some(asked) if asked > most => faults.push(format!(
            "{knob} is {asked}; more than {most} is surely a mistake"
        )),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(json: &str) -> Vec<String> {
        serde_json::from_str::<EngineConfig>(json).unwrap().faults()
    }

    #[test]
    fn every_contradiction_is_a_fault_of_its_own() {
        for (json, fault) in [
            (r#"{"session": {"pool_size": 0}}"#, "session.pool_size is 0"),
            (
                r#"{"session": {"intra_op_threads": 5000}}"#,
                "session.intra_op_threads is 5000",
            ),
            (
                r#"{"session": {"graph_optimization_level": 4}}"#,
                "session.graph_optimization_level is 4",
            ),
            (
                r#"{"session": {"parallel_execution": true, "inter_op_threads": 1}}"#,
                "session.parallel_execution is on, but session.inter_op_threads is 1",
            ),
            (
                r#"{"session": {"inter_op_threads": 2}}"#,
                "session.inter_op_threads is 2, but session.parallel_execution is off",
            ),
            (
                r#"{"session": {"deterministic_compute": true, "parallel_execution": true}}"#,
                "session.deterministic_compute and session.parallel_execution",
            ),
            (
                r#"{"session": {"profiling": ""}}"#,
                "session.profiling is empty",
            ),
            (
                r#"{"providers": {"execution_providers": ["cuda", "cuda"]}}"#,
                "providers.execution_providers names cuda twice",
            ),
            (
                r#"{"providers": {"execution_providers": ["cpu", "cuda"]}}"#,
                "providers.execution_providers names cuda behind cpu",
            ),
            (
                r#"{"providers": {"cuda": {"device_id": 1}}}"#,
                "providers.cuda is set",
            ),
            (
                r#"{"providers": {"options": {"openvino": {"device_type": "CPU"}}}}"#,
                "providers.options.openvino is set",
            ),
            (
                r#"{"engine": "portable", "providers": {"execution_providers": ["cuda"]}}"#,
                "providers.execution_providers names cuda, which only ONNX Runtime",
            ),
            (
                r#"{"engine": "onnxruntime", "providers": {"execution_providers": ["webgpu"]}}"#,
                "providers.execution_providers names webgpu, which is isovec's own",
            ),
            (
                r#"{"engine": "portable", "onnxruntime_library": "x.so"}"#,
                "onnxruntime_library is set",
            ),
            (
                r#"{"memory": {"memory_pool": false}, "io": {"pre_allocated_input_buffers": 2}}"#,
                "io.pre_allocated_input_buffers is 2, but memory.memory_pool is off",
            ),
            (
                r#"{"memory": {"memory_pool": false, "max_pool_size": 2}}"#,
                "memory.max_pool_size is set, but memory.memory_pool is off",
            ),
            (
                r#"{"memory": {"max_pool_memory": 0}}"#,
                "memory.max_pool_memory is 0",
            ),
            (
                r#"{"memory": {"memory_pressure_threshold": 1.5}}"#,
                "memory.memory_pressure_threshold is 1.5",
            ),
            (
                r#"{"memory": {"memory_pressure_threshold": 0.5, "memory_pressure_detection": false}}"#,
                "memory.memory_pressure_threshold is set",
            ),
            (
                r#"{"memory": {"memory_limit": 1000000, "memory_prediction": false}}"#,
                "memory.memory_limit is set, but memory.memory_prediction is off",
            ),
            (
                r#"{"memory": {"memory_limit": 1000000, "max_pool_memory": 2000000}}"#,
                "memory.max_pool_memory is 2000000, more than memory.memory_limit",
            ),
        ] {
            let found = faults(json);
            let [only] = &found[..] else {
                panic!("{json}: {found:?}");
            };
            assert!(only.starts_with(fault), "{json}: {only}");
        }
        assert_eq!(faults("{}"), Vec::<String>::new());
    }
}
