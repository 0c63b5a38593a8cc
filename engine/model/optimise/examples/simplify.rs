//! Simplifies an ONNX file by passes, and says what each did:
//! `cargo run --release -p isovec-optimize --example simplify -- model.onnx small.onnx extended`.
//!
//! The last argument is a level, or names of passes with commas between them.

use std::collections::BTreeMap;
use std::error::Error;

use isovec_engine::cancel::Cancel;
use isovec_model::bundle::{BundleOptions, from_files};
use isovec_model::onnx::write_model;
use isovec_optimize::simplify::{Level, Pass, simplify};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, asked] = arguments.as_slice() else {
        return Err("give a file, the file to write, and a level or passes".into());
    };
    let passes: Vec<Pass> = match asked.parse::<Level>() {
        Ok(level) => level.passes().collect(),
        Err(_) => asked.split(',').map(str::parse).collect::<Result<_, _>>()?,
    };
    let bundle = from_files(
        BTreeMap::from([("model.onnx".to_owned(), from.into())]),
        &BundleOptions::default(),
    )?;
    let (made, told) = pollster::block_on(simplify(&bundle, &passes, &Cancel::new()))?;
    for passed in told {
        println!(
            "{}: {} changes, {} nodes less {}",
            passed.pass, passed.changes, passed.nodes, passed.reason
        );
    }
    std::fs::write(to, pollster::block_on(write_model(&made))?)?;
    Ok(())
}
