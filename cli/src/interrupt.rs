//! Ctrl-C: stop the work, keep what was written. A second Ctrl-C ends the program at once.

use isovec::Cancel;

use crate::error::{CliError, Result};

/// A cancellation that Ctrl-C triggers.
pub(crate) fn on_ctrl_c() -> Result<Cancel> {
    let cancel = Cancel::new();
    let handler = cancel.clone();
    ctrlc::set_handler(move || {
        if handler.is_cancelled() {
            std::process::exit(130);
        }
        handler.cancel();
    })
    .map_err(|error| CliError::Usage(format!("Ctrl-C cannot be caught: {error}")))?;
    Ok(cancel)
}
