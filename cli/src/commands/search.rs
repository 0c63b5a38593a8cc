//! `isovec search QUERY PATH...`.

use std::fmt::Write;

use isovec::blocking::{Embedder, Reranker};
use isovec::config::TextConfig;
use isovec::{Cancel, EmbedOptions, Embeddings, Prompt, RankOptions};
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
    /// The similarity of the vectors, where `score` is a reranker's.
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f32>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    reranker_stats: Option<isovec::stats::Stats>,
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
    // Before the work of the first: a second model that cannot be loaded is known by now.
    let reranker = args.rerank.as_deref();
    let reranker = reranker.map(|model| load_reranker(args, model, &cancel));
    let reranker = reranker.transpose()?;
    let options = EmbedOptions::default().with_cancel(cancel.clone());
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

    let mut hits = Vec::new();
    if let Some(index) = &index {
        let most = match &reranker {
            Some(_) => args.candidates.max(args.top_k),
            None => args.top_k,
        };
        for hit in index.search_one(&query, most)? {
            hits.push(Found {
                score: hit.score,
                similarity: None,
                passage: &passages[hit.index],
                truncated: index.truncated()[hit.index],
            });
        }
    }
    if let Some(reranker) = &reranker {
        hits = reranked(reranker, args, hits, cancel)?;
    }
    profile::finish(profiling)?;
    let answer = Answer {
        query: &args.query,
        passages: passages.len(),
        provider: embedder.provider().to_string(),
        hits,
        stats: (args.json && args.stats).then(|| embedder.stats()),
        reranker_stats: reranker
            .as_ref()
            .filter(|_| args.json && args.stats)
            .map(Reranker::stats),
    };
    if args.json {
        return commands::print_json(&answer);
    }
    commands::print(&page(&answer))?;
    if args.stats {
        commands::print_stats(&embedder.stats())?;
        if let Some(reranker) = &reranker {
            commands::print_stats(&reranker.stats())?;
        }
    }
    Ok(())
}

/// Loads the second model under the options of the first.
fn load_reranker(args: &Search, model: &str, cancel: &Cancel) -> Result<Reranker> {
    let own = args.model.of_reranker(model);
    let mut config = own.embedding_config()?;
    // The file of knobs is about the embedder's texts.
    config.text = TextConfig::default();
    own.load_as(config, cancel)
}

/// The best of what the vectors found, by a model that reads each passage with the query.
fn reranked<'p>(
    reranker: &Reranker,
    args: &Search,
    found: Vec<Found<'p>>,
    cancel: Cancel,
) -> Result<Vec<Found<'p>>> {
    let options = RankOptions::default()
        .with_top_n(args.top_k)
        .with_cancel(cancel);
    let texts = found.iter().map(|hit| &hit.passage.text);
    let ranked = reranker.rank_with(&args.query, texts, &options)?;
    let best = ranked.into_iter().map(|document| Found {
        score: document.score,
        similarity: Some(found[document.index].score),
        passage: found[document.index].passage,
        truncated: document.truncated,
    });
    Ok(best.collect())
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
