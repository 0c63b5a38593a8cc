//! `isovec embed --images PATH...`.

use std::time::Instant;

use isovec::blocking::ImageEmbedder;
use isovec::{EmbedOptions, Picture, StreamOptions};
use serde::Serialize;

use crate::args::Embed;
use crate::error::Result;
use crate::in_place::Draft;
use crate::output::{self, Target};
use crate::{commands, interrupt, pictures};

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
    let compact = output::compact(args.compact, format)?;
    args.profile.not_into(out)?;
    let paths = pictures::collect(&args.images, out)?;
    let cancel = interrupt::on_ctrl_c()?;
    let (embedder, profiling) = args.profile.load::<ImageEmbedder>(&args.model, &cancel)?;
    let options = EmbedOptions::default().with_cancel(cancel);
    let draft = out.map(Draft::create).transpose()?;
    let target = Target {
        out,
        format,
        compact,
        empty: embedder.empty_set(&options)?,
        keeper: None,
        draft: draft.as_ref(),
    };
    let sink = target.open()?;

    let started = Instant::now();
    let files = paths.iter().map(Picture::open);
    let stream = StreamOptions::default().with_embed(options);
    let results = embedder.try_embed_iter(files, stream);
    let written = pictures::write(&paths, results, sink, draft, profiling)?;
    let stats = || args.stats.then(|| embedder.stats());
    if args.json {
        commands::print_line(&Summary {
            images: written.rows,
            unreadable: written.unreadable,
            seconds: started.elapsed().as_secs_f64(),
            provider: embedder.provider().to_string(),
            fingerprint: embedder.fingerprint().id(),
            stats: stats(),
        })?;
    } else if let Some(stats) = stats() {
        commands::print_stats(&stats)?;
    }
    written.whole()
}
