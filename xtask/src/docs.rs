//! The documentation as pages: the book under `docs/`, and what rustdoc makes of the crates.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{Run, cargo};
use crate::report;
use crate::workspace::Workspace;

/// Where the pages go when nobody says.
pub(crate) fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("book")
}

/// Builds the book's pages into a folder, and looks at what they load; with `api` the crates'
/// documentation goes beside them.
pub(crate) fn build(workspace: &Workspace, out: &Path, api: bool) -> Result<()> {
    Run::new(workspace, "mdbook")?
        .args(["build", "docs", "--dest-dir"])
        .args([out])
        .show()?;
    let faults = faults(out)?;
    if !faults.is_empty() {
        bail!("the book's pages are not whole:\n{}", faults.join("\n"));
    }
    if api {
        self::api(workspace)?;
        copy(&workspace.target.join("doc"), &out.join("api"))?;
    }
    report::word(&format!("the book is {}", out.join("index.html").display()));
    Ok(())
}

/// The documentation of the crates, without a warning, in the target folder's `doc`.
pub(crate) fn api(workspace: &Workspace) -> Result<()> {
    cargo(workspace)?
        // The program and the SDK have one name; the program's documentation is its --help.
        .args([
            "doc",
            "--workspace",
            "--no-deps",
            "--exclude",
            "isovec-cli",
            "--exclude",
            "xtask",
        ])
        .env("RUSTDOCFLAGS", "-D warnings")
        .show()
}

/// What is wrong with built pages: what they load from other hosts, and files and places in pages
/// that they name and that are not there. (A link that a reader clicks may lead elsewhere.)
fn faults(folder: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for file in files(folder)? {
        let ending = file.extension().and_then(|ending| ending.to_str());
        let page = file.parent().unwrap_or(folder);
        if !matches!(ending, Some("html" | "css")) {
            continue;
        }
        let text = read(&file)?;
        // A page with an example that can be run asks a server which crates it has, when it opens.
        if text.contains("class=\"playground\"") {
            faults.push(format!("{}: asks a playground", file.display()));
        }
        let names = match ending {
            Some("css") => named_by_style(&text),
            _ => named_by_page(&text),
        };
        for Named { what, address } in names {
            let (path, place) = address.split_once('#').unwrap_or((address, ""));
            let path = path.split('?').next().unwrap_or_default();
            let elsewhere = path.contains("://") || path.starts_with("//");
            let target = match path {
                "" => file.clone(),
                path => page.join(path),
            };
            let fault = match elsewhere {
                true if what == "a" => continue,
                true => "is loaded from elsewhere",
                false if path.contains(':') => continue,
                false if !target.exists() => "is not there",
                false if what == "a" && !has_place(&target, place)? => "names no place there",
                false => continue,
            };
            faults.push(format!("{}: {address} {fault}", file.display()));
        }
    }
    Ok(faults)
}

/// Whether a page has an element of that name; without a name, it has.
fn has_place(page: &Path, name: &str) -> Result<bool> {
    Ok(name.is_empty() || read(page)?.contains(&format!(" id=\"{name}\"")))
}

/// An address in a page or a style sheet, and the element that names it.
#[derive(Debug, PartialEq)]
struct Named<'a> {
    what: &'a str,
    address: &'a str,
}

/// The `src` and `href` of every element.
fn named_by_page(html: &str) -> Vec<Named<'_>> {
    let mut named = Vec::new();
    for element in html.split('<').skip(1) {
        let element = element.split('>').next().unwrap_or_default();
        let what = element.split_whitespace().next().unwrap_or_default();
        for attribute in [" src=\"", " href=\""] {
            let value = element.split_once(attribute).map(|(_, value)| value);
            if let Some((address, _)) = value.and_then(|value| value.split_once('"')) {
                named.push(Named { what, address });
            }
        }
    }
    named
}

/// The `url()` of every rule; data that stands there itself is none.
fn named_by_style(css: &str) -> Vec<Named<'_>> {
    css.split("url(")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(address, _)| Named {
            what: "url",
            address: address.trim_matches(['"', '\'', ' ']),
        })
        .filter(|named| !named.address.starts_with("data:"))
        .collect()
}

/// All files below a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()));
    for entry in entries? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(files(&path)?),
            false => found.push(path),
        }
    }
    Ok(found)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for file in files(from)? {
        let place = to.join(file.strip_prefix(from)?);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)
                .with_context(|| format!("cannot make {}", parent.display()))?;
        }
        fs::copy(&file, &place).with_context(|| format!("cannot write {}", place.display()))?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
pub(crate) use tests::{commands, sources};

#[cfg(test)]
mod tests {
    use super::*;

    /// The book's chapters.
    pub(crate) fn sources(folder: &Path) -> Result<Vec<String>> {
        let files = files(folder)?.into_iter();
        let chapters = files.filter(|file| file.extension().is_some_and(|ending| ending == "md"));
        Ok(chapters.map(|file| file.display().to_string()).collect())
    }

    /// What follows `program` in the lines of a document's shell blocks, without comments.
    pub(crate) fn commands<'a>(text: &'a str, program: &str) -> Vec<&'a str> {
        let blocks = text.split("```").skip(1).step_by(2);
        blocks
            .filter_map(|block| block.strip_prefix("sh\n"))
            .flat_map(str::lines)
            .filter_map(|line| line.strip_prefix(program))
            .filter_map(|line| line.split('#').next())
            // Names in brackets stand for what a reader puts there.
            .map(|line| line.split('[').next().unwrap_or(line).trim())
            .collect()
    }

    #[test]
    fn pages_may_link_to_others_and_load_only_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write(
            "own.css",
            "a { src: url('own.woff') } b { src: url(data:x) }",
        );
        write("own.woff", "");
        write(
            "index.html",
            "<link rel=\"x\" href=\"own.css?v=1\"><a href=\"https://a.org\">a</a><a href=\"#here\" id=\"here\">b</a>",
        );
        assert_eq!(faults(folder.path()).unwrap(), Vec::<String>::new());
        write(
            "index.html",
            "<script src=\"https://a.org/a.js\"></script><a class=\"b\" href=\"gone.html#b\">b</a><a href=\"#there\">c</a>\
             <pre class=\"playground\"></pre>",
        );
        write("own.css", "@import url(//a.org/b.css);");
        let faults = faults(folder.path()).unwrap().join("\n");
        for fault in [
            "https://a.org/a.js is loaded from elsewhere",
            "gone.html#b is not there",
            "#there names no place there",
            "index.html: asks a playground",
            "//a.org/b.css is loaded from elsewhere",
        ] {
            assert!(faults.contains(fault), "{fault}: {faults}");
        }
    }
}
