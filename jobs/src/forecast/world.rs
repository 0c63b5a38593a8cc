//! Workers, units and a store, event by event.
//!
//! What a worker does, in this order, is what `run` does: it lists the input, creates `job.json`, learns the row groups of
//! Parquet files, lists the manifest and the failures, and then takes each unit that was not finished: it looks whether it is
//! finished now, reads, computes, stores the files, and creates the entry. There are no leases and no scheduler.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};

use super::costs::Costs;
use super::order::Order;
use super::random::Random;
use super::work::{Input, Work};
use super::{Forecast, Shares};
use crate::error::{Error, Result};
use crate::spec::Spec;

/// Nanoseconds since the start of all workers.
type Time = u64;

const NEVER: Time = Time::MAX;
/// The last time that is simulated: 300 years.
const LAST: Time = 300 * 365 * 24 * 3600 * 1_000_000_000;
const SECOND: f64 = 1e9;
const HOUR: f64 = 3600.0;
/// Looks that follow each other and are simulated as one event.
const LOOKS: u64 = 64;
/// Deaths for each unit and worker after which a job is said to have no end.
const DEATHS: u64 = 20;

fn time(seconds: f64) -> Time {
    (seconds * SECOND) as Time
}

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
        events: BinaryHeap::new(),
        number: 0,
        store: Store::default(),
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
        spent: [0.0; DOINGS],
        again: 0.0,
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

/// What a thread spends its time with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Doing {
    #[default]
    Starting,
    /// Listing the input, and learning its row groups.
    Learning,
    /// Listing what is finished.
    Listing,
    Looking,
    Reading,
    Waiting,
    Computing,
    Writing,
    /// Creating the entry of a unit, or the note of its failure.
    Noting,
    /// Nothing is left.
    Ended,
}

const DOINGS: usize = Doing::Ended as usize + 1;

/// A run of the job. It is started again when it has died.
#[derive(Default)]
struct Process {
    /// How often it was started.
    life: u32,
    order: Option<Order>,
    /// When it listed the manifest: what was finished by then is not in its order.
    listed: Time,
    /// When its model is free.
    free: Time,
    /// Threads that have not ended.
    left: u64,
    /// What it asks the store to learn its units: so many times, for so many bytes.
    asks: VecDeque<(Ask, u64, u64)>,
}

#[derive(Clone, Default)]
struct Thread {
    doing: Doing,
    since: Time,
    unit: Option<u32>,
    /// What the unit has cost in computing.
    computed: f64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A process goes on with its start.
    Start(usize),
    /// A thread has done what it did.
    Done(usize),
    Death(usize),
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Happening {
    at: Time,
    /// Events at the same time happen in the order in which they were foreseen.
    number: u64,
    what: What,
    /// The life of the process that it belongs to.
    life: u32,
}

/// What the store is asked.
#[derive(Clone, Copy)]
enum Ask {
    List,
    Look,
    Read,
    Write,
}

/// When the store has answered all that it was asked so far.
#[derive(Default)]
struct Store {
    reads: f64,
    writes: f64,
    bytes: f64,
}

struct World<'a> {
    costs: &'a Costs,
    input: &'a Input,
    threads: u64,
    random: Random,
    events: BinaryHeap<Reverse<Happening>>,
    number: u64,
    store: Store,
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
    /// Seconds of all threads.
    spent: [f64; DOINGS],
    /// Seconds of computing that were thrown away.
    again: f64,
    forecast: Forecast,
}

impl World<'_> {
    fn simulate(&mut self) -> Result<()> {
        while let Some(Reverse(Happening { at, what, life, .. })) = self.events.pop() {
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
        self.number += 1;
        self.events.push(Reverse(Happening {
            at,
            number: self.number,
            what,
            life: self.processes[process].life,
        }));
    }

    /// Asks the store `count` times, one after another, and gives the time of the last answer.
    ///
    /// Alone that takes the time of the requests and their bytes. Among others it also takes as long as the store needs for all
    /// that it was asked before.
    fn ask(&mut self, now: Time, what: Ask, count: u64, bytes: u64) -> Time {
        let requests = &mut self.forecast.requests;
        let of_kind = match what {
            Ask::List => &mut requests.lists,
            Ask::Look => &mut requests.looks,
            Ask::Read => &mut requests.reads,
            Ask::Write => &mut requests.writes,
        };
        *of_kind += count;
        let costs = self.costs;
        let begun = now as f64 / SECOND;
        let queue = |until: &mut f64, amount: u64, rate: f64| {
            *until = until.max(begun) + amount as f64 / rate;
            *until
        };
        let alone = count as f64 * costs.request_seconds + bytes as f64 / costs.bytes_per_second;
        let answered = match what {
            Ask::Write => queue(&mut self.store.writes, count, costs.store_writes_per_second),
            _ => queue(&mut self.store.reads, count, costs.store_reads_per_second),
        };
        let moved = queue(&mut self.store.bytes, bytes, costs.store_bytes_per_second);
        now.max(time((begun + alone).max(answered).max(moved)))
    }

    fn threads(&self, process: usize) -> std::ops::Range<usize> {
        let first = process * self.threads as usize;
        first..first + self.threads as usize
    }

    /// Ends what a thread was doing.
    fn turn(&mut self, thread: usize, now: Time, doing: Doing) {
        let thread = &mut self.all[thread];
        self.spent[thread.doing as usize] += (now - thread.since) as f64 / SECOND;
        (thread.doing, thread.since) = (doing, now);
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
            let answered = self.ask(now, what, count, bytes);
            return self.happen(answered, What::Start(process), process);
        }
        if self.all[self.threads(process).start].doing == Doing::Learning {
            if self.input.has_row_groups && !self.noted {
                self.noted = true;
                self.forecast.objects += self.input.files;
            }
            self.turn_all(process, now, Doing::Listing);
            self.processes[process].listed = now;
            let pages = self.pages(self.done) + self.pages(self.failed.len() as u64);
            let listed = self.ask(now, Ask::List, pages, 0);
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
        let is_first = self.forecast.requests.lists == 0;
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
                self.forecast.bytes_read = self.forecast.bytes_read.saturating_add(footers);
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
        let Process { order, listed, .. } = &mut self.processes[process];
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
            if looks == LOOKS {
                break;
            }
        }
        if looks == 0 {
            return self.leave(thread, now);
        }
        self.all[thread].unit = found;
        let looked = self.ask(now, Ask::Look, looks, 0);
        self.happen(looked, What::Done(thread), process);
    }

    /// Ends a thread, and its process with the last.
    fn leave(&mut self, thread: usize, now: Time) {
        self.turn(thread, now, Doing::Ended);
        let process = &mut self.processes[thread / self.threads as usize];
        process.left -= 1;
        if process.left == 0 {
            // It cannot die any more.
            process.life += 1;
            self.forecast.worker_hours += now as f64 / SECOND / HOUR;
            self.ended = self.ended.max(now);
        }
    }

    /// A thread has done what it did.
    fn done(&mut self, thread: usize, now: Time) {
        let process = thread / self.threads as usize;
        let doing = self.all[thread].doing;
        let Some(unit) = self.all[thread].unit else {
            return self.seek(thread, now);
        };
        let work = &self.input.units[unit as usize];
        let is_finished = self.finished[unit as usize] <= now;
        let until = match doing {
            Doing::Looking if is_finished => return self.seek(thread, now),
            Doing::Looking => {
                self.turn(thread, now, Doing::Reading);
                self.forecast.bytes_read = self.forecast.bytes_read.saturating_add(work.bytes);
                self.ask(now, Ask::Read, work.reads, work.bytes)
            }
            Doing::Reading => {
                self.turn(thread, now, Doing::Waiting);
                let free = self.processes[process].free.max(now);
                let seconds = work.texts as f64 / self.costs.texts_per_second;
                self.processes[process].free = free.saturating_add(time(seconds));
                free
            }
            // The model is free, or the waits before its retries are over.
            Doing::Waiting if self.all[thread].computed == 0.0 => {
                self.turn(thread, now, Doing::Computing);
                let seconds = work.texts as f64 / self.costs.texts_per_second;
                now.saturating_add(time(seconds))
            }
            Doing::Computing if work.waits > 0.0 => {
                self.compute(thread, now);
                self.turn(thread, now, Doing::Waiting);
                now.saturating_add(time(work.waits))
            }
            Doing::Computing | Doing::Waiting => {
                self.compute(thread, now);
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
                self.forecast.requests.reads += 1;
                return self.lose(thread, now);
            }
            Doing::Noting => return self.finish(thread, unit, work, now),
            // A process starts as a whole, and what has ended does nothing.
            Doing::Starting | Doing::Learning | Doing::Listing | Doing::Ended => return,
        };
        self.happen(until, What::Done(thread), process);
    }

    /// Notes the computing of a thread that ends its part of it.
    fn compute(&mut self, thread: usize, now: Time) {
        let thread = &mut self.all[thread];
        if thread.doing == Doing::Computing {
            // Also a unit without texts was computed.
            let seconds = (now - thread.since) as f64 / SECOND;
            thread.computed += seconds.max(f64::MIN_POSITIVE);
        }
    }

    fn write(&mut self, work: &Work, now: Time) -> Time {
        let bytes = work.written * self.costs.output_row_bytes;
        self.forecast.bytes_written = self.forecast.bytes_written.saturating_add(bytes);
        let side = u64::from(work.side);
        self.ask(now, Ask::Write, work.files + side, bytes)
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
            self.forecast.requests.looks += 1;
            return None;
        } else {
            // It is whole, and stays.
            looks = self.ask(now, Ask::Look, work.files, 0) - now;
        }
        let noted = self.ask(now, Ask::Write, 1, 0);
        Some(noted.saturating_add(looks))
    }

    fn finish(&mut self, thread: usize, unit: u32, work: &Work, now: Time) {
        self.finished[unit as usize] = now;
        self.done += 1;
        self.forecast.objects += 1;
        self.forecast.rows += work.rows;
        self.forecast.hours = now as f64 / SECOND / HOUR;
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
        let whole = work.texts as f64 / self.costs.texts_per_second;
        let part = if whole > 0.0 { computed / whole } else { 0.0 };
        self.again += computed;
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
            self.compute(thread, now);
            self.throw_away(thread);
            // A thread that had ended waits for the others.
            self.turn(thread, now, Doing::Starting);
        }
        self.start(
            process,
            now.saturating_add(time(self.costs.restart_seconds)),
        );
        Ok(())
    }

    fn end(self) -> Forecast {
        let spent = |doing: Doing| self.spent[doing as usize];
        let sum: f64 = self.spent.iter().sum::<f64>() - spent(Doing::Ended);
        let share = |seconds: f64| if sum > 0.0 { seconds / sum } else { 0.0 };
        let shares = Shares {
            computing: share(spent(Doing::Computing) - self.again),
            again: share(self.again),
            starting: share(spent(Doing::Starting)),
            listing: share(spent(Doing::Learning) + spent(Doing::Listing)),
            looking: share(spent(Doing::Looking)),
            store: share(spent(Doing::Reading) + spent(Doing::Writing) + spent(Doing::Noting)),
            waiting: share(spent(Doing::Waiting)),
        };
        let seconds = self.ended as f64 / SECOND;
        let requests = &self.forecast.requests;
        let reads = requests.lists + requests.looks + requests.reads;
        let bytes = self.forecast.bytes_read + self.forecast.bytes_written;
        let used = [
            reads as f64 / self.costs.store_reads_per_second,
            requests.writes as f64 / self.costs.store_writes_per_second,
            bytes as f64 / self.costs.store_bytes_per_second,
        ];
        Forecast {
            shares,
            objects: self.forecast.objects + self.failed.len() as u64,
            store_used: used.into_iter().fold(0.0, f64::max) / seconds.max(f64::MIN_POSITIVE),
            ..self.forecast
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::{Limits, forecast};

    /// Ten units of 4096 rows, each of which is computed in 4.096 seconds.
    const TEXTS: u64 = 40_960;

    fn planned(workers: u32, seed: u64, spec: &str, costs: &str) -> Result<Forecast> {
        let spec = format!("input = 'in/*.jsonl'\noutput = 'out'\n{spec}");
        let given = "texts_per_second = 1000\ninput_row_bytes = 1024";
        let costs = Costs::read(None, &[given, costs])?;
        forecast(&Spec::parse(&spec)?, &costs, TEXTS, workers, seed)
    }

    fn sum(shares: &Shares) -> f64 {
        shares.computing + shares.again + shares.starting + shares.waiting + shares.in_store()
    }

    #[test]
    fn one_worker_takes_the_sum_of_its_times() {
        let one = planned(1, 1, "", "").unwrap();
        // 5 s of loading. A listing, the settings, two listings more; ten units with a look, a read, a file and an entry.
        let requests = 0.1 * (4.0 + 10.0 * 4.0);
        // All units but the first read the byte before them.
        let bytes = (TEXTS * 1024 + 9 + TEXTS * 1600) as f64 / 85e6;
        let expected = 5.0 + requests + bytes + TEXTS as f64 / 1000.0;
        assert!((one.hours * HOUR - expected).abs() < 1e-6, "{one:?}");
        assert_eq!(one.worker_hours, one.hours);
        assert_eq!((one.units, one.rows, one.rows_again), (10, TEXTS, 0));
        assert_eq!(one.objects, 1 + 10 + 10);
        assert!((sum(&one.shares) - 1.0).abs() < 1e-9, "{one:?}");
        let computing = TEXTS as f64 / 1000.0 / expected;
        assert!((one.shares.computing - computing).abs() < 1e-9, "{one:?}");
    }

    #[test]
    fn threads_of_a_worker_share_its_model() {
        let two = planned(1, 1, "workers = 2", "").unwrap();
        let one = planned(1, 1, "", "").unwrap();
        // Reading and writing are beside computing, which takes as long as before.
        assert!(
            two.hours < one.hours && two.hours * HOUR > 5.0 + 40.96,
            "{two:?}"
        );
        assert!(two.shares.waiting > 0.0, "{two:?}");
        assert_eq!((two.rows_again, &two.requests), (0, &one.requests));
    }

    #[test]
    fn more_workers_are_faster_until_they_do_the_same_units() {
        let forecasts: Vec<_> = [1, 2, 10, 40]
            .map(|workers| planned(workers, 3, "", "load_seconds = 0").unwrap())
            .into();
        for pair in forecasts.windows(2) {
            assert!(pair[1].worker_hours > pair[0].worker_hours, "{pair:?}");
            assert!(pair[1].shares.again > pair[0].shares.again, "{pair:?}");
        }
        assert!(forecasts[1].hours < forecasts[0].hours);
        for forecast in &forecasts {
            assert_eq!((forecast.rows, forecast.objects), (TEXTS, 21));
            assert_eq!(forecast.rows_again, forecast.lost * 4096);
            assert!((sum(&forecast.shares) - 1.0).abs() < 1e-9, "{forecast:?}");
        }
        let limits = Limits::of(&forecasts);
        assert!(matches!(limits.again, Some(2 | 10)), "{limits:?}");
        assert_eq!(limits.store_used, None);
        let again = planned(10, 3, "", "load_seconds = 0").unwrap();
        assert_eq!(again, forecasts[2]);
        assert_ne!(again, planned(10, 4, "", "load_seconds = 0").unwrap());
    }

    #[test]
    fn workers_that_die_cost_rows_and_lose_none() {
        let calm = planned(3, 1, "", "load_seconds = 1").unwrap();
        let costs = "failures_per_hour = 120\nload_seconds = 1\nrestart_seconds = 2";
        let stormy = planned(3, 1, "", costs).unwrap();
        assert!(stormy.restarts > 0, "{stormy:?}");
        // Of one seed it may be chance that others take other units.
        let hours = |costs: &str| -> f64 {
            let seeds = 0..10;
            seeds
                .map(|seed| planned(3, seed, "", costs).unwrap().hours)
                .sum()
        };
        assert!(hours(costs) > 1.1 * hours("load_seconds = 1"));
        assert_eq!((stormy.rows, stormy.objects), (calm.rows, calm.objects));
        assert!(stormy.rows_again > stormy.lost * 4096, "{stormy:?}");
        assert!((sum(&stormy.shares) - 1.0).abs() < 1e-9, "{stormy:?}");
        // Every start lists the input, the manifest and the failures.
        assert!(stormy.requests.lists > 3 * 3, "{stormy:?}");

        let error = planned(3, 1, "", "failures_per_hour = 100000").unwrap_err();
        assert!(error.to_string().contains("no end"), "{error}");
    }

    #[test]
    fn nothing_is_written_faster_than_the_store_can() {
        let free = planned(10, 1, "", "").unwrap();
        let bound = planned(10, 1, "", "store_writes_per_second = 0.2").unwrap();
        let least = (bound.requests.writes - 1) as f64 / 0.2;
        let ended = bound.worker_hours * HOUR / 10.0;
        assert!(
            bound.hours * HOUR > free.hours * HOUR && ended * 10.0 > least,
            "{bound:?}"
        );
        assert!((0.9..=1.0).contains(&bound.store_used), "{bound:?}");
        assert!(
            bound.shares.store > 0.5 && free.store_used < 0.1,
            "{free:?}"
        );
        assert_eq!(Limits::of(&[free, bound]).store_used, Some(10));
        let bytes = planned(10, 1, "", "store_bytes_per_second = 1000000").unwrap();
        let least = (bytes.bytes_read + bytes.bytes_written) as f64 / 1e6;
        assert!(bytes.worker_hours * HOUR > least, "{bytes:?}");
    }

    #[test]
    fn units_that_fail_are_tried_by_every_worker() {
        let costs = "refused_per_million = 100\nload_seconds = 0";
        let failing = planned(4, 5, "", costs).unwrap();
        let failed = failing.units - failing.rows / 4096;
        assert!((1..10).contains(&failed), "{failing:?}");
        assert_eq!(failing.failures, 4 * failed);
        assert_eq!(failing.objects, 1 + 2 * (10 - failed) + failed);
        // Where they are left out, their units have a side file and cost a try more.
        let skipped = planned(1, 5, "poisoned = 'skip'", costs).unwrap();
        assert_eq!((skipped.rows, skipped.failures), (TEXTS, 0));
        assert_eq!(skipped.objects, 21 + failed);
        let plain = planned(1, 5, "", "load_seconds = 0").unwrap();
        assert!(
            skipped.hours * HOUR > plain.hours * HOUR + failed as f64 * 4.0,
            "{skipped:?}"
        );
    }

    #[test]
    fn what_cannot_be_simulated_is_refused() {
        for (texts, costs, said) in [
            (u64::MAX, "file_rows = 9000000000000000000", "too many"),
            (1 << 40, "file_rows = 1099511627776", "too many"),
            (1, "texts_per_second = 1e-300", "300 years"),
            (1, "load_seconds = 1e300", "300 years"),
        ] {
            let spec = Spec::parse("input = 'in/*.parquet'\noutput = 'out'").unwrap();
            let costs = Costs::read(None, &["texts_per_second = 1", costs]).unwrap();
            let error = forecast(&spec, &costs, texts, 1, 0).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
        for (texts, workers, said) in [
            (0, 1, "0 texts"),
            (1, 0, "0 texts"),
            (1, 1_000_000, "100000"),
            (u64::MAX, 1, "too many"),
            (7_000_000_000, 90_000, "looks"),
        ] {
            let spec = Spec::parse("input = 'in/*.jsonl'\noutput = 'out'").unwrap();
            let costs = Costs::read(None, &["texts_per_second = 1"]).unwrap();
            let error = forecast(&spec, &costs, texts, workers, 0).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
            assert!(error.is_usage());
        }
        let spec = Spec::parse("input = 'in/*'\noutput = 'out'").unwrap();
        let costs = Costs::read(None, &["texts_per_second = 1"]).unwrap();
        let error = forecast(&spec, &costs, 1, 1, 0).unwrap_err();
        assert!(error.to_string().contains(".parquet"), "{error}");
    }
}
