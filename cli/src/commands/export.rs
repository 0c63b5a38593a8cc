//! `isovec export`.

use isovec::ExportOptions;
use serde_json::json;

use crate::args::Export;
use crate::error::{CliError, Result};
use crate::model::load_options;
use crate::{commands, interrupt};

pub(crate) fn run(args: &Export) -> Result<()> {
    let cancel = interrupt::on_ctrl_c()?;
    let options = ExportOptions::default()
        .with_head(!args.no_head)
        .with_load(load_options(&cancel));
    let written =
        isovec::blocking::export(args.model.source(), &args.out, args.model.config(), options)
            .map_err(CliError::Model)?;
    if args.json {
        return commands::print_json(&json!({
            "files": written.files,
            "dimension": written.dimension,
            "weights_identity": written.weights_identity,
        }));
    }
    let files: Vec<String> = written
        .files
        .iter()
        .map(|file| format!("{}\n", file.display()))
        .collect();
    commands::print(&files.concat())
}
