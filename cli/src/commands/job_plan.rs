//! `isovec job plan`.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use isovec::Cancel;
use isovec_jobs::{Costs, Forecast, Limits, Observer, forecast, measure};
use serde::Serialize;

use super::job::{Engine, read};
use crate::args::JobPlan;
use crate::commands;
use crate::error::{CliError, Result};
use crate::interrupt;

/// What is said of a job.
#[derive(Serialize)]
struct Plan {
    costs: Costs,
    /// The spec's threads of a worker.
    threads: u32,
    seed: u64,
    plans: Vec<OfTexts>,
    /// Why there is no plan of more texts, where nobody asked for so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
}

/// Numbers of texts where none are asked for, the smallest first.
const TEXTS: [u64; 4] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// What so many texts take.
#[derive(Serialize)]
struct OfTexts {
    texts: u64,
    limits: Limits,
    forecasts: Vec<Forecast>,
}

pub(crate) fn run(args: &JobPlan) -> Result<()> {
    let (spec, model, config) = read(&args.spec)?;
    let mut given = Vec::new();
    if let Some(path) = &args.costs {
        let name = path.display().to_string();
        given.push(std::fs::read_to_string(path).map_err(CliError::io(name))?);
    }
    given.push(args.cost.join("\n"));
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    let measured = match args.measure {
        false => None,
        true => {
            let cancel = interrupt::on_ctrl_c()?;
            let begun = Instant::now();
            let engine = Engine::open(&model, config, cancel.clone())?;
            let loaded = begun.elapsed();
            let watch = Arc::new(Watch(cancel));
            let costs = measure(&spec, &engine, args.rows.get(), watch);
            let mut costs = costs.map_err(|error| match error {
                isovec_jobs::Error::Stopped => CliError::Interrupted("nothing was measured".into()),
                error => error.into(),
            })?;
            costs.load_seconds = loaded.as_secs_f64();
            Some(costs)
        }
    };
    let costs = Costs::read(measured.as_ref(), &given)?;
    let asked = !args.texts.is_empty();
    let sizes = if asked { &args.texts } else { &TEXTS[..] };
    let (mut plans, mut left_out) = (Vec::new(), None);
    for &texts in sizes {
        let workers = args.workers.iter();
        let forecasts = workers.map(|&workers| forecast(&spec, &costs, texts, workers, args.seed));
        match forecasts.collect::<isovec_jobs::Result<Vec<_>>>() {
            Ok(forecasts) => plans.push(OfTexts {
                texts,
                limits: Limits::of(&forecasts),
                forecasts,
            }),
            // Costs that are wrong are so for the smallest number as well.
            Err(isovec_jobs::Error::Costs(why)) if !asked && !plans.is_empty() => {
                left_out = Some(why);
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let plan = Plan {
        costs,
        threads: spec.workers.get(),
        seed: args.seed,
        plans,
        left_out,
    };
    match args.json {
        true => commands::print_json(&plan),
        false => commands::print(&page(&plan)?),
    }
}

/// Hears Ctrl-C.
struct Watch(Cancel);

impl Observer for Watch {
    fn stopped(&self) -> bool {
        self.0.is_cancelled()
    }
}

fn page(plan: &Plan) -> Result<String> {
    let mut page = String::new();
    for of_texts in &plan.plans {
        let units = of_texts.forecasts.first().map_or(0, |first| first.units);
        let texts = of_texts.texts;
        writeln!(page, "{texts} texts in {units} units").ok();
        writeln!(
            page,
            "{:>9} {:>10} {:>13} {:>11} {:>8} {:>9} {:>11}",
            "workers", "hours", "worker-hours", "rows again", "in store", "restarts", "store used"
        )
        .ok();
        for forecast in &of_texts.forecasts {
            let percent = |part: f64| format!("{:.1}%", part * 100.0);
            writeln!(
                page,
                "{:>9} {:>10.2} {:>13.1} {:>11} {:>8} {:>9} {:>11}",
                forecast.workers,
                forecast.hours,
                forecast.worker_hours,
                percent(forecast.rows_again as f64 / texts as f64),
                percent(forecast.shares.in_store()),
                forecast.restarts,
                percent(forecast.store_used)
            )
            .ok();
        }
        for (reached, what) in [
            (of_texts.limits.again, "computing what is thrown away"),
            (of_texts.limits.starting, "starting and loading the model"),
            (
                of_texts.limits.listing,
                "listing the input and the manifest",
            ),
            (
                of_texts.limits.looking,
                "looking whether units are finished",
            ),
            (of_texts.limits.store, "reading and writing"),
        ] {
            if let Some(workers) = reached {
                writeln!(
                    page,
                    "from {workers} workers on, a tenth of the time or more is {what}"
                )
                .ok();
            }
        }
        if let Some(workers) = of_texts.limits.store_used {
            writeln!(
                page,
                "from {workers} workers on, the store does nine tenths of what it can or more"
            )
            .ok();
        }
        page.push('\n');
    }
    if let Some(why) = &plan.left_out {
        writeln!(page, "left out: {why}\n").ok();
    }
    let costs = plan.costs.to_toml()?;
    write!(page, "with these costs:\n{costs}").ok();
    Ok(page)
}
