//! Single operations have the same bytes at every level, and refuse what they cannot do.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use isovec_image::ops::{self, OptLevel};
use isovec_image::{
    Channels, Filter, Image, ImageError, Processor, Reference, Weights, Window, resize,
};

use support::test_everywhere;

fn picture(channels: Channels) -> Image {
    // In a browser usize has 32 bits.
    let data = (0..320 * 240 * channels.count() as u64)
        .map(|at| (at * at / 7 % 256) as u8)
        .collect();
    Image::new(320, 240, channels, data).unwrap()
}

test_everywhere! {
    fn levels_have_the_same_bytes() {
        for channels in [Channels::Gray, Channels::GrayAlpha, Channels::Rgb, Channels::Rgba] {
            let image = picture(channels);
            let view = image.view().subview(3, 1, 300, 239).unwrap();
            for filter in Filter::ALL {
                let expected = resize(view, 101, 307, filter, Weights::Pillow).unwrap();
                for level in OptLevel::ALL {
                    let made = ops::resize(view, 101, 307, filter, Weights::Pillow, level).unwrap();
                    assert!(made == expected, "{channels} {filter:?} {level:?}");
                }
            }
            let white = ops::threshold(view, 99, OptLevel::None).unwrap();
            assert_eq!(white.channels(), channels);
            for level in OptLevel::ALL {
                assert!(ops::threshold(view, 99, level).unwrap() == white);
            }
        }
    }
}

test_everywhere! {
    fn normalised_pixels_are_those_of_a_processor() {
        let image = picture(Channels::Rgb);
        let config = r#"{"image_processor_type": "ViTImageProcessor", "do_resize": false, "rescale_factor": 0.004,
            "image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6]}"#;
        let processor = Processor::from_json(config, None, Reference::Pillow).unwrap();
        let expected = processor.process(image.view()).unwrap();
        for level in OptLevel::ALL {
            let (mean, deviation) = ([0.1, 0.2, 0.3], [0.4, 0.5, 0.6]);
            let made = ops::normalise(image.view(), 0.004, mean, deviation, level).unwrap();
            assert!(made == expected, "{level:?}");
        }
    }
}

test_everywhere! {
    fn gray_is_made_of_colors_alone() {
        let (level, image) = (OptLevel::Full, picture(Channels::Rgba));
        let gray = ops::grayscale(image.view(), level).unwrap();
        let [r, g, b, _] = *image.data().first_chunk::<4>().unwrap();
        let sum = u32::from(r) * 19595 + u32::from(g) * 38470 + u32::from(b) * 7471 + 0x8000;
        assert_eq!(u32::from(gray.data()[0]), sum >> 16);
        let opaque = image.into_rgb(isovec_image::Alpha::Drop);
        assert_eq!(ops::grayscale(opaque.view(), level).unwrap(), gray);
        let refused = ops::grayscale(gray.view(), level);
        assert!(matches!(refused, Err(ImageError::WrongChannels { .. })));
    }
}

test_everywhere! {
    fn what_cannot_be_done_is_refused() {
        let (level, image) = (OptLevel::Simd, picture(Channels::Rgb));
        let window = Window { x: 319, y: 0, width: 1, height: 240 };
        let part = ops::crop(image.view(), window).unwrap();
        assert_eq!(part.data()[..3], image.data()[319 * 3..][..3]);
        assert!(ops::crop(image.view(), Window { width: 2, ..window }).is_err());
        for (scale, mean, deviation) in [(f64::NAN, 0.5, 0.5), (1.0, f64::INFINITY, 0.5), (1.0, 0.5, 0.0), (1.0, 0.5, 1e-60)] {
            let refused = ops::normalise(image.view(), scale, [mean; 3], [deviation; 3], level);
            assert!(matches!(refused, Err(ImageError::Config(_))), "{scale} {mean} {deviation}");
        }
        let gray = picture(Channels::Gray);
        let refused = ops::normalise(gray.view(), 1.0, [0.0; 3], [1.0; 3], level);
        assert!(matches!(refused, Err(ImageError::WrongChannels { .. })));
    }
}
