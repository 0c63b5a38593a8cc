//! For the npm package, which fetches files itself.

pub use isovec_engine::choice::next_told;
