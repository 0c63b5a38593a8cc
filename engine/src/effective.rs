//! The configuration in effect: for each knob the requested value, the value in effect, and the reason.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::{IoConfig, SessionConfig};

/// Every knob of the configuration as it is in effect. Engines note their own, the SDK adds its
/// own; on every target the type is the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EffectiveConfig {
    knobs: Vec<Knob>,
}

/// One knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Knob {
    /// Its path in the configuration: `text.max_length`.
    pub name: Cow<'static, str>,
    /// The requested value, if any.
    pub asked: Option<String>,
    /// The value in effect.
    pub used: String,
    /// The origin of the value, or the reason why it is not the requested one.
    pub why: String,
    /// Whether the requested value is in effect; true if none was requested.
    pub honoured: bool,
}

impl EffectiveConfig {
    /// All knobs.
    pub fn knobs(&self) -> &[Knob] {
        &self.knobs
    }

    /// The knob of that name.
    pub fn get(&self, name: &str) -> Option<&Knob> {
        self.knobs.iter().find(|knob| knob.name == name)
    }

    /// The knobs whose requested value is not in effect.
    pub fn not_honoured(&self) -> impl Iterator<Item = &Knob> {
        self.knobs.iter().filter(|knob| !knob.honoured)
    }

    /// Notes a knob; it is honoured if the value in effect is the requested one.
    pub fn note(
        &mut self,
        name: &'static str,
        asked: Option<impl fmt::Display>,
        used: impl fmt::Display,
        why: impl Into<String>,
    ) {
        let asked = asked.as_ref().map(|asked| asked as &dyn fmt::Display);
        self.push(name, asked, &used, why.into());
    }

    /// The same for every type: compiled once, and not for each of thirty knobs.
    fn push(
        &mut self,
        name: &'static str,
        asked: Option<&dyn fmt::Display>,
        used: &dyn fmt::Display,
        why: String,
    ) {
        let (asked, used) = (asked.map(|asked| asked.to_string()), used.to_string());
        let honoured = asked.as_ref().is_none_or(|asked| *asked == used);
        self.knobs.push(Knob {
            name: name.into(),
            asked,
            used,
            why,
            honoured,
        });
    }

    /// Changes the value in effect of a noted knob, if none was requested.
    pub fn amend(&mut self, name: &str, used: impl fmt::Display, why: impl Into<String>) {
        let knob = self.knobs.iter_mut().find(|knob| knob.name == name);
        if let Some(knob) = knob.filter(|knob| knob.asked.is_none()) {
            knob.used = used.to_string();
            knob.why = why.into();
        }
    }

    /// Adds the knobs of an engine.
    pub fn extend(&mut self, other: &Self) {
        self.knobs.extend(other.knobs.iter().cloned());
    }

    /// Notes a knob that is never honoured.
    pub fn note_unused(
        &mut self,
        name: &'static str,
        asked: Option<impl fmt::Display>,
        why: impl Into<String>,
    ) {
        self.note(name, asked, "none", why);
    }

    /// Notes the knobs for files of an engine that writes none.
    pub fn note_without_files(&mut self, session: &SessionConfig) {
        let paths = [
            (
                "session.profiling",
                &session.profiling,
                "this engine writes no profile of its own",
            ),
            (
                "session.optimized_model_cache",
                &session.optimized_model_cache,
                "this engine optimises while it loads and caches nothing",
            ),
        ];
        for (name, path, why) in paths {
            self.note_unused(name, path.as_ref().map(|path| path.display()), why);
        }
    }

    /// Notes the knobs of `io` of an engine that copies its inputs, and why it does.
    pub fn note_copied(&mut self, io: &IoConfig, why: &str) {
        self.note("io.io_binding", io.io_binding, false, why);
        self.note("io.zero_copy", io.zero_copy, false, why);
        for (name, asked) in [
            (
                "io.pre_allocated_input_buffers",
                io.pre_allocated_input_buffers,
            ),
            (
                "io.pre_allocated_output_buffers",
                io.pre_allocated_output_buffers,
            ),
        ] {
            self.note(name, asked, 0, "buffers are made as they are needed");
        }
    }

    /// Notes a knob that is its own explanation: the configuration, or else `default`.
    pub fn note_own<T: fmt::Display>(
        &mut self,
        name: &'static str,
        asked: Option<&T>,
        used: impl fmt::Display,
        default: &str,
    ) {
        let why = if asked.is_some() {
            "the configuration"
        } else {
            default
        };
        self.note(name, asked, used, why);
    }
}

impl<'a> IntoIterator for &'a EffectiveConfig {
    type Item = &'a Knob;
    type IntoIter = std::slice::Iter<'a, Knob>;

    fn into_iter(self) -> Self::IntoIter {
        self.knobs.iter()
    }
}

/// One knob a line: `text.max_length = 256 (sentence_bert_config.json)`.
impl fmt::Display for EffectiveConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for knob in &self.knobs {
            write!(f, "{} = {} ({}", knob.name, knob.used, knob.why)?;
            match &knob.asked {
                Some(asked) if !knob.honoured => writeln!(f, "; asked for {asked})")?,
                _ => writeln!(f, ")")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_honoured_stands_out() {
        let mut effective = EffectiveConfig::default();
        effective.note("a", Some(4), 4, "the configuration");
        effective.note("b", Some(4), 1, "browsers have one thread");
        effective.note("c", None::<usize>, 7, "the default");
        assert_eq!(
            effective
                .not_honoured()
                .map(|knob| &*knob.name)
                .collect::<Vec<_>>(),
            ["b"]
        );
        assert_eq!(
            effective.to_string(),
            "a = 4 (the configuration)\nb = 1 (browsers have one thread; asked for 4)\nc = 7 (the default)\n"
        );
        assert_eq!(
            serde_json::to_value(&effective).unwrap()[1]["honoured"],
            false
        );
    }
}
