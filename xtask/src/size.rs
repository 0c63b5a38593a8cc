//! `cargo xtask size`: the size of the npm package's downloads.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::build::Packed;
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
    let loaded = loaded(&packed)?;
    let names: Vec<String> = packed.into_iter().map(|file| file.name).collect();
    print!("\n{}", table(&names, &sizes));
    println!(
        "\nwhat a page downloads with each build: the scripts that `isovec` and its workers import, and the build's own"
    );
    print!("{}", downloads(&names, &sizes, &loaded));
    println!(
        "\nthe package, file by file, and of it the modules that are fetched for models that are no encoders, and for models of pictures"
    );
    print!("{}", apart(&names, &sizes));
    Ok(())
}

/// The package without the modules that are fetched for some models alone, and those.
fn apart(names: &[String], sizes: &[Sizes]) -> String {
    let all = names.iter().zip(sizes);
    let (tract, others): (Vec<_>, Vec<_>) =
        all.partition(|(name, _)| name.starts_with("pkg/tract/"));
    let (image, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|(name, _)| name.starts_with("pkg/image/"));
    let row = |files: Vec<(&String, &Sizes)>| sum(files.into_iter().map(|(_, size)| *size));
    lines(&[
        ("without them", row(others)),
        ("tract", row(tract)),
        ("image", row(image)),
    ])
}

/// The scripts in `dist` that the package's main entry comes to: what it and its workers name, and so on.
fn loaded(packed: &[Packed]) -> Result<BTreeSet<String>> {
    let scripts: Vec<(&Packed, String)> = packed
        .iter()
        .filter(|file| file.name.ends_with(".js"))
        .filter_map(|file| Some((file, format!("\"./{}\"", file.name.strip_prefix("dist/")?))))
        .collect();
    let mut found = BTreeSet::new();
    let mut next: Vec<&Packed> = scripts
        .iter()
        .filter(|(file, _)| file.name == "dist/index.js")
        .map(|(file, _)| *file)
        .collect();
    while let Some(file) = next.pop() {
        if found.insert(file.name.clone()) {
            let text = fs::read_to_string(&file.path)
                .with_context(|| format!("cannot read {}", file.path.display()))?;
            let named = scripts.iter().filter(|(_, name)| text.contains(name));
            next.extend(named.map(|(file, _)| *file));
        }
    }
    Ok(found)
}

/// Of each build what a page downloads.
fn downloads(names: &[String], sizes: &[Sizes], loaded: &BTreeSet<String>) -> String {
    let is_code = |name: &str| name.ends_with(".js") || name.ends_with(".wasm");
    let rows = build::BUILDS.map(|build| {
        let own = format!("pkg/{build}/");
        let wanted =
            |name: &str| loaded.contains(name) || is_code(name) && name.starts_with(own.as_str());
        let files = names.iter().zip(sizes).filter(|(name, _)| wanted(name));
        (build, sum(files.map(|(_, size)| *size)))
    });
    lines(&rows)
}

fn sum(sizes: impl Iterator<Item = Sizes>) -> Sizes {
    sizes.fold(Sizes::default(), |sum, size| Sizes {
        raw: sum.raw + size.raw,
        gzip: sum.gzip + size.gzip,
        brotli: sum.brotli + size.brotli,
    })
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
    rows.push(("in all", sum(sizes.iter().copied())));
    lines(&rows)
}

fn lines(rows: &[(&str, Sizes)]) -> String {
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
    fn a_page_downloads_the_scripts_and_one_build() {
        let names = [
            "dist/index.js",
            "dist/advisor.js",
            "pkg/simd128/isovec_js_bg.wasm",
            "pkg/simd128/isovec_js.js",
            "pkg/relaxed/isovec_js_bg.wasm",
            "pkg/relaxed/package.json",
        ];
        let sizes: Vec<Sizes> = [1, 2, 4, 8, 16, 32]
            .map(|raw| Sizes {
                raw,
                ..Sizes::default()
            })
            .to_vec();
        let loaded = BTreeSet::from(["dist/index.js".to_owned()]);
        let text = downloads(&names.map(str::to_owned), &sizes, &loaded);
        let raw = |build: &str| {
            let line = text.lines().find(|line| line.starts_with(build)).unwrap();
            line.split_whitespace().nth(1).unwrap().to_owned()
        };
        assert_eq!((raw("simd128"), raw("relaxed")), ("13".into(), "17".into()));
    }

    #[test]
    fn a_page_loads_what_the_entry_and_its_workers_name() {
        let folder = tempfile::tempdir().unwrap();
        let packed = [
            ("dist/index.js", "import{a}from\"./chunk-1.js\";"),
            (
                "dist/chunk-1.js",
                "new URL(\"./worker.js\",import.meta.url)",
            ),
            ("dist/worker.js", "import\"./chunk-1.js\";"),
            ("dist/advisor.js", "import{a}from\"./chunk-1.js\";"),
            ("pkg/simd128/isovec_js.js", ""),
        ]
        .map(|(name, text)| {
            let path = folder.path().join(name.replace('/', "-"));
            fs::write(&path, text).unwrap();
            Packed {
                path,
                name: name.to_owned(),
            }
        });
        let loaded: Vec<String> = loaded(&packed).unwrap().into_iter().collect();
        assert_eq!(
            loaded,
            ["dist/chunk-1.js", "dist/index.js", "dist/worker.js"]
        );
    }

    #[test]
    fn what_few_pages_fetch_is_counted_apart() {
        let names = [
            "dist/index.js",
            "pkg/tract/isovec_js_bg.wasm",
            "README.md",
            "pkg/image/isovec_js_image_bg.wasm",
        ];
        let sizes = [1, 2, 4, 8].map(|raw| Sizes {
            raw,
            ..Sizes::default()
        });
        let text = apart(&names.map(str::to_owned), &sizes);
        let rows: Vec<&str> = text.lines().skip(1).collect();
        let raw = |row: &str| row.split_whitespace().rev().nth(2).unwrap().to_owned();
        assert!(rows[0].starts_with("without them") && raw(rows[0]) == "5");
        assert!(rows[1].starts_with("tract") && raw(rows[1]) == "2");
        assert!(rows[2].starts_with("image") && raw(rows[2]) == "8");
    }

    #[test]
    fn an_answer_without_sizes_is_an_error() {
        assert!(parse("{\"raw\":1}").is_err());
        assert!(parse("no").is_err());
    }
}
