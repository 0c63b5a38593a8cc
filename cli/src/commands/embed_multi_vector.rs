//! `isovec embed --multi-vector`.

use std::time::Instant;

use isovec::MultiVectorOptions;
use isovec::blocking::MultiVectorEmbedder;
use serde::Serialize;

use crate::args::{Embed, OutputFormat};
use crate::error::{CliError, Result};
use crate::flow::{self, Done};
use crate::in_place::Draft;
use crate::input::feed::feed;
use crate::output::{self, Sink, TokensIndex, TokensJsonl};
use crate::{commands, input, interrupt, profile, progress};

/// What `--json` prints.
#[derive(Serialize)]
struct Summary {
    texts: u64,
    tokens: u64,
    truncated: u64,
    /// Vectors of all texts.
    vectors: u64,
    seconds: f64,
    provider: String,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<isovec::stats::Stats>,
}

pub(crate) fn run(args: &Embed) -> Result<()> {
    let out = args.out.as_deref();
    let format = output::format(args.format, out)?;
    if !matches!(format, OutputFormat::Jsonl | OutputFormat::Safetensors) {
        return Err(CliError::Usage(
            "--multi-vector is written as JSON lines or as a set; take --format jsonl or safetensors"
                .into(),
        ));
    }
    let compact = output::compact(args.compact, format)?;
    for written in [out, args.profile.profile.as_deref()].into_iter().flatten() {
        input::not_read(&args.input, written)?;
    }
    args.profile.not_into(out)?;
    let input = input::open(&args.input)?;
    let cancel = interrupt::on_ctrl_c()?;
    let (embedder, profiling) = args
        .profile
        .load::<MultiVectorEmbedder>(&args.model, &cancel)?;
    let rows = feed(input, &cancel)?;
    let file = out.map(Draft::create).transpose()?;
    let options = MultiVectorOptions::default()
        .with_prompt(args.role.prompt())
        .with_cancel(cancel);
    let draft = file.as_ref();
    let mut sink: Box<dyn Sink<_>> = match format {
        OutputFormat::Safetensors => Box::new(TokensIndex::open(
            draft,
            embedder.empty_set(&options)?,
            compact,
        )?),
        _ => Box::new(TokensJsonl::open(draft, embedder.dimension())?),
    };

    let started = Instant::now();
    let bar = progress::texts(input::count(&args.input));
    let (mut texts, mut tokens, mut truncated, mut vectors) = (0, 0, 0, 0);
    // Whether every row that was embedded was written.
    let mut whole = true;
    let result =
        flow::embed_multi_vector(&embedder, rows, options).try_for_each(|done| -> Result<()> {
            let Done {
                row,
                result,
                ends_window,
            } = done?;
            tokens += u64::from(result.tokens);
            truncated += u64::from(result.truncated);
            vectors += (result.vectors.len() / embedder.dimension()) as u64;
            sink.write(row, result).inspect_err(|_| whole = false)?;
            texts += 1;
            if ends_window {
                sink.flush().inspect_err(|_| whole = false)?;
                bar.set_position(texts);
            }
            Ok(())
        });
    bar.finish_and_clear();
    let finished = output::close(sink, file, whole);
    let profiled = profile::finish(profiling);
    if let Err(error) = result.and(finished).and(profiled) {
        if args.stats {
            // Whatever standard error says to that, the run's own error is what matters.
            commands::print_stats(&embedder.stats()).ok();
        }
        return Err(match error.is_interrupt() {
            true => CliError::Interrupted(format!("{texts} texts were written")),
            false => error,
        });
    }
    if args.json {
        commands::print_line(&Summary {
            texts,
            tokens,
            truncated,
            vectors,
            seconds: started.elapsed().as_secs_f64(),
            provider: embedder.provider().to_string(),
            fingerprint: embedder.fingerprint().id(),
            stats: args.stats.then(|| embedder.stats()),
        })?;
    } else if args.stats {
        commands::print_stats(&embedder.stats())?;
    }
    Ok(())
}
