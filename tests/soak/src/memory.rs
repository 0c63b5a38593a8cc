//! The memory of this process.

use std::fmt;

/// At one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Bytes that are resident.
    pub resident: u64,
    /// Bytes of these that are pages of files, which the system takes back when it needs them.
    pub of_files: u64,
    /// Bytes of the allocator's that somebody uses, where it tells. What grows beside them is not Rust's or C's
    /// heap: stacks, mapped files, compiled shaders.
    pub in_use: Option<u64>,
    /// Threads.
    pub threads: u64,
    /// Open files.
    pub files: u64,
}

/// Has the allocator give back at once what is free at the end of an arena, where it can be told to.
///
/// glibc's waits until twice the largest block is free that was ever freed (M_MMAP_THRESHOLD in mallopt(3)), here the
/// weights of a model, and `malloc_trim` leaves the ends of all arenas but the first as they are. With the threshold fixed at
/// what it is at first, what is resident is what somebody uses.
pub fn keep_little() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it is called before there is another thread.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, 128 << 10);
    }
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
            of_files: number("RssFile:")? << 10,
            in_use: in_use(),
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
            of_files: of(|taken| taken.of_files)?,
            in_use: all
                .first()?
                .in_use
                .and(of(|taken| taken.in_use.unwrap_or_default())),
            threads: of(|taken| taken.threads)?,
            files: of(|taken| taken.files)?,
        })
    }
}

/// Bytes of the heap that are in use, over all its arenas and in mappings of their own (mallinfo(3)).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn in_use() -> Option<u64> {
    // SAFETY: it has no requirements.
    let info = unsafe { libc::mallinfo2() };
    Some((info.uordblks + info.hblkhd) as u64)
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn in_use() -> Option<u64> {
    None
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = |bytes| bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "{:.1} MiB resident, {:.1} of them of files, {} threads, {} open files",
            mebibytes(self.resident),
            mebibytes(self.of_files),
            self.threads,
            self.files
        )?;
        match self.in_use {
            Some(bytes) => write!(f, ", {:.1} MiB in use on the heap", mebibytes(bytes)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_of_each_figure() {
        let taken = |resident, threads, files| Taken {
            resident,
            of_files: resident / 3,
            in_use: Some(resident / 2),
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
