//! The text of pictures, against what rapidocr reads of the same pages. `tests/data/pages/make.py` has written both;
//! `ISOVEC_OCR_PAGES` names a folder of other pages that it has written.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use isovec::blocking::{TextReader, TextReaderBuilder};
use isovec::image::{Channels, DecodeOptions, Image};
use isovec::{Dtype, EmbeddingConfig, Error, Picture, PictureText, TextLine};
use isovec_test_support::{Which, data, engines, pp_ocr};
use serde_json::Value;

use crate::configuration_reference::documented;

/// How far a corner may be from the peer's, in pixels.
const NEAR: f32 = 1.0;

fn builder(folder: &Path) -> TextReaderBuilder {
    let config = Which::OnnxRuntime.configure(EmbeddingConfig::default());
    TextReader::builder(folder).config(config)
}

/// A reader on ONNX Runtime, where both are there.
fn reader() -> Option<(TextReader, PathBuf)> {
    let folder = pp_ocr()?;
    if !engines().contains(&Which::OnnxRuntime) {
        return None;
    }
    Some((builder(&folder).load().unwrap(), folder))
}

/// The pages, each with what the peer read of it.
fn pages(folder: &Path) -> Vec<(PathBuf, Value)> {
    let file = fs::read(folder.join("rapidocr.json")).unwrap();
    let pages: Vec<Value> = serde_json::from_slice(&file).unwrap();
    let pages = pages.into_iter().map(|page| {
        let name = page["file"].as_str().unwrap().to_owned();
        (folder.join(name), page)
    });
    pages.collect()
}

fn page(number: usize) -> PathBuf {
    data("pages").join(format!("{number:03}.png"))
}

/// `tests/data/hocr`: the npm package's tests have the same pages and the same document.
#[test]
fn pages_become_the_document_of_every_binding() {
    let read = |name: &str| fs::read_to_string(data("hocr").join(name)).unwrap();
    let pages: Vec<(String, Value)> = serde_json::from_str(&read("pages.json")).unwrap();
    let line = |line: &Value| TextLine {
        text: line["text"].as_str().unwrap().into(),
        score: line["score"].as_f64().unwrap(),
        corners: serde_json::from_value(line["corners"].clone()).unwrap(),
    };
    let number = |value: &Value| value.as_u64().unwrap() as usize;
    let pages: Vec<(String, PictureText)> = pages
        .into_iter()
        .map(|(name, page)| {
            let text = PictureText {
                width: number(&page["width"]),
                height: number(&page["height"]),
                lines: page["lines"].as_array().unwrap().iter().map(line).collect(),
            };
            (name, text)
        })
        .collect();
    let document = isovec::hocr(pages.iter().map(|(name, page)| (&**name, page)));
    let wanted = read("pages.html").replace("VERSION", env!("CARGO_PKG_VERSION"));
    assert_eq!(document, wanted);
}

/// What differs between a page and the peer's.
fn differences(text: &PictureText, peer: &Value) -> Vec<String> {
    let lines = peer["lines"].as_array().unwrap();
    if lines.len() != text.lines.len() {
        return vec![format!("{} lines for {}", text.lines.len(), lines.len())];
    }
    let mut found = Vec::new();
    for (line, peer) in text.lines.iter().zip(lines) {
        let corners: [[f32; 2]; 4] = serde_json::from_value(peer["corners"].clone()).unwrap();
        let pairs = line
            .corners
            .as_flattened()
            .iter()
            .zip(corners.as_flattened());
        let far = pairs.fold(0.0_f32, |far, (one, other)| far.max((one - other).abs()));
        if far > NEAR {
            found.push(format!("{:?} is {far} from {corners:?}", line.corners));
        }
        if peer["text"] != line.text {
            found.push(format!("{:?} for {}", line.text, peer["text"]));
        }
        let score = peer["score"].as_f64().unwrap();
        if (line.score - score).abs() > 1e-3 {
            found.push(format!("{:?}: score {} for {score}", line.text, line.score));
        }
    }
    found
}

#[test]
fn pages_have_the_boxes_and_the_strings_of_rapidocr() {
    let Some((reader, _)) = reader() else { return };
    let folder = std::env::var_os("ISOVEC_OCR_PAGES").map_or_else(|| data("pages"), PathBuf::from);
    let (mut lines, mut wrong) = (0, Vec::new());
    let pages = pages(&folder);
    assert!(pages.len() > 5);
    for (path, peer) in &pages {
        let text = reader.read_one(Picture::open(path).unwrap()).unwrap();
        let size: (usize, usize) = serde_json::from_value(peer["size"].clone()).unwrap();
        assert_eq!((text.width, text.height), size);
        lines += text.lines.len();
        let found = differences(&text, peer).into_iter();
        wrong.extend(found.map(|found| format!("{}, {}: {found}", path.display(), peer["kind"])));
    }
    eprintln!(
        "{} pages, {lines} lines, {} differences",
        pages.len(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lines > 20);
}

#[test]
fn the_portable_engine_reads_the_same() {
    let Some(folder) = pp_ocr() else { return };
    let config = Which::Portable.configure(EmbeddingConfig::default());
    let reader = TextReader::builder(&*folder).config(config).load().unwrap();
    assert_eq!(reader.provider().engine, "portable");
    // The page with the fewest pixels that has text.
    let (path, peer) = pages(&data("pages")).swap_remove(6);
    let text = reader.read_one(Picture::open(path).unwrap()).unwrap();
    assert_eq!(differences(&text, &peer), Vec::<String>::new());
}

#[test]
fn a_line_that_stands_on_its_head_is_turned() {
    let Some((reader, folder)) = reader() else {
        return;
    };
    let picture = Picture::open(page(5)).unwrap();
    let turned = reader.read_one(picture.clone()).unwrap();
    let upright = builder(&folder).upright().load().unwrap();
    let as_it_is = upright.read_one(picture).unwrap();
    assert_ne!(as_it_is.plain(), turned.plain());
}

#[test]
fn files_that_are_another_network_are_refused() {
    let Some((_, folder)) = reader() else { return };
    let (detector, recognizer) = ("ch_PP-OCRv4_det_infer.onnx", "ch_PP-OCRv4_rec_infer.onnx");
    let refused = |builder: TextReaderBuilder, wanted: &str| {
        let error = builder.load().unwrap_err();
        assert_eq!(error.kind(), "UnsupportedModel", "{error}");
        assert!(error.to_string().contains(wanted), "{error}");
    };
    refused(
        builder(&folder).detector(recognizer),
        "not a detector of text",
    );
    refused(
        builder(&folder).orientation(detector),
        "not a classifier of upright lines",
    );
    refused(
        builder(&folder).recognizer(detector),
        "not a recogniser of lines",
    );
    let error = builder(&folder).detector("none.onnx").load().unwrap_err();
    assert_eq!(error.kind(), "MissingFile", "{error}");
    let error = builder(&folder).min_score(1.5).load().unwrap_err();
    assert!(matches!(error, Error::Config(_)), "{error}");
}

#[test]
fn every_knob_has_its_effect_said_and_those_of_texts_have_none() {
    let Some((_, folder)) = reader() else { return };
    let config = Which::OnnxRuntime
        .configure(EmbeddingConfig::default())
        .with_dtype(Dtype::F32)
        .with_max_length(9)
        .with_max_batch_size(2);
    let reader = TextReader::builder(folder).config(config).load().unwrap();
    let effective = reader.effective_config();
    let said: BTreeSet<&str> = effective.knobs().iter().map(|knob| &*knob.name).collect();
    assert_eq!(said.len(), effective.knobs().len());
    // Options of other providers stand there only where some are given.
    let mut documented = documented();
    documented.remove("providers.options");
    assert_eq!(said, documented);
    let unused: Vec<&str> = effective.not_honoured().map(|knob| &*knob.name).collect();
    assert_eq!(unused, ["text.max_length", "batching.max_batch_size"]);
    let file = &effective.get("model.onnx_file").unwrap().used;
    assert_eq!(file, "ch_PP-OCRv4_det_infer.onnx");
}

#[test]
fn what_cannot_be_read_is_named_by_its_place() {
    let Some((reader, folder)) = reader() else {
        return;
    };
    let dot = || Picture::from(Image::new(1, 1, Channels::Gray, vec![9]).unwrap());
    assert!(reader.read(&[dot(), dot()]).unwrap()[1].lines.is_empty());
    assert!(reader.read(&[]).unwrap().is_empty());
    let error = reader
        .read(&[dot(), Picture::from(vec![1_u8, 2, 3])])
        .unwrap_err();
    assert!(
        matches!(error, Error::Picture { picture: 1, .. }),
        "{error}"
    );
    let narrow = Image::new(1, 1999, Channels::Gray, vec![0; 1999]).unwrap();
    let error = reader.read(&[dot(), dot(), narrow.into()]).unwrap_err();
    assert!(
        matches!(error, Error::Reading { picture: 2, .. }),
        "{error}"
    );
    let limits = DecodeOptions {
        max_pixels: 100,
        ..DecodeOptions::default()
    };
    let strict = builder(&folder).decoding(limits).load().unwrap();
    let error = strict
        .read_one(Picture::open(page(0)).unwrap())
        .unwrap_err();
    assert_eq!(error.kind(), "Picture", "{error}");
    assert!(error.to_string().contains("allowed 100"), "{error}");
}

#[test]
fn lines_of_a_low_score_are_left_out() {
    let Some((reader, folder)) = reader() else {
        return;
    };
    let picture = Picture::open(page(0)).unwrap();
    let all = reader.read_one(picture.clone()).unwrap();
    let (least, most) = all
        .lines
        .iter()
        .fold((1.0_f64, 0.0_f64), |(least, most), line| {
            (least.min(line.score), most.max(line.score))
        });
    let strict = builder(&folder)
        .min_score((least + most) / 2.0)
        .load()
        .unwrap();
    let kept = strict.read_one(picture).unwrap();
    assert!(!kept.lines.is_empty() && kept.lines.len() < all.lines.len());
}
