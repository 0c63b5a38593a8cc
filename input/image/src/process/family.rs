//! transformers' image processors, and what each does where a file says nothing.

use super::geometry::Size;
use crate::resize::Filter;

/// A processor of transformers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    /// Its name, without `Fast`, `Pil` or the old `FeatureExtractor`.
    pub(super) name: &'static str,
    /// The `model_type`s of `config.json` that it belongs to.
    pub(super) models: &'static [&'static str],
    pub(super) filter: Filter,
    pub(super) mean: [f64; 3],
    pub(super) deviation: [f64; 3],
    pub(super) size: Size,
    /// Whether a single number in `size` is both sides, or the shorter one.
    pub(super) square: bool,
    /// What is cut from the middle, if asked for, and whether it is unless the file says otherwise.
    pub(super) crop: (Option<(usize, usize)>, bool),
    /// What differs from the others.
    pub(super) own: Own,
}

/// What a processor has of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    /// Nothing.
    Nothing,
    /// `crop_pct`: below 384, a larger picture is made and cut; from there on, it is stretched to a square.
    CropShare,
    /// `rescale_offset` and `include_top`.
    Top,
    /// Pictures are scaled before they are resized, as numbers.
    Numbers,
}

const STANDARD: [f64; 3] = [0.5; 3];
const CLIP_MEAN: [f64; 3] = [0.481_454_66, 0.457_827_5, 0.408_210_73];
const CLIP_DEVIATION: [f64; 3] = [0.268_629_54, 0.261_302_58, 0.275_777_11];

/// ViT, which the others differ from.
const VIT: Family = Family {
    name: "ViT",
    models: &["vit", "vit_msn", "ijepa", "swin", "swinv2", "swiftformer"],
    filter: Filter::Bilinear,
    mean: STANDARD,
    deviation: STANDARD,
    size: Size::Exact(224, 224),
    square: true,
    crop: (None, false),
    own: Own::Nothing,
};

const CLIP: Family = Family {
    name: "CLIP",
    models: &[
        "clip",
        "altclip",
        "metaclip_2",
        "groupvit",
        "xclip",
        "aimv2",
    ],
    filter: Filter::Bicubic,
    mean: CLIP_MEAN,
    deviation: CLIP_DEVIATION,
    size: Size::Shortest(224),
    square: false,
    crop: (Some((224, 224)), true),
    ..VIT
};

const MOBILENET: Family = Family {
    name: "MobileNetV1",
    models: &["mobilenet_v1"],
    size: Size::Shortest(256),
    square: false,
    crop: (Some((224, 224)), true),
    ..VIT
};

/// Those that are known.
pub(super) const ALL: [Family; 10] = [
    VIT,
    Family {
        name: "DeiT",
        models: &["deit"],
        filter: Filter::Bicubic,
        size: Size::Exact(256, 256),
        crop: (Some((224, 224)), true),
        ..VIT
    },
    CLIP,
    Family {
        name: "Bit",
        models: &[
            "bit",
            "dinov2",
            "dinov2_with_registers",
            "hiera",
            "focalnet",
            "pixio",
        ],
        ..CLIP
    },
    Family {
        name: "Siglip",
        models: &["siglip"],
        filter: Filter::Bicubic,
        square: false,
        ..VIT
    },
    Family {
        name: "ConvNext",
        models: &["convnext", "convnextv2", "resnet", "regnet", "cvt"],
        filter: Filter::Bicubic,
        size: Size::Shortest(384),
        square: false,
        own: Own::CropShare,
        ..VIT
    },
    MOBILENET,
    Family {
        name: "MobileNetV2",
        models: &["mobilenet_v2"],
        ..MOBILENET
    },
    Family {
        name: "EfficientNet",
        models: &["efficientnet", "align"],
        filter: Filter::Bicubic,
        size: Size::Exact(346, 346),
        crop: (Some((289, 289)), false),
        own: Own::Top,
        ..VIT
    },
    Family {
        name: "DINOv3ViT",
        models: &["dinov3_vit"],
        mean: [0.485, 0.456, 0.406],
        deviation: [0.229, 0.224, 0.225],
        own: Own::Numbers,
        ..VIT
    },
];

impl Family {
    /// The family of `image_processor_type`, or of the older `feature_extractor_type`.
    pub(super) fn of_processor(name: &str) -> Option<&'static Self> {
        let base = [
            "ImageProcessorFast",
            "ImageProcessorPil",
            "ImageProcessor",
            "FeatureExtractor",
        ];
        let base = base.iter().find_map(|end| name.strip_suffix(end))?;
        ALL.iter().find(|family| family.name == base)
    }

    /// The family of `model_type`.
    pub(super) fn of_model(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|family| family.models.contains(&name))
    }

    /// The names of all, for a message.
    pub(super) fn names() -> String {
        ALL.map(|family| family.name).join(", ")
    }
}
