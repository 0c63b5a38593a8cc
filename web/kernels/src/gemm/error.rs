//! The faults of a product's operands.

use std::fmt;

/// Operands that do not fit each other; the message says which, and by how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch(String);

impl Mismatch {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

/// Whether a matrix of rows lies within its values: `what` names it in the error.
pub(super) fn check_rows(
    what: &str,
    values: usize,
    rows: usize,
    columns: usize,
    stride: usize,
) -> Result<(), Mismatch> {
    if rows > 1 && stride < columns {
        return Err(Mismatch::new(format!(
            "rows of {what} overlap: they have {columns} values and are {stride} apart"
        )));
    }
    let needed = match rows {
        0 => Some(0),
        _ => (rows - 1)
            .checked_mul(stride)
            .and_then(|start| start.checked_add(columns)),
    };
    match needed {
        Some(needed) if needed <= values => Ok(()),
        _ => Err(Mismatch::new(format!(
            "{what} has {values} values, too few for {rows} rows of {columns}, {stride} apart"
        ))),
    }
}
