//! Parts of a benchmark that run in a process of their own, for figures of memory.

use std::process::{Command, Stdio};

use crate::AnyError;

/// The variable that says what a process is to do which a benchmark has started.
pub const PART: &str = "ISOVEC_BENCH_PART";

/// Starts this program again for one part, and gives what it wrote. The program finds the part in [`PART`].
///
/// # Errors
/// When it cannot be started, fails, or writes no text.
pub fn run_part(part: &str) -> Result<String, AnyError> {
    let output = Command::new(std::env::current_exe()?)
        .env(PART, part)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("the part {part} ended with {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
