//! The critical path of a request: the chain of spans from its beginning to its end. Each span is the last one to end
//! before the next could continue. Inside each span the same applies again.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::load::{Loaded, Span};
use super::requests::RequestRow;

/// Levels that are shown.
const LEVELS: usize = 4;

/// What took its time one after the other.
#[derive(Debug, Clone, Serialize)]
pub(super) struct CriticalPath {
    /// The request, or the span.
    pub(super) of: String,
    pub(super) seconds: f64,
    pub(super) steps: Vec<Step>,
}

/// Spans of one name on the path.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) count: usize,
    pub(super) seconds: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) steps: Vec<Step>,
}

/// The path of the slowest request. Where there are no requests, of the longest run, or else of the
/// longest span.
pub(super) fn critical(
    loaded: &Loaded,
    slowest: Option<&RequestRow>,
    top: usize,
) -> Option<CriticalPath> {
    let mut found = Found::default();
    let (of, root) = match slowest {
        Some(row) => {
            let root = request(loaded, row.request)?;
            let groups = groups(loaded, root, row.request);
            let interval = (root.start, root.end());
            Walk { loaded, groups }.back((1, 0), interval, &mut found);
            (format!("request {}", row.request), root)
        }
        None => {
            let root = longest(loaded)?;
            let spans = loaded.spans.iter();
            let mut inside: Vec<&Span> = spans
                .filter(|span| span.track == root.track && !std::ptr::eq(*span, root))
                .filter(|span| span.start >= root.start && span.start < root.end())
                .collect();
            last_first(&mut inside);
            back_by_time(&inside, (root.start, root.end()), 1, &mut found);
            (loaded.word(root.name).to_owned(), root)
        }
    };
    Some(CriticalPath {
        of,
        seconds: root.took / 1e6,
        steps: found.longest(loaded, top),
    })
}

/// The span of a request.
fn request(loaded: &Loaded, id: u64) -> Option<&Span> {
    let stage = loaded.number("request")?;
    loaded.spans.iter().find(|span| {
        let known = loaded.requests.get((span.request as usize).wrapping_sub(1));
        span.stage == stage && known.is_some_and(|known| known.id == id)
    })
}

/// The longest run, or else the longest span.
fn longest(loaded: &Loaded) -> Option<&Span> {
    let run = loaded.number("run");
    let runs = loaded.spans.iter().filter(|span| Some(span.stage) == run);
    let by_time = |a: &&Span, b: &&Span| a.took.total_cmp(&b.took);
    let longest = runs.max_by(by_time);
    longest.or_else(|| loaded.spans.iter().max_by(by_time))
}

/// Spans that are parts of another one, by the level that they are on and the batch that they are of.
type Groups<'l> = HashMap<(usize, u32), Group<'l>>;

/// Spans of one level and batch, the last to end first.
#[derive(Default)]
struct Group<'l> {
    spans: Vec<&'l Span>,
    /// How many of them lie behind: the walk only ever goes back.
    done: usize,
}

/// What a request consists of: itself its stages and batches, a batch its own, a run operators.
fn groups<'l>(loaded: &'l Loaded, root: &Span, id: u64) -> Groups<'l> {
    let levels = [
        ("tokenize", 1),
        ("queue", 1),
        ("batch", 1),
        ("wait", 2),
        ("run", 2),
        ("copy", 2),
        ("operator", 3),
    ];
    let levels = levels.into_iter();
    let levels: HashMap<u32, usize> = levels
        .filter_map(|(stage, level)| Some((loaded.number(stage)?, level)))
        .collect();
    let batches: HashSet<u32> = (1..)
        .zip(&loaded.batches)
        .filter(|(_, batch)| batch.requests.contains(&id))
        .map(|(place, _)| place)
        .collect();
    let mut groups = Groups::new();
    for span in &loaded.spans {
        let belongs = span.request == root.request || batches.contains(&span.batch);
        let Some(&level) = levels.get(&span.stage).filter(|_| belongs) else {
            continue;
        };
        let key = match level {
            1 => (1, 0),
            // A request's own copying, of no batch.
            _ if span.batch == 0 => (1, 0),
            _ => (level, span.batch),
        };
        groups.entry(key).or_default().spans.push(span);
    }
    for group in groups.values_mut() {
        last_first(&mut group.spans);
    }
    groups
}

/// The last to end first; of those that end together, the one that holds the others.
fn last_first(spans: &mut [&Span]) {
    spans.sort_by(|a, b| b.end().total_cmp(&a.end()).then(b.took.total_cmp(&a.took)));
}

/// A span that was waited for, and from when to when.
struct Link<'l> {
    span: &'l Span,
    /// Among the spans that it was found in.
    place: usize,
    from: f64,
    to: f64,
}

/// Goes back from the end of an interval to its beginning, through spans of which the last to end
/// come first. Says as well how many of these are of no use to any earlier interval.
fn chain<'l>(spans: &[&'l Span], (start, end): (f64, f64)) -> (Vec<Link<'l>>, usize) {
    let mut links = Vec::new();
    let (mut at, mut done) = (end, 0);
    for (place, &span) in spans.iter().enumerate() {
        if at <= start || span.end() <= start {
            break;
        }
        if span.start < at {
            let (from, to) = (span.start.max(start), span.end().min(at));
            links.push(Link {
                span,
                place,
                from,
                to,
            });
            at = from;
        }
        if span.start < start {
            break;
        }
        done = place + 1;
    }
    (links, done)
}

/// Goes back through a request, of whose spans is known what they are parts of.
struct Walk<'l> {
    loaded: &'l Loaded,
    groups: Groups<'l>,
}

impl Walk<'_> {
    /// Adds what of a group an interval was spent on to `found`. A group's intervals come one after the
    /// other, the last in time first, so what lies behind one is not looked at for the next.
    fn back(&mut self, key: (usize, u32), interval: (f64, f64), found: &mut Found) {
        let Some(group) = self.groups.get_mut(&key) else {
            return;
        };
        let (links, done) = chain(&group.spans[group.done..], interval);
        group.done += done;
        for link in links {
            let step = found.add(&link);
            let stage = self.loaded.word(link.span.stage);
            if ["batch", "run"].contains(&stage) {
                let parts = (key.0 + 1, link.span.batch);
                self.back(parts, (link.from, link.to), &mut step.steps);
            }
        }
    }
}

/// Goes back through spans that do not say what they are parts of: their times do.
fn back_by_time(spans: &[&Span], interval: (f64, f64), level: usize, found: &mut Found) {
    let (links, _) = chain(spans, interval);
    let parts = match level < LEVELS {
        true => parts(spans, &links),
        false => Vec::new(),
    };
    let mut parts = parts.into_iter();
    for link in &links {
        let step = found.add(link);
        if let Some(parts) = parts.next() {
            let interval = (link.from, link.to);
            back_by_time(&parts, interval, level + 1, &mut step.steps);
        }
    }
}

/// For each link what begins while it is waited for and ends before it does, in the same order. No
/// span is part of two links: they do not overlap.
fn parts<'l>(spans: &[&'l Span], links: &[Link<'l>]) -> Vec<Vec<&'l Span>> {
    let mut parts = vec![Vec::new(); links.len()];
    for (place, &span) in spans.iter().enumerate() {
        let of = links.partition_point(|link| link.from > span.start);
        let holds = |link: &Link<'_>| link.place < place && span.start < link.to;
        if links.get(of).is_some_and(holds) {
            parts[of].push(span);
        }
    }
    parts
}

/// Steps of one level while they are found, the last in time first.
#[derive(Default)]
struct Found {
    steps: Vec<FoundStep>,
    /// Their places by name.
    places: HashMap<u32, usize>,
}

/// A step that is being found.
struct FoundStep {
    name: u32,
    count: usize,
    seconds: f64,
    steps: Found,
}

impl Found {
    /// Adds a link to the step of its name.
    fn add(&mut self, link: &Link<'_>) -> &mut FoundStep {
        let name = link.span.name;
        let place = *self.places.entry(name).or_insert(self.steps.len());
        if place == self.steps.len() {
            self.steps.push(FoundStep {
                name,
                count: 0,
                seconds: 0.0,
                steps: Self::default(),
            });
        }
        let step = &mut self.steps[place];
        step.count += 1;
        step.seconds += (link.to - link.from) / 1e6;
        step
    }

    /// The longest `top` of each level, the first in time first.
    fn longest(self, loaded: &Loaded, top: usize) -> Vec<Step> {
        let mut steps: Vec<(usize, FoundStep)> = self.steps.into_iter().rev().enumerate().collect();
        if steps.len() > top {
            steps.sort_by(|(_, a), (_, b)| b.seconds.total_cmp(&a.seconds));
            steps.truncate(top);
            steps.sort_unstable_by_key(|(place, _)| *place);
        }
        let steps = steps.into_iter();
        let steps = steps.map(|(_, step)| Step {
            name: loaded.word(step.name).to_owned(),
            count: step.count,
            seconds: step.seconds,
            steps: step.steps.longest(loaded, top),
        });
        steps.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::load::{Batch, Request};
    use crate::trace::requests;

    /// A loaded trace of spans that say where they begin, what they take and what they are called.
    fn of_spans(words: Vec<String>, spans: impl Iterator<Item = (f64, f64, u32)>) -> Loaded {
        let spans = spans.map(|(start, took, name)| Span {
            start,
            took,
            name,
            stage: u32::MAX,
            track: 0,
            request: 0,
            batch: 0,
        });
        Loaded {
            words,
            spans: spans.collect(),
            ..Loaded::default()
        }
    }

    /// The slow way: looks at all that ended before for each span that was waited for.
    fn slowly(spans: &[&Span], interval: (f64, f64), level: usize, found: &mut Found) {
        for link in chain(spans, interval).0 {
            let step = found.add(&link);
            if level < LEVELS {
                let later = spans[link.place + 1..].iter().copied();
                let parts = later.filter(|part| part.start >= link.span.start);
                let parts: Vec<&Span> = parts.collect();
                slowly(&parts, (link.from, link.to), level + 1, &mut step.steps);
            }
        }
    }

    #[test]
    fn parts_are_what_all_that_ended_before_would_give() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let mut inside: Vec<(f64, f64, u32)> = (0..random(40))
                .map(|_| (random(100) as f64, random(60) as f64, random(5) as u32))
                .collect();
            inside.insert(0, (0.0, 200.0, 5));
            let words = ["a", "b", "c", "d", "e", "root"].map(str::to_owned);
            let loaded = of_spans(words.to_vec(), inside.into_iter());
            let mut spans: Vec<&Span> = loaded.spans.iter().skip(1).collect();
            last_first(&mut spans);
            let mut found = Found::default();
            slowly(&spans, (0.0, 200.0), 1, &mut found);
            let wanted = found.longest(&loaded, 3);
            let path = critical(&loaded, None, 3).unwrap();
            assert_eq!(format!("{:?}", path.steps), format!("{wanted:?}"));
        }
    }

    /// A search through the steps for each name compares 11 billion of them.
    #[test]
    fn every_name_is_a_step() {
        const TASKS: u32 = 150_000;
        let mut words: Vec<String> = (0..TASKS).map(|n| format!("task {n}")).collect();
        words.push("main".into());
        let main = [(0.0, f64::from(TASKS), TASKS)];
        let tasks = (0..TASKS).map(|n| (f64::from(n), 1.0, n));
        let loaded = of_spans(words, main.into_iter().chain(tasks));
        let path = critical(&loaded, None, usize::MAX).unwrap();
        assert_eq!(
            (path.of.as_str(), path.steps.len()),
            ("main", TASKS as usize)
        );
        assert!(
            (0..)
                .zip(&path.steps)
                .all(|(n, step)| step.name == format!("task {n}"))
        );
        // All are as long as each other; the list is no longer than was asked for.
        let steps = critical(&loaded, None, 10).unwrap().steps;
        assert!(steps.len() == 10 && steps[9].name == "task 9", "{steps:?}");
    }

    /// A look at all that a span overlaps, for each span, is 80 billion looks.
    #[test]
    fn spans_may_overlap_many_others() {
        const PAIRS: u32 = 400_000;
        let half = f64::from(PAIRS / 2);
        let words = vec!["page".into(), "load".into()];
        let page = [(0.0, f64::from(PAIRS) + half, 0)];
        let loads = (0..PAIRS).map(|n| (f64::from(n), half, 1));
        let loaded = of_spans(words, page.into_iter().chain(loads));
        let path = critical(&loaded, None, 10).unwrap();
        assert_eq!(path.steps.len(), 1, "{path:?}");
        let load = &path.steps[0];
        assert_eq!((load.name.as_str(), load.count), ("load", PAIRS as usize));
        assert!(
            load.steps.is_empty(),
            "each begins before those that end before it"
        );
    }

    /// A look at all of the batch's operators that end later, for each run, is 20 billion looks.
    #[test]
    fn a_batch_may_have_many_runs() {
        const RUNS: u32 = 200_000;
        let words = ["request", "batch", "run", "operator"].map(str::to_owned);
        let took = f64::from(RUNS) * 2.0;
        let whole = [(0.0, took, 0), (0.0, took, 1)];
        let runs = (0..RUNS).map(|n| (f64::from(n) * 2.0, 2.0, 2));
        let operators = (0..RUNS).map(|n| (f64::from(n) * 2.0 + 0.5, 1.0, 3));
        let spans = whole.into_iter().chain(runs).chain(operators);
        let mut loaded = of_spans(words.to_vec(), spans);
        for span in &mut loaded.spans {
            (span.stage, span.request, span.batch) = (span.name, 1, u32::from(span.name > 0));
        }
        loaded.requests.push(Request::default());
        loaded.batches.push(Batch {
            requests: vec![0],
            ..Batch::default()
        });
        let rows = requests::rows(&loaded);
        let path = critical(&loaded, rows.first(), 10).unwrap();
        let run = &path.steps[0].steps[0];
        assert_eq!((run.name.as_str(), run.count), ("run", RUNS as usize));
        let operator = &run.steps[0];
        assert_eq!(operator.count, RUNS as usize);
        assert!(
            (operator.seconds - f64::from(RUNS) / 1e6).abs() < 1e-6,
            "{operator:?}"
        );
    }
}
