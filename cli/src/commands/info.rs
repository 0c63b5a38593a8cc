//! `isovec info`.

use std::fmt::Write;

use isovec::blocking::Embedder;
use serde_json::json;

use crate::args::Info;
use crate::error::Result;
use crate::{commands, interrupt};

pub(crate) fn run(args: &Info) -> Result<()> {
    let cancel = interrupt::on_ctrl_c()?;
    let embedder = args.model.load::<Embedder>(&cancel)?;
    if args.json {
        return commands::print_json(&json!({
            "model": {
                "name": embedder.model_name(),
                "dimension": embedder.dimension(),
                "max_length": embedder.max_length(),
                "similarity": embedder.metric(),
                "description": embedder.description(),
            },
            "fingerprint": embedder.fingerprint(),
            "provider": embedder.provider(),
            "capabilities": embedder.capabilities(),
            "hardware": hardware(),
            "effective_config": embedder.effective_config(),
            "stats": embedder.stats(),
        }));
    }
    commands::print(&page(&embedder))
}

fn page(embedder: &Embedder) -> String {
    let mut page = String::new();
    let description = embedder.description();
    let _ = writeln!(page, "model        {}", embedder.model_name());
    let _ = writeln!(
        page,
        "             {} components, {} tokens, compared by {}",
        embedder.dimension(),
        embedder.max_length(),
        embedder.metric()
    );
    let _ = writeln!(
        page,
        "             {:.1} million parameters, {:.1} MB of weights, opset {}",
        description.parameters as f64 / 1e6,
        description.weights_bytes as f64 / 1e6,
        description.opset
    );
    for (what, values) in [
        ("takes", &description.inputs),
        ("gives", &description.outputs),
    ] {
        for value in values {
            let _ = writeln!(
                page,
                "             {what} {} {}",
                value.name,
                value.dims_text()
            );
        }
    }
    let _ = writeln!(page, "fingerprint  {}", embedder.fingerprint().id());
    let fingerprint = embedder.fingerprint();
    for (key, value) in &fingerprint.identity {
        let claimed = match fingerprint.claimed.contains_key(key) {
            true => " (claimed by the model's file)",
            false => "",
        };
        let _ = writeln!(page, "             {key}: {value}{claimed}");
    }
    let _ = writeln!(page, "provider     {}", embedder.provider());
    let stats = embedder.stats().engine;
    for (provider, nodes) in &stats.provider.nodes {
        let _ = writeln!(page, "             {provider} runs {nodes} nodes");
    }
    for event in &stats.provider.fallbacks {
        let _ = writeln!(
            page,
            "             {} gave way to {}: {}",
            event.from, event.to, event.cause
        );
    }
    let hardware = hardware();
    let _ = writeln!(
        page,
        "hardware     {} {}, {} threads",
        hardware["os"].as_str().unwrap_or_default(),
        hardware["arch"].as_str().unwrap_or_default(),
        hardware["threads"]
    );
    let pool = &stats.memory_pool;
    let _ = writeln!(
        page,
        "at start     {} runs at a time; {} buffers of {} bytes in all wait",
        stats.sessions.count, pool.current_buffers, pool.current_memory_bytes
    );
    let bound = match &stats.io_binding.fallback {
        Some(why) => format!("not bound: {why}"),
        None if stats.io_binding.bound => "bound".into(),
        None => "not bound".into(),
    };
    let _ = writeln!(page, "             outputs are {bound}");
    let _ = writeln!(page, "config       knob = used, asked (why)");
    for knob in embedder.effective_config().knobs() {
        let asked = match &knob.asked {
            Some(asked) => format!("asked {asked}"),
            None => "not asked".into(),
        };
        let _ = writeln!(
            page,
            "  {} = {}, {asked} ({})",
            knob.name, knob.used, knob.why
        );
    }
    page
}

fn hardware() -> serde_json::Value {
    json!({
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "threads": std::thread::available_parallelism().map_or(1, |threads| threads.get()),
    })
}
