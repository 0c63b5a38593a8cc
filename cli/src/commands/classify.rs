//! `isovec classify`.

use isovec::ClassifyOptions;
use isovec::blocking::Classifier;

use crate::args::Classify;
use crate::error::Result;
use crate::flow;
use crate::in_place::Draft;
use crate::output::labels::{self, Shown};
use crate::texts::{self, Texts};
use crate::{commands, input, progress};

pub(crate) fn run(args: &Classify) -> Result<()> {
    #[cfg(feature = "image")]
    if !args.images.is_empty() {
        return commands::classify_images::run(args);
    }
    let out = args.out.as_deref();
    let format = labels::format(args.format, out)?;
    let Texts {
        model,
        rows,
        profiling,
        cancel,
    } = texts::open::<Classifier>(&args.input, out, &args.profile, &args.model)?;
    let draft = out.map(Draft::create).transpose()?;
    let shown = Shown {
        names: model.labels(),
        most: args.top_k,
    };
    let sink = labels::open(format, draft.as_ref(), &shown)?;
    let mut options = ClassifyOptions::default().with_cancel(cancel);
    options.scores = args.scores();

    let bar = progress::texts(input::count(&args.input));
    let results = flow::classify(&model, rows, options);
    let written = texts::write(results, &bar, sink, draft, profiling);
    if args.stats {
        let printed = commands::print_stats(&model.stats());
        // Whatever standard error says to that, the run's own error is what matters.
        if written.is_ok() {
            printed?;
        }
    }
    written.map(drop)
}
