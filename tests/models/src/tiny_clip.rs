//! The model in `tests/data/tiny-clip`: a seeded CLIP with the tokenizer of the tiny BERT, and its vectors at f64 for some
//! texts, and for some of the pictures in `input/image/tests/data`.

use std::collections::BTreeMap;

use isovec_image::{ReadOptions, Reader};
use serde_json::json;

use crate::checkpoint;
use crate::picture_files::stored;
use crate::pictures::{self, SIZE};
use crate::tiny::{TEXTS, pretty, tokenise, tokenizer, vocabulary};

/// Pictures of every format, wide and high, gray and with alpha, turned and as they are.
const PICTURES: [&str; 12] = [
    "jpeg/420-20-baseline-2x3",
    "jpeg/422-75-progressive-17x33",
    "jpeg/gray-90-progressive-31x9",
    "jpeg/turn-xmp",
    "png/RGBA-48x40",
    "png/sixteen2-interlaced-7x5",
    "png/palette4-alpha-interlaced-17x33",
    "webp/lossy-60-33x65",
    "webp/lossless-31x9",
    "gif/within-transparent-48x40",
    "resize/200x150",
    "resize/100x7",
];

/// Every file of the folder, by its path.
pub fn files() -> BTreeMap<String, Vec<u8>> {
    let (model, vocabulary) = (pictures::clip(), vocabulary());
    let preprocessor = pretty(&json!({
        "image_processor_type": "ViTImageProcessor",
        "size": {"height": SIZE.0, "width": SIZE.1},
        "resample": 3,
    }));
    let reader = Reader::new(&preprocessor, None, &ReadOptions::default()).expect("a preprocessor");
    let pictures = stored(&PICTURES).into_iter().map(|picture| {
        let values = reader.file(&picture.file).expect("a picture").data;
        let mut about = picture.about;
        about["vector"] = json!(pictures::vector(&model, &values));
        about
    });
    let texts = TEXTS.into_iter().filter_map(|text| {
        let ids = tokenise(&vocabulary, text);
        let whole = ids.len() <= pictures::POSITIONS;
        whole.then(|| json!({"text": text, "vector": pictures::text_vector(&model, &ids)}))
    });
    let reference = json!({
        "made_by": "cargo run -p isovec-test-models --example tiny_model",
        "pictures": pictures.collect::<Vec<_>>(),
        "texts": texts.collect::<Vec<_>>(),
    });
    BTreeMap::from([
        ("config.json".into(), pretty(&model.config)),
        (
            "model.safetensors".into(),
            model.file(checkpoint::Stored::F32),
        ),
        ("preprocessor_config.json".into(), preprocessor),
        ("tokenizer.json".into(), pretty(&tokenizer(&vocabulary))),
        ("reference.json".into(), pretty(&reference)),
    ])
}
