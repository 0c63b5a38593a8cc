//! What is done to a model, and what it is measured with.

use std::collections::BTreeSet;
use std::sync::Arc;

use isovec_engine::cancel::Cancel;

use isovec_optimize::int8::{Activations, WeightBits};
use isovec_optimize::simplify::{Level, Pass};

use crate::model::{OnProgress, Watch};
#[cfg(feature = "image")]
use crate::pictures::Picture;

/// What [`optimize`](crate::optimize()) does. How weights are stored is `model.dtype` of the configuration.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OptimizeOptions {
    /// Passes that leave fewer nodes in the graph, made before all else; see [`Level`].
    pub passes: BTreeSet<Pass>,
    /// Texts like those that will be embedded: tokens that none of them has are taken out. `None`: all tokens stay.
    pub keep_tokens_of: Option<Vec<String>>,
    /// Languages whose texts will be embedded, as `en` or `zh-Hant` (BCP 47): tokens in the letters of others are taken out, but for those
    /// of [`keep_tokens_of`](Self::keep_tokens_of). Empty: none is taken out for its letters.
    #[cfg(feature = "languages")]
    pub keep_languages: Vec<String>,
    /// A static model of vectors of so many components is made instead of a smaller form of the model itself.
    pub static_dimension: Option<usize>,
    /// Columns, heads of attention and layers that the vectors of [`calibrate_with`](Self::calibrate_with) miss least are taken out,
    /// until this share of the bytes of all weights is gone, between 0 and 1, and of the multiplications with them where so many can be
    /// taken out. Needs texts, or pictures.
    pub prune: Option<f64>,
    /// Products are made of whole numbers of 8 bits, in an ONNX file that ONNX Runtime computes so. With `model.dtype = "f16"` or
    /// `"bf16"` the matrices that stay are stored in 16 bits.
    pub int8: Option<Activations>,
    /// The strength, 0 to 1, with which [`int8`](Self::int8) moves scales from activations into weights. `None`: where there are
    /// texts, for each input the one that predicts the least noise.
    pub smooth: Option<f64>,
    /// Matrices and tables are stored in 4 bits a value on average, for a small download, and computed with in f32. Where there are
    /// texts, they are rounded so that products change least on those. With `model.dtype = "f16"` or `"bf16"` the matrices that stay
    /// are stored in 16 bits.
    pub int4: bool,
    /// Bits of a value on average, 3 to 6, that [`int4`](Self::int4) stores; scales take a quarter of a bit more. `None`: 4.
    pub bits: Option<f64>,
    /// Nodes that [`int8`](Self::int8) leaves in f32, by the names in [`Report::products`](super::Report::products).
    pub in_f32: BTreeSet<String>,
    /// Weights of [`int8`](Self::int8) have 7 bits instead of 8, so that ONNX Runtime cuts no sums off on processors without VNNI; see
    /// [`WeightBits`].
    pub seven_bits: bool,
    /// Each node that [`int8`](Self::int8) makes is also looked at alone: [`Report::products`](super::Report::products) says what the
    /// vectors are with that node alone in int8. The model is loaded and runs on 32 texts or pictures once for each node.
    pub each_node: bool,
    /// Texts that the original and the result are compared and timed with. Empty: those of [`keep_tokens_of`](Self::keep_tokens_of),
    /// and without those nothing is measured.
    pub texts: Vec<String>,
    /// Texts that [`prune`](Self::prune), [`int8`](Self::int8) and [`int4`](Self::int4) observe: others than are compared, so that the
    /// comparison says what new texts will see. Empty: [`texts`](Self::texts).
    pub calibrate_with: Vec<String>,
    /// Pictures like those that a model of pictures will see: the original and the result are compared and timed with them, by the
    /// logits of a classifier, else by vectors. At most 1,000 are taken, evenly from all of them.
    #[cfg(feature = "image")]
    pub pictures: Vec<Picture>,
    /// Pictures that [`prune`](Self::prune) and [`int8`](Self::int8) observe: others than are compared, so that the comparison says what
    /// new pictures will see. Empty: [`pictures`](Self::pictures). At most 1,000 are taken, evenly from all of them.
    #[cfg(feature = "image")]
    pub calibrate_pictures: Vec<Picture>,
    /// Nothing is compared and timed: the texts or pictures are for the model alone.
    pub uncompared: bool,
    pub(super) watch: Watch,
}

impl OptimizeOptions {
    /// Makes all passes of a level.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.passes.extend(level.passes());
        self
    }

    /// Makes a pass.
    #[must_use]
    pub fn with_pass(mut self, pass: Pass) -> Self {
        self.passes.insert(pass);
        self
    }

    /// Takes all tokens out that none of these texts has.
    #[must_use]
    pub fn with_keep_tokens_of<T: Into<String>>(
        mut self,
        texts: impl IntoIterator<Item = T>,
    ) -> Self {
        self.keep_tokens_of = Some(texts.into_iter().map(Into::into).collect());
        self
    }

    /// Takes all tokens out that are written in the letters of other languages than these.
    #[cfg(feature = "languages")]
    #[must_use]
    pub fn with_keep_languages<T: Into<String>>(
        mut self,
        languages: impl IntoIterator<Item = T>,
    ) -> Self {
        self.keep_languages = languages.into_iter().map(Into::into).collect();
        self
    }

    /// Whether tokens are taken out.
    pub fn trims(&self) -> bool {
        self.keep_tokens_of.is_some() || !self.languages().is_empty()
    }

    /// The languages whose tokens are kept.
    pub(super) fn languages(&self) -> &[String] {
        #[cfg(feature = "languages")]
        return &self.keep_languages;
        #[cfg(not(feature = "languages"))]
        &[]
    }

    /// Makes a static model, whose vectors have so many components.
    #[must_use]
    pub fn with_static(mut self, dimension: usize) -> Self {
        self.static_dimension = Some(dimension);
        self
    }

    /// Takes out columns, heads and layers, until this share of the bytes is gone.
    #[must_use]
    pub fn with_prune(mut self, share: f64) -> Self {
        self.prune = Some(share);
        self
    }

    /// Makes products of whole numbers of 8 bits, with scales of activations from the texts or from each run.
    #[must_use]
    pub fn with_int8(mut self, activations: Activations) -> Self {
        self.int8 = Some(activations);
        self
    }

    /// Stores matrices and tables in 4 bits.
    #[must_use]
    pub fn with_int4(mut self) -> Self {
        self.int4 = true;
        self
    }

    /// Stores so many bits of a value on average, 3 to 6, instead of 4.
    #[must_use]
    pub fn with_bits(mut self, average: f64) -> Self {
        self.bits = Some(average);
        self
    }

    /// Moves scales from activations into weights with this strength, 0 to 1.
    #[must_use]
    pub fn with_smooth(mut self, strength: f64) -> Self {
        self.smooth = Some(strength);
        self
    }

    /// Leaves nodes in f32, by the names in [`Report::products`](super::Report::products).
    #[must_use]
    pub fn with_in_f32<T: Into<String>>(mut self, nodes: impl IntoIterator<Item = T>) -> Self {
        self.in_f32 = nodes.into_iter().map(Into::into).collect();
        self
    }

    /// Gives weights in int8 7 bits instead of 8.
    #[must_use]
    pub fn with_seven_bits(mut self) -> Self {
        self.seven_bits = true;
        self
    }

    /// The bits of weights in int8.
    pub(super) fn weight_bits(&self) -> WeightBits {
        match self.seven_bits {
            false => WeightBits::Eight,
            true => WeightBits::Seven,
        }
    }

    /// Looks at each node that is made in int8 alone.
    #[must_use]
    pub fn with_each_node(mut self) -> Self {
        self.each_node = true;
        self
    }

    /// Compares and times nothing, whatever texts there are: for callers who measure themselves.
    #[must_use]
    pub fn without_comparison(mut self) -> Self {
        self.uncompared = true;
        self
    }

    /// Compares the original and the result on these texts.
    #[must_use]
    pub fn with_texts<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        self.texts = texts.into_iter().map(Into::into).collect();
        self
    }

    /// Observes these texts to prune and to quantise, and not those that are compared.
    #[must_use]
    pub fn with_calibrate_with<T: Into<String>>(
        mut self,
        texts: impl IntoIterator<Item = T>,
    ) -> Self {
        self.calibrate_with = texts.into_iter().map(Into::into).collect();
        self
    }

    /// Compares the original and the result on these pictures, and observes them where no others are given for that.
    #[cfg(feature = "image")]
    #[must_use]
    pub fn with_pictures<P: Into<Picture>>(
        mut self,
        pictures: impl IntoIterator<Item = P>,
    ) -> Self {
        self.pictures = pictures.into_iter().map(Into::into).collect();
        self
    }

    /// Observes these pictures to prune and to quantise, and not those that are compared.
    #[cfg(feature = "image")]
    #[must_use]
    pub fn with_calibrate_pictures<P: Into<Picture>>(
        mut self,
        pictures: impl IntoIterator<Item = P>,
    ) -> Self {
        self.calibrate_pictures = pictures.into_iter().map(Into::into).collect();
        self
    }

    /// Whether there are pictures.
    pub(super) fn has_pictures(&self) -> bool {
        #[cfg(feature = "image")]
        let any = !self.calibrating_pictures().is_empty();
        #[cfg(not(feature = "image"))]
        let any = false;
        any
    }

    /// The texts that are compared.
    pub(super) fn comparing(&self) -> &[String] {
        match &self.keep_tokens_of {
            Some(kept) if self.texts.is_empty() => kept,
            _ => &self.texts,
        }
    }

    /// The texts that are observed.
    pub(super) fn calibrating(&self) -> &[String] {
        match self.calibrate_with.is_empty() {
            true => self.comparing(),
            false => &self.calibrate_with,
        }
    }

    /// The pictures that are observed.
    #[cfg(feature = "image")]
    pub(super) fn calibrating_pictures(&self) -> &[Picture] {
        match self.calibrate_pictures.is_empty() {
            true => &self.pictures,
            false => &self.calibrate_pictures,
        }
    }

    /// Whether there are texts or pictures of their own to observe.
    pub(super) fn calibrates_apart(&self) -> bool {
        #[cfg(feature = "image")]
        let pictures = !self.calibrate_pictures.is_empty();
        #[cfg(not(feature = "image"))]
        let pictures = false;
        pictures || !self.calibrate_with.is_empty()
    }

    /// Reports how far loading the source has come.
    #[must_use]
    pub fn with_progress(mut self, progress: impl OnProgress + 'static) -> Self {
        self.watch.progress = Some(Arc::new(progress));
        self
    }

    /// Stops the work when `cancel` is cancelled.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.watch.cancel = cancel;
        self
    }
}
