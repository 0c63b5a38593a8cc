//! The figures, as a table and as JSON.

use std::fmt;

use isovec::blocking::Embedder;
use serde::Serialize;

use super::callers::Callers;
use super::compare::Comparison;
use super::curves::Point;
use super::offline::Offline;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    model: String,
    provider: String,
    batch_tokens: String,
    offline: Offline,
    many_callers: Callers,
    #[serde(skip_serializing_if = "Option::is_none")]
    curves: Option<Vec<Point>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<Comparison>,
}

impl Report {
    pub(super) fn new(
        embedder: &Embedder,
        offline: Offline,
        many_callers: Callers,
        curves: Option<Vec<Point>>,
        comparison: Option<Comparison>,
    ) -> Self {
        let knob = embedder.effective_config().get("batching.max_batch_tokens");
        Self {
            model: embedder.model_name().to_owned(),
            provider: embedder.provider().to_string(),
            batch_tokens: knob
                .map_or_else(String::new, |knob| format!("{} ({})", knob.used, knob.why)),
            offline,
            many_callers,
            curves,
            comparison,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Offline {
            texts,
            given,
            tokens,
            ways,
            bands,
        } = &self.offline;
        writeln!(f, "{} on {}", self.model, self.provider)?;
        writeln!(f, "tokens of a batch: {}", self.batch_tokens)?;
        writeln!(f, "{texts} of {given} texts, {tokens} tokens\n")?;
        writeln!(
            f,
            "{:<36} {:>9} {:>10} {:>8} {:>8}",
            "", "texts/s", "tokens/s", "padding", "isovec"
        )?;
        let own = ways.first().map_or(0.0, |way| way.texts_per_second);
        for way in ways {
            writeln!(
                f,
                "{:<36} {:>9.1} {:>10.0} {:>7.1}% {:>7.2}x",
                way.name,
                way.texts_per_second,
                way.tokens_per_second,
                way.padding * 100.0,
                own / way.texts_per_second
            )?;
        }
        writeln!(
            f,
            "\n{:<20} {:>7} {:>14} {:>14} {:>8}",
            "texts by tokens", "texts", "one call, /s", "one by one, /s", "isovec"
        )?;
        for band in bands {
            writeln!(
                f,
                "{:<20} {:>7} {:>14.1} {:>14.1} {:>7.2}x",
                band.lengths.to_string(),
                band.texts,
                band.planned_texts_per_second,
                band.one_by_one_texts_per_second,
                band.planned_texts_per_second / band.one_by_one_texts_per_second
            )?;
        }
        let callers = &self.many_callers;
        writeln!(
            f,
            "\n{:<36} {:>9} {:>10} {:>10}",
            format!("{} callers, a text each", callers.callers),
            "texts/s",
            "p50 ms",
            "p99 ms"
        )?;
        for (name, served) in [
            ("each for itself", callers.alone),
            ("joined by a DynamicBatcher", callers.joined),
        ] {
            writeln!(
                f,
                "{name:<36} {:>9.1} {:>10.1} {:>10.1}",
                served.texts_per_second, served.p50_milliseconds, served.p99_milliseconds
            )?;
        }
        writeln!(
            f,
            "{:.1} texts a batch of those that waited; a single caller waits {:.3} ms longer",
            callers.texts_per_batch, callers.added_milliseconds
        )?;
        if let (Some(target), Some(late)) = (&callers.target_latency, callers.late) {
            writeln!(
                f,
                "{:.1}% took longer than batching.target_latency, {target}",
                late * 100.0
            )?;
        }
        if let Some(points) = &self.curves {
            curves(f, points)?;
        }
        if let Some(comparison) = &self.comparison {
            write!(f, "\n{comparison}")?;
        }
        Ok(())
    }
}

fn curves(f: &mut fmt::Formatter<'_>, points: &[Point]) -> fmt::Result {
    writeln!(
        f,
        "\n{:<20} {:>14} {:>9} {:>10} {:>10}",
        "tokens of a text", "texts a call", "texts/s", "p50 ms", "p99 ms"
    )?;
    for point in points {
        writeln!(
            f,
            "{:<20} {:>14} {:>9.1} {:>10.2} {:>10.2}",
            point.tokens,
            point.texts,
            point.texts_per_second,
            point.p50_milliseconds,
            point.p99_milliseconds
        )?;
    }
    Ok(())
}
