//! What every engine is told when it loads a model. What one engine alone can do is an option of
//! its own factory, which the contract knows nothing of.

mod io;
mod memory;
mod session;

pub use io::IoConfig;
pub use memory::MemoryConfig;
pub use session::SessionConfig;

/// What an engine is told when it loads a model.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct EngineConfig {
    /// Keep what was found out while loading for the next start. `None`: true.
    pub remember: Option<bool>,
    /// How a session computes.
    pub session: SessionConfig,
    /// How tensors reach it and come back.
    pub io: IoConfig,
    /// The memory that it may use.
    pub memory: MemoryConfig,
}

impl EngineConfig {
    /// Whether results are cached for the next start.
    pub fn remembers(&self) -> bool {
        self.remember.unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;

    /// Holds each configuration to how its one fault begins.
    fn faults<T: DeserializeOwned>(of: impl Fn(&T) -> Vec<String>, cases: &[(&str, &str)]) {
        for (json, begins) in cases {
            let found = of(&serde_json::from_str(json).unwrap());
            let [only] = &found[..] else {
                panic!("{json}: {found:?}");
            };
            assert!(only.starts_with(begins), "{json}: {only}");
        }
        let none = of(&serde_json::from_str("{}").unwrap());
        assert_eq!(none, Vec::<String>::new());
    }

    #[test]
    fn every_contradiction_of_a_session_is_a_fault_of_its_own() {
        faults(
            SessionConfig::faults,
            &[
                (r#"{"pool_size": 0}"#, "session.pool_size is 0"),
                (
                    r#"{"intra_op_threads": 5000}"#,
                    "session.intra_op_threads is 5000",
                ),
                (
                    r#"{"graph_optimization_level": 4}"#,
                    "session.graph_optimization_level is 4",
                ),
                (r#"{"profiling": ""}"#, "session.profiling is empty"),
            ],
        );
    }

    #[test]
    fn every_contradiction_of_memory_is_a_fault_of_its_own() {
        faults(
            MemoryConfig::faults,
            &[
                (
                    r#"{"memory_pool": false, "max_pool_size": 2}"#,
                    "memory.max_pool_size is set, but memory.memory_pool is off",
                ),
                (r#"{"max_pool_memory": 0}"#, "memory.max_pool_memory is 0"),
                (
                    r#"{"memory_pressure_threshold": 1.5}"#,
                    "memory.memory_pressure_threshold is 1.5",
                ),
                (
                    r#"{"memory_pressure_threshold": 0.5, "memory_pressure_detection": false}"#,
                    "memory.memory_pressure_threshold is set",
                ),
                (
                    r#"{"memory_limit": 1000000, "memory_prediction": false}"#,
                    "memory.memory_limit is set, but memory.memory_prediction is off",
                ),
                (
                    r#"{"memory_limit": 1000000, "max_pool_memory": 2000000}"#,
                    "memory.max_pool_memory is 2000000, more than memory.memory_limit",
                ),
            ],
        );
    }
}
