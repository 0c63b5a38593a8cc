//! What the process takes of the machine.

use std::fmt;

/// At one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Bytes that are resident.
    pub resident: u64,
    /// Threads.
    pub threads: u64,
    /// Open files.
    pub files: u64,
}

impl Taken {
    /// By the system's count, where it tells: on Linux (proc_pid_status(5), proc_pid_fd(5)).
    pub fn now() -> Option<Self> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let number = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Self {
            resident: number("VmRSS:")? << 10,
            threads: number("Threads:")?,
            files: std::fs::read_dir("/proc/self/fd").ok()?.count() as u64,
        })
    }

    /// The same after the allocator gave back what it keeps for later, where it can be asked to: what it keeps depends on
    /// which threads were last at work, and is no leak.
    pub fn at_rest() -> Option<Self> {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        // SAFETY: it has no requirements.
        unsafe {
            libc::malloc_trim(0);
        }
        Self::now()
    }

    /// What is in the middle of several, each figure by itself. `None` of none.
    pub fn median(all: &[Self]) -> Option<Self> {
        let of = |figure: fn(&Self) -> u64| {
            let mut figures: Vec<u64> = all.iter().map(figure).collect();
            figures.sort_unstable();
            figures.get(figures.len() / 2).copied()
        };
        Some(Self {
            resident: of(|taken| taken.resident)?,
            threads: of(|taken| taken.threads)?,
            files: of(|taken| taken.files)?,
        })
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = self.resident as f64 / f64::from(1 << 20);
        write!(
            f,
            "{mebibytes:.1} MiB resident, {} threads, {} open files",
            self.threads, self.files
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_of_each_figure() {
        let taken = |resident, threads, files| Taken {
            resident,
            threads,
            files,
        };
        assert_eq!(Taken::median(&[]), None);
        let all = [taken(9, 1, 5), taken(1, 2, 4), taken(5, 3, 6)];
        assert_eq!(Taken::median(&all), Some(taken(5, 2, 5)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_tells() {
        let now = Taken::now().unwrap();
        assert!(
            now.resident > 0 && now.threads > 0 && now.files > 0,
            "{now}"
        );
    }
}
