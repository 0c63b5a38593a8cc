//! A process of a Ballista cluster whose SQL has isovec's functions: what to copy for a cluster of your own.
//!
//! ```sh
//! isovec-ballista scheduler PORT MODEL
//! isovec-ballista executor SCHEDULER_PORT PORT GRPC_PORT WORK_DIR MODEL
//! ```
//!
//! `MODEL` is a folder. Everything listens on loopback. The client registers the same model in its own session.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::utils::default_session_builder;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use datafusion::execution::SessionState;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::SessionConfig;
use isovec::Embedder;
use isovec_datafusion::{Models, with_functions};

/// How often an executor says that it is there, and after how long it is given up, in seconds.
const HEARTBEAT: u64 = 1;
const GIVEN_UP: u64 = 5;

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["scheduler", port, model] => scheduler(port.parse()?, models(model).await?).await,
        ["executor", scheduler, port, grpc_port, work_dir, model] => {
            let models = models(model).await?;
            executor(ExecutorProcessConfig {
                scheduler_port: scheduler.parse()?,
                port: port.parse()?,
                grpc_port: grpc_port.parse()?,
                work_dir: Some(work_dir.to_owned()),
                override_function_registry: Some(Arc::new(registry(models)?)),
                ..executor_defaults()
            })
            .await
        }
        _ => bail!(
            "usage: scheduler PORT MODEL, or executor SCHEDULER_PORT PORT GRPC_PORT WORK_DIR MODEL"
        ),
    }
}

/// The one model of the cluster. Every process loads it: the scheduler to plan with its dimension and fingerprint.
async fn models(folder: &str) -> Result<Models> {
    let embedder = Embedder::load(folder).await;
    Ok(embedder.with_context(|| folder.to_owned())?.into())
}

/// A session of Ballista's with the functions, and the rule that says where they are computed.
fn state(config: SessionConfig, models: Models) -> datafusion::error::Result<SessionState> {
    let state = default_session_builder(config)?;
    let builder = SessionStateBuilder::new_from_existing(state);
    Ok(with_functions(builder, models)?.build())
}

/// What an executor finds functions by their names in.
fn registry(models: Models) -> Result<BallistaFunctionRegistry> {
    let state = state(SessionConfig::new(), models)?;
    Ok(BallistaFunctionRegistry::from(&state))
}

async fn scheduler(port: u16, models: Models) -> Result<()> {
    let config = SchedulerConfig {
        bind_port: port,
        executor_timeout_seconds: GIVEN_UP,
        expire_dead_executor_interval_seconds: HEARTBEAT,
        override_session_builder: Some(Arc::new(move |config| state(config, models.clone()))),
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let address = ([127, 0, 0, 1], port).into();
    start_server(cluster, address, Arc::new(config)).await?;
    Ok(())
}

fn executor_defaults() -> ExecutorProcessConfig {
    ExecutorProcessConfig {
        vcores: 1,
        scheduler_connect_timeout_seconds: 60,
        executor_heartbeat_interval_seconds: HEARTBEAT,
        ..ExecutorProcessConfig::default()
    }
}

async fn executor(config: ExecutorProcessConfig) -> Result<()> {
    start_executor_process(Arc::new(config)).await?;
    Ok(())
}
