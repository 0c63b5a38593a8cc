//! `cargo xtask`: everything that a folder of scripts would do, in Rust.
//!
//! `setup` installs what is missing, `demo` embeds and searches real text, `test` runs every check of the project,
//! `fuzz` looks for inputs that break something, `soak` works for hours, `bench` and `size` measure, `serve` shows
//! the page. All downloads and builds lie outside the clone, in `$ISOVEC_CACHE`, else in the platform's cache folder
//! under `isovec`.

mod bench;
mod build;
mod clones;
mod demo;
mod docs;
mod fuzz;
mod metadata;
mod notices;
mod peer_modules;
mod process;
mod report;
mod serve;
mod setup;
mod size;
mod soak;
mod test;
mod wasm;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use workspace::Workspace;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Sets up, shows, tests and measures isovec."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Bring what the machine lacks: each step is announced, and skipped when it is done.
    Setup {
        /// Only these steps (see --list); without names, all of them.
        names: Vec<String>,
        /// Only what `demo` needs: ONNX Runtime and the model.
        #[arg(long, conflicts_with = "names")]
        demo: bool,
        /// Name the steps and stop.
        #[arg(long)]
        list: bool,
    },
    /// Embed and search this repository's own text with both engines, and compare their vectors.
    Demo,
    /// Run every check: lint, native, browser, packages, other targets.
    Test {
        /// Only these checks (see --list); without names, all of them.
        names: Vec<String>,
        /// Only what can come out otherwise than at this commit: what is not committed yet, or `--changed=main`.
        #[arg(long, value_name = "COMMIT", num_args = 0..=1, require_equals = true, default_missing_value = "HEAD")]
        changed: Option<String>,
        /// Only those checks and packages whose result may differ from when they last passed on this machine, at most a week ago.
        #[arg(long, conflicts_with = "changed")]
        since_passed: bool,
        /// Name the checks and stop.
        #[arg(long)]
        list: bool,
        /// Set-up is done; write how the checks ended into this file, and print no summary. For `cargo xtask test` itself.
        #[arg(long, hide = true, value_name = "FILE")]
        beside: Option<String>,
    },
    /// Run the benchmarks: `cargo bench` targets, pages in a browser, and the peers under
    /// benches/peers.
    Bench {
        /// Only these (see --list); without names, all of them.
        names: Vec<String>,
        /// Name the benchmarks and stop.
        #[arg(long)]
        list: bool,
        /// Handed on to each benchmark, after `--`.
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Do random work at once for so long, natively and in a page: vectors are compared, counters balance,
    /// memory stays what it was.
    Soak {
        /// How long.
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        /// What decides what is done; by the clock when left out. It is printed.
        #[arg(long, value_parser = clap::value_parser!(u64).range(..1 << 40))]
        seed: Option<u64>,
        /// Only natively, or only in the page.
        #[arg(long)]
        only: Option<soak::Where>,
    },
    /// Run the fuzz targets for some minutes: inputs are made up, and answers compared with an oracle.
    Fuzz(fuzz::Options),
    /// Build the npm package and print what it weighs: raw, gzip and brotli.
    Size,
    /// Build the npm package and the page, and serve the page on this machine.
    Serve {
        /// The port on 127.0.0.1.
        #[arg(long, default_value_t = 8080)]
        port: u16,
        /// Serve the page as it was last built.
        #[arg(long)]
        no_build: bool,
    },
    /// Build the npm package: wasm, TypeScript, third-party notices.
    Build {
        /// The page as well.
        #[arg(long)]
        page: bool,
        /// Only the package of the add-on for node, for this machine.
        #[arg(long, conflicts_with = "page")]
        node: bool,
    },
    /// Build the book under docs as pages.
    Docs {
        /// The folder of the pages; the cache's `target/book` when left out. What is in it goes.
        #[arg(long)]
        out: Option<PathBuf>,
        /// Put the crates' own documentation beside them, under `api`.
        #[arg(long)]
        api: bool,
    },
    /// Print the variables with which plain cargo builds into xtask's folder, and its tests find the model and ONNX Runtime:
    /// `eval "$(cargo xtask env)"`.
    Env,
    /// Write what is made from the Rust configuration: its TypeScript types and names (bindings/js/ts/config.ts,
    /// bindings/js/ts/knobs.ts) and its reference (docs/knobs.md).
    Types,
    /// Write the licence texts of everything inside the wasm module to a file.
    Notices {
        /// Where to write; the npm package's folder when left out.
        #[arg(long)]
        out: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one command; `false` says that it ran to its end and found failures it has reported.
fn run(cli: Cli) -> Result<bool> {
    let workspace = Workspace::find()?;
    clones::take_over(&workspace)?;
    match cli.command {
        Command::Setup { names, demo, list } => {
            if list {
                setup::list();
                return Ok(true);
            }
            let wanted = if demo {
                setup::DEMO.to_vec()
            } else {
                setup::choose(&names)?
            };
            setup::run(&workspace, &wanted)?;
        }
        Command::Demo => demo::run(&workspace)?,
        Command::Test {
            names,
            changed,
            since_passed,
            list,
            beside,
        } => {
            if list {
                test::list();
                return Ok(true);
            }
            let part = match &changed {
                Some(base) => test::Part::Changed(base),
                None if since_passed => test::Part::SincePassed,
                None => test::Part::Whole,
            };
            return test::run(&workspace, &names, &part, beside.as_deref());
        }
        Command::Bench { names, list, args } => {
            return bench::run(&workspace, &names, list, &args);
        }
        Command::Soak {
            minutes,
            seed,
            only,
        } => soak::run(&workspace, minutes, seed, only)?,
        Command::Fuzz(options) => {
            setup::run(&workspace, setup::FUZZ)?;
            return fuzz::run(&workspace, &options);
        }
        Command::Size => size::run(&workspace)?,
        Command::Serve { port, no_build } => serve::page(&workspace, port, no_build)?,
        Command::Build { node: true, .. } => {
            let folder = build::node(&workspace, "release")?;
            println!("{}", folder.display());
        }
        Command::Build { page, .. } => {
            setup::run(&workspace, setup::NPM)?;
            build::npm(&workspace)?;
            if page {
                setup::run(&workspace, &["model"])?;
                build::page(&workspace)?;
            }
        }
        Command::Docs { out, api } => {
            setup::run(&workspace, setup::BOOK)?;
            let out = match out {
                Some(folder) => std::path::absolute(folder)?,
                None => docs::folder(&workspace),
            };
            docs::build(&workspace, &out, api)?;
        }
        Command::Env => print!("{}", workspace.exports(std::env::consts::OS)?),
        Command::Types => build::types(&workspace)?,
        Command::Notices { out } => {
            let path = out.unwrap_or_else(|| build::package_folder(&workspace));
            notices::write(&workspace, &notices::MODULE, &path)?;
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the documents tell a developer to type is what this program takes.
    #[test]
    fn the_documents_name_commands_that_exist() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let mut found = 0;
        for name in ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"]
            .map(|name| format!("{root}/{name}"))
            .into_iter()
            .chain(docs::sources(&PathBuf::from(root).join("docs")).unwrap())
        {
            let text = std::fs::read_to_string(&name).unwrap();
            let text = text.replace("\r\n", "\n");
            for line in docs::commands(&text, "cargo xtask") {
                let words = ["cargo xtask"].into_iter().chain(line.split_whitespace());
                let read = Cli::try_parse_from(words);
                assert!(read.is_ok(), "{name}: {line}: {}", read.err().unwrap());
                found += 1;
            }
        }
        assert!(found > 3, "{found} commands");
    }
}
