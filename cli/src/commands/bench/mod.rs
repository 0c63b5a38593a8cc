//! `isovec bench`: measures the user's own model and texts on this machine.

mod callers;
mod compare;
mod crowd;
mod curves;
mod figure;
mod html;
mod kept;
pub(crate) mod limits;
mod offline;
mod plan;
mod report;
mod seeded;
mod turns;

use isovec::Cancel;
use isovec::blocking::Embedder;

pub(crate) use self::kept::KeptError;

use self::compare::{Comparison, Setting};
use self::kept::{Benchmark, Machine, Place, Texts};
use self::plan::Plan;
use self::report::Report;
use crate::args::Bench;
use crate::error::{CliError, Result};
use crate::{commands, in_place, input, interrupt, progress};

pub(crate) fn run(args: &Bench) -> Result<()> {
    if args.kept.list {
        return kept::list(args.json);
    }
    // What cannot be read or written is known before anything is loaded.
    let place = |name: &Option<String>| name.as_deref().map(Place::new).transpose();
    let baseline = place(&args.kept.compare)?;
    let baseline = baseline.as_ref().map(Benchmark::read).transpose()?;
    let save = place(&args.kept.save)?;
    if let Some(place) = &save {
        place.prepare()?;
    }
    if let Some(page) = &args.html {
        in_place::check(page)?;
    }
    match (&args.kept.with, &baseline) {
        (Some(name), Some(baseline)) => compare_kept(args, baseline, name),
        _ => measure(args, baseline.as_ref(), save.as_ref()),
    }
}

/// Two that are kept.
fn compare_kept(args: &Bench, baseline: &Benchmark, name: &str) -> Result<()> {
    let candidate = Benchmark::read(&Place::new(name)?)?;
    let comparison = compare(args, baseline, Some(name), &candidate)?;
    write_page(args, &candidate, Some(&comparison))?;
    let printed = match args.json {
        true => commands::print_json(&comparison),
        false => commands::print(&comparison.to_string()),
    };
    // The verdict counts, also where nobody reads to the end.
    comparison.verdict().and(printed)
}

fn measure(args: &Bench, baseline: Option<&Benchmark>, save: Option<&Place>) -> Result<()> {
    let texts = input::some(&args.input)?;
    let plan = Plan::new(args, baseline)?;
    let cancel = interrupt::on_ctrl_c()?;
    let embedder = args.model.load::<Embedder>(&cancel)?;
    let kept = baseline.is_some() || save.is_some() || args.html.is_some();
    let machine = kept.then(Machine::detect).transpose()?;
    if let (Some(baseline), Some(machine)) = (baseline, &machine) {
        let now = Setting {
            fingerprint: embedder.fingerprint(),
            machine,
            options: &plan.options,
            texts: texts.len(),
            texts_hash: &Texts::hash(&texts),
        };
        let checked = compare::check(&now, baseline, args.kept.allow_other_machine);
        checked.map_err(|error| CliError::Kept {
            name: args.kept.compare.clone().unwrap_or_default(),
            error,
        })?;
    }
    let spinner = progress::steps();
    let step = |what: &str| {
        spinner.set_message(what.to_owned());
        check(&cancel)
    };
    step("texts of all lengths, in one call and one by one")?;
    let (offline, mut figures) = offline::compare(args, &plan, &embedder, &texts, &cancel)?;
    step("many callers")?;
    let (callers, of_callers) = callers::compare(&plan.options, &embedder, &texts, &cancel)?;
    figures.extend(of_callers);
    let mut points = None;
    if plan.options.curves {
        step("calls of more and more texts")?;
        let (found, of_curves) = curves::measure(&plan, &embedder, &cancel)?;
        points = Some(found);
        figures.extend(of_curves);
    }
    // From here on there is something to write, and Ctrl-C comes too late to lose it.
    check(&cancel)?;
    spinner.finish_and_clear();
    let benchmark = machine.map(|machine| {
        let texts = Texts::new(&texts, offline.texts, offline.tokens);
        Benchmark::new(&embedder, machine, plan.options, texts, figures)
    });
    if let (Some(place), Some(benchmark)) = (save, &benchmark) {
        benchmark.write(place)?;
    }
    let comparison = baseline.zip(benchmark.as_ref());
    let comparison = comparison
        .map(|(baseline, now)| compare(args, baseline, args.kept.save.as_deref(), now))
        .transpose()?;
    if let Some(benchmark) = &benchmark {
        write_page(args, benchmark, comparison.as_ref())?;
    }
    let verdict = comparison.as_ref().map_or(Ok(()), Comparison::verdict);
    let report = Report::new(&embedder, offline, callers, points, comparison);
    let printed = if args.json {
        commands::print_json(&report)
    } else {
        commands::print(&report.to_string())
    };
    verdict.and(printed)
}

fn compare(
    args: &Bench,
    baseline: &Benchmark,
    name: Option<&str>,
    now: &Benchmark,
) -> Result<Comparison> {
    let then = args.kept.compare.as_deref().unwrap_or_default();
    let allow = args.kept.allow_other_machine;
    Comparison::new((then, baseline), (name, now), args.kept.threshold, allow)
}

fn write_page(args: &Bench, benchmark: &Benchmark, comparison: Option<&Comparison>) -> Result<()> {
    let Some(path) = &args.html else {
        return Ok(());
    };
    let page = html::page(benchmark, comparison);
    in_place::write(path, |file| {
        std::io::Write::write_all(file, page.as_bytes())
    })
}

fn check(cancel: &Cancel) -> Result<()> {
    if cancel.is_cancelled() {
        return Err(CliError::Interrupted(
            "no measurement was completed, and nothing is saved".into(),
        ));
    }
    Ok(())
}

/// The same model under other knobs; its weights are mapped, so that most of it is there once.
fn again(
    args: &Bench,
    cancel: &Cancel,
    change: impl FnOnce(isovec::EmbeddingConfig) -> isovec::EmbeddingConfig,
) -> Result<Embedder> {
    let config = change(args.model.embedding_config()?);
    Embedder::builder(args.model.source())
        .config(config)
        .cancel(cancel.clone())
        .load()
        .map_err(|error| args.model.failed(error))
}
