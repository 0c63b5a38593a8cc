//! `isovec embed --images PATH...`.

use std::sync::Arc;
use std::time::Instant;

use isovec::blocking::ImageEmbedder;
use isovec::{EmbedOptions, Picture, StreamOptions};
use serde::Serialize;
use serde_json::Map;

use crate::args::Embed;
use crate::error::{CliError, Result};
use crate::in_place::Draft;
use crate::input::{Row, images};
use crate::output::{self, Target};
use crate::{commands, interrupt, profile, progress};

/// What `--json` prints.
#[derive(Serialize)]
struct Summary {
    images: u64,
    unreadable: u64,
    seconds: f64,
    provider: String,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<isovec::stats::Stats>,
}

pub(crate) fn run(args: &Embed) -> Result<()> {
    let out = args.out.as_deref();
    let format = output::format(args.format, out)?;
    args.profile.not_into(out)?;
    let paths = images::collect(&args.images)?;
    if let Some(own) = out.and_then(|out| out.canonicalize().ok())
        && paths
            .iter()
            .any(|path| path.canonicalize().is_ok_and(|path| path == own))
    {
        return Err(CliError::Usage(format!(
            "{} is read and would be overwritten; name another file to write to",
            own.display()
        )));
    }
    let cancel = interrupt::on_ctrl_c()?;
    let (embedder, profiling) = args.profile.load::<ImageEmbedder>(&args.model, &cancel)?;
    let options = EmbedOptions::default().with_cancel(cancel);
    let draft = out.map(Draft::create).transpose()?;
    let target = Target {
        out,
        format,
        empty: embedder.empty_set(&options)?,
        keeper: None,
        draft: draft.as_ref(),
    };
    let mut sink = target.open()?;

    let started = Instant::now();
    let bar = progress::texts(Some(paths.len() as u64));
    let (mut written, mut unreadable) = (0, 0);
    // Whether every row that was embedded was written.
    let mut whole = true;
    let origin: Arc<str> = "the pictures".into();
    let pictures = paths.clone().into_iter().map(Picture::open);
    let stream = StreamOptions::default().with_embed(options);
    let results = embedder.try_embed_iter(pictures, stream);
    let result = (1..)
        .zip(paths.iter().zip(results))
        .try_for_each(|(number, (path, result))| {
            let name = path.display().to_string();
            bar.inc(1);
            match result {
                Ok(embedded) => {
                    let image = ("image".to_owned(), name.clone().into());
                    let row = Row {
                        text: name,
                        fields: Map::from_iter([image]),
                        origin: Arc::clone(&origin),
                        number,
                    };
                    written += 1;
                    sink.write(row, embedded).inspect_err(|_| whole = false)
                }
                Err(isovec::Error::Picture { source, .. }) => {
                    unreadable += 1;
                    bar.suspend(|| eprintln!("isovec: {name}: {source}"));
                    Ok(())
                }
                Err(error) => Err(CliError::Sdk(error)),
            }
        });
    bar.finish_and_clear();
    let finished = output::close(sink, draft, whole);
    let profiled = profile::finish(profiling);
    result
        .and(finished)
        .and(profiled)
        .map_err(|error| match error.is_interrupt() {
            true => CliError::Interrupted(format!("{written} pictures were written")),
            false => error,
        })?;
    let stats = || args.stats.then(|| embedder.stats());
    if args.json {
        commands::print_line(&Summary {
            images: written,
            unreadable,
            seconds: started.elapsed().as_secs_f64(),
            provider: embedder.provider().to_string(),
            fingerprint: embedder.fingerprint().id(),
            stats: stats(),
        })?;
    } else if let Some(stats) = stats() {
        commands::print_stats(&stats)?;
    }
    match unreadable {
        0 => Ok(()),
        some => Err(CliError::Unreadable {
            pictures: some,
            of: some + written,
        }),
    }
}
