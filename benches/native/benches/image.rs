//! Pictures: resizing against `fast_image_resize`, decoding and single operations beside copying memory, and a model of the
//! size of CLIP's ViT-B/32 with seeded weights on the portable engine against ONNX Runtime, one thread each. Run it with
//! `cargo xtask bench image`, or parts of it by their names: `cargo bench -p isovec-bench --bench image -- resizing`.

use std::hint::black_box;
use std::time::Instant;

use fast_image_resize::images::ImageRef;
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use isovec::blocking::ImageEmbedder;
use isovec::config::EngineChoice;
use isovec::image::ops::{self, OptLevel};
use isovec::image::{
    Channels, DecodeOptions, Filter, Image, Processor, Reference, Weights, decode, resize,
};
use isovec::{EmbeddingConfig, ModelSource, Picture};
use isovec_bench::{AnyError, Wanted, median, take_turns};
use isovec_pixels::{Rows, Scale, Tone, grayscale, normalise, threshold};
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::pictures::clip_base_32;

/// Rounds of what takes milliseconds.
const ROUNDS: usize = 60;

/// Width and height of a photo.
const PHOTO: (usize, usize) = (1024, 768);

const PREPROCESSOR: &str = r#"{"image_processor_type": "CLIPImageProcessor"}"#;

fn main() -> Result<(), AnyError> {
    let wanted = Wanted::named();
    let picture = photo(PHOTO)?;
    if wanted.has("pixels") {
        pixels(&picture)?;
    }
    if wanted.has("resizing") {
        println!("on {}", ops::detect_features());
        for from in [PHOTO, (4000, 3000)] {
            resizing(&photo(from)?, (224, 224))?;
        }
        resizing(&picture, (2048, 1536))?;
        resizing(&photo((160, 120))?, (384, 384))?;
    }
    if wanted.has("operations") {
        // 9 KB, and 100 MB.
        operations(&photo((64, 48))?, 3000)?;
        operations(&photo((8000, 4200))?, 9)?;
    }
    if wanted.has("model") {
        model(&picture)?;
    }
    Ok(())
}

/// A picture with slopes and edges, which no coder shortens to nothing.
fn photo((width, height): (usize, usize)) -> Result<Image, AnyError> {
    let byte = |at: usize| {
        let (pixel, channel) = (at / 3, at % 3);
        let (x, y) = (pixel % width, pixel / width);
        let edge = if (x / 37 + y / 53) % 2 == 0 { 90 } else { 0 };
        ((x * (channel + 1) / 5 + y / 3 + edge + (x * y) % 7) % 256) as u8
    };
    let data = (0..width * height * 3).map(byte).collect();
    Ok(Image::new(width, height, Channels::Rgb, data)?)
}

/// Steps before the model, beside copying the photo's bytes.
fn pixels(photo: &Image) -> Result<(), AnyError> {
    let mut png = Vec::new();
    let (width, height) = (photo.width() as u32, photo.height() as u32);
    let mut encoder = png::Encoder::new(&mut png, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(photo.data())?;
    let processor = Processor::from_json(PREPROCESSOR, None, Reference::Pillow)?;
    let small = resize(photo.view(), 224, 224, Filter::Bicubic, Weights::Pillow)?;
    let mut copy = vec![0; photo.data().len()];
    println!("a photo of {PHOTO:?} pixels, {ROUNDS} rounds");
    let medians = take_turns(
        ROUNDS,
        vec![
            (
                "copying its bytes",
                Box::new(|| {
                    copy.copy_from_slice(black_box(photo.data()));
                    black_box(&mut copy);
                }),
            ),
            (
                "decoding it from PNG",
                Box::new(|| {
                    drop(black_box(decode(&png, &DecodeOptions::default())));
                }),
            ),
            (
                "CLIP's pixel_values of it",
                Box::new(|| {
                    drop(black_box(processor.process(photo.view())));
                }),
            ),
            (
                "the same of 224 x 224 pixels",
                Box::new(|| {
                    drop(black_box(processor.process(small.view())));
                }),
            ),
        ],
    );
    print!("{medians}");
    Ok(())
}

fn resizing(photo: &Image, (width, height): (u32, u32)) -> Result<(), AnyError> {
    let source = ImageRef::new(
        photo.width() as u32,
        photo.height() as u32,
        photo.data(),
        PixelType::U8x3,
    )?;
    for (name, filter, theirs) in [
        ("bilinear", Filter::Bilinear, FilterType::Bilinear),
        ("bicubic", Filter::Bicubic, FilterType::CatmullRom),
        ("Lanczos", Filter::Lanczos, FilterType::Lanczos3),
    ] {
        let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(theirs));
        let mut resizer = Resizer::new();
        let mut to = fast_image_resize::images::Image::new(width, height, PixelType::U8x3);
        let (from_width, from_height) = (photo.width(), photo.height());
        println!("{name}, {from_width} x {from_height} to {width} x {height}, {ROUNDS} rounds");
        let medians = take_turns(
            ROUNDS,
            vec![
                (
                    "fast_image_resize",
                    Box::new(|| {
                        let _ = black_box(resizer.resize(&source, &mut to, &options));
                    }),
                ),
                (
                    "isovec::image",
                    Box::new(|| {
                        let (width, height) = (width as usize, height as usize);
                        let made = resize(photo.view(), width, height, filter, Weights::Pillow);
                        drop(black_box(made));
                    }),
                ),
            ],
        );
        print!("{medians}");
    }
    Ok(())
}

/// Single operations beside copying the picture's bytes, in bytes that are read or written each second. Results go to
/// memory that is there already, as the copy's does.
fn operations(photo: &Image, rounds: usize) -> Result<(), AnyError> {
    let pixels = photo.width() * photo.height();
    let (from, mut copy) = (photo.data(), vec![1; 3 * pixels]);
    let (mut gray, mut values) = (vec![1; pixels], vec![1.0; 3 * pixels]);
    let colors = Rows::new(from, photo.width(), photo.height(), 3, 3 * photo.width())?;
    let tone = Tone {
        scale: Scale::Double(1.0 / 255.0),
        offset: 0.0,
        normal: Some((0.485, 0.229)),
        divisor: None,
    };
    println!(
        "{} bytes, {rounds} rounds, GB/s read and written",
        from.len()
    );
    let speed = |name: &str, bytes: usize, run: &mut dyn FnMut()| {
        let seconds: Vec<f64> = (0..rounds)
            .map(|_| {
                let start = Instant::now();
                run();
                start.elapsed().as_secs_f64()
            })
            .collect();
        println!("  {name}: {:.1}", bytes as f64 / median(seconds) / 1e9);
    };
    speed("copy", 6 * pixels, &mut || {
        copy.copy_from_slice(black_box(from));
        black_box(&mut copy);
    });
    for level in OptLevel::ALL {
        println!(
            " {level:?}: {} on {} threads",
            level.instructions(),
            level.threads()
        );
        speed("grayscale", 4 * pixels, &mut || {
            let _ = black_box(grayscale(black_box(colors), &mut gray, level));
        });
        speed("threshold", 6 * pixels, &mut || {
            let _ = black_box(threshold(black_box(colors), 127, &mut copy, level));
        });
        speed("normalise", 15 * pixels, &mut || {
            let (red, rest) = values.split_at_mut(pixels);
            let (green, blue) = rest.split_at_mut(pixels);
            let made = normalise(black_box(colors), &[tone; 3], [red, green, blue], level);
            let _ = black_box(made);
        });
    }
    Ok(())
}

/// A model on both engines: the same pixels, one thread.
fn model(photo: &Image) -> Result<(), AnyError> {
    let model = clip_base_32();
    let file = model.file(Stored::F32);
    let load = |engine: EngineChoice| -> Result<ImageEmbedder, AnyError> {
        let files = [
            ("config.json".to_owned(), model.config_json().into()),
            ("model.safetensors".to_owned(), file.clone().into()),
            (
                "preprocessor_config.json".to_owned(),
                PREPROCESSOR.as_bytes().to_vec().into(),
            ),
        ];
        let config = EmbeddingConfig::default().with_engine(engine);
        let config = config.with_intra_op_threads(1);
        let source = ModelSource::bytes("ViT-B/32", files);
        Ok(ImageEmbedder::builder(source).config(config).load()?)
    };
    let theirs = load(EngineChoice::OnnxRuntime)?;
    let ours = load(EngineChoice::Portable)?;
    let small = resize(photo.view(), 224, 224, Filter::Bicubic, Weights::Pillow)?;
    for many in [1, 8] {
        let pictures = vec![Picture::from(small.clone()); many];
        let (a, b) = (theirs.embed(&pictures)?, ours.embed(&pictures)?);
        let apart = a
            .iter()
            .flatten()
            .zip(b.iter().flatten())
            .map(|(a, b)| (a - b).abs());
        println!(
            "CLIP's ViT-B/32, {many} pictures of 224 x 224 in a call; largest difference {:.1e}",
            apart.fold(0.0, f32::max)
        );
        let medians = take_turns(
            if many == 1 { 40 } else { 12 },
            vec![
                (
                    "isovec on ONNX Runtime",
                    Box::new(|| drop(black_box(theirs.embed(&pictures)))),
                ),
                (
                    "isovec, portable",
                    Box::new(|| drop(black_box(ours.embed(&pictures)))),
                ),
            ],
        );
        print!("{medians}");
    }
    Ok(())
}
