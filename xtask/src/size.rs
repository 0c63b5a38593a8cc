//! `cargo xtask size`: what a user of the npm package downloads.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process::Run;
use crate::workspace::Workspace;
use crate::{build, report, setup};

/// Bytes of one file: as it is, and as servers send it.
#[derive(Clone, Copy, Default)]
struct Sizes {
    raw: u64,
    gzip: u64,
    brotli: u64,
}

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    setup::run(workspace, setup::NPM)?;
    build::npm(workspace)?;
    let packed = build::pack(workspace)?;
    let script = workspace.root.join("xtask/src/size.mjs");
    report::word("compressing (brotli at its highest level takes a while)");
    let answer = Run::new(workspace, "node")?
        .args([&script])
        .args(packed.iter().map(|file| &file.path))
        .read()?;
    let sizes = parse(&answer)?;
    if sizes.len() != packed.len() {
        bail!("node measured {} of {} files", sizes.len(), packed.len());
    }
    let names: Vec<String> = packed.into_iter().map(|file| file.name).collect();
    print!("\n{}", table(&names, &sizes));
    Ok(())
}

fn parse(answer: &str) -> Result<Vec<Sizes>> {
    answer
        .lines()
        .map(|line| {
            let value: Value = serde_json::from_str(line).context("node wrote no JSON")?;
            let size = |name: &str| {
                value[name]
                    .as_u64()
                    .with_context(|| format!("node gave no {name} size"))
            };
            Ok(Sizes {
                raw: size("raw")?,
                gzip: size("gzip")?,
                brotli: size("brotli")?,
            })
        })
        .collect()
}

/// Largest first, then the sum.
fn table(names: &[String], sizes: &[Sizes]) -> String {
    let mut rows: Vec<(&str, Sizes)> = names
        .iter()
        .map(String::as_str)
        .zip(sizes.iter().copied())
        .collect();
    rows.sort_by(|a, b| b.1.raw.cmp(&a.1.raw).then(a.0.cmp(b.0)));
    let total = sizes.iter().fold(Sizes::default(), |sum, size| Sizes {
        raw: sum.raw + size.raw,
        gzip: sum.gzip + size.gzip,
        brotli: sum.brotli + size.brotli,
    });
    rows.push(("in all", total));
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = format!(
        "{:width$}  {:>12} {:>12} {:>12}\n",
        "bytes", "raw", "gzip", "brotli"
    );
    for (name, size) in rows {
        text.push_str(&format!(
            "{name:width$}  {:>12} {:>12} {:>12}\n",
            size.raw, size.gzip, size.brotli
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_summed() {
        let sizes =
            parse("{\"raw\":1,\"gzip\":2,\"brotli\":3}\n{\"raw\":10,\"gzip\":20,\"brotli\":30}\n")
                .unwrap();
        let text = table(&["small".into(), "large".into()], &sizes);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|l| l.split_whitespace().collect())
            .collect();
        assert_eq!(rows[1], ["large", "10", "20", "30"]);
        assert_eq!(rows[2], ["small", "1", "2", "3"]);
        assert_eq!(rows[3], ["in", "all", "11", "22", "33"]);
    }

    #[test]
    fn an_answer_without_sizes_is_an_error() {
        assert!(parse("{\"raw\":1}").is_err());
        assert!(parse("no").is_err());
    }
}
