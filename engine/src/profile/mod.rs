//! Profiles: the waiting time of each request, and where the engine spent its time.
//!
//! A [`ProfileSession`] takes [`Event`]s in a ring of bounded size, from any thread, until it is finished and becomes
//! a [`Profile`], which is written as a Chrome trace (Perfetto, `chrome://tracing` and `isovec trace` read it). A
//! model has a [`Profiler`]; a call on it is a request with an id, a [`Span`] from beginning to end. Code that works
//! for the request gets its [`Scope`], and opens its own spans in it. Batches carry a scope to the engine
//! ([`Batch::scope`](crate::engine::Batch::scope)).
//!
//! **Why events are recorded here, and not by a layer of `tracing`.** Collecting spans of `tracing` needs a
//! subscriber, which belongs to the program and not to a library. A registry of spans takes several times as long as
//! writing two times and a few numbers into a ring. And a page would have to download it. So the ring is written
//! directly. If a subscriber wants it, every span is also a span of `tracing`, with the target [`TARGET`]: a layer
//! for OpenTelemetry then sees requests beneath the caller's own spans without a session. Requests are of level INFO,
//! their stages of DEBUG, operators of TRACE. They are never entered, so they add nothing to lines of a log.
//!
//! **Cost without a session.** A request reads one atomic flag and that of `tracing`. It then passes on an empty
//! scope, whose spans cost one comparison each. Nothing is allocated.

mod bridge;
mod chrome;
mod event;
mod merge;
mod recorder;
mod scope;
mod session;
mod stepped;

pub use bridge::TARGET;
pub use event::{Detail, Event, Kind, Stage};
pub use merge::{Lap, OwnProfile, Runs};
pub use scope::{Begun, Profiler, Scope, Span};
pub use session::{AlreadyProfiled, EndProfile, Profile, ProfileOptions, ProfileSession};
pub use stepped::Stepped;

#[cfg(test)]
mod tests;
