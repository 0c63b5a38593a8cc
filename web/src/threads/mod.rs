//! The threads that share the work of one operator: a pool natively, workers in a page whose
//! memory they share, or none. Results do not depend on their number: work is split between rows
//! and columns, never inside a sum.

#[cfg(any(
    all(test, not(target_family = "wasm")),
    all(feature = "event-loop", target_feature = "atomics")
))]
mod crew;

cfg_if::cfg_if! {
    if #[cfg(feature = "threads")] {
        mod rayon;
        pub(crate) use rayon::Threads;
    } else if #[cfg(all(feature = "event-loop", target_feature = "atomics"))] {
        mod workers;
        pub(crate) use workers::Threads;
    } else {
        mod one;
        pub(crate) use one::Threads;
    }
}

/// How many threads can compute for an event loop, the caller's included.
#[cfg(feature = "event-loop")]
pub(crate) fn in_event_loop() -> usize {
    cfg_if::cfg_if! {
        if #[cfg(all(not(feature = "threads"), target_feature = "atomics"))] {
            workers::available()
        } else {
            1
        }
    }
}
