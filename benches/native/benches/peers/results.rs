//! The tables of `benches/RESULTS.md` that this program writes.

use std::time::SystemTime;

use isovec_bench::AnyError;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../RESULTS.md");

/// Puts a table in the place of the one that stands there, between `<!-- NAME -->` and
/// `<!-- /NAME -->`, with the day and the machine below it.
pub(crate) fn write(name: &str, table: &str) -> Result<(), AnyError> {
    let text = std::fs::read_to_string(PATH)?;
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let parts = text.split_once(&open).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&close)?;
        Some((before, after))
    });
    let Some((before, after)) = parts else {
        return Err(format!("benches/RESULTS.md has no place for {name}").into());
    };
    let below = format!(
        "Written by `cargo xtask bench peers`: {}.",
        day_and_machine()
    );
    std::fs::write(
        PATH,
        format!("{before}{open}{table}\n{below}\n{close}{after}"),
    )?;
    Ok(())
}

fn day_and_machine() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let day = now.split('T').next().unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or(std::env::consts::ARCH, |model| {
        model.trim_matches([' ', '\t', ':'])
    });
    format!("{day}, {cores} cores, {model}, {}", std::env::consts::OS)
}
