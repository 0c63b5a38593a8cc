//! The hub against a real HTTP server on loopback, well behaved and not.

mod cache;
mod choice;
mod cuts;
mod dying;
mod failures;
mod fetch;
mod hostile;
mod pace;
mod python;
mod redirects;
mod repo;
mod resume;
