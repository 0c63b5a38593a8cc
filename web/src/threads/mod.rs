//! The threads that share the work of one operator: a pool natively, workers in a page whose
//! memory they share, or none. Results do not depend on their number: work is split between rows
//! and columns, never inside a sum.

#[cfg(any(test, all(feature = "event-loop", target_feature = "atomics")))]
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

#[cfg(feature = "event-loop")]
/// How many threads can compute in a page, the caller's included.
pub(crate) fn in_page() -> usize {
    cfg_if::cfg_if! {
        if #[cfg(all(not(feature = "threads"), target_feature = "atomics"))] {
            workers::available()
        } else {
            1
        }
    }
}
