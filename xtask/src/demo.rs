//! `cargo xtask demo`: real text, the real model, both engines, and how far apart they are.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::process::{Run, cargo};
use crate::workspace::Workspace;
use crate::{report, setup};

/// The two engines, by the names that `--engine` takes.
const ENGINES: [&str; 2] = ["portable", "onnxruntime"];

/// What is looked for in the project's own documents: questions that share few words with the
/// places that answer them.
const QUERIES: [&str; 3] = [
    "Will my search keep working when vectors come from another machine?",
    "where do pooling and normalisation happen",
    "a browser without a graphics card",
];

/// The engines agree when no component differs by more (the project's bound for fp32).
const LARGEST_DIFFERENCE: f64 = 2e-6;

/// Sets up what the demo needs, and shows it.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    setup::run(workspace, setup::DEMO)?;
    show(workspace)
}

/// Builds the program, searches this repository's documents and compares both engines' vectors.
pub(crate) fn show(workspace: &Workspace) -> Result<()> {
    let program = light(workspace)?;
    let documents = documents(&workspace.root)?;
    let config = vector_cache(&workspace.target.join("demo"))?;

    for query in QUERIES {
        for engine in ENGINES {
            println!();
            Run::new(workspace, &program)?
                .args(["search", query])
                .args(&documents)
                .args(["--engine", engine, "--top-k", "3", "--config"])
                .args([&config])
                .show()?;
        }
    }

    println!("\nThe same texts through both engines:");
    let mut vectors = Vec::new();
    for engine in ENGINES {
        let answer = Run::new(workspace, &program)?
            .args(["embed", "--engine", engine, "--format", "jsonl"])
            .args(QUERIES)
            .read()?;
        let rows = embeddings(&answer)?;
        println!(
            "  {engine}: {} vectors of {} components",
            rows.len(),
            rows.first().map_or(0, Vec::len)
        );
        vectors.push(rows);
    }
    let [a, b] = &vectors[..] else {
        bail!("two engines were to be compared")
    };
    let difference = largest_difference(a, b)?;
    println!("  largest difference of a component: {difference:.1e}");
    if difference > LARGEST_DIFFERENCE {
        bail!(
            "the engines differ by {difference:e}, more than {LARGEST_DIFFERENCE:e}: one of them is wrong"
        );
    }
    Ok(())
}

/// Writes a configuration that caches vectors on disk, so that each engine embeds the documents only once. Empties the
/// cache first, so that the demo shows vectors of the program that it has just built.
fn vector_cache(folder: &Path) -> Result<PathBuf> {
    let vectors = folder.join("vectors");
    if vectors.exists() {
        fs::remove_dir_all(&vectors)
            .with_context(|| format!("cannot empty {}", vectors.display()))?;
    }
    let config = folder.join("search.json");
    let knobs = json!({"embedding_cache": {"disk": 64 << 20, "folder": vectors}});
    fs::write(&config, knobs.to_string())
        .with_context(|| format!("cannot write {}", config.display()))?;
    Ok(config)
}

/// Builds the program with what a search in one's own files needs, half of its crates, and says where it is.
fn light(workspace: &Workspace) -> Result<PathBuf> {
    report::word(
        "building the program isovec without what a search does not need (the first time takes minutes)",
    );
    cargo(workspace)?
        .args(["build", "--package", "isovec-cli", "--bin", "isovec"])
        .args(["--no-default-features", "--profile", "demo"])
        .show()?;
    Ok(program_in(&workspace.target, "demo", "isovec"))
}

/// Builds the program with all that it has, and says where it is.
pub(crate) fn program(workspace: &Workspace) -> Result<PathBuf> {
    built(workspace, "isovec")
}

/// A program of the workspace, built with the features that the workspace has as a whole.
pub(crate) fn built(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    report::word(&format!(
        "building the program {name} (the first time takes minutes)"
    ));
    cargo(workspace)?
        .args(["build", "--workspace", "--bin", name])
        .show()?;
    Ok(program_in(&workspace.target, "debug", name))
}

fn program_in(target: &Path, profile: &str, name: &str) -> PathBuf {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    target.join(profile).join(file)
}

/// The documents that are searched: what stands at the root and under `docs`.
fn documents(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in [root.to_path_buf(), root.join("docs")] {
        if !folder.is_dir() {
            continue;
        }
        for entry in folder
            .read_dir()
            .with_context(|| format!("{} cannot be read", folder.display()))?
        {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "md") {
                found.push(
                    path.strip_prefix(root)
                        .map(Path::to_path_buf)
                        .unwrap_or(path),
                );
            }
        }
    }
    if found.is_empty() {
        bail!("there are no documents to search in {}", root.display());
    }
    found.sort();
    Ok(found)
}

/// The vectors in the program's JSON lines.
fn embeddings(answer: &str) -> Result<Vec<Vec<f64>>> {
    answer
        .lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).context("a row is no JSON")?;
            row["embedding"]
                .as_array()
                .context("a row has no \"embedding\"")?
                .iter()
                .map(|x| x.as_f64().context("a component is no number"))
                .collect()
        })
        .collect()
}

fn largest_difference(a: &[Vec<f64>], b: &[Vec<f64>]) -> Result<f64> {
    if a.is_empty() || a.len() != b.len() || a.iter().zip(b).any(|(a, b)| a.len() != b.len()) {
        bail!("the engines gave different numbers of vectors or components");
    }
    Ok(a.iter()
        .flatten()
        .zip(b.iter().flatten())
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_read_and_compared() {
        let a = embeddings("{\"embedding\":[0.5,0.25],\"text\":\"a\"}\n{\"embedding\":[1,0]}\n")
            .unwrap();
        let b = embeddings("{\"embedding\":[0.5,0.5]}\n{\"embedding\":[1,-0.125]}\n").unwrap();
        assert_eq!(largest_difference(&a, &b).unwrap(), 0.25);
        assert!(largest_difference(&a, &b[..1]).is_err());
        assert!(largest_difference(&[], &[]).is_err());
        assert!(embeddings("{\"embedding\":[null]}").is_err());
        assert!(embeddings("text").is_err());
    }

    #[test]
    fn documents_are_the_markdown_at_the_root_and_in_docs() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("docs")).unwrap();
        for name in ["README.md", "docs/a.md", "Cargo.toml"] {
            std::fs::write(dir.path().join(name), "text").unwrap();
        }
        let found = documents(dir.path()).unwrap();
        assert_eq!(
            found,
            [
                PathBuf::from("README.md"),
                PathBuf::from("docs").join("a.md")
            ]
        );
        assert!(documents(&dir.path().join("docs/none")).is_err());
    }
}
