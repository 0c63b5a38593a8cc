//! Every pixel is Pillow's, and every value of a model's input transformers': decoded, resized and processed, natively
//! and in browsers. `data/make.py` has written what is expected.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use isovec_image::{
    Alpha, Channels, DecodeOptions, Filter, Format, Processor, Reference, Weights, Window, decode,
    resize, resize_window,
};

use support::{Pictures, Processed, Resized, hash, test_everywhere};

const AS_STORED: DecodeOptions = DecodeOptions {
    max_pixels: 1 << 20,
    max_bytes: 1 << 20,
    turn: false,
};

const UPRIGHT: DecodeOptions = DecodeOptions {
    turn: true,
    ..AS_STORED
};

test_everywhere! {
    fn decoded_pixels_are_pillows() {
        let pictures = Pictures::all();
        assert!(pictures.len() >= 600, "{}", pictures.len());
        let mut wrong = Vec::new();
        for picture in pictures.iter() {
            match decode(picture.file, &AS_STORED) {
                Ok(image) => {
                    let found = (image.width(), image.height(), image.channels().count());
                    let (width, height) = picture.about.size;
                    assert_eq!(found, (width, height, picture.about.channels), "{}", picture.about.name);
                    if hash(image.data()) != picture.about.pixels {
                        wrong.push(picture.about.name.clone());
                    }
                }
                Err(error) => wrong.push(format!("{}: {error}", picture.about.name)),
            }
        }
        assert_eq!(wrong, [""; 0]);
    }
}

test_everywhere! {
    fn rgb_is_what_transformers_loads() {
        let pictures = Pictures::all();
        let (mut turned, mut on_white) = (0, 0);
        for picture in pictures.iter() {
            let about = &picture.about;
            let image = decode(picture.file, &UPRIGHT).unwrap();
            assert_eq!((image.width(), image.height()), about.upright, "{}", about.name);
            turned += usize::from(about.upright != about.size);
            let rgb = image.clone().into_rgb(Alpha::Drop);
            assert_eq!(rgb.channels(), Channels::Rgb);
            assert_eq!(hash(rgb.data()), about.rgb, "{}", about.name);
            if let Some(expected) = &about.white {
                on_white += 1;
                assert_eq!(&hash(image.into_rgb(Alpha::White).data()), expected, "{}", about.name);
            }
        }
        assert!(turned > 10 && on_white > 100, "{turned} {on_white}");
    }
}

test_everywhere! {
    fn resized_pixels_are_pillows_and_torchvisions() {
        let pictures = Pictures::all();
        let all = Resized::all();
        assert!(all.len() >= 290, "{}", all.len());
        for Resized { from, size: (width, height), filter, weights, pixels } in all {
            let image = decode(pictures.of(&from), &UPRIGHT).unwrap();
            let filter = Filter::of_number(filter).unwrap();
            let weights = match &weights[..] {
                "Pillow" => Weights::Pillow,
                _ => Weights::Torchvision,
            };
            let made = resize(image.view(), width, height, filter, weights).unwrap();
            let what = format!("{from} to {width} x {height}, {filter:?}, {weights:?}");
            assert_eq!(hash(made.data()), pixels, "{what}");
            // A window has the pixels that the whole has there.
            let (right, below) = (width.div_ceil(3), height / 2);
            let window = Window {
                x: width - right,
                y: height - 1 - below,
                width: right,
                height: below + 1,
            };
            let part = resize_window(image.view(), width, height, window, filter, weights).unwrap();
            let whole = made.view().subview(window.x, window.y, window.width, window.height);
            assert_eq!(part, whole.unwrap().to_image(), "{what}");
        }
    }
}

test_everywhere! {
    fn pixel_values_are_those_of_transformers() {
        let pictures = Pictures::all();
        let all = Processed::all();
        assert!(all.len() >= 90, "{}", all.len());
        for Processed { from, config, reference, shape, values } in all {
            let image = decode(pictures.of(&from), &UPRIGHT).unwrap();
            let reference = match &reference[..] {
                "Pillow" => Reference::Pillow,
                _ => Reference::Torchvision,
            };
            let json = config.to_string();
            let processor = Processor::from_json(&json, None, reference).unwrap();
            let made = processor.process(image.view()).unwrap();
            assert_eq!([made.channels, made.height, made.width], shape, "{from} {json}");
            let bytes: Vec<u8> = made.data.iter().flat_map(|value| value.to_le_bytes()).collect();
            assert_eq!(hash(&bytes), values, "{from} {json}");
        }
    }
}

test_everywhere! {
    fn a_part_of_a_buffer_is_resized_like_a_picture_of_its_own() {
        let pictures = Pictures::all();
        let image = decode(pictures.of("resize/200x150"), &UPRIGHT).unwrap();
        let part = image.view().subview(13, 7, 100, 90).unwrap();
        for filter in Filter::ALL {
            let of_view = resize(part, 40, 120, filter, Weights::Pillow).unwrap();
            let of_copy = resize(part.to_image().view(), 40, 120, filter, Weights::Pillow).unwrap();
            assert_eq!(of_view, of_copy);
        }
    }
}

test_everywhere! {
    fn the_content_decides_the_format() {
        for picture in Pictures::all().iter() {
            let expected = match picture.about.name.split('/').next().unwrap() {
                "jpeg" => Format::Jpeg,
                "webp" => Format::WebP,
                "gif" => Format::Gif,
                _ => Format::Png,
            };
            assert_eq!(Format::of(picture.file), Some(expected));
        }
    }
}
