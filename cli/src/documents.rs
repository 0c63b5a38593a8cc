//! Tests that the program accepts every command and configuration in the documents.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use isovec::EmbeddingConfig;

use crate::args::{Args, Command};
use crate::recipe;

/// The documents that name commands or configurations.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let chapters = fs::read_dir(root.join("docs")).expect("the book is there");
    chapters
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .chain([root.join("README.md"), root.join("bindings/js/README.md")])
        .collect()
}

/// The code blocks of a language, with the document that each stands in.
fn blocks(language: &str) -> Vec<(PathBuf, String)> {
    let mut blocks = Vec::new();
    for path in documents() {
        // As git may have checked it out.
        let text = fs::read_to_string(&path).expect("readable");
        let text = text.replace("\r\n", "\n");
        let fence = format!("{language}\n");
        let code = text.split("```").skip(1).step_by(2);
        let own = code.filter_map(|block| block.strip_prefix(&fence));
        blocks.extend(own.map(|code| (path.clone(), code.to_owned())));
    }
    blocks
}

/// The words of a line as a shell would hand them over, up to a pipe, a redirection or a comment.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | '#') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    assert_eq!(quote, None, "{line}");
    words.extend(word);
    words
}

#[test]
fn every_command_is_one_that_the_program_takes() {
    let mut found = 0;
    for (path, code) in blocks("sh") {
        // A command may go on in the next line.
        for line in code.replace("\\\n", " ").lines() {
            // Also behind a pipe.
            let Some(start) = line.find("isovec ").filter(|&at| {
                let before = line[..at].trim_end();
                before.is_empty() || before.ends_with('|')
            }) else {
                continue;
            };
            // Only a program that was built with it has TLS.
            if cfg!(not(feature = "tls")) && line.contains("--tls-cert") {
                continue;
            }
            let read = Args::try_parse_from(words(&line[start..]));
            let wrong = read.err().map(|error| error.to_string());
            assert_eq!(wrong, None, "{}: {line}", path.display());
            found += 1;
        }
    }
    assert!(found > 20, "{found} commands");
}

#[test]
fn every_configuration_is_one_that_is_read() {
    let mut found = 0;
    for (path, code) in blocks("toml") {
        // Of a Cargo.toml.
        if code.contains("[dependencies") {
            continue;
        }
        // A file of models.
        if code.contains("[[models]]") {
            #[cfg(feature = "serve")]
            {
                let models =
                    crate::commands::serve::file::parse(&code, &EmbeddingConfig::default());
                assert!(models.is_ok(), "{}: {models:?}", path.display());
            }
            continue;
        }
        // A recipe.
        if code.contains("calibrate = ") {
            let line = ["isovec", "optimize", "--out", "small"];
            let args = Args::try_parse_from(line).expect("usable");
            let Command::Optimize(mut args) = args.command else {
                panic!("{line:?}")
            };
            let read = recipe::fill_in(&mut args, &code, Path::new(""));
            assert_eq!(read, Ok(()), "{}", path.display());
            continue;
        }
        // A job.
        if code.contains("output = ") {
            #[cfg(feature = "jobs")]
            {
                let job = crate::commands::job::parse(&code).map(drop);
                assert!(job.is_ok(), "{}: {job:?}", path.display());
            }
            continue;
        }
        let read = toml::from_str::<EmbeddingConfig>(&code).map_err(|error| error.to_string());
        let checked = read.and_then(|config| config.build().map_err(|error| error.to_string()));
        assert!(checked.is_ok(), "{}: {checked:?}", path.display());
        found += 1;
    }
    assert!(found > 3, "{found} configurations");
}
