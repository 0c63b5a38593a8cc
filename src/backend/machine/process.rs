//! The memory of this process.

use crate::inspect::ProcessMemory;

/// By the system's count, where it tells the peak as well: on Linux.
pub(crate) fn memory() -> Option<ProcessMemory> {
    parse(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Reads `VmRSS` and `VmHWM` (proc_pid_status(5)), which are in KiB.
fn parse(status: &str) -> Option<ProcessMemory> {
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
        kilobytes.checked_mul(1024)
    };
    Some(ProcessMemory {
        current_bytes: bytes("VmRSS:")?,
        peak_bytes: bytes("VmHWM:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_count_is_read() {
        let read = parse("Name:\tx\nVmHWM:\t  300 kB\nVmRSS:\t  200 kB\n").unwrap();
        assert_eq!(
            (read.current_bytes, read.peak_bytes),
            (200 << 10, 300 << 10)
        );
        for status in ["", "VmRSS: 1 kB", "VmHWM: x kB\nVmRSS: 1 kB"] {
            assert_eq!(parse(status), None, "{status:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_peak_is_no_less_than_what_is_taken() {
        let own = memory().unwrap();
        assert!(
            own.current_bytes > 0 && own.peak_bytes >= own.current_bytes,
            "{own:?}"
        );
    }
}
