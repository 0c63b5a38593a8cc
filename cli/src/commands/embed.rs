//! `isovec embed`.

use std::time::Instant;

use isovec::{EmbedOptions, Prompt};
use serde::Serialize;

use crate::args::{Embed, RoleArg};
use crate::error::{CliError, Result};
use crate::input::{self, Row, Rows};
use crate::output::{self, Target};
use crate::{commands, interrupt, progress};

/// Texts that are embedded and written together: enough for the planner to sort by length, few
/// enough that memory stays flat and Ctrl-C loses little.
const CHUNK: usize = 256;

/// What `--json` prints.
#[derive(Serialize)]
struct Summary {
    texts: u64,
    tokens: u64,
    truncated: u64,
    seconds: f64,
    provider: String,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<isovec::Stats>,
}

pub(crate) fn run(args: &Embed) -> Result<()> {
    let format = output::format(args.format, args.out.as_deref())?;
    let mut rows = input::rows(args)?;
    let cancel = interrupt::on_ctrl_c()?;
    let embedder = args.model.load(&cancel)?;
    let target = Target {
        out: args.out.as_deref(),
        format,
        dim: embedder.dimension(),
        fingerprint: embedder.fingerprint(),
    };
    let mut sink = target.open()?;
    let options = EmbedOptions::default()
        .with_cancel(cancel.clone())
        .with_prompt(match args.role {
            RoleArg::Default => Prompt::Default,
            RoleArg::Query => Prompt::Query,
            RoleArg::Passage => Prompt::Passage,
        });

    let started = Instant::now();
    let bar = progress::texts(input::count(args));
    let (mut texts, mut tokens, mut truncated) = (0, 0, 0);
    // The sink is finished whatever happens, so that what was written can be read.
    let result = loop {
        let (chunk, read) = take(&mut rows);
        if !chunk.is_empty() {
            let embeddings =
                embedder.embed_with(chunk.iter().map(|row| &row.text), options.clone());
            let embeddings = match embeddings {
                Ok(embeddings) => embeddings,
                Err(error) if error.is_cancelled() => {
                    break Err(CliError::Interrupted(format!("{texts} texts were written")));
                }
                Err(error) => break Err(error.into()),
            };
            texts += chunk.len() as u64;
            tokens += embeddings
                .token_counts()
                .iter()
                .map(|&count| u64::from(count))
                .sum::<u64>();
            truncated += embeddings
                .truncated()
                .iter()
                .filter(|&&truncated| truncated)
                .count() as u64;
            if let Err(error) = sink.write(chunk, embeddings) {
                break Err(error);
            }
            bar.set_position(texts);
        }
        match read {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    bar.finish_and_clear();
    let finished = sink.finish();
    if let Err(error) = result.and(finished) {
        // What was counted may tell why.
        if args.stats {
            commands::print_stats(&embedder)?;
        }
        return Err(error);
    }
    if args.json {
        let summary = Summary {
            texts,
            tokens,
            truncated,
            seconds: started.elapsed().as_secs_f64(),
            provider: embedder.provider().to_string(),
            fingerprint: embedder.fingerprint().id(),
            stats: args.stats.then(|| embedder.stats()),
        };
        commands::print_line(&summary)?;
    } else if args.stats {
        commands::print_stats(&embedder)?;
    }
    Ok(())
}

/// The next chunk, and whether there may be more. A row that cannot be read ends the chunk, so
/// that the rows before it are not lost.
fn take(rows: &mut Rows) -> (Vec<Row>, Result<bool>) {
    let mut chunk = Vec::with_capacity(CHUNK);
    while chunk.len() < CHUNK {
        match rows.next() {
            Some(Ok(row)) => chunk.push(row),
            Some(Err(error)) => return (chunk, Err(error)),
            None => return (chunk, Ok(false)),
        }
    }
    (chunk, Ok(true))
}
