//! Embeds chunks.

use std::ops::Range;
use std::sync::Arc;

use isovec_engine::cancel::Cancel;
use isovec_engine::profile::Scope;

use super::combine::{Combine, Combined};
use super::{ChunkOptions, Chunker};
use crate::backend;
use crate::embeddings::Embeddings;
use crate::error::{Error, Result};
use crate::model::{EmbedOptions, Model, OwnCancel, Vectors};

/// Texts or chunks that are worked on together, at most.
const COUNT: usize = 1024;
/// Bytes of them, at most, except for a single longer one.
const BYTES: usize = 1 << 20;

/// Where a chunk lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ChunkPlace {
    /// The text's place in the list.
    pub text: usize,
    /// Bytes of the text.
    pub range: Range<usize>,
}

/// The vectors of the chunks of texts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EmbeddedChunks {
    /// One vector a chunk: those of the first text, then those of the second, each in order.
    pub embeddings: Embeddings,
    /// Where the chunk of each vector lies.
    pub places: Vec<ChunkPlace>,
}

/// One vector a chunk.
pub(crate) async fn embed_chunks(
    model: Arc<Model>,
    texts: Vec<String>,
    options: ChunkOptions,
    embed: EmbedOptions,
) -> Result<EmbeddedChunks> {
    let call = model.recorder.call();
    let mut request = model.profiler.request(texts.len());
    let result = chunked(&model, texts, options, embed, request.scope()).await;
    request.ended(Error::ended(&result));
    call.ended(&result);
    result
}

async fn chunked(
    model: &Arc<Model>,
    texts: Vec<String>,
    options: ChunkOptions,
    embed: EmbedOptions,
    scope: &Scope,
) -> Result<EmbeddedChunks> {
    let form = model.form(&embed)?;
    let (mut values, mut tokens, mut truncated) = (Vec::new(), Vec::new(), Vec::new());
    let mut places = Vec::new();
    let each = |place: ChunkPlace, vector: &[f32], count: u32, cut: bool| {
        values.extend_from_slice(vector);
        tokens.push(count);
        truncated.push(cut);
        places.push(place);
        Ok(())
    };
    let prompt = each_chunk(model, texts, &options, embed, false, scope, each).await?;
    let embeddings = model.set(&form, values, tokens, truncated, prompt)?;
    Ok(EmbeddedChunks { embeddings, places })
}

/// One vector a text.
pub(crate) async fn embed_long(
    model: Arc<Model>,
    texts: Vec<String>,
    options: ChunkOptions,
    combine: Combine,
    embed: EmbedOptions,
) -> Result<Embeddings> {
    let call = model.recorder.call();
    let mut request = model.profiler.request(texts.len());
    let long = combined(&model, texts, options, combine, embed, request.scope());
    let result = long.await;
    request.ended(Error::ended(&result));
    call.ended(&result);
    result
}

async fn combined(
    model: &Arc<Model>,
    texts: Vec<String>,
    options: ChunkOptions,
    combine: Combine,
    embed: EmbedOptions,
    scope: &Scope,
) -> Result<Embeddings> {
    let form = model.form(&embed)?;
    let mut rows = Combining {
        normalized: form.normalized,
        open: None,
        values: Vec::new(),
        tokens: Vec::new(),
        truncated: Vec::new(),
    };
    let (prefix, _) = model.prompts.resolve(&embed.prompt)?;
    let fixed = model.count_with(&prefix, "")?;
    let fixed = u32::try_from(fixed).unwrap_or(u32::MAX);
    let each = |place: ChunkPlace, vector: &[f32], tokens: u32, truncated: bool| {
        if rows
            .open
            .as_ref()
            .is_none_or(|&(text, _)| text != place.text)
        {
            rows.close()?;
        }
        let (_, combined) = rows
            .open
            .get_or_insert_with(|| (place.text, Combined::new(combine)));
        combined.add(vector, tokens, fixed, truncated);
        Ok(())
    };
    let prompt = each_chunk(model, texts, &options, embed, true, scope, each).await?;
    rows.close()?;
    model.set(&form, rows.values, rows.tokens, rows.truncated, prompt)
}

/// The vectors of whole texts so far.
struct Combining {
    normalized: bool,
    /// The current text, and its combined chunks so far.
    open: Option<(usize, Combined)>,
    values: Vec<f32>,
    tokens: Vec<u32>,
    truncated: Vec<bool>,
}

impl Combining {
    fn close(&mut self) -> Result<()> {
        if let Some((text, combined)) = self.open.take() {
            self.tokens.push(combined.tokens);
            self.truncated.push(combined.truncated);
            combined.finish(text, self.normalized, &mut self.values)?;
        }
        Ok(())
    }
}

/// Hands every chunk's vector, its tokens and whether it was truncated to `each`, in order, and
/// gives the prompt's name. Texts are cut and chunks are run in windows, so that only the results
/// grow with the list. `whole`: every text is to have a vector, also one without a chunk.
async fn each_chunk(
    model: &Arc<Model>,
    texts: Vec<String>,
    options: &ChunkOptions,
    mut embed: EmbedOptions,
    whole: bool,
    scope: &Scope,
    mut each: impl FnMut(ChunkPlace, &[f32], u32, bool) -> Result<()>,
) -> Result<Option<String>> {
    let (_, prompt) = model.prompts.resolve(&embed.prompt)?;
    let chunker = Arc::new(Chunker::new(model, options, &embed)?);
    let cancel = OwnCancel::linked(embed.cancel.as_ref());
    embed.cancel = Some(cancel.0.clone());
    let mut texts = texts.into_iter().map(Arc::<str>::from).peekable();
    let mut text_index = 0;
    let mut pieces = Window::default();
    while texts.peek().is_some() {
        let mut window = Window::default();
        while let Some(text) = texts.next_if(|text| window.has_room(text.len())) {
            window.push(text.len(), text);
        }
        let (chunker, stop) = (Arc::clone(&chunker), cancel.0.clone());
        let cut = move |texts: &[Arc<str>]| {
            let ranges = texts.iter().map(|text| chunker.ranges(text, whole, &stop));
            ranges.collect()
        };
        let cutting = backend::in_slices("chunking", window.items.clone(), cancel.0.clone(), cut);
        for (text, ranges) in window.items.iter().zip(cutting.await?) {
            for range in ranges {
                if !pieces.has_room(range.len()) {
                    run(model, &mut pieces, &embed, scope, &mut each).await?;
                }
                let piece = text[range.clone()].to_owned();
                let place = ChunkPlace {
                    text: text_index,
                    range,
                };
                pieces.push(piece.len(), (place, piece));
            }
            text_index += 1;
        }
    }
    run(model, &mut pieces, &embed, scope, &mut each).await?;
    Ok(prompt)
}

/// Embeds the chunks of a window, and empties it.
async fn run(
    model: &Arc<Model>,
    window: &mut Window<(ChunkPlace, String)>,
    embed: &EmbedOptions,
    scope: &Scope,
    each: &mut impl FnMut(ChunkPlace, &[f32], u32, bool) -> Result<()>,
) -> Result<()> {
    let (places, texts): (Vec<_>, Vec<_>) = std::mem::take(window).items.into_iter().unzip();
    let embedded = Arc::clone(model)
        .all::<Vectors, _>(texts, embed.clone(), scope)
        .await;
    let embedded = embedded.map_err(|error| error.moved(|chunk| places[chunk].text))?;
    let counted = embedded.token_counts().iter().zip(embedded.truncated());
    for ((place, vector), (&tokens, &truncated)) in places.into_iter().zip(&embedded).zip(counted) {
        each(place, vector, tokens, truncated)?;
    }
    Ok(())
}

/// Texts that are worked on together.
struct Window<T> {
    items: Vec<T>,
    bytes: usize,
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            bytes: 0,
        }
    }
}

impl<T> Window<T> {
    fn has_room(&self, bytes: usize) -> bool {
        let fits = self.bytes.saturating_add(bytes) <= BYTES;
        self.items.is_empty() || (self.items.len() < COUNT && fits)
    }

    fn push(&mut self, bytes: usize, item: T) {
        self.bytes += bytes;
        self.items.push(item);
    }
}

impl Chunker {
    /// The parts of a text that are embedded.
    fn ranges(&self, text: &str, whole: bool, cancel: &Cancel) -> Result<Vec<Range<usize>>> {
        let chunks = self.chunks(text, cancel)?;
        // What no token stands for (zero bytes, say, for a model without special tokens) has no
        // vector, and does not keep the rest of the text from having one.
        let chunks = chunks.into_iter().filter(|chunk| chunk.tokens > 0);
        let mut ranges: Vec<Range<usize>> = chunks.map(|chunk| chunk.range).collect();
        // Behind a prompt even the white space at the start may be tokens. A text that is seen
        // whole is embedded as `embed` would.
        let all = match ranges.as_slice() {
            _ if !whole => false,
            [] => true,
            [only] if only.start > 0 && !self.prefix.is_empty() => {
                self.model.count_with(&self.prefix, text)? <= self.limits.max
            }
            _ => false,
        };
        if all {
            ranges.clear();
            ranges.push(0..text.len());
        }
        Ok(ranges)
    }
}
