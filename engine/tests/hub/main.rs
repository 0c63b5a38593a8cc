//! The hub against a real HTTP server on loopback, well behaved and not.

mod cache;
mod failures;
mod fetch;
mod python;
mod repo;
mod resume;
mod server;
