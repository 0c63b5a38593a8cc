//! `isovec optimize`.

use std::path::{Path, PathBuf};

use isovec::optimize::{Activations, OptimizeOptions, Report};

use crate::args::{InputArgs, Optimize, Scales};
use crate::error::{CliError, Result};
use crate::input;
use crate::model;
use crate::{commands, in_place, interrupt};

pub(crate) fn run(args: &Optimize) -> Result<()> {
    let config = args.model.embedding_config()?;
    let cancel = interrupt::on_ctrl_c()?;
    let mut options = OptimizeOptions::default()
        .with_texts(texts(&args.texts, &args.field)?)
        .with_progress(model::bar())
        .with_cancel(cancel.clone());
    if !args.keep_tokens_of.is_empty() {
        options = options.with_keep_tokens_of(texts(&args.keep_tokens_of, &args.field)?);
    }
    if let Some(dimension) = args.static_dimension {
        options = options.with_static(dimension);
    }
    if let Some(scales) = args.int8 {
        options = options.with_int8(match scales {
            Scales::Static => Activations::Static,
            Scales::Dynamic => Activations::Dynamic,
        });
    }
    if let Some(strength) = args.smooth {
        options = options.with_smooth(strength);
    }
    let source = model::source(args.original.as_deref().or(args.model.model.as_deref()));
    let report = isovec::blocking::optimize(source, &args.out, config, options).map_err(
        |error| match error {
            // The model was read: its folder, or what was asked for, is at fault.
            isovec::Error::Optimize(_) | isovec::Error::Io { .. } => CliError::from(error),
            error => args.model.failed(error),
        },
    )?;
    if let Some(path) = &args.report {
        let text = shown(&report, path)?;
        in_place::write(path, |file| file.write_all(text.as_bytes()))?;
    }
    match args.json {
        true => commands::print_json(&report),
        false => commands::print(&report.to_markdown()),
    }
}

/// All texts of files.
fn texts(files: &[PathBuf], field: &str) -> Result<Vec<String>> {
    let named = InputArgs {
        texts: Vec::new(),
        files: files.to_vec(),
        input_format: None,
        field: field.to_owned(),
    };
    input::open(&named)?.rows.map(|row| Ok(row?.text)).collect()
}

/// The report as a file's ending asks for it.
fn shown(report: &Report, path: &Path) -> Result<String> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    Ok(match ending {
        Some("html" | "htm") => report.to_html(),
        Some("json") => {
            let json = serde_json::to_string_pretty(report);
            json.map_err(|error| CliError::io("JSON")(error.into()))? + "\n"
        }
        _ => report.to_markdown(),
    })
}
