//! A suggestion of the advisor: one change, its evidence, and how to make it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::patch::Patch;
use super::remade::{Recipe, Sizes, VectorQuality};
use super::trial::TrialReport;

/// The category of a suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Category {
    /// Computing: providers, GPUs, fallbacks.
    Provider,
    /// Threads and runs at the same time.
    Threads,
    /// How texts are put together.
    Batching,
    /// Buffers, weights and free memory.
    Memory,
    /// The precision of weights and arithmetic.
    Precision,
    /// The model's graph and its operators.
    Graph,
    /// Results that are computed again.
    Cache,
    /// The page that the model runs in.
    Browser,
    /// A custom rule's own.
    Other,
}

/// How much a change is expected to bring, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Impact {
    /// Some percent, or tidiness.
    Low,
    /// From a tenth on.
    Medium,
    /// From a third on.
    High,
    /// Twice as fast or more, or something that does not work as it was meant to.
    Critical,
}

impl Impact {
    /// By how many times as fast it is expected to become.
    pub fn of_speedup(factor: f64) -> Self {
        match factor {
            factor if factor >= 1.95 => Self::Critical,
            factor if factor >= 1.3 => Self::High,
            factor if factor >= 1.1 => Self::Medium,
            _ => Self::Low,
        }
    }
}

/// How hard a change is to make, the easiest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Difficulty {
    /// A knob.
    Easy,
    /// Some lines of the program.
    Medium,
    /// Another model, machine or deployment.
    Hard,
}

/// The effect of a change on the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorChange {
    /// Nothing beyond the bound between engines.
    None,
    /// Another precision class: they still compare, within a wider bound.
    Precision,
    /// Other vectors: an index has to be embedded again.
    Identity,
}

/// Something that was counted or measured and speaks for a suggestion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// A path in the context, such as `stats.tokens.padding`.
    pub what: String,
    /// Its value, with its unit and the value that it is compared with.
    pub value: String,
}

/// The expected improvement of a change, before it is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// In words: "up to 1.6 times as many texts a second".
    pub improvement: String,
    /// Why.
    pub reason: String,
    /// The factor of the speed-up, if there is one and it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub speedup: Option<f64>,
}

/// The change as code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeExample {
    /// On the server.
    pub rust: String,
    /// In the browser.
    pub typescript: String,
}

/// One change that the evidence speaks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Suggestion {
    /// The rule's name, stable: `padding-waste`.
    pub id: String,
    /// The action, in a sentence.
    pub title: String,
    /// Its category.
    pub category: Category,
    /// How much it is expected to bring.
    pub impact: Impact,
    /// How hard it is.
    pub difficulty: Difficulty,
    /// The expected improvement, and its reason.
    pub expected: Expected,
    /// Its evidence.
    pub evidence: Vec<Evidence>,
    /// The steps, in order.
    pub steps: Vec<String>,
    /// The change as code.
    pub example: CodeExample,
    /// Warnings.
    pub warnings: Vec<String>,
    /// Its effect on the vectors.
    pub vectors: VectorChange,
    /// The change of the configuration, where it is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub patch: Option<Patch>,
    /// The model to make, where it is another model.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recipe: Option<Recipe>,
    /// The result of a trial; without it everything above is an expectation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub verified: Option<TrialReport>,
    /// How the vectors before and after compare, where a trial was made of a change that is to change them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub quality: Option<VectorQuality>,
    /// Bytes of the model before and after, where one was made for the trial.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sizes: Option<Sizes>,
}

impl Suggestion {
    /// A suggestion of that name with everything else at its mildest: low impact, easy, no patch.
    pub fn new(id: impl Into<String>, category: Category, title: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            category,
            impact: Impact::Low,
            difficulty: Difficulty::Easy,
            expected: Expected {
                improvement: String::new(),
                reason: String::new(),
                speedup: None,
            },
            evidence: Vec::new(),
            steps: Vec::new(),
            example: CodeExample::default(),
            warnings: Vec::new(),
            vectors: VectorChange::None,
            patch: None,
            recipe: None,
            verified: None,
            quality: None,
            sizes: None,
        }
    }

    /// Says how much it is expected to bring.
    #[must_use]
    pub fn with_impact(mut self, impact: Impact) -> Self {
        self.impact = impact;
        self
    }

    /// Says how hard it is.
    #[must_use]
    pub fn with_difficulty(mut self, difficulty: Difficulty) -> Self {
        self.difficulty = difficulty;
        self
    }

    /// Sets the expected improvement, and its reason.
    #[must_use]
    pub fn expecting(mut self, improvement: impl Into<String>, reason: impl Into<String>) -> Self {
        self.expected.improvement = improvement.into();
        self.expected.reason = reason.into();
        self
    }

    /// Says how many times as fast it should become; its impact follows from that.
    #[must_use]
    pub fn expecting_speedup(mut self, factor: f64, reason: impl Into<String>) -> Self {
        self.impact = Impact::of_speedup(factor);
        self.expected = Expected {
            improvement: format!("up to {factor:.1} times as fast"),
            reason: reason.into(),
            speedup: Some(factor),
        };
        self
    }

    /// Adds evidence.
    #[must_use]
    pub fn because(mut self, what: impl Into<String>, value: impl Into<String>) -> Self {
        self.evidence.push(Evidence {
            what: what.into(),
            value: value.into(),
        });
        self
    }

    /// Adds a step.
    #[must_use]
    pub fn step(mut self, step: impl Into<String>) -> Self {
        self.steps.push(step.into());
        self
    }

    /// Adds a warning.
    #[must_use]
    pub fn warning(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Sets its effect on the vectors.
    #[must_use]
    pub fn changing(mut self, vectors: VectorChange) -> Self {
        self.vectors = vectors;
        self
    }

    /// Shows the change as code, where it is more than a patch.
    #[must_use]
    pub fn with_example(mut self, rust: impl Into<String>, typescript: impl Into<String>) -> Self {
        self.example = CodeExample {
            rust: rust.into(),
            typescript: typescript.into(),
        };
        self
    }

    /// Makes it a change of the configuration; the step and the code that say so come with it.
    #[must_use]
    pub fn with_patch(mut self, patch: Patch) -> Self {
        self.steps.push(patch.in_words());
        self.example = patch.as_code();
        self.patch = Some(patch);
        self
    }

    /// Makes it another model; a trial makes it and compares it with the one that it is made of.
    #[must_use]
    pub fn with_recipe(mut self, recipe: Recipe) -> Self {
        self.recipe = Some(recipe);
        self
    }

    /// The configuration with this change in it.
    ///
    /// # Errors
    /// [`Error::Config`](isovec::Error::Config) when the result contradicts itself, or when this is not a change of
    /// the configuration; its steps then say what to do.
    pub fn apply(
        &self,
        config: &isovec::EmbeddingConfig,
    ) -> isovec::Result<isovec::EmbeddingConfig> {
        match &self.patch {
            Some(patch) => patch.apply(config),
            None => Err(isovec::Error::Config(vec![format!(
                "the suggestion {} is no change of the configuration; its steps say what to do",
                self.id
            )])),
        }
    }
}

macro_rules! lower_case {
    ($($type:ty { $($variant:ident => $name:literal),* $(,)? })*) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $(Self::$variant => $name),* })
            }
        }
    )*};
}

lower_case! {
    Category {
        Provider => "provider",
        Threads => "threads",
        Batching => "batching",
        Memory => "memory",
        Precision => "precision",
        Graph => "graph",
        Cache => "cache",
        Browser => "browser",
        Other => "other",
    }
    Impact { Low => "low", Medium => "medium", High => "high", Critical => "critical" }
    Difficulty { Easy => "easy", Medium => "medium", Hard => "hard" }
}
