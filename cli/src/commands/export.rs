//! `isovec export`.

use isovec::ExportOptions;
use serde_json::json;

use crate::args::Export;
use crate::error::Result;
use crate::model;
use crate::{commands, interrupt};

pub(crate) fn run(args: &Export) -> Result<()> {
    let config = args.model.embedding_config()?;
    let cancel = interrupt::on_ctrl_c()?;
    let options = ExportOptions::default()
        .with_head(!args.no_head)
        .with_progress(model::bar())
        .with_cancel(cancel.clone());
    let written = isovec::blocking::export(args.model.source(), &args.out, config, options)
        .map_err(|error| args.model.failed(error))?;
    if args.json {
        return commands::print_json(&json!({
            "files": written.files,
            "dimension": written.dimension,
            "weights_identity": written.weights_identity,
            "precision": written.precision,
            "weights_bytes": written.weights_bytes,
            "bytes": written.bytes,
        }));
    }
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    eprintln!(
        "weights in {}: {:.1} MB of files; in f32 the weights alone are {:.1} MB",
        written.precision,
        megabytes(written.bytes),
        megabytes(written.weights_bytes),
    );
    let files: Vec<String> = written
        .files
        .iter()
        .map(|file| format!("{}\n", file.display()))
        .collect();
    commands::print(&files.concat())
}
