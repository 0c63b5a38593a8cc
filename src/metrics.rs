//! Statistics as OpenMetrics text, which Prometheus and others scrape
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>, version 1.0): units are base units and part of the
//! name, counters end in `_total`, times are summaries.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use isovec_engine::stats::{GpuStats, Latency};

use crate::stats::{EmbeddingCacheStats, Stats};

impl Stats {
    /// The statistics as OpenMetrics text. Serve it under
    /// `application/openmetrics-text; version=1.0.0; charset=utf-8`.
    pub fn to_open_metrics(&self) -> String {
        let mut text = Text::default();
        // A String takes all that is written.
        let _ = text.stats(self);
        text.page()
    }
}

/// The statistics of several models as one page of OpenMetrics text, on which every sample has the label `model` with the name
/// that stands before its statistics here.
pub fn open_metrics<'a>(models: impl IntoIterator<Item = (&'a str, &'a Stats)>) -> String {
    let mut text = Text::default();
    for (name, stats) in models {
        text.model = Some(name);
        // A String takes all that is written.
        let _ = text.stats(stats);
    }
    text.page()
}

/// Names and values of a sample's labels.
type Labels<'a> = &'a [(&'a str, &'a str)];

/// A page that is being written. A family stands there once, with the samples of all models.
#[derive(Default)]
struct Text<'a> {
    /// What comes before a family's samples, and these.
    families: Vec<(String, String)>,
    /// The family whose samples are being written.
    at: usize,
    /// The value of the label `model`, where there are several.
    model: Option<&'a str>,
}

impl Text<'_> {
    fn page(self) -> String {
        let families = self.families.into_iter();
        let mut page: String = families.map(|(head, samples)| head + &samples).collect();
        page.push_str("# EOF\n");
        page
    }

    fn stats(&mut self, stats: &Stats) -> fmt::Result {
        let engine = &stats.engine;
        self.family("isovec", "info", None, "What computes.")?;
        let by = [
            ("engine", engine.provider.engine.as_str()),
            ("provider", &engine.provider.selected),
        ];
        self.sample("isovec_info", &by, 1)?;

        let calls = stats.calls;
        self.counters(
            "isovec_calls",
            "Calls by how they ended.",
            "outcome",
            &[
                ("embedded", calls.embedded),
                ("failed", calls.failed),
                ("cancelled", calls.cancelled),
            ],
        )?;
        self.counter("isovec_texts", "Texts that were tokenised.", calls.texts)?;
        let help = "Texts of which the model saw only a part.";
        self.counter("isovec_truncated_texts", help, calls.truncated)?;
        self.counter("isovec_batches", "Batches that were run.", calls.batches)?;
        self.counters(
            "isovec_tokens",
            "Positions that were computed: tokens of texts, and padding.",
            "kind",
            &[
                ("real", stats.tokens.real),
                ("padding", stats.tokens.padding),
            ],
        )?;

        let stages = stats.stages;
        let help = "Where the time goes; queue is a caller's wait in a batcher, wait that for a \
                    session.";
        self.family("isovec_stage_seconds", "summary", Some("seconds"), help)?;
        for (stage, times) in [
            ("tokenize", stages.tokenize),
            ("queue", stages.queue),
            ("batch", stages.batch),
            ("embed", stages.embed),
            ("wait", engine.sessions.wait),
            ("run", engine.sessions.run),
        ] {
            self.summary("isovec_stage_seconds", ("stage", stage), times)?;
        }
        self.engine(stats)?;
        match &stats.embedding_cache {
            Some(cache) => self.embedding_cache(cache),
            None => Ok(()),
        }
    }

    fn embedding_cache(&mut self, cache: &EmbeddingCacheStats) -> fmt::Result {
        let name = |part: &str| format!("isovec_embedding_cache_{part}");
        for (part, help, count) in [
            (
                "hits",
                "Texts whose vectors were cached, or that occurred twice in a call.",
                cache.hits,
            ),
            (
                "disk_hits",
                "Different texts of these that were found on the disk.",
                cache.disk_hits,
            ),
            (
                "misses",
                "Texts whose vectors had to be computed.",
                cache.misses,
            ),
            (
                "disk_rejected",
                "Files that were damaged, and were not used.",
                cache.disk_rejected,
            ),
            (
                "disk_failures",
                "Times that the disk failed.",
                cache.disk_failures,
            ),
        ] {
            self.counter(&name(part), help, count)?;
        }
        let tiers = |memory, disk| [("memory", memory), ("disk", disk)];
        let help = "Vectors that had to go for others.";
        let evictions = tiers(cache.evictions, cache.disk_evictions);
        self.counters(&name("evictions"), help, "tier", &evictions)?;
        for (part, unit, help, values) in [
            (
                "entries",
                None,
                "Cached vectors.",
                tiers(cache.entries, cache.disk_entries),
            ),
            (
                "bytes",
                Some("bytes"),
                "Bytes that they take.",
                tiers(cache.bytes, cache.disk_bytes),
            ),
        ] {
            self.family(&name(part), "gauge", unit, help)?;
            for (tier, value) in values {
                self.sample(&name(part), &[("tier", tier)], value)?;
            }
        }
        Ok(())
    }

    fn engine(&mut self, stats: &Stats) -> fmt::Result {
        let sessions = &stats.engine.sessions;
        self.gauge("isovec_sessions", None, "Sessions.", sessions.count as u64)?;
        let help = "Sessions that run something now.";
        self.gauge("isovec_sessions_in_use", None, help, sessions.in_use as u64)?;
        let help = "Callers that wait for a session now.";
        self.gauge(
            "isovec_session_waiters",
            None,
            help,
            sessions.waiting as u64,
        )?;
        let help = "The peak memory of runs in bytes, without the weights.";
        let peak = sessions.peak_run_bytes;
        self.gauge("isovec_run_peak_bytes", Some("bytes"), help, peak)?;
        if !sessions.per_session.is_empty() {
            self.family(
                "isovec_session_runs",
                "counter",
                None,
                "Runs by session and end.",
            )?;
            for (at, share) in sessions.per_session.iter().enumerate() {
                let at = at.to_string();
                let ended = share.runs.saturating_sub(share.failed + share.cancelled);
                for (outcome, count) in [
                    ("finished", ended),
                    ("failed", share.failed),
                    ("cancelled", share.cancelled),
                ] {
                    let by = [("session", at.as_str()), ("outcome", outcome)];
                    self.sample("isovec_session_runs_total", &by, count)?;
                }
            }
            let help = "Seconds that sessions spent in runs.";
            let name = "isovec_session_busy_seconds";
            self.family(name, "counter", Some("seconds"), help)?;
            for (at, share) in sessions.per_session.iter().enumerate() {
                let by = [("session", at.to_string())];
                let by = [(by[0].0, by[0].1.as_str())];
                self.sample("isovec_session_busy_seconds_total", &by, share.busy_seconds)?;
            }
        }

        let pool = &stats.engine.memory_pool;
        self.counters(
            "isovec_pool_requests",
            "Buffers that were asked for, and whether one was there.",
            "result",
            &[
                ("hit", pool.pool_hits),
                ("miss", pool.requests.saturating_sub(pool.pool_hits)),
            ],
        )?;
        let help = "Buffers that had to be made.";
        self.counter("isovec_pool_allocations", help, pool.total_allocations)?;
        let help = "Buffers that were freed because the pool was full.";
        self.counter("isovec_pool_evictions", help, pool.evictions)?;
        let help = "Times that the pool let everything go because memory was short.";
        self.counter(
            "isovec_pool_pressure_cleanups",
            help,
            pool.pressure_cleanups,
        )?;
        let help = "Bytes of buffers that wait to be used.";
        let bytes = pool.current_memory_bytes;
        self.gauge("isovec_pool_idle_bytes", Some("bytes"), help, bytes)?;
        let help = "The most bytes that buffers took at one time.";
        let bytes = pool.peak_memory_bytes;
        self.gauge("isovec_pool_peak_bytes", Some("bytes"), help, bytes)?;

        let io = &stats.engine.io_binding;
        self.family("isovec_io_tensors", "counter", None, "Tensors of all runs.")?;
        for (direction, all, in_place) in [
            ("input", io.inputs, io.inputs_in_place),
            ("output", io.outputs, io.outputs_in_place),
        ] {
            for (way, count) in [
                ("in_place", in_place),
                ("copied", all.saturating_sub(in_place)),
            ] {
                let by = [("direction", direction), ("way", way)];
                self.sample("isovec_io_tensors_total", &by, count)?;
            }
        }
        let help = "Bytes that were copied on the host, and between it and a device.";
        self.family("isovec_io_bytes", "counter", Some("bytes"), help)?;
        for (way, bytes) in [
            ("copied", io.copied_bytes),
            ("to_device", io.to_device_bytes),
            ("from_device", io.from_device_bytes),
        ] {
            self.sample("isovec_io_bytes_total", &[("way", way)], bytes)?;
        }

        let provider = &stats.engine.provider;
        self.counters(
            "isovec_provider_runs",
            "Runs by how they ended; cancelled ones are not counted.",
            "outcome",
            &[
                ("finished", provider.runs.saturating_sub(provider.failed)),
                ("failed", provider.failed),
            ],
        )?;
        let help = "Nodes of the graph by the provider that runs them.";
        self.family("isovec_provider_nodes", "gauge", None, help)?;
        for (name, nodes) in &provider.nodes {
            self.sample("isovec_provider_nodes", &[("provider", name)], nodes)?;
        }
        let mut fallbacks: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for event in &provider.fallbacks {
            *fallbacks.entry((&event.from, &event.to)).or_default() += 1;
        }
        let help = "Times that something else was tried first, or lost.";
        self.family("isovec_provider_fallbacks", "counter", None, help)?;
        for ((from, to), count) in fallbacks {
            let by = [("from", from), ("to", to)];
            self.sample("isovec_provider_fallbacks_total", &by, count)?;
        }
        match &stats.engine.gpu {
            Some(gpu) => self.gpu(gpu),
            None => Ok(()),
        }
    }

    fn gpu(&mut self, gpu: &GpuStats) -> fmt::Result {
        self.family("isovec_gpu", "info", None, "The GPU that computes.")?;
        let by = [("adapter", gpu.adapter.as_str()), ("backend", &gpu.backend)];
        self.sample("isovec_gpu_info", &by, 1)?;
        let help = "Kernels that were started on the GPU.";
        self.counter("isovec_gpu_dispatches", help, gpu.dispatches)?;
        let help = "Times that work was handed to the GPU.";
        self.counter("isovec_gpu_submissions", help, gpu.submissions)?;
        let help = "Times that a lost GPU was opened again.";
        self.counter("isovec_gpu_recreations", help, gpu.recreated)?;
        let help = "Bytes of the weights on the GPU.";
        self.gauge(
            "isovec_gpu_weight_bytes",
            Some("bytes"),
            help,
            gpu.weight_bytes,
        )?;
        let help = "Bytes that results of kernels take turns in.";
        self.gauge(
            "isovec_gpu_arena_bytes",
            Some("bytes"),
            help,
            gpu.arena_bytes,
        )?;
        if !gpu.kernels.is_empty() {
            let name = "isovec_gpu_kernel_seconds";
            let help = "What kernels took in runs that a profile recorded.";
            self.family(name, "summary", Some("seconds"), help)?;
            for kernels in &gpu.kernels {
                let by = [("kernel", kernels.name.as_str())];
                self.sample(&format!("{name}_count"), &by, kernels.dispatches)?;
                self.sample(&format!("{name}_sum"), &by, kernels.seconds)?;
            }
        }
        Ok(())
    }

    fn family(&mut self, name: &str, kind: &str, unit: Option<&str>, help: &str) -> fmt::Result {
        let mut head = format!("# TYPE {name} {kind}\n");
        if let Some(unit) = unit {
            writeln!(head, "# UNIT {name} {unit}")?;
        }
        writeln!(head, "# HELP {name} {help}")?;
        let known = self.families.iter().position(|(known, _)| *known == head);
        self.at = known.unwrap_or(self.families.len());
        if known.is_none() {
            self.families.push((head, String::new()));
        }
        Ok(())
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.family(name, "counter", None, help)?;
        self.sample(&format!("{name}_total"), &[], value)
    }

    fn counters(
        &mut self,
        name: &str,
        help: &str,
        by: &str,
        values: &[(&str, u64)],
    ) -> fmt::Result {
        self.family(name, "counter", None, help)?;
        for (label, value) in values {
            self.sample(&format!("{name}_total"), &[(by, label)], value)?;
        }
        Ok(())
    }

    fn gauge(&mut self, name: &str, unit: Option<&str>, help: &str, value: u64) -> fmt::Result {
        self.family(name, "gauge", unit, help)?;
        self.sample(name, &[], value)
    }

    fn summary(&mut self, name: &str, by: (&str, &str), times: Latency) -> fmt::Result {
        for (quantile, seconds) in [("0.5", times.p50), ("0.9", times.p90), ("0.99", times.p99)] {
            self.sample(name, &[by, ("quantile", quantile)], seconds)?;
        }
        self.sample(&format!("{name}_count"), &[by], times.count)?;
        self.sample(&format!("{name}_sum"), &[by], times.total)
    }

    fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl fmt::Display) -> fmt::Result {
        let (_, text) = self.families.get_mut(self.at).ok_or(fmt::Error)?;
        text.write_str(name)?;
        let model = self.model.map(|model| ("model", model));
        let labels = model.iter().chain(labels);
        let mut before = '{';
        for (label, value) in labels {
            write!(text, "{before}{label}=\"{}\"", escaped(value))?;
            before = ',';
        }
        if before == ',' {
            text.write_char('}')?;
        }
        writeln!(text, " {value}")
    }
}

/// Of a label's value three characters have to be escaped.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use isovec_engine::stats::{Fallback, KernelStats, SessionShare};

    use super::*;

    fn busy() -> Stats {
        let mut stats = Stats::default();
        stats.engine.provider.engine = "onnx\"runtime\\\n".into();
        stats.engine.provider.nodes = vec![("CPU".into(), 7)];
        stats.engine.provider.fallbacks = vec![Fallback::new("cuda", "cpu", "no device"); 2];
        let mut gpu = GpuStats::default();
        gpu.adapter = "a \"GPU\"".into();
        gpu.weight_bytes = 11;
        let mut kernels = KernelStats::default();
        kernels.name = "linear".into();
        (kernels.dispatches, kernels.seconds) = (4, 0.5);
        gpu.kernels = vec![kernels];
        stats.engine.gpu = Some(gpu);
        stats.engine.sessions.per_session = vec![SessionShare::default(); 2];
        stats.calls.embedded = 3;
        stats.tokens.padding = 5;
        stats.stages.embed.p99 = 0.25;
        let cache = stats.embedding_cache.insert(EmbeddingCacheStats::default());
        (cache.hits, cache.disk_bytes) = (6, 17);
        stats
    }

    #[test]
    fn what_was_counted_stands_there_by_its_name() {
        let text = busy().to_open_metrics();
        for line in [
            r#"isovec_info{engine="onnx\"runtime\\\n",provider=""} 1"#,
            r#"isovec_calls_total{outcome="embedded"} 3"#,
            r#"isovec_tokens_total{kind="padding"} 5"#,
            r#"isovec_stage_seconds{stage="embed",quantile="0.99"} 0.25"#,
            r#"isovec_provider_fallbacks_total{from="cuda",to="cpu"} 2"#,
            r#"isovec_provider_nodes{provider="CPU"} 7"#,
            r#"isovec_session_runs_total{session="1",outcome="failed"} 0"#,
            r#"isovec_gpu_info{adapter="a \"GPU\"",backend=""} 1"#,
            "isovec_gpu_weight_bytes 11",
            r#"isovec_gpu_kernel_seconds_count{kernel="linear"} 4"#,
            r#"isovec_gpu_kernel_seconds_sum{kernel="linear"} 0.5"#,
            "isovec_embedding_cache_hits_total 6",
            r#"isovec_embedding_cache_evictions_total{tier="memory"} 0"#,
            r#"isovec_embedding_cache_bytes{tier="disk"} 17"#,
        ] {
            assert!(
                text.lines().any(|one| one == line),
                "{line} is not in\n{text}"
            );
        }
    }

    #[test]
    fn models_on_one_page_are_told_apart_by_a_label() {
        let text = open_metrics([("a\"", &busy()), ("b", &Stats::default())]);
        for line in [
            r#"isovec_calls_total{model="a\"",outcome="embedded"} 3"#,
            r#"isovec_calls_total{model="b",outcome="embedded"} 0"#,
            r#"isovec_texts_total{model="b"} 0"#,
            r#"isovec_gpu_weight_bytes{model="a\""} 11"#,
        ] {
            assert!(
                text.lines().any(|one| one == line),
                "{line} is not in\n{text}"
            );
        }
    }

    /// The rules of the format that a scraper refuses a text for.
    #[test]
    fn the_text_keeps_the_formats_rules() {
        for text in [
            Stats::default().to_open_metrics(),
            busy().to_open_metrics(),
            open_metrics([("a", &Stats::default()), ("b", &busy())]),
        ] {
            assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1);
            let (mut family, mut kind) = ("", "");
            let (mut families, mut samples) = (BTreeSet::new(), BTreeSet::new());
            for line in text.lines().filter(|line| *line != "# EOF") {
                if let Some(rest) = line.strip_prefix("# TYPE ") {
                    (family, kind) = rest.split_once(' ').unwrap();
                    assert!(families.insert(family), "{family} stands there twice");
                } else if let Some(rest) = line.strip_prefix("# UNIT ") {
                    let (name, unit) = rest.split_once(' ').unwrap();
                    assert!(
                        name == family && family.ends_with(&format!("_{unit}")),
                        "{line}"
                    );
                } else if let Some(rest) = line.strip_prefix("# HELP ") {
                    assert!(rest.starts_with(&format!("{family} ")), "{line}");
                } else {
                    let name = line.split(['{', ' ']).next().unwrap();
                    let endings: &[&str] = match kind {
                        "counter" => &["_total"],
                        "info" => &["_info"],
                        "summary" => &["", "_count", "_sum"],
                        _ => &[""],
                    };
                    let known = endings
                        .iter()
                        .any(|ending| name == format!("{family}{ending}"));
                    assert!(known, "{line} is no {kind} of {family}");
                    let value = line.rsplit(' ').next().unwrap();
                    assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
                    assert!(samples.insert(line.rsplit_once(' ').unwrap().0), "{line}");
                }
            }
        }
    }
}
