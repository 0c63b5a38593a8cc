//! Workers, units and a store, event by event.
//!
//! What a worker does, in this order, is what `run` does: it lists the input, creates `job.json`, learns the row groups of
//! Parquet files, lists the manifest and the failures, and then takes each unit that was not finished: it looks whether it is
//! finished now, reads, computes, stores the files, and creates the entry. It lists the manifest anew when enough of its looks were
//! for nothing (`left.rs`). There are no leases and no scheduler.

use std::collections::{HashSet, VecDeque};

use super::Forecast;
use super::costs::Costs;
use super::events::{Events, HOUR, Happening, NEVER, Time, What, seconds, time};
use super::input::Input;
use super::order::Order;
use super::random::Random;
use super::store::{Ask, Store};
use super::work::Work;
use super::worker::{Doing, Process, Thread, Times};
use crate::error::{Error, Result};
use crate::left;
use crate::spec::Spec;

/// The last time that is simulated: 300 years.
const LAST: Time = 300 * 365 * 24 * 3600 * 1_000_000_000;
/// Looks that follow each other and are simulated as one event.
const TOGETHER: u64 = 64;
/// Deaths for each unit and worker after which a job is said to have no end.
const DEATHS: u64 = 20;

/// Simulates a job from its start to the end of its last worker.
pub(crate) fn run(
    spec: &Spec,
    costs: &Costs,
    input: &Input,
    texts: u64,
    workers: u32,
    seed: u64,
) -> Result<Forecast> {
    let threads = u64::from(spec.workers.get());
    let mut world = World {
        costs,
        input,
        threads,
        random: Random::new(seed ^ u64::from(workers)),
        events: Events::default(),
        store: Store::new(costs),
        finished: vec![NEVER; input.units.len()],
        stored: vec![false; input.units.len()],
        done: 0,
        noted: false,
        failed: HashSet::new(),
        ended: 0,
        processes: Vec::new(),
        all: (0..u64::from(workers) * threads)
            .map(|_| Thread::default())
            .collect(),
        times: Times::default(),
        forecast: Forecast {
            texts,
            workers,
            units: input.units.len() as u64,
            // `job.json`.
            objects: 1,
            ..Forecast::default()
        },
    };
    for process in 0..workers as usize {
        world.processes.push(Process::default());
        world.start(process, 0);
    }
    world.simulate()?;
    Ok(world.end())
}

struct World<'a> {
    costs: &'a Costs,
    input: &'a Input,
    threads: u64,
    random: Random,
    events: Events,
    store: Store<'a>,
    /// When each unit was finished.
    finished: Vec<Time>,
    /// Whether the files of a unit are there.
    stored: Vec<bool>,
    /// Units that are finished.
    done: u64,
    /// Whether the row groups of all files are noted.
    noted: bool,
    /// Units with a note of a failure.
    failed: HashSet<u32>,
    /// When the last worker ended.
    ended: Time,
    processes: Vec<Process>,
    all: Vec<Thread>,
    times: Times,
    forecast: Forecast,
}

impl World<'_> {
    fn simulate(&mut self) -> Result<()> {
        while let Some(Happening { at, what, life, .. }) = self.events.pop() {
            let process = match what {
                What::Start(process) | What::Death(process) => process,
                What::Done(thread) => thread / self.threads as usize,
            };
            if self.processes[process].life != life {
                continue;
            }
            if at > LAST && !matches!(what, What::Death(_)) {
                return Err(Error::Costs(
                    "the job takes longer than 300 years with these costs; take more workers, or fewer texts".into(),
                ));
            }
            match what {
                What::Start(_) => self.started(process, at),
                What::Done(thread) => self.done(thread, at),
                What::Death(_) => self.die(process, at)?,
            }
        }
        Ok(())
    }

    fn happen(&mut self, at: Time, what: What, process: usize) {
        self.events.push(at, what, self.processes[process].life);
    }

    fn threads(&self, process: usize) -> std::ops::Range<usize> {
        let first = process * self.threads as usize;
        first..first + self.threads as usize
    }

    /// Ends what a thread was doing.
    fn turn(&mut self, thread: usize, now: Time, doing: Doing) {
        self.times.turn(&mut self.all[thread], now, doing);
    }

    fn turn_all(&mut self, process: usize, now: Time, doing: Doing) {
        for thread in self.threads(process) {
            self.turn(thread, now, doing);
        }
    }

    /// Starts a process, which loads its model and may die.
    fn start(&mut self, process: usize, now: Time) {
        self.processes[process] = Process {
            life: self.processes[process].life + 1,
            left: self.threads,
            ..Process::default()
        };
        let loaded = now.saturating_add(time(self.costs.load_seconds));
        self.happen(loaded, What::Start(process), process);
        let per_second = self.costs.failures_per_hour / HOUR;
        if per_second > 0.0 {
            let life = time(self.random.exponential() / per_second);
            self.happen(now.saturating_add(life), What::Death(process), process);
        }
    }

    /// The next step of a start.
    fn started(&mut self, process: usize, now: Time) {
        if self.all[self.threads(process).start].doing == Doing::Starting {
            self.turn_all(process, now, Doing::Learning);
            self.processes[process].asks = self.learn();
        }
        if let Some((what, count, bytes)) = self.processes[process].asks.pop_front() {
            let answered = self.store.ask(now, what, count, bytes);
            return self.happen(answered, What::Start(process), process);
        }
        if self.all[self.threads(process).start].doing == Doing::Learning {
            if self.input.has_row_groups && !self.noted {
                self.noted = true;
                self.forecast.objects += self.input.files;
            }
            self.turn_all(process, now, Doing::Listing);
            self.processes[process].listed = now;
            self.processes[process].names = self.done;
            let pages = self.pages(self.done) + self.pages(self.failed.len() as u64);
            let listed = self.store.ask(now, Ask::List, pages, 0);
            return self.happen(listed, What::Start(process), process);
        }
        let order = Order::new(self.input.units.len() as u64, &mut self.random);
        self.processes[process].order = Some(order);
        for thread in self.threads(process) {
            self.go_on(thread, now);
        }
    }

    /// What lists the input, creates the settings or reads them, and learns the row groups of every file.
    fn learn(&mut self) -> VecDeque<(Ask, u64, u64)> {
        let is_first = self.store.requests.lists == 0;
        let mut asks = VecDeque::from([
            (Ask::List, self.pages(self.input.files), 0),
            (Ask::Write, 1, 0),
        ]);
        if !is_first {
            asks.push_back((Ask::Read, 1, 0));
        }
        if self.input.has_row_groups {
            let (files, footers) = (self.input.files, self.input.footers);
            asks.push_back((Ask::Read, files, 0));
            if !self.noted {
                asks.push_back((Ask::Read, files, footers));
                asks.push_back((Ask::Write, files, 0));
            }
        }
        asks
    }

    /// Pages of a listing of so many names. Nothing has a page, too.
    fn pages(&self, names: u64) -> u64 {
        names.div_ceil(self.costs.page_names).max(1)
    }

    /// Takes units until one is to be looked at that may not be finished.
    fn seek(&mut self, thread: usize, now: Time) {
        let process = thread / self.threads as usize;
        let Process {
            order,
            listed,
            found: for_nothing,
            names,
            listing,
            ..
        } = &mut self.processes[process];
        let worth = left::worth(*names);
        let mut looks = 0;
        let mut found = None;
        for unit in order.iter_mut().flatten() {
            let finished = self.finished[unit as usize];
            if finished <= *listed {
                continue;
            }
            looks += 1;
            if finished > now {
                found = Some(unit);
                break;
            }
            *for_nothing += 1;
            if looks == TOGETHER || (*for_nothing >= worth && listing.is_none()) {
                break;
            }
        }
        if looks == 0 {
            return self.leave(thread, now);
        }
        self.all[thread].unit = found;
        let looked = self.store.ask(now, Ask::Look, looks, 0);
        self.happen(looked, What::Done(thread), process);
    }

    /// Lists what is finished, where the looks of the process make that worth it.
    fn list_anew(&mut self, thread: usize, now: Time) {
        let process = &mut self.processes[thread / self.threads as usize];
        if process.listing.is_some() || process.found < left::worth(process.names) {
            return self.seek(thread, now);
        }
        (process.listing, process.names) = (Some(now), self.done);
        self.turn(thread, now, Doing::Listing);
        let listed = self.store.ask(now, Ask::List, self.pages(self.done), 0);
        self.happen(listed, What::Done(thread), thread / self.threads as usize);
    }

    /// Ends a thread, and its process with the last.
    fn leave(&mut self, thread: usize, now: Time) {
        self.turn(thread, now, Doing::Ended);
        let process = &mut self.processes[thread / self.threads as usize];
        process.left -= 1;
        if process.left == 0 {
            // It cannot die any more.
            process.life += 1;
            self.forecast.worker_hours += seconds(now) / HOUR;
            self.ended = self.ended.max(now);
        }
    }

    /// A thread has done what it did.
    fn done(&mut self, thread: usize, now: Time) {
        let process = thread / self.threads as usize;
        let doing = self.all[thread].doing;
        let Some(unit) = self.all[thread].unit else {
            if doing != Doing::Listing {
                return self.list_anew(thread, now);
            }
            let process = &mut self.processes[process];
            process.listed = process.listing.take().unwrap_or(process.listed);
            process.found = 0;
            return self.go_on(thread, now);
        };
        let work = &self.input.units[unit as usize];
        let is_finished = self.finished[unit as usize] <= now;
        let computing = time(self.computing(work));
        let until = match doing {
            // Another worker has finished it while the look was under way.
            Doing::Looking if is_finished => {
                self.all[thread].unit = None;
                self.processes[process].found += 1;
                return self.list_anew(thread, now);
            }
            Doing::Looking => {
                self.turn(thread, now, Doing::Reading);
                self.store.ask(now, Ask::Read, work.reads, work.bytes)
            }
            Doing::Reading => {
                self.turn(thread, now, Doing::Queueing);
                let free = self.processes[process].free.max(now);
                self.processes[process].free = free.saturating_add(computing);
                free
            }
            Doing::Queueing => {
                self.turn(thread, now, Doing::Computing);
                now.saturating_add(computing)
            }
            Doing::Computing if work.waits > 0.0 => {
                self.turn(thread, now, Doing::Pausing);
                now.saturating_add(time(work.waits))
            }
            Doing::Computing | Doing::Pausing => {
                self.turn(thread, now, Doing::Writing);
                self.write(work, now)
            }
            Doing::Writing => match self.note(unit, work, is_finished, now) {
                None => return self.lose(thread, now),
                Some(until) => {
                    self.turn(thread, now, Doing::Noting);
                    until
                }
            },
            Doing::Noting if work.fails => {
                self.forecast.failures += 1;
                self.failed.insert(unit);
                return self.waste(thread, now);
            }
            Doing::Noting if is_finished => {
                // The entry that is there is read.
                self.store.count(Ask::Read, 1);
                return self.lose(thread, now);
            }
            Doing::Noting => return self.finish(thread, unit, work, now),
            // A process starts as a whole, and what has ended does nothing.
            Doing::Starting | Doing::Learning | Doing::Listing | Doing::Ended => return,
        };
        self.happen(until, What::Done(thread), process);
    }

    /// Seconds that the model takes for a unit.
    fn computing(&self, work: &Work) -> f64 {
        work.texts as f64 / self.costs.texts_per_second
    }

    fn write(&mut self, work: &Work, now: Time) -> Time {
        let bytes = work.written * self.costs.output_row_bytes;
        let side = u64::from(work.side);
        self.store.ask(now, Ask::Write, work.files + side, bytes)
    }

    /// Asks for the entry of a unit whose files are written; nothing if another worker has finished it.
    fn note(&mut self, unit: u32, work: &Work, is_finished: bool, now: Time) -> Option<Time> {
        let stored = &mut self.stored[unit as usize];
        let mut looks = 0;
        if !*stored {
            *stored = true;
            self.forecast.objects += work.files + u64::from(work.side);
        } else if is_finished {
            // The first file that was there already was enough to find that out.
            self.store.count(Ask::Look, 1);
            return None;
        } else {
            // It is whole, and stays.
            looks = self.store.ask(now, Ask::Look, work.files, 0) - now;
        }
        let noted = self.store.ask(now, Ask::Write, 1, 0);
        Some(noted.saturating_add(looks))
    }

    fn finish(&mut self, thread: usize, unit: u32, work: &Work, now: Time) {
        self.finished[unit as usize] = now;
        self.done += 1;
        self.forecast.objects += 1;
        self.forecast.rows += work.rows;
        self.forecast.hours = seconds(now) / HOUR;
        self.all[thread].computed = 0.0;
        self.go_on(thread, now);
    }

    /// Another worker has finished the unit.
    fn lose(&mut self, thread: usize, now: Time) {
        self.forecast.lost += 1;
        self.waste(thread, now);
    }

    /// Goes on without what was computed.
    fn waste(&mut self, thread: usize, now: Time) {
        self.throw_away(thread);
        self.go_on(thread, now);
    }

    fn throw_away(&mut self, thread: usize) {
        let thread = &mut self.all[thread];
        let Some(unit) = thread.unit.take() else {
            return;
        };
        let work = &self.input.units[unit as usize];
        let computed = std::mem::take(&mut thread.computed);
        let whole = self.computing(work);
        let part = if whole > 0.0 { computed / whole } else { 0.0 };
        self.times.again += computed;
        self.forecast.rows_again += (part * work.rows as f64).round() as u64;
    }

    fn go_on(&mut self, thread: usize, now: Time) {
        self.turn(thread, now, Doing::Looking);
        self.seek(thread, now);
    }

    /// A process dies, with all that it had not noted.
    fn die(&mut self, process: usize, now: Time) -> Result<()> {
        self.forecast.restarts += 1;
        let units = self.forecast.units + u64::from(self.forecast.workers);
        if self.forecast.restarts > DEATHS * units {
            return Err(Error::Costs(format!(
                "the workers have died {} times in {} units, and the job has no end; make units smaller, or restarts cheaper",
                self.forecast.restarts, self.forecast.units
            )));
        }
        for thread in self.threads(process) {
            // A thread that had ended waits for the others.
            self.turn(thread, now, Doing::Starting);
            self.throw_away(thread);
        }
        self.start(
            process,
            now.saturating_add(time(self.costs.restart_seconds)),
        );
        Ok(())
    }

    fn end(self) -> Forecast {
        Forecast {
            shares: self.times.shares(),
            objects: self.forecast.objects + self.failed.len() as u64,
            store_used: self.store.used(seconds(self.ended)),
            bytes_read: self.store.bytes_read,
            bytes_written: self.store.bytes_written,
            requests: self.store.requests,
            ..self.forecast
        }
    }
}
