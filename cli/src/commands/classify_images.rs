//! `isovec classify --images PATH...`.

use isovec::blocking::ImageClassifier;
use isovec::{ClassifyOptions, Picture};

use crate::args::Classify;
use crate::error::Result;
use crate::in_place::Draft;
use crate::output::labels::{self, Shown};
use crate::{commands, interrupt, pictures};

pub(crate) fn run(args: &Classify) -> Result<()> {
    let out = args.out.as_deref();
    let format = labels::format(args.format, out)?;
    args.profile.not_into(out)?;
    let paths = pictures::collect(&args.images, out)?;
    let cancel = interrupt::on_ctrl_c()?;
    let (classifier, profiling) = args.profile.load::<ImageClassifier>(&args.model, &cancel)?;
    let mut options = ClassifyOptions::default().with_cancel(cancel);
    options.scores = args.scores();
    let draft = out.map(Draft::create).transpose()?;
    let shown = Shown {
        names: classifier.labels(),
        most: args.top_k,
    };
    let sink = labels::open(format, draft.as_ref(), &shown)?;
    let files = paths.iter().map(Picture::open);
    let results = classifier.try_classify_iter(files, options);
    let written = pictures::write(&paths, results, sink, draft, profiling)?;
    if args.stats {
        commands::print_stats(&classifier.stats())?;
    }
    written.whole()
}
