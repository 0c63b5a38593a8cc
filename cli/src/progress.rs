//! Shows progress on a terminal. In a pipe it shows nothing: indicatif draws only if standard error is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Counts texts, whose number is known only for arguments.
pub(crate) fn texts(total: Option<u64>) -> ProgressBar {
    let bar = match total {
        Some(total) => ProgressBar::new(total)
            .with_style(style("{bar:30} {pos}/{len} texts, {per_sec}, {eta} left")),
        None => ProgressBar::new_spinner().with_style(style("{spinner} {pos} texts, {per_sec}")),
    };
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// Counts units of a job, and says how many rows they had.
#[cfg(feature = "jobs")]
pub(crate) fn units() -> ProgressBar {
    let bar =
        ProgressBar::no_length().with_style(style("{bar:30} {pos}/{len} units, {msg}, {eta} left"));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// Says what is under way.
pub(crate) fn steps() -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_style(style("{spinner} {msg}"));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// Counts bytes of a download.
pub(crate) fn bytes() -> ProgressBar {
    ProgressBar::no_length().with_style(style("{bar:30} {bytes}/{total_bytes} {msg}"))
}

fn style(template: &str) -> ProgressStyle {
    // The templates above are constants; a wrong one falls back to the plain bar.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
