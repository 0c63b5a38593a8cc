//! `isovec embed`.

use std::time::Instant;

use isovec::EmbedOptions;
use isovec::blocking::Embedder;
use serde::Serialize;

use crate::args::Embed;
use crate::error::{CliError, Result};
use crate::flow::{self, Done};
use crate::in_place::Draft;
use crate::input::feed::feed;
use crate::output::{self, Target};
use crate::resume::{Keeper, Made};
use crate::{commands, input, interrupt, profile, progress, resume};

/// What was done in this run.
#[derive(Default)]
struct Counts {
    texts: u64,
    tokens: u64,
    truncated: u64,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Summary {
    texts: u64,
    tokens: u64,
    truncated: u64,
    /// Rows that earlier runs had written.
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed_after: Option<u64>,
    seconds: f64,
    provider: String,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<isovec::stats::Stats>,
}

pub(crate) fn run(args: &Embed) -> Result<()> {
    #[cfg(feature = "image")]
    if !args.images.is_empty() {
        return commands::embed_images::run(args);
    }
    if args.sparse {
        return commands::embed_sparse::run(args);
    }
    if args.multi_vector {
        return commands::embed_multi_vector::run(args);
    }
    let out = args.out.as_deref();
    let format = output::format(args.format, out)?;
    let compact = output::compact(args.compact, format)?;
    let record_path = resume::record_path(out, format)?;
    let before = match args.resume {
        true => resume::look(out, record_path.as_deref())?,
        false => None,
    };
    for written in [out, args.profile.profile.as_deref()].into_iter().flatten() {
        input::not_read(&args.input, written)?;
    }
    args.profile.not_into(out)?;
    let input = input::open(&args.input)?;
    let cancel = interrupt::on_ctrl_c()?;
    let (embedder, profiling) = args.profile.load::<Embedder>(&args.model, &cancel)?;
    let mut rows = feed(input, &cancel)?;
    let mut keeper = match (out, record_path) {
        (Some(out), Some(path)) => {
            let made = Made::new(format, args.role, embedder.fingerprint());
            Some(Keeper::open(out, path, made, before, &mut rows)?)
        }
        _ => None,
    };
    let draft = match (out, &keeper) {
        (Some(out), None) => Some(Draft::create(out)?),
        _ => None,
    };
    let resumed_after = keeper.as_ref().map_or(0, Keeper::rows);
    let options = EmbedOptions::default()
        .with_prompt(args.role.prompt())
        .with_cancel(cancel);
    let target = Target {
        out,
        format,
        compact,
        empty: embedder.empty_set(&options)?,
        keeper: keeper.as_ref(),
        draft: draft.as_ref(),
    };
    let mut sink = target.open()?;

    let started = Instant::now();
    let bar = progress::texts(input::count(&args.input));
    bar.set_position(resumed_after);
    bar.reset_eta();
    let mut counts = Counts::default();
    // Whether every row that was embedded was written.
    let mut whole = true;
    let result = flow::embed(&embedder, rows, options).try_for_each(|done| -> Result<()> {
        let Done {
            row,
            result: embedded,
            ends_window,
        } = done?;
        if let Some(keeper) = &mut keeper {
            keeper.row(&row);
        }
        let (tokens, truncated) = (embedded.tokens, embedded.truncated);
        sink.write(row, embedded).inspect_err(|_| whole = false)?;
        counts.texts += 1;
        counts.tokens += u64::from(tokens);
        counts.truncated += u64::from(truncated);
        if ends_window {
            sink.flush().inspect_err(|_| whole = false)?;
            bar.set_position(resumed_after + counts.texts);
            if let Some(keeper) = &mut keeper {
                keeper.window(resumed_after + counts.texts)?;
            }
        }
        Ok(())
    });
    bar.finish_and_clear();
    let finished = output::close(sink, draft, whole);
    let profiled = profile::finish(profiling);
    if let Err(error) = result.and(finished).and(profiled) {
        // What was counted may tell why.
        if args.stats {
            // Whatever standard error says to that, the run's own error is what matters.
            commands::print_stats(&embedder.stats()).ok();
        }
        return Err(stopped(error, &counts, keeper));
    }
    if let Some(keeper) = keeper {
        keeper.complete()?;
    }
    if args.json {
        let summary = Summary {
            texts: counts.texts,
            tokens: counts.tokens,
            truncated: counts.truncated,
            resumed_after: args.resume.then_some(resumed_after),
            seconds: started.elapsed().as_secs_f64(),
            provider: embedder.provider().to_string(),
            fingerprint: embedder.fingerprint().id(),
            stats: args.stats.then(|| embedder.stats()),
        };
        commands::print_line(&summary)?;
    } else if args.stats {
        commands::print_stats(&embedder.stats())?;
    }
    Ok(())
}

/// Why the run ended early, and whether it can be gone on with.
fn stopped(error: CliError, counts: &Counts, keeper: Option<Keeper>) -> CliError {
    let error = match error.is_interrupt() {
        true => CliError::Interrupted(format!("{} texts were written", counts.texts)),
        false => error,
    };
    match keeper.map(Keeper::stop) {
        Some(rows) if rows > 0 => CliError::Resumable {
            error: Box::new(error),
            rows,
        },
        _ => error,
    }
}
