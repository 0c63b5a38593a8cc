//! A short summary of a profile.

use std::collections::BTreeMap;

use isovec_engine::profile::{Event, Kind, Profile, Stage};
use serde::{Deserialize, Serialize};

use isovec::{Error, Result};

/// The stages and operators of a profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ProfileSummary {
    /// Seconds that the profile is long.
    pub seconds: f64,
    /// Earlier events that it had no room for.
    pub dropped: u64,
    /// Times by stage.
    pub stages: BTreeMap<String, Times>,
    /// Times by operator.
    pub operators: BTreeMap<String, Times>,
}

/// Spans of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// How many there are.
    pub count: u64,
    /// Their total time, in seconds.
    pub seconds: f64,
}

impl Times {
    fn add(&mut self, seconds: f64) {
        self.count += 1;
        self.seconds += seconds;
    }

    /// Their mean time.
    pub fn mean(&self) -> f64 {
        self.seconds / self.count.max(1) as f64
    }
}

impl ProfileSummary {
    /// Reads a Chrome trace that isovec wrote.
    ///
    /// # Errors
    /// [`Error::Config`] if it is not such a trace.
    pub fn from_chrome_trace(json: &[u8]) -> Result<Self> {
        let trace: Trace = serde_json::from_slice(json).map_err(|error| {
            Error::Config(vec![format!(
                "the profile is no trace of isovec's: {error}"
            )])
        })?;
        let mut summary = Self {
            seconds: trace.other_data.seconds,
            dropped: trace.other_data.dropped,
            ..Self::default()
        };
        for event in trace.trace_events {
            if event.ph == "X" && event.dur >= 0.0 {
                summary.add(&event.cat, &event.name, event.dur / 1e6);
            }
        }
        Ok(summary)
    }

    fn add(&mut self, stage: &str, name: &str, seconds: f64) {
        let times = |of: &mut BTreeMap<String, Times>, key: &str| match of.get_mut(key) {
            Some(times) => times.add(seconds),
            None => of.entry(key.to_owned()).or_default().add(seconds),
        };
        times(&mut self.stages, stage);
        if stage == Stage::Operator.name() {
            times(&mut self.operators, name);
        }
    }

    /// Times of a stage; nothing where there was none.
    pub fn stage(&self, stage: Stage) -> Times {
        self.stages.get(stage.name()).copied().unwrap_or_default()
    }

    /// Times of the operators that this picks by their names.
    pub fn of_operators(&self, picks: impl Fn(&str) -> bool) -> Times {
        let picked = self.operators.iter().filter(|(name, _)| picks(name));
        picked.fold(Times::default(), |all, (_, times)| Times {
            count: all.count + times.count,
            seconds: all.seconds + times.seconds,
        })
    }
}

impl From<&Profile> for ProfileSummary {
    fn from(profile: &Profile) -> Self {
        let mut summary = Self {
            seconds: profile.took().as_secs_f64(),
            dropped: profile.dropped(),
            ..Self::default()
        };
        for event in profile.events() {
            if let Event {
                kind: Kind::Span { took },
                ..
            } = event
            {
                summary.add(event.stage.name(), &event.name, took.as_secs_f64());
            }
        }
        summary
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trace {
    #[serde(default)]
    other_data: Other,
    trace_events: Vec<TraceEvent>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Other {
    seconds: f64,
    dropped: u64,
}

#[derive(Deserialize)]
struct TraceEvent {
    #[serde(default)]
    name: String,
    #[serde(default)]
    cat: String,
    ph: String,
    #[serde(default)]
    dur: f64,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isovec_engine::profile::{ProfileOptions, ProfileSession};

    use super::*;

    #[test]
    fn a_profile_and_its_trace_say_the_same() {
        let session = ProfileSession::start(ProfileOptions::default());
        for _ in 0..3 {
            let _span = session.span("mine");
            std::thread::sleep(Duration::from_millis(2));
        }
        session.instant("a moment");
        let profile = session.finish();
        let own = ProfileSummary::from(&profile);
        assert_eq!(own.stage(Stage::Other).count, 3);
        assert!(own.stage(Stage::Other).mean() >= 0.002);
        assert!(own.operators.is_empty());
        let trace = profile.to_chrome_trace();
        let read = ProfileSummary::from_chrome_trace(trace.as_bytes()).unwrap();
        assert_eq!(read.stage(Stage::Other).count, 3);
        let both = [&own, &read].map(|summary| summary.stage(Stage::Other).seconds);
        assert!((both[0] - both[1]).abs() < 1e-5, "{both:?}");
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        for json in ["", "[]", "{\"traceEvents\": 1}", "{\"traceEvents\": [{}]}"] {
            let error = ProfileSummary::from_chrome_trace(json.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), "Config", "{json}");
        }
    }
}
