//! Pictures become text.

use std::sync::Arc;

use futures_util::lock::Mutex;
use futures_util::{StreamExt as _, TryFutureExt as _, TryStreamExt as _, stream};
use isovec_engine::cancel::Cancel;
use isovec_engine::effective::EffectiveConfig;
use isovec_engine::engine::ProviderInfo;
use isovec_engine::maybe_send::{BoxFuture, MaybeSend};
use isovec_image::{Image, PixelValues};
use isovec_ocr::{
    Alphabet, Line, OcrError, Page, Quad, is_upside_down, line_input, turned, upright_input,
};

use super::asking::{Asking, ask_for_text};
use super::network::{Network, Opened, Role};
use super::{PictureText, TextLine, effective};
use crate::backend;
use crate::error::{Error, Result};
use crate::fallback;
use crate::loading::{Asked, Loading};
use crate::model::OwnCancel;
use crate::pictures::Picture;
use crate::source::ModelSource;

/// Pictures of a call that are under way together: while a network runs for one, another is decoded, or its lines are cut out.
const AT_ONCE: usize = 2;

/// Lines that are run together, at most.
const TOGETHER: usize = 8;

/// Loads the networks that read text; from [`TextReader::builder`]. Options that are not set are as in
/// [`EmbeddingConfig::default`](crate::EmbeddingConfig).
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct TextReaderBuilder {
    pub(crate) loading: Loading,
    pub(crate) asking: Asking,
}

ask_for_text!(TextReaderBuilder);

impl TextReaderBuilder {
    /// Loads the three networks, or two.
    ///
    /// # Errors
    /// [`Error::Config`] with all faults of the configuration; [`Error::Engine`] for all else, such as a file that is not the
    /// network that it is named for.
    pub fn load(self) -> BoxFuture<'static, Result<TextReader>> {
        Box::pin(async move {
            let Asked {
                source,
                config,
                watch,
            } = self.loading.asked();
            let config = config.build()?;
            fallback::check(&config.runtime)?;
            let asking = self.asking;
            if !(0.0..=1.0).contains(&asking.min_score) {
                let score = asking.min_score;
                return Err(Error::Config(vec![format!(
                    "min_score is {score}, and scores are from 0 to 1"
                )]));
            }
            let name = source.to_string();
            let open = |role, file| Opened::read(role, file, source.clone(), &config, &watch);
            let detector = open(Role::Detector, &asking.detector).await?;
            let orientation = match &asking.orientation {
                Some(file) => Some(open(Role::Orientation, file).await?),
                None => None,
            };
            let recognizer = open(Role::Recognizer, &asking.recognizer).await?;
            let alphabet = recognizer.alphabet()?;
            let detector = detector.start(&watch).await?;
            let orientation = match orientation {
                Some(orientation) => Some(orientation.start(&watch).await?),
                None => None,
            };
            let recognizer = recognizer.start(&watch).await?;
            let effective = effective::of(&config, &detector, &asking.detector);
            Ok(TextReader(Arc::new(Networks {
                name,
                detector,
                orientation,
                recognizer,
                alphabet,
                asking,
                effective,
            })))
        })
    }
}

/// Reads the text of pictures with PP-OCR's networks: finds lines, turns those that stand on their head, and recognises each.
/// Clones are cheap and share the networks.
///
/// The files are those of the Python package rapidocr-onnxruntime 1.4.4, and boxes and strings are its own: around the networks,
/// [`isovec_ocr`] computes what rapidocr and OpenCV 4.10 compute. A line is recognised by itself, so its text does not depend on its
/// neighbours.
///
/// ```no_run
/// # async fn example() -> isovec::Result<()> {
/// use isovec::{Picture, TextReader};
///
/// let reader = TextReader::load("./pp-ocrv4").await?;
/// for line in reader.read_one(Picture::open("receipt.jpg")?).await?.lines {
///     println!("{:.2} {:?} {}", line.score, line.corners[0], line.text);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct TextReader(Arc<Networks>);

/// Options of a call that reads pictures.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReadingOptions {
    /// Stops the work when cancelled, as dropping the future does.
    pub cancel: Option<Cancel>,
}

impl ReadingOptions {
    /// Stops the work when `cancel` is cancelled.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }
}

#[derive(Debug)]
struct Networks {
    name: String,
    detector: Network,
    orientation: Option<Network>,
    recognizer: Network,
    alphabet: Alphabet,
    asking: Asking,
    effective: EffectiveConfig,
}

impl TextReader {
    /// Loads the networks of a folder, a hub's model or other files with the default configuration. [`builder`](Self::builder) says
    /// more.
    ///
    /// # Errors
    /// As [`TextReaderBuilder::load`].
    pub fn load(source: impl Into<ModelSource>) -> BoxFuture<'static, Result<Self>> {
        Self::builder(source).load()
    }

    /// Options of loading: files, device, configuration, scores, progress, cancellation.
    pub fn builder(source: impl Into<ModelSource>) -> TextReaderBuilder {
        TextReaderBuilder::new(source)
    }

    /// Reads pictures, two at a time, in their order. A picture without text has no lines. An empty list gives an empty list.
    ///
    /// Dropping the future ends the work.
    ///
    /// # Errors
    /// [`Picture`](Error::Picture) names the picture that cannot be decoded, and [`Reading`](Error::Reading) the one that is too long
    /// and narrow or of which a network makes something else than it should; [`Engine`](Error::Engine) for failures of an engine.
    pub fn read<P: Into<Picture>>(
        &self,
        pictures: impl IntoIterator<Item = P>,
    ) -> BoxFuture<'static, Result<Vec<PictureText>>> {
        self.read_with(pictures, ReadingOptions::default())
    }

    /// Reads pictures as [`read`](Self::read) does, with options.
    ///
    /// # Errors
    /// As there, and [`Engine`](Error::Engine) with `Cancelled` where the call was cancelled.
    pub fn read_with<P: Into<Picture>>(
        &self,
        pictures: impl IntoIterator<Item = P>,
        options: ReadingOptions,
    ) -> BoxFuture<'static, Result<Vec<PictureText>>> {
        let networks = Arc::clone(&self.0);
        let pictures: Vec<Picture> = pictures.into_iter().map(Into::into).collect();
        Box::pin(async move {
            let (networks, call) = (&*networks, &Call::new(options.cancel));
            let reads = pictures.into_iter().enumerate().map(|(place, picture)| {
                let read = networks.read(picture, call);
                read.map_err(move |error| error.moved_by(place))
            });
            stream::iter(reads).buffered(AT_ONCE).try_collect().await
        })
    }

    /// Reads one picture.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_one(&self, picture: impl Into<Picture>) -> BoxFuture<'static, Result<PictureText>> {
        let networks = Arc::clone(&self.0);
        let picture = picture.into();
        Box::pin(async move { networks.read(picture, &Call::new(None)).await })
    }

    /// Reads pixels. The npm package's decoders are in a module of their own, which this one does not link.
    pub(crate) fn read_pixels(
        &self,
        image: Image,
        cancel: Cancel,
    ) -> BoxFuture<'static, Result<PictureText>> {
        let networks = Arc::clone(&self.0);
        Box::pin(async move {
            let call = Call::new(Some(cancel));
            networks
                .read_decoded(image, &call, |image| Ok(image.clone()))
                .await
        })
    }

    /// The model's name: the id, folder or name that it was loaded by.
    pub fn model_name(&self) -> &str {
        &self.0.name
    }

    /// The provider that really computes the detector, which takes most of the time.
    pub fn provider(&self) -> &ProviderInfo {
        self.0.detector.engines().current().provider()
    }

    /// The value in effect of each knob, with the reason. Where networks differ, it is the detector's.
    pub fn effective_config(&self) -> &EffectiveConfig {
        &self.0.effective
    }
}

/// A picture on its page, with what the detector reads of it.
struct Laid {
    page: Page,
    size: (usize, usize),
    values: PixelValues,
}

/// A line that was found, with what the network of directions reads of it, if there is one.
struct Found {
    corners: Quad,
    crop: Image,
    upright: Option<PixelValues>,
}

/// What the pictures of a call share.
struct Call {
    cancel: Option<Cancel>,
    /// Held while a network runs, which computes on all cores: two at once would wait for each other.
    turn: Mutex<()>,
}

impl Call {
    fn new(cancel: Option<Cancel>) -> Self {
        Self {
            cancel,
            turn: Mutex::new(()),
        }
    }
}

/// The way of one picture through the networks.
struct Way<'a> {
    cancel: &'a Cancel,
    turn: &'a Mutex<()>,
}

impl Way<'_> {
    async fn run(&self, network: &Network, pictures: &[&PixelValues]) -> Result<Vec<Vec<f32>>> {
        let _turn = self.turn.lock().await;
        network.run(pictures, self.cancel).await
    }
}

impl Networks {
    async fn read(&self, picture: Picture, call: &Call) -> Result<PictureText> {
        let decoding = self.asking.decoding;
        self.read_decoded(picture, call, move |picture| picture.decode(&decoding))
            .await
    }

    /// Reads a picture that `decode` makes pixels of.
    async fn read_decoded<P: MaybeSend + 'static>(
        &self,
        picture: P,
        call: &Call,
        decode: impl Fn(&P) -> isovec_image::Result<Image> + MaybeSend + 'static,
    ) -> Result<PictureText> {
        // Whoever drops the future cancels what is under way.
        let own = OwnCancel::linked(call.cancel.as_ref());
        let cancel = &own.0;
        let way = Way {
            cancel,
            turn: &call.turn,
        };
        let laid = in_background("decoding a picture", picture, cancel, move |picture: &P| {
            let picture = decode(picture).map_err(OcrError::from)?;
            let size = (picture.width(), picture.height());
            let page = Page::new(picture)?;
            let values = page.detector_input()?;
            Ok(Laid { page, size, values })
        });
        let Laid { page, size, values } = laid.await?;
        let mut maps = way.run(&self.detector, &[&values]).await?;
        let page = Arc::new(page);
        let map = maps.pop().unwrap_or_default();
        let found = self.lines(Arc::clone(&page), map, cancel).await?;
        let upside_down = self.upside_down(&found, &way).await?;
        let (corners, crops): (Vec<Quad>, Vec<Image>) = found
            .into_iter()
            .map(|line| (line.corners, line.crop))
            .unzip();
        let inputs = in_background(
            "making lines ready",
            (crops, upside_down),
            cancel,
            |(crops, upside_down)| {
                let lines = crops.iter().zip(upside_down);
                let inputs = lines.map(|(crop, is_upside_down)| match is_upside_down {
                    true => line_input(&turned(crop)?),
                    false => line_input(crop),
                });
                Ok(inputs.collect::<Result<Vec<_>, OcrError>>()?)
            },
        );
        let read = self.recognized(&inputs.await?, &way).await?;
        let lines = corners
            .iter()
            .zip(read)
            .filter(|(_, line)| line.score >= self.asking.min_score);
        let lines = lines.map(|(corners, line)| TextLine {
            text: line.text,
            score: line.score,
            corners: page.on_picture(corners),
        });
        Ok(PictureText {
            width: size.0,
            height: size.1,
            lines: lines.collect(),
        })
    }

    /// The lines of a page in a detector's map.
    async fn lines(&self, page: Arc<Page>, map: Vec<f32>, cancel: &Cancel) -> Result<Vec<Found>> {
        let asks_for_directions = self.orientation.is_some();
        in_background("finding lines", (page, map), cancel, move |(page, map)| {
            let mut found = Vec::new();
            for corners in page.boxes(map)? {
                if let Some(crop) = page.crop(&corners)? {
                    let upright = asks_for_directions
                        .then(|| upright_input(&crop))
                        .transpose()?;
                    found.push(Found {
                        corners,
                        crop,
                        upright,
                    });
                }
            }
            Ok(found)
        })
        .await
    }

    /// Which lines stand on their head.
    async fn upside_down(&self, found: &[Found], way: &Way<'_>) -> Result<Vec<bool>> {
        let Some(orientation) = &self.orientation else {
            return Ok(vec![false; found.len()]);
        };
        let inputs: Vec<&PixelValues> = found
            .iter()
            .filter_map(|line| line.upright.as_ref())
            .collect();
        let mut answers = Vec::with_capacity(found.len());
        for together in inputs.chunks(TOGETHER) {
            for values in way.run(orientation, together).await? {
                answers.push(is_upside_down(&values)?);
            }
        }
        Ok(answers)
    }

    /// The text of each line.
    async fn recognized(&self, inputs: &[PixelValues], way: &Way<'_>) -> Result<Vec<Line>> {
        // Only lines that are padded to one width run together.
        let mut order: Vec<usize> = (0..inputs.len()).collect();
        order.sort_by_key(|&place| inputs[place].width);
        let mut read = vec![Line::default(); inputs.len()];
        for same in order.chunk_by(|&one, &other| inputs[one].width == inputs[other].width) {
            for together in same.chunks(TOGETHER) {
                let values: Vec<&PixelValues> =
                    together.iter().map(|&place| &inputs[place]).collect();
                let answers = way.run(&self.recognizer, &values).await?;
                for (&place, values) in together.iter().zip(answers) {
                    read[place] = self.alphabet.decode(&values)?;
                }
            }
        }
        Ok(read)
    }
}

/// Does one piece of work where isovec's own threads are.
async fn in_background<T, R>(
    doing: &'static str,
    item: T,
    cancel: &Cancel,
    work: impl Fn(&T) -> Result<R> + MaybeSend + 'static,
) -> Result<R>
where
    T: MaybeSend + 'static,
    R: MaybeSend + 'static,
{
    let work = move |items: &[T]| items.iter().map(&work).collect();
    let mut done = backend::in_slices(doing, vec![item], cancel.clone(), work).await?;
    // One for the one that was given.
    done.pop().ok_or(Error::Panicked {
        doing,
        detail: "it gave nothing".into(),
    })
}
