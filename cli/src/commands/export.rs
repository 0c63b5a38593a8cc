//! `isovec export`.

use std::path::PathBuf;

use isovec::optimize::OptimizeOptions;
use isovec::{Dtype, ExportOptions};
use serde_json::json;

use crate::args::{DtypeArg, Export};
use crate::error::{CliError, Result};
use crate::model;
use crate::{commands, interrupt};

pub(crate) fn run(args: &Export) -> Result<()> {
    if args.model.knobs.dtype == Some(DtypeArg::Int4) {
        return in_four_bits(args);
    }
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
    print_files(&written.files)
}

/// `--dtype int4`: what `isovec optimize --int4 --dtype f16` makes without texts.
fn in_four_bits(args: &Export) -> Result<()> {
    if args.no_head {
        let wrong = "--dtype int4 writes a model with its head: leave --no-head out";
        return Err(CliError::Usage(wrong.into()));
    }
    let mut knobs = args.model.knobs.clone();
    knobs.dtype = None;
    let config = knobs.embedding_config()?.with_dtype(Dtype::F16);
    let options = OptimizeOptions::default()
        .with_int4()
        .with_progress(model::bar())
        .with_cancel(interrupt::on_ctrl_c()?);
    let report = isovec::blocking::optimize(args.model.source(), &args.out, config, options);
    let report = report.map_err(|error| match error {
        // The model was read: its folder, or what was asked for, is at fault.
        isovec::Error::Optimize(_) | isovec::Error::Io { .. } => CliError::from(error),
        error => args.model.failed(error),
    })?;
    if args.json {
        return commands::print_json(&json!({
            "files": report.files,
            "dimension": report.dimension,
            "weights_identity": report.after.weights_identity,
            "precision": "int4",
            "weights_bytes": report.after.weights_bytes,
            "bytes": report.bytes,
        }));
    }
    eprintln!(
        "weights in 4 bits: {:.1} MB of files; in f32 the weights alone are {:.1} MB",
        report.bytes as f64 / 1e6,
        report.after.weights_bytes as f64 / 1e6,
    );
    print_files(&report.files)
}

fn print_files(files: &[PathBuf]) -> Result<()> {
    let files: Vec<String> = files
        .iter()
        .map(|file| format!("{}\n", file.display()))
        .collect();
    commands::print(&files.concat())
}
