//! What a request had to wait for: the chain of spans from its beginning to its end, each the last
//! to end before the next could go on, and within each of them the same again.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::load::{Loaded, Span};
use super::requests::RequestRow;

/// Levels that are shown.
const LEVELS: usize = 4;

/// What took its time one after the other.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CriticalPath {
    /// The request, or the span.
    pub(super) of: String,
    pub(super) seconds: f64,
    pub(super) steps: Vec<Step>,
}

/// Spans of one name on the path.
#[derive(Debug, Clone, Default, Serialize)]
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
    let (of, root, walk, inside) = match slowest {
        Some(row) => {
            let root = request(loaded, row.request)?;
            let mut groups = groups(loaded, root, row.request);
            let inside = groups.remove(&(1, 0)).unwrap_or_default();
            let groups = Some(groups);
            (
                format!("request {}", row.request),
                root,
                Walk { loaded, groups },
                inside,
            )
        }
        None => {
            let root = longest(loaded)?;
            let spans = loaded.spans.iter();
            let mut inside: Vec<&Span> = spans
                .filter(|span| span.track == root.track && !std::ptr::eq(*span, root))
                .filter(|span| span.start >= root.start && span.start < root.end())
                .collect();
            last_first(&mut inside);
            let groups = None;
            (
                loaded.word(root.name).to_owned(),
                root,
                Walk { loaded, groups },
                inside,
            )
        }
    };
    let mut steps = Vec::new();
    walk.back(&inside, (root.start, root.end()), 1, &mut steps);
    shorten(&mut steps, top);
    Some(CriticalPath {
        of,
        seconds: root.took / 1e6,
        steps,
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
type Groups<'l> = HashMap<(usize, u32), Vec<&'l Span>>;

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
        groups.entry(key).or_default().push(span);
    }
    groups.values_mut().for_each(|spans| last_first(spans));
    groups
}

/// The last to end first; of those that end together, the one that holds the others.
fn last_first(spans: &mut [&Span]) {
    spans.sort_by(|a, b| b.end().total_cmp(&a.end()).then(b.took.total_cmp(&a.took)));
}

/// Goes back through spans.
struct Walk<'l> {
    loaded: &'l Loaded,
    /// In our own traces what is part of what is known; elsewhere the times tell.
    groups: Option<Groups<'l>>,
}

impl Walk<'_> {
    /// Goes back from the end of an interval to its beginning, through spans of which the last to
    /// end come first, and adds what the interval was spent on to `steps`.
    fn back(&self, spans: &[&Span], (start, end): (f64, f64), level: usize, steps: &mut Vec<Step>) {
        let mut at = end;
        for (place, span) in spans.iter().enumerate() {
            if at <= start || span.end() <= start {
                break;
            }
            if span.start >= at {
                continue;
            }
            let (from, to) = (span.start.max(start), span.end().min(at));
            let name = self.loaded.word(span.name);
            let known = steps.iter().position(|step| step.name == name);
            let known = known.unwrap_or_else(|| {
                // What is found later was earlier.
                let name = name.to_owned();
                steps.insert(
                    0,
                    Step {
                        name,
                        ..Step::default()
                    },
                );
                0
            });
            let step = &mut steps[known];
            step.count += 1;
            step.seconds += (to - from) / 1e6;
            if level < LEVELS {
                let parts = self.parts(span, level, &spans[place + 1..]);
                self.back(&parts, (from, to), level + 1, &mut step.steps);
            }
            at = from;
        }
    }

    /// What a span on this level consists of; `later` holds what ends before it does.
    fn parts<'s>(&'s self, span: &Span, level: usize, later: &[&'s Span]) -> Cow<'s, [&'s Span]> {
        let Some(groups) = &self.groups else {
            let until = later.partition_point(|inner| inner.end() > span.start);
            let within = later[..until].iter().copied();
            return Cow::Owned(within.filter(|inner| inner.start >= span.start).collect());
        };
        let has_parts = ["batch", "run"].contains(&self.loaded.word(span.stage));
        let group = groups.get(&(level + 1, span.batch)).filter(|_| has_parts);
        Cow::Borrowed(group.map_or(&[], Vec::as_slice))
    }
}

/// Leaves the longest of each level.
fn shorten(steps: &mut Vec<Step>, top: usize) {
    if steps.len() > top {
        let mut by_time: Vec<f64> = steps.iter().map(|step| step.seconds).collect();
        by_time.sort_by(|a, b| b.total_cmp(a));
        let least = by_time.get(top.saturating_sub(1)).copied();
        let least = least.unwrap_or(f64::INFINITY);
        steps.retain(|step| step.seconds >= least);
    }
    for step in steps {
        shorten(&mut step.steps, top);
    }
}
