//! `isovec tune`: finds the fastest configuration on this machine by trials.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use isovec::EmbeddingConfig;
use isovec_insight::advisor::{TuneOptions, TuneReport, TuneStep, VectorChange};

use crate::args::Tune;
use crate::error::{CliError, Result};
use crate::{commands, in_place, input, interrupt, progress};

pub(crate) fn run(args: &Tune) -> Result<()> {
    let texts = input::some(&args.input)?;
    let cancel = interrupt::on_ctrl_c()?;
    let config = args.model.embedding_config()?;
    if let Some(out) = &args.out {
        // What cannot be written is known before minutes are spent.
        Format::of(out)?;
        in_place::check(out)?;
    }
    let spinner = progress::steps();
    spinner.set_message("measuring the texts and the configuration");
    let mut options = TuneOptions::default();
    options.trial = args.trial.trial(&cancel);
    options.trial.gives_up = true;
    options.time = Duration::from_secs_f64(args.time);
    if args.allow_precision {
        options.vectors = VectorChange::Precision;
    }
    let says = spinner.clone();
    options.on_step = Some(Arc::new(move |step: &TuneStep| {
        says.println(line(step));
        says.set_message("trying on");
    }));
    let report = isovec_insight::blocking::tune(args.model.source(), config, &texts, options)
        .map_err(|error| args.model.failed(error))?;
    spinner.finish_and_clear();
    if let Some(out) = &args.out {
        write(out, &report.config)?;
    }
    if args.json {
        commands::print_json(&report)
    } else {
        commands::print(&page(&report, args.out.as_deref())?)
    }
}

fn line(step: &TuneStep) -> String {
    let id = &step.suggestion.id;
    let title = &step.suggestion.title;
    match (&step.suggestion.verified, &step.failed) {
        (Some(trial), _) => format!("{id}: {title}: {trial}"),
        (None, Some(why)) => format!("{id}: {title}: could not be tried: {why}"),
        (None, None) => format!("{id}: {title}"),
    }
}

fn page(report: &TuneReport, out: Option<&Path>) -> Result<String> {
    let mut page = String::new();
    for step in &report.steps {
        let _ = writeln!(page, "{} {}", if step.kept { '+' } else { '-' }, line(step));
    }
    match &report.overall {
        Some(overall) => {
            let _ = writeln!(page, "\nagainst the beginning, {overall}");
        }
        None if report.steps.iter().any(|step| step.kept) => {
            page.push_str("\nhow much it is in all could not be measured\n");
        }
        None => page.push_str("\nno tried configuration is faster than the initial one\n"),
    }
    if !report.complete {
        page.push_str("the time was over before everything was tried; --time gives more\n");
    }
    match out {
        Some(out) => {
            let _ = writeln!(page, "written to {}", out.display());
        }
        None => {
            let _ = write!(page, "\n{}", toml(&report.config)?);
        }
    }
    Ok(page)
}

/// How a configuration is written.
#[derive(Debug, Clone, Copy)]
enum Format {
    Toml,
    Json,
}

impl Format {
    /// By the file's ending.
    fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("toml") => Ok(Self::Toml),
            Some("json") => Ok(Self::Json),
            _ => Err(CliError::Usage(format!(
                "{}: its ending is neither .toml nor .json",
                path.display()
            ))),
        }
    }
}

fn write(path: &Path, config: &EmbeddingConfig) -> Result<()> {
    let text = match Format::of(path)? {
        Format::Toml => toml(config)?,
        Format::Json => serde_json::to_string_pretty(&config.to_knobs()).map_err(fault)?,
    };
    in_place::write(path, |file| file.write_all(text.as_bytes()))
}

fn toml(config: &EmbeddingConfig) -> Result<String> {
    toml::to_string_pretty(&config.to_knobs()).map_err(fault)
}

fn fault(error: impl std::fmt::Display) -> CliError {
    CliError::Usage(format!("the configuration cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let folder = tempfile::tempdir().unwrap();
        for config in [
            EmbeddingConfig::default(),
            EmbeddingConfig::high_throughput().with_target_batch(),
            EmbeddingConfig::memory_constrained(),
            EmbeddingConfig::cpu(),
        ] {
            for name in ["config.toml", "config.json"] {
                let path = folder.path().join(name);
                write(&path, &config).unwrap();
                assert_eq!(crate::config::read(None, Some(&path)).unwrap(), config);
            }
        }
        let path = folder.path().join("config.yaml");
        let error = write(&path, &EmbeddingConfig::default()).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert_eq!(toml(&EmbeddingConfig::default()).unwrap(), "");
    }

    trait Batched {
        fn with_target_batch(self) -> Self;
    }

    impl Batched for EmbeddingConfig {
        /// With a knob of each kind: a duration, a list, a number.
        fn with_target_batch(self) -> Self {
            self.with_max_batch_tokens(64)
                .with_max_wait(Duration::from_millis(3))
        }
    }
}
