//! `isovec optimize`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "image")]
use isovec::Picture;
use isovec::optimize::budget::{Budget, Candidate, Figure, Tried};
use isovec::optimize::{Activations, OptimizeOptions, Report};
use isovec::{Cancel, EmbeddingConfig, ModelSource};
use isovec_insight::budget::{BudgetOptions, BudgetReport};
use serde::Serialize;

use crate::args::{InputArgs, Optimize, Scales};
use crate::error::{CliError, Result};
use crate::input;
use crate::model;
#[cfg(feature = "image")]
use crate::pictures;
use crate::{commands, in_place, interrupt, progress, recipe};

pub(crate) fn run(args: &Optimize) -> Result<()> {
    match &args.recipe {
        None => make(args),
        Some(path) => make(&recipe::over(args.clone(), path)?),
    }
}

fn make(args: &Optimize) -> Result<()> {
    if args.budget.is_empty() && (args.rounds.is_some() || args.seconds.is_some()) {
        let wrong = "--rounds and --seconds are of the trials of --budget, which is not there";
        return Err(wrong_usage(args, wrong));
    }
    let config = args.model.embedding_config()?;
    let cancel = interrupt::on_ctrl_c()?;
    let field = args.field.as_deref().unwrap_or("text");
    let mut options = OptimizeOptions::default()
        .with_texts(texts(&args.texts, field)?)
        .with_calibrate_with(texts(&args.calibrate, field)?)
        .with_progress(model::bar())
        .with_cancel(cancel.clone());
    #[cfg(feature = "image")]
    {
        options = options
            .with_pictures(opened(&args.images)?)
            .with_calibrate_pictures(opened(&args.calibrate_images)?);
    }
    options = options.with_keep_languages(args.keep_languages.iter().cloned());
    if !args.keep_tokens_of.is_empty() {
        options = options.with_keep_tokens_of(texts(&args.keep_tokens_of, field)?);
    }
    if let Some(level) = args.level {
        options = options.with_level(level);
    }
    options.passes.extend(args.passes.iter().copied());
    if let Some(dimension) = args.static_dimension {
        options = options.with_static(dimension);
    }
    if let Some(share) = args.prune {
        options = options.with_prune(share);
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
    if args.int4 {
        options = options.with_int4();
    }
    if let Some(bits) = args.bits {
        options = options.with_bits(bits);
    }
    options = options.with_in_f32(args.in_f32.iter().cloned());
    if args.seven_bits {
        options = options.with_seven_bits();
    }
    if args.each_node {
        options = options.with_each_node();
    }
    if !args.budget.is_empty() {
        return within(args, config, options, &cancel);
    }
    let report = isovec::blocking::optimize(source(args), &args.out, config, options)
        .map_err(|error| failed(args, error))?;
    tell(args, &report, Report::to_markdown, Report::to_html)
}

/// Searches for a model that keeps the bounds.
fn within(
    args: &Optimize,
    config: EmbeddingConfig,
    options: OptimizeOptions,
    cancel: &Cancel,
) -> Result<()> {
    let budget = Budget::new(args.budget.iter().copied());
    let budget = budget.map_err(|error| wrong_usage(args, &error.to_string()))?;
    let spinner = progress::steps();
    spinner.set_message("trying techniques");
    let mut options = BudgetOptions::new(options);
    options.trial.cancel = Some(cancel.clone());
    if let Some(rounds) = args.rounds {
        options.trial.rounds = rounds;
    }
    if let Some(seconds) = args.seconds {
        options.trial.turn = Duration::from_secs_f64(seconds);
    }
    let says = spinner.clone();
    options.on_point = Some(Arc::new(move |candidate: &Candidate, tried: &Tried| {
        says.println(match tried {
            Tried::Refused(reason) => format!("{candidate}: refused: {reason}"),
            Tried::Measured { figures, .. } => format!(
                "{candidate}: cosine {}, {}, {}",
                Figure::Cosine.shown(figures.cosine),
                Figure::Size.shown(figures.bytes as f64),
                Figure::Latency.shown(figures.latency.estimate)
            ),
        });
    }));
    let report = isovec_insight::blocking::optimize_within(
        source(args),
        &args.out,
        config,
        &budget,
        options,
    )
    .map_err(|error| failed(args, error))?;
    spinner.finish_and_clear();
    tell(
        args,
        &report,
        BudgetReport::to_markdown,
        BudgetReport::to_html,
    )?;
    match report.chosen {
        Some(_) => Ok(()),
        None => Err(CliError::Budget(report.why)),
    }
}

fn source(args: &Optimize) -> ModelSource {
    model::source(args.original.as_deref().or(args.model.model.as_deref()))
}

fn failed(args: &Optimize, error: isovec::Error) -> CliError {
    match error {
        // The model was read: its folder, or what was asked for, is at fault.
        isovec::Error::Optimize(_) | isovec::Error::Io { .. } => CliError::from(error),
        error if error.kind() == "Config" && args.recipe.is_some() => {
            wrong_usage(args, &error.to_string())
        }
        error => args.model.failed(error),
    }
}

/// Options that do not go together. They may be those of a recipe.
fn wrong_usage(args: &Optimize, wrong: &str) -> CliError {
    CliError::Usage(match &args.recipe {
        None => wrong.to_owned(),
        Some(path) => format!("{}: {wrong}", path.display()),
    })
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

/// All pictures of files and folders.
#[cfg(feature = "image")]
fn opened(paths: &[PathBuf]) -> Result<Vec<Picture>> {
    // No path is none, and not a folder without pictures.
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let paths = pictures::collect(paths, None)?;
    let opened = paths.iter().map(Picture::open);
    Ok(opened.collect::<isovec::Result<_>>()?)
}

/// Writes a report to the file that was named, as its ending asks for it, and to standard output.
fn tell<R: Serialize>(
    args: &Optimize,
    report: &R,
    markdown: fn(&R) -> String,
    html: fn(&R) -> String,
) -> Result<()> {
    if let Some(path) = &args.report {
        let ending = path.extension().and_then(|ending| ending.to_str());
        let text = match ending {
            Some("html" | "htm") => html(report),
            Some("json") => {
                let json = serde_json::to_string_pretty(report);
                json.map_err(|error| CliError::io("JSON")(error.into()))? + "\n"
            }
            _ => markdown(report),
        };
        in_place::write(path, |file| file.write_all(text.as_bytes()))?;
    }
    match args.json {
        true => commands::print_json(report),
        false => commands::print(&markdown(report)),
    }
}
