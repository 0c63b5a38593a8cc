//! Tries a chain of providers and shows the result: the provider that computes, its nodes, the providers that were
//! passed over and why, and every knob whose requested value is not in effect.
//!
//! ```sh
//! cargo run --example inspect_provider                      # cuda, then cpu
//! cargo run --example inspect_provider -- ./my-model openvino cpu
//! ```

mod common;

use std::error::Error;

use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec::config::ExecutionProvider;

fn main() -> Result<(), Box<dyn Error>> {
    // A name that does not exist comes back with the one that was probably meant.
    let mut chain = std::env::args()
        .skip(2)
        .map(|name| name.parse())
        .collect::<Result<Vec<ExecutionProvider>, _>>()?;
    if chain.is_empty() {
        chain = vec![ExecutionProvider::Cuda, ExecutionProvider::Cpu];
    }
    let asked: Vec<&str> = chain.iter().map(|provider| provider.name()).collect();
    println!("asked for: {}", asked.join(", "));

    let config = EmbeddingConfig::default()
        .with_execution_providers(chain)
        .build()?;
    let embedder = Embedder::builder(common::source()).config(config).load()?;
    embedder.embed(["one run, so that there is something to count"])?;

    let stats = embedder.stats();
    let provider = &stats.engine.provider;
    println!("computes: {}", embedder.provider());
    // Read back from the session: ONNX Runtime leaves to the processor what a provider cannot
    // run, node by node, and says nothing of its own accord.
    for (name, nodes) in &provider.nodes {
        println!("  {nodes} nodes on {name}");
    }
    if provider.fallbacks.is_empty() {
        println!("nothing was passed over");
    }
    for event in &provider.fallbacks {
        println!(
            "passed over: {}, for {}: {}",
            event.from, event.to, event.cause
        );
    }
    println!(
        "{} runs, success rate {:.3}",
        provider.runs,
        provider.success_rate()
    );

    println!("not as asked:");
    for knob in embedder.effective_config().not_honoured() {
        let asked = knob.asked.as_deref().unwrap_or_default();
        println!("  {} = {} ({asked}): {}", knob.name, knob.used, knob.why);
    }
    Ok(())
}
