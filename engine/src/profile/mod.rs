//! Profiles: who waited for what, request by request, and what the engine spent its time on.
//!
//! A [`ProfileSession`] takes [`Event`]s in a ring of bounded size, from any thread, until it is
//! finished and becomes a [`Profile`], which is written as a Chrome trace (Perfetto,
//! `chrome://tracing` and `isovec trace` read it). A model has a [`Profiler`]; a call on it is a
//! request with an id, a [`Span`] from beginning to end. What works for the request is handed its
//! [`Scope`], and opens spans of its own in it. Batches carry a scope to the engine
//! ([`Batch::scope`](crate::engine::Batch::scope)).
//!
//! **Why events are recorded here, and not by a layer of `tracing`.** Spans of `tracing` that
//! somebody collects need a subscriber, which belongs to the program and not to a library; a
//! registry of spans takes several times as long for each as noting two times and a few numbers
//! in a ring; and a page would download it. So the ring is written directly, and every span is
//! one of `tracing` besides, with the target [`TARGET`], where a subscriber wants it: a layer for
//! OpenTelemetry then sees requests beneath the caller's own spans without a session. Requests
//! are of level INFO, their stages of DEBUG, operators of TRACE. They are never entered, so they
//! add nothing to lines of a log.
//!
//! **What it costs when nobody looks.** A request looks at one atomic flag and at `tracing`'s; all
//! that it hands on is then an empty scope, whose spans are a comparison each. Nothing is
//! allocated.

mod bridge;
mod chrome;
mod event;
mod merge;
mod recorder;
mod scope;
mod session;

pub use bridge::TARGET;
pub use event::{Detail, Event, Kind, Stage};
pub use merge::{Lap, OwnProfile, Runs};
pub use scope::{Begun, Profiler, Scope, Span};
pub use session::{AlreadyProfiled, EndProfile, Profile, ProfileOptions, ProfileSession};

#[cfg(test)]
mod tests;
