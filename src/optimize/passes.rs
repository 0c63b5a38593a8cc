//! What the report says of a simplified graph.

use isovec_optimize::simplify::Passed;

use super::Step;

/// Passes that were asked for, those that found something and those that did not.
pub(super) fn step(passed: &[Passed], nodes: usize) -> Step {
    if passed.is_empty() {
        return Step::left_out("passes", "no level and no pass was asked for");
    }
    let left_out = passed.iter().filter(|pass| !pass.reason.is_empty());
    let left_out = left_out.map(|pass| format!("; {} left something: {}", pass.pass, pass.reason));
    let left_out: String = left_out.collect();
    let made = passed.iter().filter(|pass| pass.changes > 0);
    let made: Vec<String> = made
        .map(|pass| format!("{} {}", pass.pass, pass.nodes))
        .collect();
    if made.is_empty() {
        return Step::left_out(
            "passes",
            &format!("nothing was found that they change, in {nodes} nodes{left_out}"),
        );
    }
    let gone: usize = passed.iter().map(|pass| pass.nodes).sum();
    Step::done(
        "passes",
        format!(
            "{nodes} nodes became {}, by {}{left_out}",
            nodes.saturating_sub(gone),
            made.join(", ")
        ),
    )
}
