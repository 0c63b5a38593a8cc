//! Texts on their way through a model: each becomes a row, in its order.

use std::path::Path;

use indicatif::ProgressBar;
use isovec::Cancel;

use crate::args::{InputArgs, ModelArgs};
use crate::error::{CliError, Result};
use crate::flow::Done;
use crate::in_place::Draft;
use crate::input::feed::{Feed, feed};
use crate::model::Handle;
use crate::output::{self, Sink};
use crate::profile::{self, ProfileArgs, Profiling};
use crate::{input, interrupt};

/// A model and the rows for it.
pub(crate) struct Texts<H> {
    pub(crate) model: H,
    pub(crate) rows: Feed,
    pub(crate) profiling: Option<Profiling>,
    /// What Ctrl-C cancels.
    pub(crate) cancel: Cancel,
}

/// Opens the texts and loads the model. Refuses to write to a file that is read.
pub(crate) fn open<H: Handle>(
    input: &InputArgs,
    out: Option<&Path>,
    profile: &ProfileArgs,
    model: &ModelArgs,
) -> Result<Texts<H>> {
    for written in [out, profile.profile.as_deref()].into_iter().flatten() {
        input::not_read(input, written)?;
    }
    profile.not_into(out)?;
    let input = input::open(input)?;
    let cancel = interrupt::on_ctrl_c()?;
    let (model, profiling) = profile.load(model, &cancel)?;
    let rows = feed(input, &cancel)?;
    Ok(Texts {
        model,
        rows,
        profiling,
        cancel,
    })
}

/// Writes the result of each text, and completes the file and the profile in any case. Says how many texts were written.
pub(crate) fn write<R>(
    mut results: impl Iterator<Item = Result<Done<R>>>,
    bar: &ProgressBar,
    mut sink: Box<dyn Sink<R> + '_>,
    draft: Option<Draft>,
    profiling: Option<Profiling>,
) -> Result<u64> {
    let before = bar.position();
    let mut texts = 0;
    // Whether every row that was made was written.
    let mut whole = true;
    let result = results.try_for_each(|done| -> Result<()> {
        let Done {
            row,
            result,
            ends_window,
        } = done?;
        sink.write(row, result).inspect_err(|_| whole = false)?;
        texts += 1;
        if ends_window {
            sink.flush().inspect_err(|_| whole = false)?;
            bar.set_position(before + texts);
        }
        Ok(())
    });
    bar.finish_and_clear();
    let finished = output::close(sink, draft, whole);
    let profiled = profile::finish(profiling);
    let ended = result.and(finished).and(profiled);
    ended
        .map(|()| texts)
        .map_err(|error| match error.is_interrupt() {
            true => CliError::Interrupted(format!("{texts} texts were written")),
            false => error,
        })
}
