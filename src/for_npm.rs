//! For the npm package, which fetches files itself.

pub use isovec_model::bundle::next_told;
