//! Profiles: when what was done for whom, from [`Embedder::profile`](crate::Embedder::profile).

pub use isovec_engine::counters::Ended;
pub use isovec_engine::profile::{
    AlreadyProfiled, Detail, Event, Kind, Profile, ProfileOptions, ProfileSession, Span, Stage,
    TARGET,
};
