//! `isovec graph`.

use std::fs::File;
use std::path::Path;

use isovec_insight::graph::{GraphOptions, ModelGraph};

use crate::args::{GraphArgs, GraphFormat};
use crate::error::{CliError, Result};
use crate::model;
use crate::{commands, in_place, interrupt};

pub(crate) fn run(args: &GraphArgs) -> Result<()> {
    let config = args.model.embedding_config()?;
    // Before the model is loaded: a file that is not there is known at once.
    let profile = match &args.profile {
        Some(path) => Some((path, File::open(path).map_err(named(path))?)),
        None => None,
    };
    let cancel = interrupt::on_ctrl_c()?;
    let options = GraphOptions::default()
        .with_size(args.rows, args.tokens)
        .with_file(args.onnx)
        .with_progress(model::bar())
        .with_cancel(cancel.clone());
    let mut graph = isovec_insight::blocking::graph(args.model.source(), config, options)
        .map_err(|error| args.model.failed(error))?;
    if let Some((path, file)) = profile {
        graph.take_times(file).map_err(|error| CliError::Times {
            name: path.display().to_string(),
            error,
        })?;
    }
    let text = shown(&graph, args)?;
    match &args.out {
        None => commands::print(&text),
        Some(path) => in_place::write(path, |file| file.write_all(text.as_bytes())),
    }
}

fn shown(graph: &ModelGraph, args: &GraphArgs) -> Result<String> {
    Ok(match args.format {
        GraphFormat::Text => graph.to_text(args.expand),
        GraphFormat::Mermaid => graph.to_mermaid(),
        GraphFormat::Html => graph.to_html(),
        GraphFormat::Json => {
            let json = serde_json::to_string_pretty(graph);
            json.map_err(|error| CliError::io("JSON")(error.into()))? + "\n"
        }
    })
}

fn named(path: &Path) -> impl FnOnce(std::io::Error) -> CliError {
    CliError::io(path.display().to_string())
}
