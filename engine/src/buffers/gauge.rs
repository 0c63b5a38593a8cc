//! How much memory there is, and how much of it is in use.

use std::fmt::Debug;
use std::sync::Arc;

/// The memory of the machine, or of the part of it that this process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// Bytes that there are.
    pub total: u64,
    /// Bytes that can still be had.
    pub available: u64,
}

impl Memory {
    /// So much, of which so much can still be had.
    pub fn new(total: u64, available: u64) -> Self {
        Self {
            total,
            available: available.min(total),
        }
    }

    /// The part in use, 0 to 1.
    pub fn used_part(&self) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        (self.total - self.available) as f64 / self.total as f64
    }
}

/// Something that knows how much memory there is.
pub trait Gauge: Send + Sync + Debug {
    /// The memory now; `None` if it is unknown.
    fn memory(&self) -> Option<Memory>;
}

/// The memory of the machine or of this process's control group, whichever has less left; in the
/// browser, the growth of the instance's own memory.
pub fn system_memory() -> Arc<dyn Gauge> {
    Arc::new(target::System::default())
}

cfg_if::cfg_if! {
    if #[cfg(target_arch = "wasm32")] {
        mod target {
            use super::{Gauge, Memory};

            /// The most that 32-bit addresses reach, which is also what browsers grant.
            const LARGEST: u64 = 1 << 32;
            const PAGE: u64 = 64 << 10;

            /// An instance's memory only grows, so what it has grown to counts as used.
            #[derive(Debug, Default)]
            pub(super) struct System {}

            impl Gauge for System {
                fn memory(&self) -> Option<Memory> {
                    let grown = core::arch::wasm32::memory_size(0) as u64 * PAGE;
                    Some(Memory::new(LARGEST, LARGEST - grown.min(LARGEST)))
                }
            }
        }
    } else {
        mod target {
            use std::sync::{Mutex, PoisonError};

            use super::{Gauge, Memory};

            #[derive(Debug, Default)]
            pub(super) struct System(Mutex<sysinfo::System>);

            /// What a control group has left. Its own count of free memory takes cached files for used memory; the
            /// kernel drops those when anybody wants their place, so that only what processes hold is gone.
            pub(super) fn of_group(limits: &sysinfo::CGroupLimits) -> Memory {
                let total = limits.total_memory;
                Memory::new(total, total.saturating_sub(limits.rss))
            }

            impl Gauge for System {
                fn memory(&self) -> Option<Memory> {
                    let mut system = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                    system.refresh_memory();
                    let machine = Memory::new(system.total_memory(), system.available_memory());
                    let group = system.cgroup_limits().map(|limits| of_group(&limits));
                    let least = match group {
                        Some(group) if group.available < machine.available => group,
                        _ => machine,
                    };
                    (least.total > 0).then_some(least)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory_and_uses_some() {
        let memory = system_memory().memory().unwrap();
        assert!(memory.total > 1 << 20, "{memory:?}");
        assert!((0.0..=1.0).contains(&memory.used_part()), "{memory:?}");
    }

    #[test]
    fn files_that_a_group_has_cached_can_make_room() {
        let limits = sysinfo::CGroupLimits {
            total_memory: 1000,
            // Cached files fill the rest.
            free_memory: 0,
            free_swap: 0,
            rss: 300,
        };
        assert_eq!(target::of_group(&limits), Memory::new(1000, 700));
    }

    #[test]
    fn nothing_is_a_part_of_nothing() {
        assert_eq!(Memory::new(0, 5).used_part(), 0.0);
        assert_eq!(Memory::new(4, 1).used_part(), 0.75);
        assert_eq!(Memory::new(4, 9).used_part(), 0.0);
    }
}
