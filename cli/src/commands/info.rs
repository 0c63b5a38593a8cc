//! `isovec info`.

use std::fmt::Write;

use isovec::blocking::Embedder;
use serde_json::json;

use crate::args::Info;
use crate::error::Result;
use crate::{commands, interrupt};

pub(crate) fn run(args: &Info) -> Result<()> {
    let cancel = interrupt::on_ctrl_c()?;
    let embedder = args.model.load(&cancel)?;
    if args.json {
        return commands::print_json(&json!({
            "model": {
                "name": embedder.model_name(),
                "dimension": embedder.dimension(),
                "max_length": embedder.max_length(),
                "similarity": embedder.similarity(),
                "description": embedder.description(),
            },
            "fingerprint": embedder.fingerprint(),
            "provider": embedder.provider(),
            "capabilities": embedder.capabilities(),
            "hardware": hardware(),
            "effective_config": embedder.effective_config(),
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
        embedder.similarity()
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
    for (key, value) in &embedder.fingerprint().identity {
        let _ = writeln!(page, "             {key}: {value}");
    }
    let _ = writeln!(page, "provider     {}", embedder.provider());
    let hardware = hardware();
    let _ = writeln!(
        page,
        "hardware     {} {}, {} threads",
        hardware["os"].as_str().unwrap_or_default(),
        hardware["arch"].as_str().unwrap_or_default(),
        hardware["threads"]
    );
    let _ = writeln!(page, "config");
    for knob in embedder.effective_config().knobs() {
        let asked = knob.asked.as_ref().filter(|_| !knob.honoured);
        let asked = asked
            .map(|asked| format!(", asked {asked}"))
            .unwrap_or_default();
        let _ = writeln!(
            page,
            "  {:<28} {}{asked}  ({})",
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
