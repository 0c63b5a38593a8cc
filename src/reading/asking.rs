//! What is asked of a reader before it is loaded.

use isovec_image::DecodeOptions;

/// What is asked of reading besides the model's own options.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    pub(crate) detector: String,
    pub(crate) orientation: Option<String>,
    pub(crate) recognizer: String,
    pub(crate) min_score: f64,
    pub(crate) decoding: DecodeOptions,
}

impl Default for Asking {
    /// The files that the Python package rapidocr-onnxruntime 1.4.4 has, and its least score.
    fn default() -> Self {
        Self {
            detector: "ch_PP-OCRv4_det_infer.onnx".into(),
            orientation: Some("ch_ppocr_mobile_v2.0_cls_infer.onnx".into()),
            recognizer: "ch_PP-OCRv4_rec_infer.onnx".into(),
            min_score: 0.5,
            decoding: DecodeOptions::default(),
        }
    }
}

/// What both builders of readers ask for.
macro_rules! ask_for_text {
    ($builder:ty) => {
        ask_for_model!($builder, asking);

        impl $builder {
            /// Names the file of the network that finds lines, within the model's files. The default is
            /// `ch_PP-OCRv4_det_infer.onnx`.
            pub fn detector(mut self, file: impl Into<String>) -> Self {
                self.asking.detector = file.into();
                self
            }

            /// Names the file of the network that reads lines. The default is `ch_PP-OCRv4_rec_infer.onnx`.
            pub fn recognizer(mut self, file: impl Into<String>) -> Self {
                self.asking.recognizer = file.into();
                self
            }

            /// Names the file of the network that finds lines which stand on their head. The default is
            /// `ch_ppocr_mobile_v2.0_cls_infer.onnx`.
            pub fn orientation(mut self, file: impl Into<String>) -> Self {
                self.asking.orientation = Some(file.into());
                self
            }

            /// Takes every line to be upright, and loads no network that finds out.
            pub fn upright(mut self) -> Self {
                self.asking.orientation = None;
                self
            }

            /// Leaves out lines with a lower score than this, from 0 to 1. The default is 0.5, as in rapidocr.
            pub fn min_score(mut self, score: f64) -> Self {
                self.asking.min_score = score;
                self
            }

            /// Sets how files are decoded: limits, and whether pictures are turned as their EXIF asks for.
            pub fn decoding(mut self, options: isovec_image::DecodeOptions) -> Self {
                self.asking.decoding = options;
                self
            }
        }
    };
}
pub(crate) use ask_for_text;
