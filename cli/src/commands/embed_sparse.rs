//! `isovec embed --sparse`.

use isovec::SparseOptions;
use isovec::blocking::SparseEmbedder;
use serde::Serialize;

use crate::args::{Embed, OutputFormat};
use crate::error::{CliError, Result};
use crate::flow;
use crate::in_place::Draft;
use crate::output::{self, SparseJsonl};
use crate::tally::Tally;
use crate::texts::{self, Texts};
use crate::{input, progress};

/// What `--json` prints beside the rest.
#[derive(Serialize)]
struct More {
    /// Weights of all texts.
    weights: u64,
}

pub(crate) fn run(args: &Embed) -> Result<()> {
    let out = args.out.as_deref();
    if output::format(args.format, out)? != OutputFormat::Jsonl {
        return Err(CliError::Usage(
            "--sparse is written as JSON lines; take --format jsonl".into(),
        ));
    }
    let Texts {
        model,
        rows,
        profiling,
        cancel,
    } = texts::open::<SparseEmbedder>(&args.input, out, &args.profile, &args.model)?;
    let draft = out.map(Draft::create).transpose()?;
    let words = args.words.map(|most| (model.clone(), most));
    let sink = Box::new(SparseJsonl::open(draft.as_ref(), words)?);
    let mut options = SparseOptions::default()
        .with_prompt(args.prompt())
        .with_cancel(cancel);
    options.top_k = args.top_k;

    let mut tally = Tally::begin();
    let mut weights = 0;
    let results = flow::embed_sparse(&model, rows, options).inspect(|done| {
        if let Ok(done) = done {
            tally.add(done.result.tokens, done.result.truncated);
            weights += done.result.vector.values.len() as u64;
        }
    });
    let bar = progress::texts(input::count(&args.input));
    let written = texts::write(results, &bar, sink, draft, profiling);
    tally.end(args, &model, written, More { weights })
}
