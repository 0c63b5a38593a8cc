//! `isovec` on the command line: embed, classify, search, compare, export, inspect, serve and route.
//!
//! This is a library only so that the code that reads users' files can be fuzzed: [`reading`].
//!
//! # Design
//!
//! **An output can be resumed** (`resume/`). `isovec embed` writes rows as they arrive. `--resume` continues after the
//! last window that is safely on the disk.
//!
//! **A saved benchmark is a list of turns** (`commands/bench/`). A figure (`figure.rs`) is the seconds of one thing,
//! turn by turn, whatever was measured. Saving, comparing and drawing all work on a list of figures, so none of them
//! knows what was measured. A repeated run takes its number of texts and calls from the baseline. If it chose them anew
//! by the clock, it would do other work on a slower day.
//!
//! **Faults are injected into the real program.** `tests/faults` disturbs every call that touches the disk, with a
//! small library that is loaded into the program.

mod args;
mod commands;
mod config;
#[cfg(test)]
mod documents;
mod error;
mod flow;
mod in_place;
mod input;
mod interrupt;
mod model;
mod output;
#[cfg(feature = "image")]
mod pictures;
mod profile;
mod progress;
#[doc(hidden)]
pub mod reading;
mod recipe;
mod resume;
#[cfg(any(feature = "serve", feature = "route"))]
mod server;
mod tally;
mod texts;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser as _;
#[cfg(all(feature = "otlp", feature = "route", not(feature = "serve")))]
use isovec_route::Traces;
#[cfg(all(feature = "otlp", feature = "serve"))]
use isovec_serve::Traces;
#[cfg(not(all(feature = "otlp", any(feature = "route", feature = "serve"))))]
use tracing_subscriber::layer::Identity;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt};

use crate::args::{Args, Command};
use crate::error::CliError;

/// The program.
pub fn main() -> ExitCode {
    let args = Args::parse();
    // Before what sends traces has a thread.
    #[cfg(any(feature = "serve", feature = "route"))]
    if is_server(&args.command) {
        server::keep_few_heaps();
    }
    #[cfg(all(feature = "otlp", any(feature = "route", feature = "serve")))]
    let traces = match traces(&args.command) {
        Ok(traces) => traces,
        Err(error) => return failed(&error),
    };
    #[cfg(all(feature = "otlp", any(feature = "route", feature = "serve")))]
    log(&args.command, traces.as_ref().map(Traces::layer));
    #[cfg(not(all(feature = "otlp", any(feature = "route", feature = "serve"))))]
    log(&args.command, None::<Identity>);
    let result = match &args.command {
        Command::Embed(embed) => commands::embed::run(embed),
        Command::Classify(classify) => commands::classify::run(classify),
        Command::Rerank(rerank) => commands::rerank::run(rerank),
        Command::Similarity(similarity) => commands::similarity::run(similarity),
        Command::Search(search) => commands::search::run(search),
        #[cfg(feature = "ocr")]
        Command::Ocr(ocr) => commands::ocr::run(ocr),
        Command::Export(export) => commands::export::run(export),
        Command::Optimize(optimize) => commands::optimize::run(optimize),
        Command::Bench(bench) => commands::bench::run(bench),
        Command::Info(info) => commands::info::run(info),
        Command::Advise(advise) => commands::advise::run(advise),
        Command::Tune(tune) => commands::tune::run(tune),
        Command::Features(features) => commands::features::run(features),
        Command::Graph(graph) => commands::graph::run(graph),
        Command::Trace(trace) => commands::trace::run(trace),
        #[cfg(feature = "jobs")]
        Command::Job(job) => commands::job::run(job),
        #[cfg(feature = "serve")]
        Command::Serve(serve) => commands::serve::run(serve),
        #[cfg(feature = "route")]
        Command::Route(route) => commands::route::run(route),
    };
    #[cfg(all(feature = "otlp", any(feature = "route", feature = "serve")))]
    if let Some(traces) = traces {
        traces.end();
    }
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &CliError) -> ExitCode {
    if !error.is_silent() {
        eprintln!("isovec: {error}");
    }
    ExitCode::from(error.exit_code())
}

#[cfg(any(feature = "serve", feature = "route"))]
fn is_server(command: &Command) -> bool {
    match command {
        #[cfg(feature = "serve")]
        Command::Serve(_) => true,
        #[cfg(feature = "route")]
        Command::Route(_) => true,
        _ => false,
    }
}

/// The way to the collector that a server is told of.
#[cfg(all(feature = "otlp", any(feature = "route", feature = "serve")))]
fn traces(command: &Command) -> Result<Option<Traces>, CliError> {
    let (endpoint, service) = match command {
        #[cfg(feature = "serve")]
        Command::Serve(serve) => (&serve.otlp.otlp_endpoint, "isovec-serve"),
        #[cfg(feature = "route")]
        Command::Route(route) => (&route.otlp.otlp_endpoint, "isovec-route"),
        _ => return Ok(None),
    };
    let traces = endpoint.as_ref().map(|to| Traces::to(to, service));
    traces
        .transpose()
        .map_err(|error| CliError::Usage(format!("--otlp-endpoint: {error}")))
}

/// Writes to standard error what happens: warnings, and of a server every request, with its time.
#[cfg_attr(
    not(any(feature = "serve", feature = "route")),
    allow(unused_variables)
)]
fn log(command: &Command, traces: Option<impl Layer<Registry> + Send + Sync>) {
    let filter = |usual| {
        tracing_subscriber::EnvFilter::try_from_env("ISOVEC_LOG")
            .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(usual))
    };
    let log = fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let all = tracing_subscriber::registry().with(traces);
    #[cfg(any(feature = "serve", feature = "route"))]
    {
        let form = match command {
            #[cfg(feature = "serve")]
            Command::Serve(serve) => Some(serve.log),
            #[cfg(feature = "route")]
            Command::Route(route) => Some(route.log),
            _ => None,
        };
        if let Some(form) = form {
            let filter = filter("info");
            return match form {
                args::LogArg::Text => all.with(log.with_filter(filter)).init(),
                args::LogArg::Json => {
                    let log = log.json().flatten_event(true);
                    all.with(log.with_filter(filter)).init();
                }
            };
        }
    }
    all.with(log.without_time().with_filter(filter("warn")))
        .init();
}
