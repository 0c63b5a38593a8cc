//! `isovec serve`.

use std::net::SocketAddr;

use isovec::Embedder;
use isovec_serve::{ApiKeys, ServeOptions, Server, stop_signal};

use crate::args::Serve;
use crate::error::{CliError, Result};
use crate::model::bar;

pub(crate) fn run(args: &Serve) -> Result<()> {
    let options = options(args)?;
    let config = args.model.embedding_config()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(CliError::io("the server's threads"))?;
    let ended = runtime.block_on(async {
        // From here on a signal drains; before there is nothing to drain.
        let stop = stop_signal()?;
        let server = Server::bind(SocketAddr::new(args.host, args.port), options).await?;
        let model = Embedder::builder(args.model.source()).config(config);
        let model = model.progress(bar()).load();
        let stop = async {
            stop.await;
            if let Ok(again) = stop_signal() {
                tokio::spawn(async {
                    again.await;
                    // Everybody inside is let down, as was asked for.
                    std::process::exit(130);
                });
            }
        };
        server.run(model, stop).await.map_err(|error| match error {
            isovec_serve::Error::Model(error) => args.model.failed(error),
            error => error.into(),
        })
    });
    // Work of clients that are gone is not waited for.
    runtime.shutdown_background();
    ended
}

fn options(args: &Serve) -> Result<ServeOptions> {
    let mut options = ServeOptions::default();
    options.name = args.name.clone();
    options.api_keys = args.api_keys.as_ref().map(ApiKeys::read).transpose()?;
    let numbers = [
        (&mut options.max_requests, args.max_requests),
        (&mut options.max_texts, args.max_texts),
        (&mut options.max_bytes, args.max_bytes),
        (&mut options.max_body, args.max_body),
        (&mut options.max_connections, args.max_connections),
    ];
    for (option, given) in numbers {
        *option = given.unwrap_or(*option);
    }
    let times = [
        (&mut options.request_timeout, args.request_timeout),
        (&mut options.read_timeout, args.read_timeout),
        (&mut options.probe_timeout, args.probe_timeout),
        (&mut options.drain_timeout, args.drain_timeout),
    ];
    for (option, given) in times {
        *option = given.unwrap_or(*option);
    }
    Ok(options)
}
