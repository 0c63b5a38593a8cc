//! `isovec bench`: what this machine makes of the user's own model and texts.

mod callers;
mod offline;
mod report;
mod turns;

use isovec::Cancel;
use isovec::blocking::Embedder;

use self::report::Report;
use crate::args::Bench;
use crate::error::{CliError, Result};
use crate::{commands, input, interrupt, progress};

/// Texts that are read: more do not change the figures.
const MOST: usize = 10_000;

pub(crate) fn run(args: &Bench) -> Result<()> {
    let texts = read(args)?;
    let cancel = interrupt::on_ctrl_c()?;
    let embedder = args.model.load(&cancel)?;
    let spinner = progress::steps();
    let step = |what: &str| {
        spinner.set_message(what.to_owned());
        check(&cancel)
    };
    step("texts of all lengths, in one call and one by one")?;
    let offline = offline::compare(args, &embedder, &texts, &cancel)?;
    step("many callers")?;
    let callers = callers::compare(args, &embedder, &texts, &cancel)?;
    spinner.finish_and_clear();
    let report = Report::new(&embedder, offline, callers);
    if args.json {
        commands::print_json(&report)
    } else {
        commands::print(&report.to_string())
    }
}

fn read(args: &Bench) -> Result<Vec<String>> {
    let rows = input::open(&args.input)?.rows.take(MOST);
    let texts: Vec<String> = rows.map(|row| Ok(row?.text)).collect::<Result<_>>()?;
    if texts.is_empty() {
        return Err(CliError::Usage(
            "there is no text to measure with; name a file of yours with --file".into(),
        ));
    }
    Ok(texts)
}

fn check(cancel: &Cancel) -> Result<()> {
    if cancel.is_cancelled() {
        return Err(CliError::Interrupted("nothing was measured".into()));
    }
    Ok(())
}

/// The same model under other knobs; its weights are mapped, so that most of it is there once.
fn again(
    args: &Bench,
    cancel: &Cancel,
    change: impl FnOnce(isovec::EmbeddingConfig) -> isovec::EmbeddingConfig,
) -> Result<Embedder> {
    let config = change(args.model.embedding_config()?);
    Embedder::load_with(
        args.model.source(),
        config,
        isovec::LoadOptions::default().with_cancel(cancel.clone()),
    )
    .map_err(|error| args.model.failed(error))
}
