//! The whole corpus through isovec and its peers, all-MiniLM-L6-v2, fp32, texts cut at 512 tokens. Every run is a
//! process of its own, so that its peak memory is its own too; they take turns. The results of all contestants go
//! into `benches/RESULTS.md`. Then isovec against one text at a time, band by band. Run it with `cargo xtask bench
//! peers`; arguments choose parts (`runs`, `bands`) and contestants.

mod bands;
mod contestants;
mod results;
mod runs;

use isovec_bench::{AnyError, PART};

/// Tokens that a model sees of a text: as many as all-MiniLM-L6-v2 has positions for.
const MAX_TOKENS: usize = 512;

fn main() -> Result<(), AnyError> {
    if let Ok(contestant) = std::env::var(PART) {
        return contestants::run(&contestant);
    }
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|name| !name.starts_with('-'))
        .collect();
    let wanted = |part: &str| {
        let mut parts = chosen
            .iter()
            .filter(|name| ["runs", "bands"].contains(&name.as_str()));
        parts.clone().next().is_none() || parts.any(|name| name == part)
    };
    if wanted("runs") {
        runs::compare(&chosen)?;
    }
    if wanted("bands") {
        bands::compare()?;
    }
    Ok(())
}
