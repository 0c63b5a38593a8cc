//! `isovec embed`.

use isovec::EmbedOptions;
use isovec::blocking::Embedder;
use serde::Serialize;

use crate::args::Embed;
use crate::error::{CliError, Result};
use crate::flow;
use crate::in_place::Draft;
use crate::output::{self, Sink, Target};
use crate::resume::{Keeper, Kept, Made};
use crate::tally::Tally;
use crate::texts::{self, Texts};
use crate::{commands, input, progress, resume};

/// What `--json` prints beside the rest.
#[derive(Serialize)]
struct More {
    /// Rows that earlier runs had written.
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed_after: Option<u64>,
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
    let Texts {
        model,
        mut rows,
        profiling,
        cancel,
    } = texts::open::<Embedder>(&args.input, out, &args.profile, &args.model)?;
    let mut keeper = match (out, record_path) {
        (Some(out), Some(path)) => {
            let made = Made::new(
                format,
                args.role,
                args.prompt.as_deref(),
                model.fingerprint(),
            );
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
        .with_prompt(args.prompt())
        .with_cancel(cancel);
    let target = Target {
        out,
        format,
        compact,
        empty: model.empty_set(&options)?,
        keeper: keeper.as_ref(),
        draft: draft.as_ref(),
    };
    let sink = target.open()?;
    let sink: Box<dyn Sink<_> + '_> = match &mut keeper {
        Some(keeper) => Box::new(Kept { sink, keeper }),
        None => sink,
    };

    let mut tally = Tally::begin();
    let bar = progress::texts(input::count(&args.input));
    bar.set_position(resumed_after);
    bar.reset_eta();
    let results = flow::embed(&model, rows, options).inspect(|done| {
        if let Ok(done) = done {
            tally.add(done.result.tokens, done.result.truncated);
        }
    });
    let mut written = texts::write(results, &bar, sink, draft, profiling);
    if let Some(keeper) = keeper {
        written = ended(written, keeper);
    }
    let resumed_after = args.resume.then_some(resumed_after);
    tally.end(args, &model, written, More { resumed_after })
}

/// Ends the keeping: an output that is complete needs no record, and with any other a run can go on.
fn ended(written: Result<u64>, keeper: Keeper) -> Result<u64> {
    match written {
        Ok(texts) => keeper.complete().map(|()| texts),
        Err(error) => Err(match keeper.stop() {
            0 => error,
            rows => CliError::Resumable {
                error: Box::new(error),
                rows,
            },
        }),
    }
}
