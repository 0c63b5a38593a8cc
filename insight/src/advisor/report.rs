//! The result of an analysis.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::context::Part;
use super::suggestion::{Category, Difficulty, Impact, Suggestion, VectorChange};
use super::trial::Verdict;

/// The findings of the rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OptimizationReport {
    /// Changes that the evidence speaks for, those that promise most first.
    pub suggestions: Vec<Suggestion>,
    /// Rules that could not run, and the parts that they lacked.
    pub not_judged: Vec<NotJudged>,
    /// Custom rules that panicked.
    pub failed: Vec<FailedRule>,
    /// Rules that looked at everything they look at.
    pub judged: usize,
    /// Suggestions that [`leave_out_below`](Self::leave_out_below) took out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A rule that could not judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotJudged {
    /// The rule.
    pub rule: String,
    /// The parts of the context that it lacked.
    pub lacks: Vec<Part>,
}

/// A rule that panicked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRule {
    /// The rule.
    pub rule: String,
    /// Its message.
    pub message: String,
}

impl OptimizationReport {
    /// Suggestions of high and critical impact.
    pub fn high_impact_suggestions(&self) -> impl Iterator<Item = &Suggestion> {
        self.suggestions
            .iter()
            .filter(|suggestion| suggestion.impact >= Impact::High)
    }

    /// Suggestions about one thing.
    pub fn suggestions_by_category(&self, category: Category) -> impl Iterator<Item = &Suggestion> {
        self.suggestions
            .iter()
            .filter(move |suggestion| suggestion.category == category)
    }

    /// Suggestions that are a matter of a knob.
    pub fn easy_suggestions(&self) -> impl Iterator<Item = &Suggestion> {
        self.suggestions
            .iter()
            .filter(|suggestion| suggestion.difficulty == Difficulty::Easy)
    }

    /// The suggestion of that name.
    pub fn suggestion(&self, id: &str) -> Option<&Suggestion> {
        self.suggestions
            .iter()
            .find(|suggestion| suggestion.id == id)
    }

    /// Adds other suggestions, in order.
    pub fn add(&mut self, suggestions: impl IntoIterator<Item = Suggestion>) {
        self.suggestions.extend(suggestions);
        self.sort();
    }

    /// Leaves out suggestions of lower impact.
    pub fn leave_out_below(&mut self, least: Impact) {
        let found = self.suggestions.len();
        self.suggestions
            .retain(|suggestion| suggestion.impact >= least);
        self.left_out += found - self.suggestions.len();
    }

    /// The missing parts of the context, each once, with the way to get it.
    pub fn missing(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = self
            .not_judged
            .iter()
            .flat_map(|rule| rule.lacks.iter().copied())
            .collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// Puts those that promise most first; what was tried and rejected goes last.
    pub(super) fn sort(&mut self) {
        let rejected = |suggestion: &Suggestion| match &suggestion.verified {
            // It was not to become faster.
            Some(trial) if suggestion.category == Category::Memory => {
                trial.verdict == Verdict::OtherVectors
            }
            // Its vectors are others by design.
            Some(trial) if suggestion.recipe.is_some() => trial.is_faster() != Some(true),
            Some(trial) => trial.verdict != Verdict::Better,
            None => false,
        };
        self.suggestions.sort_by(|a, b| {
            let by_speed = |suggestion: &Suggestion| suggestion.expected.speedup.unwrap_or(1.0);
            rejected(a)
                .cmp(&rejected(b))
                .then(b.impact.cmp(&a.impact))
                .then(by_speed(b).total_cmp(&by_speed(a)))
                .then(a.difficulty.cmp(&b.difficulty))
                .then(a.id.cmp(&b.id))
        });
    }

    /// The report for people, as markdown.
    pub fn to_markdown(&self) -> String {
        let mut page = String::from("# What would make it better\n");
        if self.left_out > 0 {
            let _ = writeln!(
                page,
                "\nLeft out because of a lower impact than requested: {}.",
                self.left_out
            );
        } else if self.suggestions.is_empty() {
            let _ = match self.judged {
                0 => writeln!(page, "\nNobody knows: there was nothing to look at."),
                rules => writeln!(
                    page,
                    "\nNothing: none of the {rules} rules that could judge found anything."
                ),
            };
        }
        for (place, suggestion) in self.suggestions.iter().enumerate() {
            write(&mut page, place + 1, suggestion);
        }
        let missing = self.missing();
        if !missing.is_empty() {
            let _ = writeln!(page, "\n## What was not looked at\n");
            for part in missing {
                let lack = |rule: &&NotJudged| rule.lacks.contains(&part);
                let rules = self.not_judged.iter().filter(lack);
                let rules: Vec<&str> = rules.map(|rule| &*rule.rule).collect();
                let _ = writeln!(
                    page,
                    "- no `{}` ({}): {}",
                    part.name(),
                    part.hint(),
                    rules.join(", ")
                );
            }
        }
        for failed in &self.failed {
            let _ = writeln!(
                page,
                "\nThe rule `{}` panicked: {}",
                failed.rule, failed.message
            );
        }
        page
    }
}

fn write(page: &mut String, place: usize, suggestion: &Suggestion) {
    let _ = writeln!(page, "\n## {place}. {}\n", suggestion.title);
    let _ = writeln!(
        page,
        "`{}`: {} impact, {} to do, {}",
        suggestion.id, suggestion.impact, suggestion.difficulty, suggestion.category
    );
    let about_memory = suggestion.category == Category::Memory;
    match &suggestion.verified {
        Some(trial) if about_memory => {
            let _ = writeln!(page, "\n**Measured:** {}", trial.figures());
        }
        // Its vectors are others by design: whether they are near enough is for whoever searches with them to say.
        Some(trial) if suggestion.recipe.is_some() => {
            let verdict = match trial.is_faster() {
                Some(true) => "faster",
                Some(false) => "rejected",
                None => "rejected, no difference can be shown",
            };
            let _ = writeln!(page, "\n**Measured:** {verdict}: {}", trial.figures());
        }
        Some(trial) => {
            let _ = writeln!(page, "\n**Measured:** {trial}");
        }
        None => {}
    }
    if let Some(quality) = &suggestion.quality {
        let _ = writeln!(page, "\nVectors before and after: {quality}.");
    }
    if let Some(sizes) = &suggestion.sizes {
        let _ = writeln!(
            page,
            "\nThe model was made for this trial, with these texts, and is gone: {sizes}."
        );
    }
    // A trial measures time and vectors.
    if suggestion.verified.is_none() || about_memory {
        let _ = writeln!(
            page,
            "\n**Expected** (not measured): {}. {}",
            suggestion.expected.improvement, suggestion.expected.reason
        );
    }
    if !suggestion.evidence.is_empty() {
        let _ = writeln!(page, "\nEvidence:\n");
        for evidence in &suggestion.evidence {
            let _ = writeln!(page, "- `{}`: {}", evidence.what, evidence.value);
        }
    }
    if !suggestion.steps.is_empty() {
        let _ = writeln!(page, "\nWhat to do:\n");
        for (number, step) in suggestion.steps.iter().enumerate() {
            let _ = writeln!(page, "{}. {step}", number + 1);
        }
    }
    for (language, code) in [
        ("rust", &suggestion.example.rust),
        ("ts", &suggestion.example.typescript),
    ] {
        if !code.is_empty() {
            let _ = writeln!(page, "\n```{language}\n{code}\n```");
        }
    }
    match suggestion.vectors {
        VectorChange::None => {}
        VectorChange::Precision => page.push_str(
            "\nVectors change in precision: they compare with those before within a wider bound.\n",
        ),
        VectorChange::Identity => {
            page.push_str("\nVectors change: embed all earlier texts again.\n");
        }
    }
    for warning in &suggestion.warnings {
        let _ = writeln!(page, "\n> {warning}");
    }
}
