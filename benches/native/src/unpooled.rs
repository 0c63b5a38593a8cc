//! The model for peers that pool and normalise by themselves.

use std::path::Path;

use isovec::{EmbeddingConfig, ExportOptions};

use crate::AnyError;

/// Writes the model without its head, and a tokenizer that neither pads every text to 128 tokens,
/// as the model's own file has it, nor cuts any.
///
/// # Errors
/// Of the export, the tokenizer and the disk.
pub fn export_unpooled(model: &Path, folder: &Path) -> Result<(), AnyError> {
    isovec::blocking::export(
        model,
        folder,
        EmbeddingConfig::default(),
        ExportOptions::default().with_head(false),
    )?;
    for file in [
        "config.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
    ] {
        std::fs::copy(model.join(file), folder.join(file))?;
    }
    let mut tokenizer = tokenizers::Tokenizer::from_file(model.join("tokenizer.json"))?;
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None)?;
    tokenizer.save(folder.join("tokenizer.json"), false)?;
    Ok(())
}
