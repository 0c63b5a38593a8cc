//! `isovec ocr IMAGE...`.

use isovec::blocking::TextReader;
use isovec::{Cancel, ModelSource, Picture};

use crate::args::Ocr;
use crate::error::{CliError, Result};
use crate::in_place::Draft;
use crate::output::texts;
use crate::{interrupt, model, pictures};

/// Where set-up puts the networks, within its cache.
const SET_UP: &str = "models/pp-ocrv4";

pub(crate) fn run(args: &Ocr) -> Result<()> {
    let out = args.out.as_deref();
    let format = texts::format(args.format, out)?;
    let paths = pictures::collect(&args.images, out)?;
    let cancel = interrupt::on_ctrl_c()?;
    let reader = load(args, &cancel)?;
    let draft = out.map(Draft::create).transpose()?;
    let sink = texts::open(format, draft.as_ref())?;
    let results = paths.iter().map(|path| {
        cancel.check()?;
        reader.read_one(Picture::open(path)?)
    });
    pictures::write(&paths, results, sink, draft, None)?.whole()
}

fn load(args: &Ocr, cancel: &Cancel) -> Result<TextReader> {
    let mut builder = TextReader::builder(source(args)?).config(args.knobs.embedding_config()?);
    if let Some(file) = &args.detector {
        builder = builder.detector(file);
    }
    if let Some(file) = &args.orientation {
        builder = builder.orientation(file);
    }
    if let Some(file) = &args.recognizer {
        builder = builder.recognizer(file);
    }
    if args.upright {
        builder = builder.upright();
    }
    if let Some(score) = args.min_score {
        builder = builder.min_score(score);
    }
    let builder = builder.progress(model::bar()).cancel(cancel.clone());
    builder.load().map_err(|error| args.knobs.failed(error))
}

/// The networks that were named, else those that set-up has fetched.
fn source(args: &Ocr) -> Result<ModelSource> {
    if let Some(model) = &args.model {
        return Ok(ModelSource::from(model));
    }
    let folder = isovec::cache_dir().map(|cache| cache.join(SET_UP));
    match folder.filter(|folder| folder.is_dir()) {
        Some(folder) => Ok(ModelSource::from(folder)),
        None => Err(CliError::Usage(
            "name the folder of PP-OCR's three ONNX files with --model; the Python package rapidocr-onnxruntime 1.4.4 has them in its folder `models`".into(),
        )),
    }
}
