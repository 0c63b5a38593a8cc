//! One of the three networks: its file, its engine, and a run.

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::{Dim, ValueDescription, describe_value};
use isovec_engine::engine::Batch;
use isovec_engine::fingerprint::Precision;
use isovec_engine::tensor::{DType, NamedTensor};
use isovec_image::PixelValues;
use isovec_ocr::Alphabet;

use super::sizes::{Size, Sizes};
use crate::backend;
use crate::config::EmbeddingConfig;
use crate::effective::EffectiveConfig;
use crate::error::{Error, Result};
use crate::fallback::Engines;
use crate::model::{
    HubUse, Output, Prepared, Progress, Purpose, Stored, Watch, computed, memory_for_weights,
    prepare, resolve,
};
use crate::source::ModelSource;

/// What a network does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A map of probabilities of text: `[n, 1, height, width]`.
    Detector,
    /// Whether a line is upright or stands on its head: `[n, 2]`.
    Orientation,
    /// Probabilities of characters: `[n, steps, classes]`.
    Recognizer,
}

impl Role {
    /// Whether a graph's output is what it should be.
    fn fits(self, output: &ValueDescription) -> bool {
        let fits = match (self, output.dims.as_deref()) {
            (Self::Detector, Some([_, Dim::Fixed(1) | Dim::Symbolic(_), _, _])) => true,
            (Self::Orientation, Some([_, Dim::Fixed(2)])) => true,
            (Self::Recognizer, Some([_, _, Dim::Fixed(classes)])) => *classes > 2,
            _ => false,
        };
        fits && output.dtype == Some(DType::F32)
    }

    /// The size of pictures that are read most.
    fn usual(self) -> Size {
        match self {
            Self::Detector => (736, 736),
            Self::Orientation => (48, 192),
            Self::Recognizer => (48, 320),
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Self::Detector => "a detector of text, which gives [n, 1, height, width]",
            Self::Orientation => "a classifier of upright lines, which gives [n, 2]",
            Self::Recognizer => "a recogniser of lines, which gives [n, steps, classes]",
        }
    }
}

/// A loaded network.
#[derive(Debug)]
pub(super) struct Network {
    sizes: Sizes,
    input: String,
    output: String,
    hub: HubUse,
    stored: Stored,
    /// What it is computed in.
    precision: Precision,
}

/// The key of a recogniser's metadata under which its characters stand.
const CHARACTERS: &str = "character";

/// A network's file that is read and was found to be what it is named for.
pub(super) struct Opened {
    role: Role,
    bundle: ModelBundle,
    input: ValueDescription,
    output: ValueDescription,
    config: EmbeddingConfig,
    hub: HubUse,
    stored: Stored,
}

impl Opened {
    /// Reads the file `file` of a source.
    ///
    /// # Errors
    /// [`EngineError::UnsupportedModel`] for a file that is another network.
    pub(super) async fn read(
        role: Role,
        file: &str,
        source: ModelSource,
        config: &EmbeddingConfig,
        watch: &Watch,
    ) -> Result<Self> {
        let mut config = config.clone();
        config.model.onnx_file = Some(file.to_owned());
        let cancel = watch.cancel.clone();
        let (source, hub) = resolve(source, &config, watch).await?.split();
        cancel.check()?;
        watch.report(Progress::Reading);
        let asked = config.clone();
        let prepared = backend::offload("reading the model", async move {
            let purpose = Purpose::run(&asked, Output::AsFile);
            let mut prepared = prepare(source, &asked, purpose, &cancel).await?;
            prepared.bundle = backend::simplified(prepared.bundle, &cancel).await?;
            Ok(prepared)
        })
        .await?;
        let Prepared { bundle, stored, .. } = prepared;
        let (input, output) = ends(role, &bundle)?;
        memory_for_weights(&bundle, &config)?;
        Ok(Self {
            role,
            bundle,
            input,
            output,
            config,
            hub,
            stored,
        })
    }

    /// The characters that a recogniser knows.
    ///
    /// # Errors
    /// [`EngineError::UnsupportedModel`] where the metadata has none, or not as many as the output has classes.
    pub(super) fn alphabet(&self) -> Result<Alphabet> {
        let unsupported = |reason: String| {
            Error::from(EngineError::UnsupportedModel {
                origin: format!("{}: {}", self.bundle.origin, self.bundle.model_file),
                reason,
                hint: "Take an ONNX file that was made for rapidocr, which has its characters in its metadata".into(),
            })
        };
        let mut entries = self.bundle.graph.metadata_props.iter();
        let entry = entries.find(|entry| entry.key == CHARACTERS);
        let Some(entry) = entry else {
            return Err(unsupported(format!(
                "its metadata has no entry `{CHARACTERS}` with the characters that it knows"
            )));
        };
        let alphabet = Alphabet::new(&entry.value);
        match self.output.dims.as_deref() {
            Some([.., Dim::Fixed(classes)]) if *classes == alphabet.classes() => Ok(alphabet),
            _ => Err(unsupported(format!(
                "its metadata names {} characters, blank and space included, and its output is {}",
                alphabet.classes(),
                self.output.dims_text()
            ))),
        }
    }

    /// Hands the network to an engine.
    pub(super) async fn start(self, watch: &Watch) -> Result<Network> {
        watch.cancel.check()?;
        watch.report(Progress::Preparing);
        let usual = self.role.usual();
        let sizes = Sizes::load(&self.bundle, self.config.runtime, usual, &watch.cancel).await?;
        let precision = computed(&self.bundle, &**sizes.usual().current());
        Ok(Network {
            sizes,
            input: self.input.name,
            output: self.output.name,
            hub: self.hub,
            stored: self.stored,
            precision,
        })
    }
}

impl Network {
    /// The engines, or those of the usual size where there are some for each.
    pub(super) fn engines(&self) -> &Engines {
        self.sizes.usual()
    }

    /// Notes where its file is from, and how its weights are stored.
    pub(super) fn note(&self, effective: &mut EffectiveConfig, config: &EmbeddingConfig) {
        self.hub.note(effective, config);
        let dtype = config.model.dtype;
        self.stored.note(effective, dtype, self.precision);
    }

    /// Runs pictures of one size, and gives the values of each.
    ///
    /// # Errors
    /// [`Error::Engine`] for failures of the engine; [`Error::InvalidOutput`] where it gives no values for each picture.
    pub(super) async fn run(
        &self,
        pictures: &[&PixelValues],
        cancel: &Cancel,
    ) -> Result<Vec<Vec<f32>>> {
        let mut rows = Vec::with_capacity(pictures.len());
        for together in pictures.chunks(self.sizes.together()) {
            rows.extend(self.run_together(together, cancel).await?);
        }
        Ok(rows)
    }

    async fn run_together(
        &self,
        pictures: &[&PixelValues],
        cancel: &Cancel,
    ) -> Result<Vec<Vec<f32>>> {
        let Some(first) = pictures.first() else {
            return Ok(Vec::new());
        };
        let shape = [pictures.len(), first.channels, first.height, first.width];
        let engines = self.sizes.of((first.height, first.width), cancel).await?;
        engines.recover(cancel).await;
        let mut engine = engines.current();
        let mut output = loop {
            let mut tensor = engine.alloc(DType::F32, &shape)?;
            let rows = tensor
                .as_mut_slice::<f32>()?
                .chunks_exact_mut(first.data.len().max(1));
            for (row, picture) in rows.zip(pictures) {
                row.copy_from_slice(&picture.data);
            }
            let batch = Batch {
                inputs: vec![NamedTensor::new(self.input.as_str(), tensor)],
                ..Batch::default()
            };
            match engine.run(batch, cancel).await {
                Ok(output) => break output,
                Err(error) => engine = engines.after_loss(engine, error, cancel).await?,
            }
        };
        let found = output.take(&self.output);
        let got = || match &found {
            Some(tensor) => format!("{:?} of {}", tensor.shape(), tensor.dtype()),
            None => "nothing".into(),
        };
        let values = found
            .as_ref()
            .filter(|tensor| tensor.shape().first() == Some(&pictures.len()));
        let Some(values) = values.and_then(|tensor| tensor.as_slice::<f32>().ok()) else {
            return Err(Error::InvalidOutput {
                wanted: format!(
                    "{} with a row for each of {} pictures",
                    self.output,
                    pictures.len()
                ),
                got: got(),
            });
        };
        let rows = values.chunks_exact((values.len() / pictures.len()).max(1));
        Ok(rows.map(<[f32]>::to_vec).collect())
    }
}

/// The input and the output of a graph, if it does what is asked.
fn ends(role: Role, bundle: &ModelBundle) -> Result<(ValueDescription, ValueDescription)> {
    let graph = bundle.graph.graph.as_ref();
    let described = |values: &[_]| values.iter().map(describe_value).collect::<Vec<_>>();
    let inputs = graph.map_or(Vec::new(), |graph| described(&graph.input));
    let outputs = graph.map_or(Vec::new(), |graph| described(&graph.output));
    if let ([input], [output]) = (&inputs[..], &outputs[..])
        && input.dtype == Some(DType::F32)
        && matches!(
            input.dims.as_deref(),
            Some([_, Dim::Fixed(3) | Dim::Symbolic(_), _, _])
        )
        && role.fits(output)
    {
        return Ok((input.clone(), output.clone()));
    }
    let texts = |values: &[ValueDescription]| {
        let text = |value: &ValueDescription| format!("{} {}", value.name, value.dims_text());
        values.iter().map(text).collect::<Vec<_>>().join(", ")
    };
    Err(EngineError::UnsupportedModel {
        origin: format!("{}: {}", bundle.origin, bundle.model_file),
        reason: format!(
            "it is not {}: its inputs are {}, its outputs {}",
            role.wanted(),
            texts(&inputs),
            texts(&outputs)
        ),
        hint: "Name the file for each of the three networks; PP-OCRv4's are read".into(),
    }
    .into())
}
