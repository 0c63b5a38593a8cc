//! `isovec classify`.

use isovec::ClassifyOptions;
use isovec::blocking::Classifier;

use crate::args::Classify;
use crate::error::{CliError, Result};
use crate::flow::{self, Done};
use crate::in_place::Draft;
use crate::input::feed::feed;
use crate::output::labels::{self, Shown};
use crate::{commands, input, interrupt, output, profile, progress};

pub(crate) fn run(args: &Classify) -> Result<()> {
    #[cfg(feature = "image")]
    if !args.images.is_empty() {
        return commands::classify_images::run(args);
    }
    let out = args.out.as_deref();
    let format = labels::format(args.format, out)?;
    for written in [out, args.profile.profile.as_deref()].into_iter().flatten() {
        input::not_read(&args.input, written)?;
    }
    args.profile.not_into(out)?;
    let input = input::open(&args.input)?;
    let cancel = interrupt::on_ctrl_c()?;
    let (classifier, profiling) = args.profile.load::<Classifier>(&args.model, &cancel)?;
    let rows = feed(input, &cancel)?;
    let draft = out.map(Draft::create).transpose()?;
    let shown = Shown {
        names: classifier.labels(),
        most: args.top_k,
    };
    let mut sink = labels::open(format, draft.as_ref(), &shown)?;
    let mut options = ClassifyOptions::default().with_cancel(cancel);
    options.scores = args.scores();

    let bar = progress::texts(input::count(&args.input));
    let mut texts = 0;
    // Whether every row that was classified was written.
    let mut whole = true;
    let result = flow::classify(&classifier, rows, options).try_for_each(|done| -> Result<()> {
        let Done {
            row,
            result,
            ends_window,
        } = done?;
        sink.write(row, result).inspect_err(|_| whole = false)?;
        texts += 1;
        if ends_window {
            sink.flush().inspect_err(|_| whole = false)?;
            bar.set_position(texts);
        }
        Ok(())
    });
    bar.finish_and_clear();
    let finished = output::close(sink, draft, whole);
    let profiled = profile::finish(profiling);
    let ended = result.and(finished).and(profiled);
    if args.stats {
        let printed = commands::print_stats(&classifier.stats());
        // Whatever standard error says to that, the run's own error is what matters.
        if ended.is_ok() {
            printed?;
        }
    }
    ended.map_err(|error| match error.is_interrupt() {
        true => CliError::Interrupted(format!("{texts} texts were written")),
        false => error,
    })
}
