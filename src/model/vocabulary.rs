//! Checks that a tokenizer belongs to a model.

use std::collections::HashSet;

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;

/// Rows of the table that the graph looks token ids up in.
pub(crate) fn embedding_rows(bundle: &ModelBundle) -> Option<usize> {
    let graph = bundle.graph.graph.as_ref()?;
    // Ids may be cast or renamed on their way to the table. Nodes come in topological order.
    let mut ids = HashSet::from(["input_ids"]);
    let mut tables = Vec::new();
    for node in &graph.node {
        let reads = |at: usize| {
            node.input
                .get(at)
                .is_some_and(|name| ids.contains(name.as_str()))
        };
        match node.op_type.as_str() {
            "Cast" | "Identity" if reads(0) => ids.extend(node.output.iter().map(String::as_str)),
            "Gather" if reads(1) => tables.extend(node.input.first().map(String::as_str)),
            _ => {}
        }
    }
    let initializer = |name: &str| {
        let tensor = graph
            .initializer
            .iter()
            .find(|tensor| tensor.name == name)?;
        tensor
            .dims
            .first()
            .and_then(|&rows| usize::try_from(rows).ok())
    };
    let weight = |name: &str| {
        let info = bundle
            .weights
            .weights()
            .iter()
            .find(|info| info.name == name)?;
        info.shape.first().copied()
    };
    tables
        .into_iter()
        .filter_map(|name| weight(name).or_else(|| initializer(name)))
        .min()
}

/// # Errors
/// [`EngineError::InvalidModel`] when the tokenizer has ids that the model has no row for.
pub(crate) fn check(origin: &str, max_id: u32, rows: Option<usize>) -> Result<(), EngineError> {
    match rows {
        Some(rows) if max_id as usize >= rows => Err(EngineError::invalid_model(
            origin,
            format!(
                "its tokenizer has ids up to {max_id}, and the model knows {rows} tokens; the tokenizer.json belongs to another model"
            ),
        )),
        _ => Ok(()),
    }
}
