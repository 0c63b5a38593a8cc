//! The page that the model runs in.

use super::{BuiltIn, Part, rule};
use crate::advisor::context::AnalysisContext;
use crate::advisor::suggestion::{Category, Difficulty, Suggestion};

pub(super) const NOT_ISOLATED: BuiltIn = rule(
    "page-not-isolated",
    &[Part::Hardware, Part::Provider],
    not_isolated,
);

fn not_isolated(context: &AnalysisContext) -> Option<Suggestion> {
    let isolated = context.isolated()?;
    let cores = context.cores()?;
    if isolated || cores < 2 || !context.on_processor() {
        return None;
    }
    let suggestion = Suggestion::new(
        "page-not-isolated",
        Category::Browser,
        "Isolate the page, so that isovec may use threads",
    )
    .with_difficulty(Difficulty::Medium)
    .because("hardware.page.cross_origin_isolated", "false")
    .because("hardware.cpu", format!("{cores} cores"))
    .expecting_speedup(
        1.4,
        "browsers share memory between workers in isolated pages only; 2 threads were 1.44 times as fast as one (benches/RESULTS.md)",
    )
    .step("Serve the page with `Cross-Origin-Opener-Policy: same-origin` and `Cross-Origin-Embedder-Policy: require-corp`.")
    .step("Give resources from other origins `Cross-Origin-Resource-Policy: cross-origin`, or load it with `crossorigin`.")
    .warning("An embedded page of another origin (a video, a payment form) has to allow it, or does not load any more.");
    Some(suggestion)
}
