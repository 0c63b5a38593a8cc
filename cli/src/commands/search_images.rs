//! `isovec search --images QUERY PATH...`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use isovec::blocking::{Embedder, ImageEmbedder};
use isovec::{Cancel, EmbedOptions, Embeddings, Error, Picture, Prompt, StreamOptions};
use serde::Serialize;

use crate::args::Search;
use crate::error::{CliError, Result};
use crate::input::images;
use crate::{commands, interrupt, profile, progress};

#[derive(Serialize)]
struct Found<'a> {
    score: f32,
    image: &'a Path,
}

#[derive(Serialize)]
struct Answer<'a> {
    query: &'a str,
    images: usize,
    unreadable: usize,
    provider: String,
    hits: Vec<Found<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<isovec::stats::Stats>,
}

pub(crate) fn run(args: &Search) -> Result<()> {
    let paths = images::collect(&args.paths)?;
    let cancel = interrupt::on_ctrl_c()?;
    let (embedder, profiling) = args.profile.load::<ImageEmbedder>(&args.model, &cancel)?;
    let query = query(args, &embedder, &cancel)?;

    let bar = progress::texts(Some(paths.len() as u64));
    let options = EmbedOptions::default().with_cancel(cancel);
    let mut index = embedder.empty_set(&options)?;
    let mut places: Vec<&PathBuf> = Vec::new();
    let stream = StreamOptions::default().with_embed(options);
    let pictures = paths.clone().into_iter().map(Picture::open);
    for (path, result) in paths.iter().zip(embedder.try_embed_iter(pictures, stream)) {
        bar.inc(1);
        match result {
            Ok(embedded) => {
                index.push(embedded)?;
                places.push(path);
            }
            Err(Error::Picture { source, .. }) => {
                bar.suspend(|| eprintln!("isovec: {}: {source}", path.display()));
            }
            Err(error) => return Err(error.into()),
        }
    }
    bar.finish_and_clear();
    profile::finish(profiling)?;

    let hits = index.search_one(&query, args.top_k)?.into_iter();
    let answer = Answer {
        query: &args.query,
        images: places.len(),
        unreadable: paths.len() - places.len(),
        provider: embedder.provider().to_string(),
        hits: hits
            .map(|hit| Found {
                score: hit.score,
                image: places[hit.index],
            })
            .collect(),
        stats: (args.json && args.stats).then(|| embedder.stats()),
    };
    if args.json {
        return commands::print_json(&answer);
    }
    commands::print(&page(&answer))?;
    if args.stats {
        commands::print_stats(&embedder.stats())?;
    }
    Ok(())
}

/// The query's vector: that of a picture where the query is a file, else that of a text by the model's other half.
fn query(args: &Search, embedder: &ImageEmbedder, cancel: &Cancel) -> Result<Embeddings> {
    let options = EmbedOptions::default().with_cancel(cancel.clone());
    if Path::new(&args.query).is_file() {
        let picture = Picture::open(&args.query)?;
        return embedder
            .embed_with(&[picture], &options)
            .map_err(|error| match error {
                Error::Picture { source, .. } => {
                    CliError::Usage(format!("{}: {source}", args.query))
                }
                error => error.into(),
            });
    }
    let texts = args.model.load::<Embedder>(cancel).map_err(|error| match error {
        CliError::Model(Error::Engine(isovec_engine::EngineError::UnsupportedModel { .. })) => {
            CliError::Usage(
                "the model reads pictures alone, so the query has to be one: name its file, or take a CLIP with both halves".into(),
            )
        }
        error => error,
    })?;
    let differences = embedder.fingerprint().differences(texts.fingerprint());
    if !differences.is_empty() {
        return Err(Error::IncompatibleIndex { differences }.into());
    }
    Ok(texts.embed_with([&args.query], options.with_prompt(Prompt::Query))?)
}

/// The answer for people.
fn page(answer: &Answer<'_>) -> String {
    let mut page = String::new();
    let _ = writeln!(
        page,
        "{:?} in {} pictures, by {}\n",
        answer.query, answer.images, answer.provider
    );
    for hit in &answer.hits {
        let _ = writeln!(page, "{:.3}  {}", hit.score, hit.image.display());
    }
    page
}
