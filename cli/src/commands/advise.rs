//! `isovec advise`: suggests changes that make a model faster or smaller, and measures them with --verify.

use std::time::{Duration, Instant};

use isovec::blocking::Embedder;
use isovec::hardware::HardwareInfo;
use isovec::profile::ProfileOptions;
use isovec::{Cancel, EmbedOptions};
use isovec_insight::advisor::{
    Advisor, AnalysisContext, Goal, OptimizationReport, ProfileSummary, Trial, Workload,
};

use crate::args::{Advise, GoalArg, TrialArgs};
use crate::error::{CliError, Result};
use crate::profile::of_runtime;
use crate::{commands, input, interrupt, progress};

/// Texts of a call, where all are at hand.
const CALL: usize = 256;
/// How long is looked, about.
const LOOKING: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Advise) -> Result<()> {
    if let Some(path) = &args.context {
        let name = path.display().to_string();
        let json = std::fs::read(path).map_err(CliError::io(name.clone()))?;
        let context: AnalysisContext = serde_json::from_slice(&json)
            .map_err(|error| CliError::Usage(format!("{name}: is no context in JSON: {error}")))?;
        return show(args, &analyze(args, &context));
    }
    let texts = input::some(&args.input)?;
    let cancel = interrupt::on_ctrl_c()?;
    let spinner = progress::steps();
    spinner.set_message("measuring the texts and the configuration");
    let mut context = observe(&texts, args, &cancel)?;
    if args.verify {
        context = context.with_trials();
    }
    let mut report = analyze(args, &context);
    if args.verify {
        let trial = args.trial.trial(&cancel);
        // What is kept on a disk would answer for both sides of a trial.
        let mut config = args.model.embedding_config()?;
        config.embedding_cache.disk = None;
        config.embedding_cache.folder = None;
        let baseline = args.model.load_as::<Embedder>(config, &cancel)?;
        let verified = pollster::block_on(report.verify(
            args.model.source(),
            &baseline.into(),
            &texts,
            &trial,
            |step| spinner.set_message(format!("trying: {step}")),
        ));
        verified?;
    }
    spinner.finish_and_clear();
    show(args, &report)
}

/// What matters as much as was asked for: only that is tried.
fn analyze(args: &Advise, context: &AnalysisContext) -> OptimizationReport {
    let mut report = Advisor::new().analyze(context);
    if let Some(least) = args.min_impact {
        report.leave_out_below(least.into());
    }
    report
}

fn show(args: &Advise, report: &OptimizationReport) -> Result<()> {
    if args.json {
        commands::print_json(report)
    } else {
        commands::print(&report.to_markdown())
    }
}

/// What the model does with the texts, under a profile of the runtime's as well.
fn observe(texts: &[String], args: &Advise, cancel: &Cancel) -> Result<AnalysisContext> {
    let config = args.model.embedding_config()?;
    let (profiled, _folder) = of_runtime(config.clone())?;
    let embedder = args.model.load_as::<Embedder>(profiled, cancel)?;
    let options = EmbedOptions::default().with_cancel(cancel.clone());
    let call = match args.trial.goal {
        GoalArg::Throughput => CALL,
        GoalArg::Latency => 1,
    };
    let until = Instant::now() + LOOKING;
    let session = embedder.profile(ProfileOptions::default())?;
    let mut lengths = Vec::with_capacity(texts.len());
    for texts in texts.chunks(call) {
        let vectors = embedder.embed_with(texts, options.clone())?;
        lengths.extend(vectors.token_counts().iter().map(|&tokens| tokens as usize));
        if Instant::now() > until {
            break;
        }
    }
    let profile = ProfileSummary::from(&session.finish());
    let hardware = pollster::block_on(HardwareInfo::detect())?;
    let mut context = AnalysisContext::from(&embedder)
        .with_profile(profile)
        .with_workload(Workload::new(texts.iter().zip(lengths)))
        .with_hardware(hardware);
    context.config = Some(config);
    Ok(context)
}

impl TrialArgs {
    /// How two configurations are compared.
    pub(super) fn trial(&self, cancel: &Cancel) -> Trial {
        let mut trial = Trial::of(match self.goal {
            GoalArg::Throughput => Goal::Throughput,
            GoalArg::Latency => Goal::Latency,
        });
        trial.rounds = self.rounds;
        trial.turn = Duration::from_secs_f64(self.seconds);
        if let Some(tolerance) = self.tolerance {
            trial.tolerance = tolerance;
        }
        trial.cancel = Some(cancel.clone());
        trial
    }
}
