//! ONNX Runtime's own profile (`session.profiling`), ended and read before the session ends.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use isovec_engine::profile::{Detail, Lap, OwnProfile};
use serde::Deserialize;

use crate::sys::Session;

/// The profile that a session takes while it runs.
#[derive(Debug, Default)]
pub(crate) struct Taking {
    /// Runs hold it shared, and whoever ends the profile alone.
    running: RwLock<()>,
    /// When runs began, by which their clock is set.
    began: Mutex<Vec<Instant>>,
    over: AtomicBool,
}

/// A run that is in the profile.
pub(crate) struct InProfile<'t>(#[allow(dead_code, reason = "held")] RwLockReadGuard<'t, ()>);

impl Taking {
    /// A run begins now.
    pub(crate) fn run(&self) -> InProfile<'_> {
        let running = self.running.read().unwrap_or_else(PoisonError::into_inner);
        if !self.over.load(Ordering::Relaxed) {
            let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
            began.push(Instant::now());
        }
        InProfile(running)
    }

    /// Ends the profile, the first time that it is called, and reads what is in it.
    pub(crate) fn end(&self, session: &Session) -> OwnProfile {
        let _alone = self.running.write().unwrap_or_else(PoisonError::into_inner);
        if self.over.load(Ordering::Relaxed) {
            return OwnProfile::default();
        }
        let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
        let began = std::mem::take(&mut *began);
        if began.is_empty() {
            return OwnProfile::default();
        }
        self.over.store(true, Ordering::Relaxed);
        let file = match session.end_profiling() {
            Ok(file) => file,
            Err(error) => {
                tracing::warn!(target: "isovec", "ONNX Runtime's profile was not ended: {error}");
                return OwnProfile::default();
            }
        };
        read(Path::new(&file), began).unwrap_or_else(|error| {
            tracing::warn!(target: "isovec", "ONNX Runtime's profile {file} cannot be read: {error}");
            OwnProfile::default()
        })
    }
}

/// An event, as far as it is of use. Times are in microseconds since the session was made.
#[derive(Deserialize)]
struct Line {
    cat: String,
    name: String,
    ts: u64,
    #[serde(default)]
    dur: u64,
    tid: u64,
    #[serde(default)]
    args: Args,
}

#[derive(Deserialize, Default)]
struct Args {
    #[serde(default)]
    op_name: String,
    #[serde(default)]
    provider: String,
}

/// When their clock was at zero, if the session's runs began at `began` by ours and at `theirs`, in microseconds, by theirs.
///
/// Between the two the thread may have stood still, and then theirs is late by as much. Runs that began in one order are in that
/// order on both sides, so every pair says that zero was no earlier, and the pair that lost the least time says it best.
fn zero(mut began: Vec<Instant>, mut theirs: Vec<u64>) -> Option<Instant> {
    began.sort_unstable();
    theirs.sort_unstable();
    let pairs = began.into_iter().zip(theirs);
    let zeros = pairs.filter_map(|(began, ts)| began.checked_sub(Duration::from_micros(ts)));
    zeros.max()
}

/// Reads a profile whose runs began then.
fn read(file: &Path, began: Vec<Instant>) -> std::io::Result<OwnProfile> {
    let lines: Vec<Line> = serde_json::from_slice(&fs::read(file)?)?;
    let is_run = |line: &Line| line.cat == "Session" && line.name == "model_run";
    let runs = lines.iter().filter(|line| is_run(line));
    let Some(zero) = zero(began, runs.map(|line| line.ts).collect()) else {
        return Ok(OwnProfile::default());
    };
    let lap = |line: &Line, name: &str, detail: Detail| {
        Some(Lap {
            name: name.to_owned(),
            began: zero.checked_add(Duration::from_micros(line.ts))?,
            took: Duration::from_micros(line.dur),
            thread: line.tid,
            detail,
        })
    };
    let mut own = OwnProfile::default();
    for line in &lines {
        match line.name.strip_suffix("_kernel_time") {
            Some(node) if line.cat == "Node" => {
                let operator = &line.args.op_name;
                let name = if operator.is_empty() { node } else { operator };
                let detail = Detail::Node {
                    node: node.into(),
                    provider: line.args.provider.as_str().into(),
                };
                own.operators.extend(lap(line, name, detail));
            }
            _ if is_run(line) => own.runs.extend(lap(line, &line.name, Detail::None)),
            _ => {}
        }
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn their_clock_is_set_by_the_run_that_lost_the_least_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile.json");
        let text = r#"[
            {"cat": "Session", "pid": 1, "tid": 1, "dur": 9, "ts": 3, "ph": "X", "name": "session_initialization", "args": {}},
            {"cat": "Node", "pid": 1, "tid": 1, "dur": 40, "ts": 110, "ph": "X", "name": "a_kernel_time", "args": {"op_name": "MatMul", "provider": "CPU"}},
            {"cat": "Node", "pid": 1, "tid": 1, "dur": 0, "ts": 109, "ph": "X", "name": "a_fence_before", "args": {"op_name": "MatMul"}},
            {"cat": "Session", "pid": 1, "tid": 1, "dur": 100, "ts": 100, "ph": "X", "name": "model_run", "args": {}},
            {"cat": "Session", "pid": 1, "tid": 2, "dur": 100, "ts": 400, "ph": "X", "name": "model_run", "args": {}}
        ]"#;
        fs::write(&path, text).unwrap();
        let last = Instant::now() + Duration::from_secs(5);
        let micros = Duration::from_micros;
        // The first run's thread stood still before it began. The order says nothing, nor does a run that is not in the file.
        let own = read(&path, vec![last, last - micros(390)]).unwrap();
        let later = read(&path, vec![last - micros(390), last, last + micros(1)]).unwrap();
        assert_eq!(own.runs.len(), 2);
        assert_eq!(own.runs[1].began, last);
        assert_eq!(later.runs[1].began, last);
        let [operator] = &own.operators[..] else {
            panic!("{own:?}")
        };
        assert_eq!((operator.name.as_str(), operator.thread), ("MatMul", 1));
        let detail = Detail::Node {
            node: "a".into(),
            provider: "CPU".into(),
        };
        assert_eq!(operator.detail, detail);
        assert_eq!(last - operator.began, Duration::from_micros(290));
        assert_eq!(operator.took, Duration::from_micros(40));

        fs::write(&path, "[").unwrap();
        read(&path, vec![last]).unwrap_err();
        fs::write(&path, "[]").unwrap();
        assert!(read(&path, vec![last]).unwrap().runs.is_empty());
    }
}
