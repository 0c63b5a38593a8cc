//! `isovec trace FILE`.

use std::path::Path;

use isovec_insight::trace::{self, Comparison, Filter, Summary};

use crate::args::Trace;
use crate::commands;
use crate::error::{CliError, Result};

pub(crate) fn run(args: &Trace) -> Result<()> {
    let filter = Filter {
        stages: args.stage.clone(),
        start: args.start,
        end: args.end,
        request: args.request,
    };
    let read = |path: &Path| -> Result<Summary> {
        let name = path.display().to_string();
        match trace::load(path, &filter) {
            Ok(loaded) => Ok(Summary::new(name, &loaded, args.top)),
            Err(error) => Err(CliError::Trace { name, error }),
        }
    };
    let summary = read(&args.file)?;
    match &args.other {
        None if args.json => commands::print_json(&summary),
        None => commands::print(&summary.to_string()),
        Some(other) => {
            let after = read(other)?;
            let comparison = Comparison::new(&summary, &after);
            match args.json {
                true => commands::print_json(&comparison),
                false => commands::print(&comparison.to_string()),
            }
        }
    }
}
