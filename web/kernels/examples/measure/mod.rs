//! What both measuring programs time.

pub(crate) mod ceiling;
pub(crate) mod product;
