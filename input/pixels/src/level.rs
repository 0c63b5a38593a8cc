//! How much of the machine an operation uses.

use std::sync::OnceLock;

use crate::{InstructionSet, detect_features};

/// The fewest bytes that are worth a thread, which takes tens of microseconds to start.
const WORTH: usize = 1 << 18;

/// How an operation is computed. Every level has the same bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum OptLevel {
    /// Plain Rust for the target's lowest common processor, on the caller's thread.
    None,
    /// The instructions that [`detect_features`] names, on the caller's thread.
    #[default]
    Simd,
    /// Plain Rust on every core.
    Parallel,
    /// The instructions that [`detect_features`] names, on every core.
    Full,
}

impl OptLevel {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Simd, Self::Parallel, Self::Full];

    /// The instructions that it uses on this machine.
    #[must_use]
    pub fn instructions(self) -> InstructionSet {
        match self {
            Self::None | Self::Parallel => InstructionSet::Scalar,
            Self::Simd | Self::Full => detect_features(),
        }
    }

    /// The threads that are worth their start for work on so many bytes.
    pub(crate) fn threads_for(self, bytes: usize) -> usize {
        self.threads().min(bytes / WORTH).max(1)
    }

    /// The threads that it uses on this machine, the caller's included, where there is work for them. In WebAssembly it is
    /// one for every level: a module cannot start threads.
    #[must_use]
    pub fn threads(self) -> usize {
        // On Linux the answer is read from files each time, which takes longer than small work.
        static CORES: OnceLock<usize> = OnceLock::new();
        match self {
            Self::None | Self::Simd => 1,
            Self::Parallel | Self::Full if cfg!(target_arch = "wasm32") => 1,
            Self::Parallel | Self::Full => *CORES.get_or_init(|| {
                std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
            }),
        }
    }
}
