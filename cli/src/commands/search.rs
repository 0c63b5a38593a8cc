//! `isovec search QUERY PATH...`.

use std::fmt::Write;

use isovec::blocking::Embedder;
use isovec::{EmbedOptions, Embeddings, Prompt};
use serde::Serialize;

use crate::args::Search;
use crate::error::{CliError, Result};
use crate::input::passages::{self, Passage};
use crate::{commands, interrupt, profile, progress};

/// Passages that are embedded between two steps of the progress bar.
const CHUNK: usize = 64;

#[derive(Serialize)]
struct Found<'a> {
    score: f32,
    #[serde(flatten)]
    passage: &'a Passage,
    truncated: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    query: &'a str,
    passages: usize,
    provider: String,
    hits: Vec<Found<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<isovec::stats::Stats>,
}

pub(crate) fn run(args: &Search) -> Result<()> {
    if args.top_k == 0 {
        return Err(CliError::Usage(
            "--top-k 0 finds nothing; ask for at least 1".into(),
        ));
    }
    #[cfg(feature = "image")]
    if args.images {
        return commands::search_images::run(args);
    }
    let passages = passages::collect(&args.paths, args.by)?;
    let cancel = interrupt::on_ctrl_c()?;
    let (embedder, profiling) = args.profile.load::<Embedder>(&args.model, &cancel)?;
    let options = EmbedOptions::default().with_cancel(cancel);
    let query = embedder.embed_with([&args.query], options.clone().with_prompt(Prompt::Query))?;

    let bar = progress::texts(Some(passages.len() as u64));
    let mut index: Option<Embeddings> = None;
    for chunk in passages.chunks(CHUNK) {
        let texts = chunk.iter().map(|passage| &passage.text);
        let embeddings =
            embedder.embed_with(texts, options.clone().with_prompt(Prompt::Passage))?;
        match &mut index {
            Some(index) => index.extend(embeddings)?,
            None => index = Some(embeddings),
        }
        bar.inc(chunk.len() as u64);
    }
    bar.finish_and_clear();
    profile::finish(profiling)?;

    let mut hits = Vec::new();
    if let Some(index) = &index {
        for hit in index.search_one(&query, args.top_k)? {
            hits.push(Found {
                score: hit.score,
                passage: &passages[hit.index],
                truncated: index.truncated()[hit.index],
            });
        }
    }
    let answer = Answer {
        query: &args.query,
        passages: passages.len(),
        provider: embedder.provider().to_string(),
        hits,
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

/// The answer for people.
fn page(answer: &Answer<'_>) -> String {
    let mut page = String::new();
    let _ = writeln!(
        page,
        "{:?} in {} passages, by {}",
        answer.query, answer.passages, answer.provider
    );
    for hit in &answer.hits {
        let _ = writeln!(
            page,
            "\n{:.3}  {}:{}",
            hit.score,
            hit.passage.path.display(),
            hit.passage.line
        );
        for line in hit.passage.text.lines().take(4) {
            let _ = writeln!(page, "       {line}");
        }
        let rest = hit.passage.text.lines().count().saturating_sub(4);
        if rest > 0 {
            let _ = writeln!(page, "       … {rest} more lines");
        }
        if hit.truncated {
            let _ = writeln!(
                page,
                "       (the model saw only the beginning of this passage)"
            );
        }
    }
    page
}
