//! The router on loopback, before real servers with the tiny model and before replicas that do as a test tells them.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

#[allow(dead_code, reason = "the tests of the server read more of an answer")]
#[path = "../../../serve/tests/loopback/client.rs"]
mod client;
mod compression;
mod faults;
mod grpc;
mod joining;
mod life;
mod models;
mod passing;
mod puppet;
mod running;
#[cfg(feature = "tls")]
#[path = "../../../serve/tests/loopback/signed.rs"]
mod signed;
mod strategies;
#[cfg(feature = "tls")]
mod tls;
