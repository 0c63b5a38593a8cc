//! The part of the configuration that chooses the engine and its provider: the settings for every engine, and the options of
//! each.

use std::path::PathBuf;

use isovec_engine::config::{EngineConfig, MemoryConfig, SessionConfig};
use serde::{Deserialize, Serialize};

use super::io::IoConfig;
use super::providers::{ExecutionProvider, ProvidersConfig};

/// Which engine to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum EngineChoice {
    /// ONNX Runtime if its library was named (see [`RuntimeConfig::onnxruntime_library`]), else the portable engine.
    /// For `model.dtype = "int8-fast"` the portable engine, unless [`RuntimeConfig::onnxruntime_library`] is set.
    #[default]
    Auto,
    /// ONNX Runtime, or an error.
    OnnxRuntime,
    /// The portable engine, which needs no shared library and also runs in browsers.
    Portable,
}

/// The choice of the engine, and how it computes. In files its keys stand at the top level.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RuntimeConfig {
    /// Which engine. Default: `auto`.
    pub engine: EngineChoice,
    /// Path of ONNX Runtime's shared library, 1.24 or newer; a process can use one. `None`: the `ORT_DYLIB_PATH` variable,
    /// then the set-up's cache. An installed library that was not named is never used.
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

impl RuntimeConfig {
    /// Whether results of loading and running are cached for the next start.
    pub fn remembers(&self) -> bool {
        self.remember.unwrap_or(true)
    }

    /// The settings that every engine gets.
    pub(crate) fn of_every_engine(&self) -> EngineConfig {
        let mut config = EngineConfig::default();
        config.remember = self.remember;
        config.session = self.session.clone();
        config.io = self.io.of_every_engine();
        config.memory = self.memory.clone();
        config
    }

    /// The faults of this part, in words; empty if there is none.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = self.session.faults();
        self.providers.check(&mut faults);
        self.io.check(&mut faults, self.memory.pools());
        faults.extend(self.memory.faults());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(json: &str) -> Vec<String> {
        serde_json::from_str::<RuntimeConfig>(json)
            .unwrap()
            .faults()
    }

    #[test]
    fn every_contradiction_is_a_fault_of_its_own() {
        for (json, fault) in [
            (r#"{"session": {"pool_size": 0}}"#, "session.pool_size is 0"),
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
                r#"{"memory": {"max_pool_memory": 0}}"#,
                "memory.max_pool_memory is 0",
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

    #[test]
    fn what_is_set_for_every_engine_reaches_it() {
        let json = r#"{"remember": false, "session": {"pool_size": 2}, "memory": {"max_pool_size": 3},
            "io": {"io_binding": false, "zero_copy": true, "pre_allocated_input_buffers": 4,
                "pre_allocated_output_buffers": 5}}"#;
        let asked: RuntimeConfig = serde_json::from_str(json).unwrap();
        let told = asked.of_every_engine();
        assert!(!told.remembers());
        assert_eq!((told.session, told.memory), (asked.session, asked.memory));
        let io = told.io;
        assert_eq!((io.io_binding, io.zero_copy), (Some(false), Some(true)));
        let ahead = (
            io.pre_allocated_input_buffers,
            io.pre_allocated_output_buffers,
        );
        assert_eq!(ahead, (Some(4), Some(5)));
    }
}
