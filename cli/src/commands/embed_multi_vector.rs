//! `isovec embed --multi-vector`.

use isovec::MultiVectorOptions;
use isovec::blocking::MultiVectorEmbedder;
use serde::Serialize;

use crate::args::{Embed, OutputFormat};
use crate::error::{CliError, Result};
use crate::flow;
use crate::in_place::Draft;
use crate::output::{self, Sink, TokensIndex, TokensJsonl};
use crate::tally::Tally;
use crate::texts::{self, Texts};
use crate::{input, progress};

/// What `--json` prints beside the rest.
#[derive(Serialize)]
struct More {
    /// Vectors of all texts.
    vectors: u64,
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
    let Texts {
        model,
        rows,
        profiling,
        cancel,
    } = texts::open::<MultiVectorEmbedder>(&args.input, out, &args.profile, &args.model)?;
    let draft = out.map(Draft::create).transpose()?;
    let options = MultiVectorOptions::default()
        .with_prompt(args.prompt())
        .with_cancel(cancel);
    let sink: Box<dyn Sink<_>> = match format {
        OutputFormat::Safetensors => {
            let empty = model.empty_set(&options)?;
            Box::new(TokensIndex::open(draft.as_ref(), empty, compact)?)
        }
        _ => Box::new(TokensJsonl::open(draft.as_ref(), model.dimension())?),
    };

    let mut tally = Tally::begin();
    let mut vectors = 0;
    let results = flow::embed_multi_vector(&model, rows, options).inspect(|done| {
        if let Ok(done) = done {
            tally.add(done.result.tokens, done.result.truncated);
            vectors += (done.result.vectors.len() / model.dimension()) as u64;
        }
    });
    let bar = progress::texts(input::count(&args.input));
    let written = texts::write(results, &bar, sink, draft, profiling);
    tally.end(args, &model, written, More { vectors })
}
