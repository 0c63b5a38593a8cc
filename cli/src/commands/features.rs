//! `isovec features`.

use std::fmt::Write;

use isovec::hardware::{
    AdapterInfo, AdapterKind, CpuInfo, EngineFeature, Features, GpuInfo, MemoryInfo,
};

use crate::args;
use crate::commands;
use crate::config;
use crate::error::{CliError, Result};

pub(crate) fn run(args: &args::Features) -> Result<()> {
    let config = config::read(args.preset, args.config.as_deref())?;
    let config = config
        .build()
        .map_err(|error| CliError::Usage(error.to_string()))?;
    let features = isovec::blocking::features(&config)?;
    match args.json {
        true => commands::print_json(&features),
        false => commands::print(&page(&features)),
    }
}

fn page(features: &Features) -> String {
    let mut page = Page::default();
    let hardware = &features.hardware;
    page.line("isovec", &features.version);
    page.line("", &format!("built with {}", list(&features.built_with)));
    let system = hardware.os.as_deref().unwrap_or("an unknown system");
    page.line("machine", &format!("{system} {}", hardware.arch));
    page.line("", &format!("id {}", features.hardware_id));
    processor(&mut page, &hardware.cpu);
    memory(&mut page, &hardware.memory);
    for (at, gpu) in hardware.gpus.iter().enumerate() {
        page.line(if at == 0 { "gpu" } else { "" }, &describe(gpu));
    }
    if hardware.gpus.is_empty() {
        page.line("gpu", "none that a driver reports");
    }
    for (at, adapter) in hardware.adapters.iter().flatten().enumerate() {
        show(&mut page, at, adapter);
    }
    for engine in &features.engines {
        show_engine(&mut page, engine, engine.name == features.auto_engine);
    }
    page.0
}

/// Lines of a key and a value; without a key they belong to the one above.
#[derive(Default)]
struct Page(String);

impl Page {
    fn line(&mut self, key: &str, value: &str) {
        let _ = writeln!(self.0, "{key:<12} {value}");
    }
}

fn processor(page: &mut Page, cpu: &CpuInfo) {
    page.line(
        "processor",
        cpu.model.as_deref().unwrap_or("without a name"),
    );
    let cores = format!(
        "{} cores, {} logical, {} for this process",
        number(cpu.physical_cores),
        number(cpu.logical_cores),
        number(cpu.usable_cores)
    );
    page.line("", &cores);
    if let Some(quota) = cpu.quota_cores {
        page.line("", &format!("the control group gives {quota} cores' time"));
    }
    page.line(
        "",
        &format!("{}; the kernels use {}", list(&cpu.simd), cpu.kernels),
    );
    let caches = &cpu.caches;
    let sizes: Vec<String> = [
        ("L1d", caches.l1d_bytes),
        ("L2", caches.l2_bytes),
        ("L3", caches.l3_bytes),
    ]
    .into_iter()
    .filter_map(|(name, size)| Some(format!("{name} {}", bytes(size?))))
    .collect();
    if !sizes.is_empty() {
        page.line("", &format!("caches {}", sizes.join(", ")));
    }
}

fn memory(page: &mut Page, memory: &MemoryInfo) {
    let known = |size: Option<u64>| size.map_or_else(|| "unknown".into(), bytes);
    let text = format!(
        "{}, {} available",
        known(memory.total_bytes),
        known(memory.available_bytes)
    );
    page.line("memory", &text);
    if let Some(limit) = memory.limit_bytes {
        page.line("", &format!("the control group allows {}", bytes(limit)));
    }
}

fn describe(gpu: &GpuInfo) -> String {
    let name = gpu.name.clone().or_else(|| gpu.vendor.clone());
    let mut text = name.unwrap_or_else(|| "without a name".into());
    if let Some(total) = gpu.memory_bytes {
        let _ = write!(text, ", {}", bytes(total));
    }
    if let Some(free) = gpu.memory_available_bytes {
        let _ = write!(text, " ({} available)", bytes(free));
    }
    if let Some(driver) = &gpu.driver {
        let _ = write!(text, ", {driver}");
    }
    if let Some(capability) = &gpu.compute_capability {
        let _ = write!(text, ", compute capability {capability}");
    }
    text
}

fn show(page: &mut Page, at: usize, adapter: &AdapterInfo) {
    let kind = match adapter.kind {
        Some(AdapterKind::Discrete) => "discrete",
        Some(AdapterKind::Integrated) => "integrated",
        Some(AdapterKind::Virtual) => "virtual",
        Some(AdapterKind::Cpu) => "a processor that plays a GPU",
        _ => "of an unknown kind",
    };
    let name = adapter.name.as_deref().unwrap_or("without a name");
    let key = if at == 0 { "adapters" } else { "" };
    page.line(key, &format!("{name} by {}, {kind}", adapter.backend));
    let can: Vec<&str> = [
        ("f16", adapter.shader_f16),
        ("subgroups", adapter.subgroups),
        ("timestamps", adapter.timestamp_query),
    ]
    .into_iter()
    .filter(|(_, has)| *has)
    .map(|(name, _)| name)
    .collect();
    let limits = format!(
        "  buffers of {}, bindings of {}",
        bytes(adapter.max_buffer_bytes),
        bytes(adapter.max_binding_bytes)
    );
    page.line("", &format!("{limits}; {}", list(&can)));
}

fn show_engine(page: &mut Page, engine: &EngineFeature, is_auto: bool) {
    let mut text = engine.name.clone();
    if let Some(version) = &engine.version {
        let _ = write!(text, " ({version})");
    }
    if is_auto {
        text.push_str(", chosen by engine = \"auto\"");
    }
    page.line("engine", &text);
    if let Some(reason) = &engine.reason {
        page.line("", &because(reason, engine.hint.as_deref()));
        return;
    }
    for provider in &engine.providers {
        let state = match &provider.reason {
            None => "usable".to_owned(),
            Some(reason) => because(reason, provider.hint.as_deref()),
        };
        page.line("", &format!("  {:<10} {state}", provider.name));
    }
}

fn because(reason: &str, hint: Option<&str>) -> String {
    match hint {
        Some(hint) => format!("not usable: {reason}. {hint}"),
        None => format!("not usable: {reason}"),
    }
}

fn number(count: Option<usize>) -> String {
    count.map_or_else(|| "unknown".into(), |count| count.to_string())
}

fn list(words: &[impl AsRef<str>]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.is_empty() {
        true => "none".into(),
        false => words.join(", "),
    }
}

/// Bytes in the largest unit of which there is one.
fn bytes(size: u64) -> String {
    let mut size = size as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB"] {
        if size < 1024.0 {
            return format!("{} {unit}", (size * 10.0).round() / 10.0);
        }
        size /= 1024.0;
    }
    format!("{} TiB", (size * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_readable() {
        for (size, text) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (48 << 10, "48 KiB"),
            (1_600_000_000, "1.5 GiB"),
            (3 << 40, "3 TiB"),
        ] {
            assert_eq!(bytes(size), text);
        }
    }
}
