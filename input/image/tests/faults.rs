//! What is damaged, too large, or not known: an error that says so, never a panic, and never other pixels.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use isovec_image::{
    Channels, DecodeOptions, Filter, Image, ImageError, Processor, Reference, Weights, Window,
    decode, resize, resize_window,
};
use serde_json::{Value, json};

use support::{Pictures, hash, test_everywhere};

const AS_STORED: DecodeOptions = DecodeOptions {
    max_pixels: 1 << 20,
    max_bytes: 1 << 20,
    turn: false,
};

/// One of every way to be stored.
const KINDS: [&str; 20] = [
    "jpeg/420-75-baseline-17x33",
    "jpeg/422-75-progressive-17x33",
    "jpeg/gray-90-progressive-7x5",
    "jpeg/restarts-17x33",
    "jpeg/cmyk-17x33",
    "jpeg/turn6-big",
    "png/RGB-17x33",
    "png/palette4-alpha-interlaced-7x5",
    "png/gray16-interlaced-17x33",
    "png/bits-17x33",
    "png/turn-late",
    "png/animated-7x5",
    "webp/lossy-60-17x33",
    "webp/alpha-60-17x33",
    "webp/lossless-17x33",
    "webp/lossless-alpha-7x5",
    "webp/animated-7x5",
    "webp/turn6",
    "gif/interlaced-17x33",
    "gif/animated-7x5",
];

test_everywhere! {
    fn a_file_that_was_cut_is_refused_or_has_all_its_pixels() {
        let pictures = Pictures::all();
        for name in KINDS {
            let file = pictures.of(name);
            let whole = decode(file, &AS_STORED).unwrap();
            let mut refused = 0;
            for end in 0..file.len() {
                match decode(&file[..end], &AS_STORED) {
                    Ok(image) => assert_eq!(image, whole, "{name} cut at {end}"),
                    Err(error) => {
                        refused += 1;
                        assert!(!error.to_string().is_empty());
                    }
                }
            }
            // What may be missing is behind the pixels.
            assert!(refused > file.len() / 3, "{name}: {refused} of {}", file.len());
        }
    }
}

test_everywhere! {
    fn a_wrong_byte_is_no_panic() {
        let pictures = Pictures::all();
        for name in KINDS {
            let mut file = pictures.of(name).to_vec();
            for at in 0..file.len() {
                let right = file[at];
                for wrong in [0, 0xff, right ^ 1, right ^ 0x80] {
                    file[at] = wrong;
                    if let Ok(image) = decode(&file, &AS_STORED) {
                        let bytes = image.width() * image.height() * image.channels().count();
                        assert_eq!(image.data().len(), bytes);
                    }
                }
                file[at] = right;
            }
        }
    }
}

/// A file with another size in its header, at the places of the first test picture of a format.
fn of_size(file: &[u8], format: &str, width: u16, height: u16) -> Vec<u8> {
    let mut file = file.to_vec();
    match format {
        "png" => {
            file[16..20].copy_from_slice(&u32::from(width).to_be_bytes());
            file[20..24].copy_from_slice(&u32::from(height).to_be_bytes());
            let sum = crc(&file[12..29]);
            file[29..33].copy_from_slice(&sum.to_be_bytes());
        }
        "gif" => {
            file[6..8].copy_from_slice(&width.to_le_bytes());
            file[8..10].copy_from_slice(&height.to_le_bytes());
        }
        "jpeg" => {
            let at = file.windows(2).position(|at| at == [0xff, 0xc0]).unwrap();
            file[at + 5..at + 7].copy_from_slice(&height.to_be_bytes());
            file[at + 7..at + 9].copy_from_slice(&width.to_be_bytes());
        }
        _ => {
            let at = file
                .windows(3)
                .position(|at| at == [0x9d, 0x01, 0x2a])
                .unwrap();
            file[at + 3..at + 5].copy_from_slice(&width.to_le_bytes());
            file[at + 5..at + 7].copy_from_slice(&height.to_le_bytes());
        }
    }
    file
}

/// PNG's checksum.
fn crc(bytes: &[u8]) -> u32 {
    let step = |sum: u32| {
        if sum & 1 == 1 {
            0xedb8_8320 ^ (sum >> 1)
        } else {
            sum >> 1
        }
    };
    let byte = |sum: u32, &byte: &u8| (0..8).fold(sum ^ u32::from(byte), |sum, _| step(sum));
    !bytes.iter().fold(!0, byte)
}

test_everywhere! {
    fn limits_hold_before_memory_is_taken() {
        let pictures = Pictures::all();
        for (format, name, most) in [
            ("png", "png/RGB-17x33", 64_000),
            ("gif", "gif/palette-17x33", 64_000),
            ("jpeg", "jpeg/444-75-baseline-17x33", 64_000),
            ("webp", "webp/lossy-60-17x33", 16_383),
        ] {
            let file = pictures.of(name);
            let bomb = of_size(file, format, most, most);
            let limit = DecodeOptions::default().max_pixels;
            let side = u64::from(most);
            let expected = ImageError::TooManyPixels { width: side, height: side, limit };
            assert_eq!(decode(&bomb, &DecodeOptions::default()), Err(expected), "{format}");
            for (width, height) in [(0, 33), (17, 0), (0, 0)] {
                let empty = of_size(file, format, width, height);
                assert!(decode(&empty, &AS_STORED).is_err(), "{format} {width} x {height}");
            }
            // The limits themselves are allowed.
            let (pixels, bytes) = (17 * 33, file.len() as u64);
            let options = |max_pixels, max_bytes| DecodeOptions { max_pixels, max_bytes, turn: true };
            assert!(decode(file, &options(pixels, bytes)).is_ok());
            assert!(matches!(
                decode(file, &options(pixels - 1, bytes)),
                Err(ImageError::TooManyPixels { .. })
            ));
            assert!(matches!(
                decode(file, &options(pixels, bytes - 1)),
                Err(ImageError::TooManyBytes { .. })
            ));
        }
    }
}

/// A chunk of a PNG.
fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut body = kind.to_vec();
    body.extend(data);
    let mut chunk = (data.len() as u32).to_be_bytes().to_vec();
    chunk.extend(&body);
    chunk.extend(crc(&body).to_be_bytes());
    chunk
}

/// A PNG of one pixel with metadata that unpack to 1,000 times their length.
fn swollen() -> Vec<u8> {
    let mut info = png::Info::with_size(1, 1);
    info.icc_profile = Some(vec![0; 16 << 20].into());
    let mut text = png::text_metadata::ITXtChunk::new("XML:com.adobe.xmp", " ".repeat(16 << 20));
    text.compressed = true;
    info.utf8_text.push(text);
    let mut file = Vec::new();
    let encoder = png::Encoder::with_info(&mut file, info).unwrap();
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[9]).unwrap();
    writer.finish().unwrap();
    file
}

test_everywhere! {
    fn swollen_and_damaged_metadata_cost_no_picture() {
        let turned = DecodeOptions { turn: true, ..AS_STORED };
        let swollen = swollen();
        assert!(swollen.len() < 100_000);
        assert_eq!(decode(&swollen, &turned).unwrap().data(), [9]);
        let file = Pictures::all().of("png/RGB-17x33");
        let plain = decode(file, &AS_STORED).unwrap();
        for data in [&b"MM\0*\xff\xff\xff\xff"[..], b""] {
            let with = [&file[..33], &chunk(b"eXIf", data), &file[33..]].concat();
            assert_eq!(decode(&with, &turned).as_ref(), Ok(&plain));
        }
    }
}

test_everywhere! {
    fn what_is_no_picture_is_named() {
        let hint = |bytes: &[u8]| match decode(bytes, &AS_STORED) {
            Err(error @ ImageError::UnknownFormat { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(hint(b"").contains("there are none"));
        assert!(hint(b"\0\0\0\x1cftypavif\0\0").contains("AVIF"));
        assert!(hint(b"\0\0\0\x1cftypheic\0\0").contains("HEIC"));
        assert!(hint(b"II*\0more").contains("TIFF"));
        assert!(hint(b"BM123456").contains("BMP"));
        assert!(hint(b"<svg></svg>").contains("SVG"));
        assert!(hint(b"hello, world").ends_with("in PNG, JPEG, WebP or GIF"));
    }
}

test_everywhere! {
    fn a_frame_without_a_palette_is_refused() {
        let mut file = Pictures::all().of("gif/palette-17x33").to_vec();
        // The palette of the whole file is taken out.
        let colors = 3 * (2 << (file[10] & 7));
        file.drain(13..13 + colors);
        file[10] &= 0x7f;
        let error = decode(&file, &AS_STORED).unwrap_err();
        assert!(matches!(error, ImageError::Damaged { .. }), "{error}");
    }
}

test_everywhere! {
    fn sizes_that_cannot_be_made_are_refused() {
        let image = Image::new(3, 2, Channels::Rgb, vec![7; 18]).unwrap();
        let view = image.view();
        for (width, height) in [(0, 1), (1, 0), (usize::MAX, 1), (1 << 31, 1)] {
            let made = resize(view, width, height, Filter::Bilinear, Weights::Pillow);
            assert!(matches!(made, Err(ImageError::Size(_))), "{width} x {height}");
        }
        let window = |x, y, width, height| {
            let window = Window { x, y, width, height };
            resize_window(view, 9, 9, window, Filter::Bicubic, Weights::Pillow)
        };
        assert!(window(0, 0, 9, 9).is_ok());
        assert!(window(8, 8, 1, 1).is_ok());
        for (x, y, width, height) in [(1, 0, 9, 9), (0, 9, 1, 1), (usize::MAX, 0, 1, 1), (0, 0, 0, 1)] {
            assert!(matches!(window(x, y, width, height), Err(ImageError::Size(_))));
        }
        let made = resize(view, 4, 4, Filter::Lanczos, Weights::Torchvision);
        assert!(matches!(made, Err(ImageError::Config(_))));
    }
}

fn read(config: &Value) -> isovec_image::Result<Processor> {
    Processor::from_json(&config.to_string(), None, Reference::Pillow)
}

test_everywhere! {
    fn what_a_configuration_asks_for_and_is_not_known_is_named() {
        let vit = |key: &str, value: Value| {
            let mut config = json!({"image_processor_type": "ViTImageProcessor"});
            config[key] = value;
            config
        };
        for (config, named) in [
            (json!({}), "image_processor_type"),
            (json!({"image_processor_type": "MobileViTImageProcessorFast"}), "MobileViTImageProcessorFast"),
            (json!({"image_processor_type": "Siglip2ImageProcessor"}), "Siglip2ImageProcessor"),
            (json!({"image_processor_type": 3}), "image_processor_type"),
            (vit("do_flip_channel_order", json!(true)), "do_flip_channel_order"),
            (vit("do_pad", json!(true)), "do_pad"),
            (vit("crop_pct", json!(0.9)), "crop_pct"),
            (vit("auto_map", json!({"AutoImageProcessor": "mine.Own"})), "auto_map"),
            (vit("data_format", json!("channels_last")), "data_format"),
            (vit("resample", json!(6)), "resample"),
            (vit("resample", json!("bicubic")), "resample"),
            (vit("do_resize", json!(1)), "do_resize"),
            (vit("size", json!(0)), "size"),
            (vit("size", json!(65_536)), "size"),
            (vit("size", json!(-1)), "size"),
            (vit("size", json!([1, 2, 3])), "size"),
            (vit("size", json!({"longest_edge": 9})), "size"),
            (vit("size", json!({"height": 9})), "size"),
            (vit("size", json!({"height": 9, "width": 9, "shortest_edge": 3})), "size"),
            (vit("size", json!("large")), "size"),
            (vit("crop_size", json!({"shortest_edge": 9})), "crop_size"),
            (vit("do_center_crop", json!(true)), "crop_size"),
            (vit("image_mean", json!([0.5, 0.5])), "image_mean"),
            (vit("image_std", json!([0.5, 0.5, 0])), "image_std"),
            (vit("image_std", json!("x")), "image_std"),
            (vit("rescale_factor", json!(0)), "rescale_factor"),
            (json!({"image_processor_type": "ConvNextImageProcessor", "size": [9, 9]}), "shortest_edge"),
            (json!({"image_processor_type": "ConvNextImageProcessor", "size": 40, "crop_pct": 0}), "crop_pct"),
        ] {
            match read(&config) {
                Err(ImageError::Config(why)) => assert!(why.contains(named), "{config}: {why}"),
                other => panic!("{config}: {other:?}"),
            }
        }
        assert!(Processor::from_json("{", None, Reference::Pillow).is_err());
        let lanczos = vit("resample", json!(1)).to_string();
        let error = Processor::from_json(&lanczos, None, Reference::Torchvision).unwrap_err();
        assert!(error.to_string().contains("resample 1"), "{error}");
    }
}

test_everywhere! {
    fn what_asks_for_nothing_is_allowed() {
        let harmless = json!({
            "feature_extractor_type": "CLIPFeatureExtractor",
            "processor_class": "CLIPProcessor",
            "_valid_processor_keys": ["images"],
            "do_pad": false,
            "pad_size": null,
            "data_format": "channels_first",
            "size": null,
        });
        let image = Image::new(3, 2, Channels::Gray, vec![7; 6]).unwrap();
        let made = read(&harmless).unwrap().process(image.view()).unwrap();
        let old = json!({"size": 224}).to_string();
        let named = Processor::from_json(&old, Some("clip"), Reference::Pillow).unwrap();
        assert_eq!(named.process(image.view()).unwrap(), made);
        assert!(Processor::from_json(&old, Some("bert"), Reference::Pillow).is_err());
    }
}

test_everywhere! {
    fn a_picture_with_other_channels_is_converted_or_refused() {
        let gray = Image::new(2, 2, Channels::GrayAlpha, vec![9, 0, 9, 255, 9, 0, 9, 255]).unwrap();
        let config = |convert: Value| {
            json!({"image_processor_type": "ViTImageProcessor", "size": 2, "do_convert_rgb": convert,
                "do_normalize": false, "do_rescale": false})
        };
        let processor = read(&config(json!(null))).unwrap();
        assert_eq!(processor.process(gray.view()).unwrap().data, [9.0; 12]);
        let white = processor.with_alpha(isovec_image::Alpha::White);
        let row = [255.0, 9.0, 255.0, 9.0];
        assert_eq!(white.process(gray.view()).unwrap().data, [row, row, row].concat());
        let error = read(&config(json!(false))).unwrap().process(gray.view()).unwrap_err();
        let ImageError::WrongChannels { has, wanted, .. } = error else { panic!("{error}") };
        assert_eq!((has, wanted), (Channels::GrayAlpha, Channels::Rgb));
    }
}

test_everywhere! {
    fn a_thin_picture_takes_no_more_memory_than_its_middle() {
        // The whole would have 224 x 14 million pixels.
        let thin = Image::new(1, 62_500, Channels::Rgb, vec![200; 187_500]).unwrap();
        let clip = json!({"image_processor_type": "CLIPImageProcessor"});
        let made = read(&clip).unwrap().process(thin.view()).unwrap();
        assert_eq!((made.height, made.width), (224, 224));
        let bytes: Vec<u8> = made.data.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(hash(&bytes[..8]), hash(&bytes[8..16]));
        let whole = json!({"image_processor_type": "CLIPImageProcessor", "do_center_crop": false});
        let error = read(&whole).unwrap().process(thin.view()).unwrap_err();
        assert!(matches!(error, ImageError::TooManyPixels { .. }), "{error}");
    }
}
