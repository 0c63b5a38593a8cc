//! The bindings that the TypeScript face (`bindings/js/ts`) stands on. Nothing here is meant to be called
//! by hand: names are raw, errors are plain `Error` objects with a `kind`.

mod choice;
mod files;
mod model;
mod panic;
mod rows;

pub use choice::choose_files;
pub use model::{RawCancel, RawModel};
pub use panic::last_panic;
pub use rows::RawRows;
