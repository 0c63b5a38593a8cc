//! Writes the tiny model of `tests/data/tiny-bert`: `cargo run -p isovec-test-models
//! --example tiny_model [FOLDER]`. The same bytes on every run; a test compares them with the folder's.

use std::path::PathBuf;

use isovec_test_models::tiny;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../data/tiny-bert"),
        PathBuf::from,
    );
    for (name, contents) in tiny::files() {
        let path = folder.join(&name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&path, &contents)?;
        println!("{} bytes in {}", contents.len(), path.display());
    }
    Ok(())
}
