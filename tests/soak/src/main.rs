//! `isovec-soak`: see the library. Exits with 1 where something was wrong, and with 3 where nothing happens any more.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use clap::Parser;
use isovec_soak::{Soak, Taken, keep_little};

/// How much more may be resident at the end than after the warm-up.
const MOST: f64 = 1.02;
/// What is measured is the middle of so many rests: a single one depends on what was last given back.
const RESTS: usize = 9;
/// The warm-up: ten minutes, or a tenth of the time where that is less.
const WARM_UP: Duration = Duration::from_secs(600);
/// When nothing has happened for so long, something waits for what does not come.
const STUCK: Duration = Duration::from_secs(300);
/// How often a line is printed, at most.
const LINE: Duration = Duration::from_secs(30);

#[derive(Parser)]
#[command(name = "isovec-soak", about = "Random work on isovec, for so long.")]
struct Cli {
    /// How long.
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// What decides the actions; by the clock when left out.
    #[arg(long)]
    seed: Option<u64>,
    /// Callers at once.
    #[arg(long, default_value_t = 4)]
    callers: usize,
    /// Only what has this in its name, as the first line lists it: to find which part takes more and more.
    #[arg(long)]
    kind: Option<String>,
}

fn main() -> ExitCode {
    keep_little();
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<bool> {
    let seed = cli.seed.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.map_or(0, |now| now.as_secs())
    });
    println!(
        "seed {seed}, {} callers, {} minutes",
        cli.callers, cli.minutes
    );
    let time = Duration::from_secs(60 * cli.minutes);
    let soak = Soak::new(seed, cli.callers, cli.kind.as_deref())?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| watch(&soak, &over));
        let good = rounds(&soak, time);
        over.store(true, SeqCst);
        Ok(good)
    })
}

/// Goes on until the time is over, and says whether all was well.
fn rounds(soak: &Soak, time: Duration) -> bool {
    let warm_up = WARM_UP.min(time / 10);
    let started = Instant::now();
    let (mut first, mut last) = (Vec::new(), Vec::new());
    let mut printed = Duration::ZERO;
    while soak.round() {
        let now = started.elapsed();
        let before = Taken::now();
        let taken = Taken::at_rest();
        if let Some(taken) = taken {
            if now >= warm_up && first.len() < RESTS {
                first.push(taken);
            }
            last.push(taken);
            let old = last.len().saturating_sub(RESTS);
            last.drain(..old);
        }
        if now >= printed + LINE {
            printed = now;
            print!("{:5} s: {:?}", now.as_secs(), soak.counts());
            match (before, taken) {
                (Some(before), Some(taken)) => println!(", {before}; given back: {taken}"),
                _ => println!(),
            }
        }
        if now >= time {
            break;
        }
    }
    println!("done: {:?}", soak.counts());
    let kept = match (Taken::median(&first), Taken::median(&last)) {
        (Some(first), Some(last)) => {
            let ratio = last.resident as f64 / first.resident as f64;
            println!("after the warm-up, with what the allocator keeps given back: {first}");
            println!("at the end: {last}");
            println!("resident at the end: {ratio:.4} of that after the warm-up, allowed {MOST}");
            ratio <= MOST
        }
        _ => {
            println!(
                "this system does not tell what the process takes: its memory was not compared"
            );
            true
        }
    };
    let faults = soak.faults();
    println!("{} faults", faults.len());
    for fault in &faults {
        println!("  {fault}");
    }
    kept && faults.is_empty()
}

/// Ends the program where nothing happens any more.
fn watch(soak: &Soak, over: &AtomicBool) {
    let (mut seen, mut since) = (soak.counts(), Instant::now());
    while !over.load(SeqCst) {
        thread::sleep(Duration::from_secs(1));
        let now = soak.counts();
        if now != seen {
            (seen, since) = (now, Instant::now());
        } else if since.elapsed() >= STUCK {
            println!("stuck: no action ended for {STUCK:?}\n{}", soak.state());
            std::process::exit(3);
        }
    }
}
