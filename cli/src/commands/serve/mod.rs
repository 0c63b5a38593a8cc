//! `isovec serve`.

pub(crate) mod file;

use std::net::SocketAddr;
use std::path::PathBuf;

use futures_util::future::Either;
use futures_util::stream::{self, Stream, StreamExt as _};
use isovec::{EmbeddingConfig, ModelTask};
use isovec_serve::{ApiKeys, ModelSpec, ServeOptions, Server, reload_signal, stop_signal};

use crate::args::{Serve, TaskArg};
use crate::error::{CliError, Result};
use crate::model::{bar, source};
#[cfg(feature = "tls")]
use crate::server::reload_tls;
use crate::server::{notify_socket, on_threads, set, until_stopped};

pub(crate) fn run(args: &Serve) -> Result<()> {
    let options = options(args)?;
    let config = args.knobs.embedding_config()?;
    let first = match &args.models {
        Some(path) => file::read(path, &config)?,
        None => named(args, &config)?,
    };
    on_threads("the server's threads", async {
        // From here on a signal drains; before there is nothing to drain.
        let stop = until_stopped(stop_signal)?;
        let wanted = match args.models.clone() {
            Some(path) => Either::Left(changes(path, config)?),
            None => Either::Right(stream::empty()),
        };
        let wanted = stream::once(async { first }).chain(wanted);
        #[cfg(feature = "tls")]
        if let Some(tls) = options.tls.clone() {
            reload_tls(reload_signal()?, move || tls.reload());
        }
        let server = Server::bind(SocketAddr::new(args.host, args.port), options).await?;
        let ended = server.run_models(wanted, stop).await;
        ended.map_err(|error| match error {
            isovec_serve::Error::Model { source, .. } => args.knobs.failed(*source),
            error => error.into(),
        })
    })?
}

/// The models that the command line names.
fn named(args: &Serve, config: &EmbeddingConfig) -> Result<Vec<ModelSpec>> {
    if args.model.len() > 1 && (args.name.is_some() || args.task.is_some()) {
        return Err(CliError::Usage(
            "--name and --task are for one model; say them of several in a file (--models)".into(),
        ));
    }
    let spec = |model: Option<&str>| {
        let mut spec = ModelSpec::new(source(model))
            .with_config(config.clone())
            .with_progress(bar());
        spec.name = args.name.clone();
        spec.task = args.task.map(|task| match task {
            TaskArg::Embed => ModelTask::Embed,
            TaskArg::Rerank => ModelTask::Rerank,
            TaskArg::Classify => ModelTask::Classify,
            TaskArg::Sparse => ModelTask::Sparse,
            TaskArg::MultiVector => ModelTask::MultiVector,
            #[cfg(feature = "image")]
            TaskArg::EmbedImages => ModelTask::EmbedImages,
        });
        spec
    };
    if args.model.is_empty() {
        let model = std::env::var("ISOVEC_MODEL").ok();
        return Ok(vec![spec(model.as_deref())]);
    }
    Ok(args.model.iter().map(|model| spec(Some(model))).collect())
}

/// The models of the file, every time that the process is told to read it again.
fn changes(path: PathBuf, config: EmbeddingConfig) -> Result<impl Stream<Item = Vec<ModelSpec>>> {
    let again = reload_signal()?;
    Ok(again.filter_map(move |()| {
        let read = file::read(&path, &config);
        let read = read.inspect_err(|error| {
            tracing::error!(%error, "the file of models cannot be read; they are served as before");
        });
        std::future::ready(read.ok())
    }))
}

fn options(args: &Serve) -> Result<ServeOptions> {
    let mut options = ServeOptions::default();
    options.api_keys = args.api_keys.as_ref().map(ApiKeys::read).transpose()?;
    options.notify_socket = notify_socket();
    #[cfg(feature = "tls")]
    if let (Some(certificates), Some(key)) = (&args.tls.tls_cert, &args.tls.tls_key) {
        let tls = isovec_serve::Tls::read(certificates, key);
        options.tls = Some(tls.map_err(isovec_serve::Error::Tls)?);
    }
    options.model_control = args.model_control;
    options.memory_budget = args.memory_budget;
    options.key_share = args.key_share.unwrap_or(options.key_share);
    set([
        (&mut options.max_requests, args.max_requests),
        (&mut options.max_texts, args.max_texts),
        (&mut options.max_bytes, args.max_bytes),
        (&mut options.max_body, args.max_body),
        (&mut options.max_connections, args.max_connections),
    ]);
    set([
        (&mut options.request_timeout, args.request_timeout),
        (&mut options.read_timeout, args.read_timeout),
        (&mut options.probe_timeout, args.probe_timeout),
        (&mut options.drain_timeout, args.drain_timeout),
    ]);
    Ok(options)
}
