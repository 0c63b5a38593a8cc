//! Profiles: the time of every step of every request, from [`Embedder::profile`](crate::Embedder::profile).

pub use isovec_engine::counters::Ended;
pub use isovec_engine::profile::{
    AlreadyProfiled, Detail, Event, Kind, Profile, ProfileOptions, ProfileSession, Span, Stage,
    TARGET,
};
