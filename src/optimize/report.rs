//! What was done to a model and what that changed, for people and for programs.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::describe;
use isovec_model::precision::{BLOCK, widened};
use isovec_optimize::int4::Matrix;
use isovec_optimize::int8::Product;
use isovec_optimize::pruning::{Pruned, Unit};
use isovec_optimize::simplify::Passed;
use serde::Serialize;

use crate::source::ModelSource;

/// The result of [`optimize`](crate::optimize()). As JSON it has the names of these fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The original.
    pub before: Side,
    /// What was made of it.
    pub after: Side,
    /// Every technique, whether it was applied or not.
    pub steps: Vec<Step>,
    /// How the vectors compare, or the logits of a classifier of pictures; `None` without texts and pictures.
    pub quality: Option<Quality>,
    /// How fast both are; `None` without texts and pictures.
    pub speed: Option<Speed>,
    /// Whether pictures were compared, and not texts.
    pub of_pictures: bool,
    /// What each pass did that was asked for; else empty.
    pub passes: Vec<Passed>,
    /// What became of each layer's columns and heads, where a share of the bytes was taken out; else empty.
    pub pruned: Vec<Pruned>,
    /// What became of each product, layer and table, where they were made of whole numbers; else empty.
    pub products: Vec<Product>,
    /// What became of each matrix and table, where they were stored in 4 bits; else empty.
    pub matrices: Vec<Matrix>,
    /// The files that were written.
    pub files: Vec<PathBuf>,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Components of a vector, where the result says it.
    pub dimension: Option<usize>,
}

/// The size of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Side {
    /// Where it came from.
    pub origin: String,
    /// The hash in its fingerprint.
    pub weights_identity: String,
    /// Bytes of the files with its weights; of a model that is in no folder, of the weights as isovec reads them.
    pub stored_bytes: u64,
    /// Bytes of its weights in f32, as engines hold them.
    pub weights_bytes: u64,
    /// Bytes of the small files beside it, the tokenizer among them.
    pub file_bytes: u64,
}

impl Side {
    pub(super) fn of(bundle: &ModelBundle) -> Self {
        let weights = bundle.weights.weights().iter();
        Self {
            origin: bundle.origin.clone(),
            weights_identity: bundle.identity.0.clone(),
            stored_bytes: weights.map(|info| info.byte_len() as u64).sum(),
            weights_bytes: describe(&widened(bundle)).weights_bytes,
            file_bytes: bundle.files.values().map(|file| file.len() as u64).sum(),
        }
    }

    /// The same with the size of the files that a folder has.
    pub(super) fn stored_in(mut self, source: &ModelSource, model_file: &str) -> Self {
        let ModelSource::Folder(folder) = source else {
            return self;
        };
        let path = folder.join(model_file);
        let beside = path.parent().and_then(|folder| fs::read_dir(folder).ok());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let files = beside.into_iter().flatten().flatten().filter(|entry| {
            let other = entry.file_name().to_string_lossy().into_owned();
            // A checkpoint may be in several files, and an ONNX file may have its weights beside it.
            match name.ends_with(".safetensors") {
                true => other.ends_with(".safetensors"),
                false => {
                    other == name
                        || [".data", "_data"]
                            .iter()
                            .any(|end| other == format!("{name}{end}"))
                }
            }
        });
        // What links lead to, as the hub's cache has files.
        let sizes = files.filter_map(|entry| Some(fs::metadata(entry.path()).ok()?.len()));
        let bytes: u64 = sizes.sum();
        if bytes > 0 {
            self.stored_bytes = bytes;
        }
        self
    }

    /// Bytes of weights and files.
    pub fn bytes(&self) -> u64 {
        self.stored_bytes + self.file_bytes
    }
}

/// A technique.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// Its name.
    pub technique: &'static str,
    /// Whether it was applied.
    pub applied: bool,
    /// What it changed, or why it was not applied.
    pub detail: String,
}

impl Step {
    pub(super) fn done(technique: &'static str, detail: String) -> Self {
        Self {
            technique,
            applied: true,
            detail,
        }
    }

    pub(super) fn left_out(technique: &'static str, why: &str) -> Self {
        Self {
            technique,
            applied: false,
            detail: why.to_owned(),
        }
    }
}

/// The vectors of texts before and after; where pictures were compared, a text stands for a picture in all that follows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Quality {
    /// Texts that were compared, each once.
    pub texts: usize,
    /// Texts whose vectors have the same bits.
    pub identical: usize,
    /// Cosine of each text's two vectors, on average; `None` where they have different dimensions.
    pub cosine_mean: Option<f64>,
    /// The smallest of these cosines.
    pub cosine_worst: Option<f64>,
    /// Of the ten texts nearest to each text, the share that is the same before and after; `None` below 11 texts.
    pub recall_at_10: Option<f64>,
    /// Spearman's rank correlation of the similarities of all pairs of texts, of the first 200 texts.
    pub rank_correlation: Option<f64>,
}

/// The time of both, measured in turns. Where pictures were compared, a text stands for a picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Speed {
    /// Texts of a turn.
    pub texts: usize,
    /// Texts a second of the original, in the median turn.
    pub before: f64,
    /// Texts a second of the result, in the median turn.
    pub after: f64,
    /// How many times as fast the result is: the median of the turns' quotients.
    pub times: f64,
    /// The smallest and the largest quotient of all turns.
    pub between: (f64, f64),
}

const MEGABYTE: f64 = 1e6;

impl Report {
    /// The rows of the report's table, each a name and a value.
    pub fn rows(&self) -> Vec<(String, String)> {
        let size = |bytes: u64| format!("{:.2} MB", bytes as f64 / MEGABYTE);
        let change = |before: u64, after: u64| {
            let less = 100.0 * (1.0 - after as f64 / before.max(1) as f64);
            format!(
                "{} → {} ({less:.1} % fewer bytes)",
                size(before),
                size(after)
            )
        };
        let (one, all) = match self.of_pictures {
            true => ("picture", "pictures"),
            false => ("text", "texts"),
        };
        let (before, after) = (&self.before, &self.after);
        let mut rows = vec![
            (
                "weights, as stored".to_owned(),
                change(before.stored_bytes, after.stored_bytes),
            ),
            (
                "weights in f32".to_owned(),
                change(before.weights_bytes, after.weights_bytes),
            ),
            (
                "tokenizer and settings".to_owned(),
                change(before.file_bytes, after.file_bytes),
            ),
        ];
        for step in &self.steps {
            let applied = if step.applied { "applied" } else { "left out" };
            rows.push((
                step.technique.to_owned(),
                format!("{applied}: {}", step.detail),
            ));
        }
        rows.extend(self.pruned.iter().map(left_of));
        for product in self.products.iter().filter(|product| !product.int8) {
            rows.push((format!("f32: {}", product.node), product.reason.clone()));
        }
        rows.extend(self.products.iter().filter_map(looked_at));
        rows.extend(self.matrices.iter().map(bits_of));
        if let Some(quality) = &self.quality {
            let texts = format!("{} of {}", quality.identical, quality.texts);
            rows.push((format!("{all} whose vectors have the same bits"), texts));
            let worst = format!("cosine, worst {one}");
            let figures = [
                ("cosine, mean", quality.cosine_mean),
                (worst.as_str(), quality.cosine_worst),
                ("recall@10", quality.recall_at_10),
                ("rank correlation (Spearman)", quality.rank_correlation),
            ];
            for (name, figure) in figures {
                rows.extend(figure.map(|figure| (name.to_owned(), format!("{figure:.4}"))));
            }
        }
        if let Some(speed) = &self.speed {
            let (least, most) = speed.between;
            let value = format!(
                "{:.1} → {:.1}, {:.2} times as fast (turns between {least:.2} and {most:.2})",
                speed.before, speed.after, speed.times
            );
            rows.push((format!("{all} a second"), value));
        }
        rows
    }

    /// The report in Markdown.
    pub fn to_markdown(&self) -> String {
        let mut out = format!("# {}, optimised\n\n| | |\n|---|---|\n", self.before.origin);
        for (name, value) in self.rows() {
            // Writing into a `String` cannot fail.
            let _ = writeln!(
                out,
                "| {} | {} |",
                name.replace('|', "\\|"),
                value.replace('|', "\\|")
            );
        }
        out
    }

    /// The report as a page that needs nothing but itself.
    pub fn to_html(&self) -> String {
        let title = escaped(&format!("{}, optimised", self.before.origin));
        let mut out = format!(
            "<!doctype html>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<style>body {{ font-family: sans-serif; margin: 2em }} \
             td {{ border-bottom: 1px solid #ccc; padding: 0.4em 1em 0.4em 0 }}</style>\n<h1>{title}</h1>\n<table>\n"
        );
        for (name, value) in self.rows() {
            let _ = writeln!(out, "<tr><td>{}<td>{}", escaped(&name), escaped(&value));
        }
        out.push_str("</table>\n");
        out
    }
}

/// The row of a region: what is left of it.
fn left_of(pruned: &Pruned) -> (String, String) {
    let name = match pruned.unit {
        Unit::Heads => "heads",
        Unit::Channels => "channels",
        _ => "columns",
    };
    let left = match pruned.kept {
        0 => format!("the layer is left out, with its {} {name}", pruned.units),
        kept if kept == pruned.units => format!("all {kept} {name}"),
        kept => format!("{kept} of {} {name}", pruned.units),
    };
    (format!("left: {}", pruned.matrix), left)
}

/// The row of a node that was looked at alone.
fn looked_at(product: &Product) -> Option<(String, String)> {
    let alone = product.alone?;
    let mut told = format!(
        "alone in int8 a cosine of {:.6}, worst {:.6}",
        alone.cosine_mean, alone.cosine_worst
    );
    if let Some(ratio) = product.sqnr {
        told += &format!("; {ratio:.1} dB of signal to noise");
    }
    if let Some(error) = product.mse {
        told += &format!(", mean squared error {error:.2e}");
    }
    Some((format!("int8: {}", product.node), told))
}

/// The row of a matrix: its bits, and what they leave of it.
fn bits_of(matrix: &Matrix) -> (String, String) {
    let (name, ratio) = (&matrix.name, matrix.sqnr.unwrap_or(f64::INFINITY));
    if matrix.parts.is_empty() {
        let why = match matrix.sqnr {
            Some(ratio) => format!("{ratio:.1} dB of signal to noise in 4 bits"),
            None => format!("its extent is no multiple of {BLOCK}"),
        };
        return (format!("not in few bits: {name}"), why);
    }
    let bits: Vec<String> = match matrix.parts.as_slice() {
        [part] => vec![format!("{} bits", part.bits)],
        parts => {
            let parts = parts.iter();
            let told = parts.map(|part| format!("{} rows in {} bits", part.rows, part.bits));
            told.collect()
        }
    };
    let for_texts = match matrix.for_texts {
        true => ", rounded for the texts",
        false => "",
    };
    let why = format!(
        "{}: {} values, {ratio:.1} dB of signal to noise{for_texts}",
        bits.join(", "),
        matrix.values
    );
    (format!("in few bits: {name}"), why)
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_is_smaller_and_what_was_left_out() {
        let side = |stored_bytes| Side {
            origin: "a <b> | c".into(),
            weights_identity: "0".into(),
            stored_bytes,
            weights_bytes: stored_bytes,
            file_bytes: 1000,
        };
        let report = Report {
            before: side(8_000_000),
            after: side(2_000_000),
            steps: vec![Step::left_out("precision", "nobody asked")],
            quality: None,
            speed: None,
            of_pictures: false,
            passes: Vec::new(),
            pruned: Vec::new(),
            products: Vec::new(),
            matrices: Vec::new(),
            files: Vec::new(),
            bytes: 0,
            dimension: Some(3),
        };
        let markdown = report.to_markdown();
        assert!(
            markdown.contains("8.00 MB → 2.00 MB (75.0 % fewer bytes)"),
            "{markdown}"
        );
        assert!(markdown.contains("left out: nobody asked"), "{markdown}");
        let html = report.to_html();
        assert!(
            html.contains("a &lt;b&gt; | c") && !html.contains("<b>"),
            "{html}"
        );
    }
}
