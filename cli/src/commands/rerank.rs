//! `isovec rerank QUERY DOCUMENT...`.

use std::fmt::Write;

use isovec::blocking::Reranker;
use isovec::{Prompt, RankOptions, Ranked, Scores};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::args::{RelevanceArg, Rerank};
use crate::error::Result;
use crate::input::Row;
use crate::output::start::start;
use crate::{commands, input, interrupt, profile};

#[derive(Serialize)]
struct Found<'a> {
    score: f32,
    /// Its place among the documents, from 0.
    index: usize,
    /// The file, or what else it came from, and its number there, from 1.
    origin: &'a str,
    number: usize,
    text: &'a str,
    /// The other fields of a JSON object or a CSV record.
    #[serde(skip_serializing_if = "Map::is_empty")]
    fields: &'a Map<String, Value>,
    truncated: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    query: &'a str,
    documents: usize,
    provider: String,
    hits: Vec<Found<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<isovec::stats::Stats>,
}

pub(crate) fn run(args: &Rerank) -> Result<()> {
    if let Some(written) = &args.profile.profile {
        input::not_read(&args.input, written)?;
    }
    let input = input::open(&args.input)?;
    let cancel = interrupt::on_ctrl_c()?;
    let (reranker, profiling) = args.profile.load::<Reranker>(&args.model, &cancel)?;
    // All of them: the last may be the best.
    let documents = input.rows.collect::<Result<Vec<Row>>>()?;
    let mut options = RankOptions::default().with_cancel(cancel);
    options.top_n = args.top_n;
    options.score.scores = args.scores.map(|scores| match scores {
        RelevanceArg::Sigmoid => Scores::Sigmoid,
        RelevanceArg::Logits => Scores::Logits,
    });
    options.score.prompt = match (&args.prompt, &args.instruction) {
        (Some(name), _) => Prompt::Named(name.clone()),
        (None, Some(text)) => Prompt::Text(text.clone()),
        (None, None) => Prompt::Default,
    };
    let texts = documents.iter().map(|document| &document.text);
    let ranked = reranker.rank_with(&args.query, texts, &options)?;
    profile::finish(profiling)?;

    let found = |ranked: &Ranked| {
        let document = &documents[ranked.index];
        Found {
            score: ranked.score,
            index: ranked.index,
            origin: &document.origin,
            number: document.number,
            text: &document.text,
            fields: &document.fields,
            truncated: ranked.truncated,
        }
    };
    let answer = Answer {
        query: &args.query,
        documents: documents.len(),
        provider: reranker.provider().to_string(),
        hits: ranked.iter().map(found).collect(),
        stats: (args.json && args.stats).then(|| reranker.stats()),
    };
    if args.json {
        return commands::print_json(&answer);
    }
    commands::print(&table(&answer))?;
    if args.stats {
        commands::print_stats(&reranker.stats())?;
    }
    Ok(())
}

/// A line for each document: its score, its place from 1, and how it begins.
fn table(answer: &Answer<'_>) -> String {
    let mut table = String::new();
    for hit in &answer.hits {
        let line = format!(
            "{:>9.4}  {:>5}  {}",
            hit.score,
            hit.index + 1,
            start(hit.text)
        );
        let _ = writeln!(table, "{}", line.trim_end());
    }
    table
}
