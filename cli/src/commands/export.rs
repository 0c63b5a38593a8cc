//! `isovec export`.

use isovec::ExportOptions;
use serde_json::json;

use crate::args::Export;
use crate::error::Result;
use crate::model::load_options;
use crate::{commands, interrupt};

pub(crate) fn run(args: &Export) -> Result<()> {
    let config = args.model.embedding_config()?;
    let cancel = interrupt::on_ctrl_c()?;
    let options = ExportOptions::default()
        .with_head(!args.no_head)
        .with_load(load_options(&cancel));
    let written = isovec::blocking::export(args.model.source(), &args.out, config, options)
        .map_err(|error| args.model.failed(error))?;
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
