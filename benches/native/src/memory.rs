//! The memory of this process.

use crate::AnyError;

/// Resident memory in MiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Memory {
    /// Now.
    pub now: f64,
    /// At its peak.
    pub peak: f64,
    /// Of now, pages of mapped files: weights and programs. The system takes them back where memory is short.
    pub of_files: f64,
}

/// Reads it from the kernel.
///
/// # Errors
/// On systems without `/proc/self/status`.
pub fn memory() -> Result<Memory, AnyError> {
    let status = std::fs::read_to_string("/proc/self/status")
        .map_err(|error| format!("only Linux tells what a process takes: {error}"))?;
    let field = |name: &str| -> Result<f64, AnyError> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        let kib: f64 = number
            .ok_or_else(|| format!("/proc/self/status has no {name}"))?
            .parse()?;
        Ok(kib / 1024.0)
    };
    Ok(Memory {
        now: field("VmRSS:")?,
        peak: field("VmHWM:")?,
        of_files: field("RssFile:")?,
    })
}
