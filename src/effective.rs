//! What the configuration came to: per knob what was asked, what is used, and why.

use std::fmt;

use isovec_engine::config::EngineChoice;
use isovec_engine::engine::Engine;
use serde::Serialize;

use crate::config::EmbeddingConfig;

/// Every knob of the configuration as it is in effect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct EffectiveConfig {
    knobs: Vec<Knob>,
}

/// One knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Knob {
    /// Its path in the configuration: `text.max_length`.
    pub name: &'static str,
    /// What the configuration asked for, if it did.
    pub asked: Option<String>,
    /// What is in effect.
    pub used: String,
    /// Where that comes from, or why it is not what was asked for.
    pub why: String,
    /// Whether what was asked for is in effect; true where nothing was asked.
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

    /// The knobs that were asked for and are not in effect.
    pub fn not_honoured(&self) -> impl Iterator<Item = &Knob> {
        self.knobs.iter().filter(|knob| !knob.honoured)
    }

    /// Notes a knob; it is honoured if what is used is what was asked for.
    pub(crate) fn note(
        &mut self,
        name: &'static str,
        asked: Option<impl fmt::Display>,
        used: impl fmt::Display,
        why: impl Into<String>,
    ) {
        let (asked, used) = (asked.map(|asked| asked.to_string()), used.to_string());
        let honoured = asked.as_ref().is_none_or(|asked| *asked == used);
        self.knobs.push(Knob {
            name,
            asked,
            used,
            why: why.into(),
            honoured,
        });
    }

    /// Notes the engine and what it makes of its own knobs.
    pub(crate) fn note_runtime(
        &mut self,
        config: &EmbeddingConfig,
        engine: &dyn Engine,
        why: String,
    ) {
        let asked = match config.runtime.engine {
            EngineChoice::Auto => None,
            EngineChoice::OnnxRuntime => Some("onnxruntime"),
            _ => Some("portable"),
        };
        let provider = engine.provider();
        self.note("engine", asked, &provider.engine, why);
        let library = config
            .runtime
            .onnxruntime_library
            .as_ref()
            .map(|path| path.display().to_string());
        if provider.engine == "onnxruntime" {
            let used = library
                .clone()
                .unwrap_or_else(|| "the one that was found".into());
            self.note_own(
                "onnxruntime_library",
                library.as_ref(),
                used,
                "ORT_DYLIB_PATH, set-up's cache, or linked",
            );
        } else {
            self.note(
                "onnxruntime_library",
                library,
                "none",
                format!("the engine {} has no use for it", provider.engine),
            );
        }
        let threads = engine.capabilities().intra_op_threads;
        let asked = config.runtime.session.intra_op_threads;
        let why = match asked {
            None => "the engine's default".to_owned(),
            Some(asked) if asked == threads => "the configuration".to_owned(),
            Some(_) => format!(
                "all that {} on {} can use",
                provider.engine, provider.provider
            ),
        };
        self.note("session.intra_op_threads", asked, threads, why);
    }

    /// Notes a knob that is its own explanation: the configuration, or else `default`.
    pub(crate) fn note_own<T: fmt::Display>(
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
                .map(|knob| knob.name)
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
