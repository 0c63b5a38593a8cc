//! The whole server on loopback, with the tiny model: real sockets, the real queue, a real engine.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod bad_input;
mod client;
mod embed_all;
mod every_route;
mod grpc;
mod http2;
#[cfg(feature = "image")]
mod images;
mod keys;
mod life;
mod log;
mod malformed;
mod models;
mod oip;
mod openai;
mod openapi;
mod overload;
mod predict;
mod repository;
mod rerank;
mod running;
#[cfg(feature = "tls")]
mod signed;
mod sparse;
mod status;
mod tasks;
mod tei;
#[cfg(feature = "tls")]
mod tls;
mod vectors;
