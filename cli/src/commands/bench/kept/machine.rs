//! The machine that something was measured on.

use std::fmt;

use isovec::hardware::HardwareInfo;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::commands::bench) struct Machine {
    /// [`HardwareInfo::id`].
    pub(in crate::commands::bench) id: String,
    /// For people.
    pub(in crate::commands::bench) description: String,
}

impl Machine {
    /// This one.
    pub(in crate::commands::bench) fn detect() -> Result<Self> {
        let hardware = isovec::blocking::hardware()?;
        Ok(Self {
            id: hardware.id(),
            description: describe(&hardware),
        })
    }
}

fn describe(hardware: &HardwareInfo) -> String {
    let cpu = &hardware.cpu;
    let mut parts = vec![
        cpu.model
            .clone()
            .unwrap_or_else(|| "a processor without a name".into()),
    ];
    if let Some(cores) = cpu.usable_cores {
        parts.push(format!("{cores} cores"));
    }
    if let Some(bytes) = hardware.memory.total_bytes {
        parts.push(format!("{:.0} GiB", bytes as f64 / (1u64 << 30) as f64));
    }
    let gpus = hardware.gpus.iter().filter_map(|gpu| gpu.name.clone());
    parts.extend(gpus);
    let system = hardware.os.as_deref().unwrap_or("an unknown system");
    parts.push(format!("{system} {}", hardware.arch));
    parts.join(", ")
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, id {}", self.description, self.id)
    }
}
