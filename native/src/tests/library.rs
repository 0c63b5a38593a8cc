//! Libraries that are none, and where one is looked for.

use std::env::consts;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::engine::{EngineFactory, Probe};
use isovec_engine::error::EngineError;

use super::available;
use super::models::{affine_batch, affine_input, affine_model, affine_output};
use crate::{OnnxRuntime, Options};

fn naming(library: Option<PathBuf>) -> OnnxRuntime {
    OnnxRuntime::new(Options {
        library,
        ..Options::default()
    })
}

/// Compiles a shared library with rustc, which is there wherever tests are built.
fn shared_library(folder: &Path, name: &str, source: &str) -> PathBuf {
    let code = folder.join(format!("{name}.rs"));
    fs::write(&code, source).unwrap();
    let path = folder.join(format!(
        "{}{name}{}",
        consts::DLL_PREFIX,
        consts::DLL_SUFFIX
    ));
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let status = Command::new(rustc)
        .args(["--edition=2024", "--crate-type=cdylib", "-o"])
        .arg(&path)
        .arg(&code)
        .status()
        .unwrap();
    assert!(status.success());
    path
}

/// A library with ONNX Runtime's entry point that says it is of that version.
fn impostor(folder: &Path, name: &str, version: &str) -> PathBuf {
    let source = format!(
        "use std::ffi::{{c_char, c_void}};\n\
         #[repr(C)] pub struct Base {{\n\
             api: extern \"system\" fn(u32) -> *const c_void,\n\
             version: extern \"system\" fn() -> *const c_char }}\n\
         extern \"system\" fn api(_: u32) -> *const c_void {{ std::ptr::null() }}\n\
         extern \"system\" fn version() -> *const c_char {{ c\"{version}\".as_ptr() }}\n\
         static BASE: Base = Base {{ api, version }};\n\
         #[unsafe(no_mangle)] pub extern \"system\" fn OrtGetApiBase() -> &'static Base {{ &BASE }}\n"
    );
    shared_library(folder, name, &source)
}

/// What one child process of this test found, with these variables set.
fn in_a_child(variables: &[(&str, &OsStr)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["tests::library::child", "--exact", "--nocapture"])
        .env_remove("ORT_DYLIB_PATH")
        .env("ISOVEC_TEST_CHILD", "1");
    for (name, value) in variables {
        command.env(name, value);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Not a test of its own: the other end of [`in_a_child`]. Loading must agree with probing.
#[test]
fn child() {
    if std::env::var_os("ISOVEC_TEST_CHILD").is_none() {
        return;
    }
    let config = EngineConfig::default();
    if let Some(offered) = std::env::var_os("ISOVEC_TEST_OFFERED") {
        crate::offer(offered.into());
    }
    let factory = naming(std::env::var_os("ISOVEC_TEST_LIBRARY").map(PathBuf::from));
    let probe = factory.probe();
    println!("probe: {probe:?}");
    let loaded = pollster::block_on(factory.load(&affine_model(), &config, &Cancel::new()));
    match (probe, loaded) {
        (Probe::Available { version, .. }, Ok(engine)) => {
            assert_eq!(engine.provider().version, version);
            let x = affine_input(2, 5);
            let mut output = engine
                .run_blocking(affine_batch(&x), &Cancel::new())
                .unwrap();
            assert_eq!(
                output.take("y").unwrap().as_slice::<f32>().unwrap(),
                affine_output(&x)
            );
        }
        (
            Probe::Unavailable { reason, hint },
            Err(EngineError::EngineUnavailable {
                engine,
                reason: why,
                hint: how,
            }),
        ) => assert_eq!((engine, reason, hint), ("onnxruntime", why, how)),
        other => panic!("{other:?}"),
    }
}

fn real_library() -> PathBuf {
    crate::library::probe(None).unwrap().path.unwrap()
}

#[test]
fn each_kind_of_bad_library_says_what_is_wrong_and_how_to_get_a_good_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let cases = [
        (folder.path().join("missing.so"), "No such file"),
        (folder.path().to_owned(), "folder"),
        (file("empty.so", b""), "cannot be loaded"),
        (
            file("text.so", b"this is not a library"),
            "cannot be loaded",
        ),
        (
            shared_library(
                folder.path(),
                "stranger",
                "#[unsafe(no_mangle)] pub extern \"C\" fn hello() {}",
            ),
            "not ONNX Runtime",
        ),
        (
            impostor(folder.path(), "old", "1.19.2"),
            "1.24 is the oldest",
        ),
        (impostor(folder.path(), "odd", "banana"), "banana"),
        (
            impostor(folder.path(), "hollow", "1.99.0"),
            "lacks interface",
        ),
        // A bare name must not send the loader through the system's folders.
        (PathBuf::from("libc.so.6"), "No such file"),
    ];
    for (path, word) in cases {
        // A child each: a library of the process would be compared with, not looked at.
        let said = in_a_child(&[("ISOVEC_TEST_LIBRARY", path.as_os_str())]);
        assert!(said.contains("Unavailable"), "{said}");
        let word = if consts::OS == "windows" && word == "No such file" {
            "cannot find"
        } else {
            word
        };
        assert!(said.contains(word), "{}: {said}", path.display());
        assert!(
            said.contains("pip download") && said.contains("cargo xtask setup"),
            "{said}"
        );
    }
}

#[test]
fn the_variable_is_looked_at_and_an_empty_cache_is_said_to_be_empty() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = folder.path().as_os_str();
    let said = in_a_child(&[("ISOVEC_CACHE", nothing)]);
    assert!(
        said.contains("has none") && said.contains("ORT_DYLIB_PATH"),
        "{said}"
    );
    let text = folder.path().join("text.so");
    fs::write(&text, "text").unwrap();
    // What is named is used or refused; the cache is not a second guess.
    let said = in_a_child(&[("ORT_DYLIB_PATH", text.as_os_str())]);
    assert!(said.contains("text.so cannot be loaded"), "{said}");
}

#[test]
fn an_offered_library_comes_after_what_is_named_and_before_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let (named, offered) = (
        folder.path().join("named.so"),
        folder.path().join("offered.so"),
    );
    for file in [&named, &offered] {
        fs::write(file, "text").unwrap();
    }
    let offer = ("ISOVEC_TEST_OFFERED", offered.as_os_str());
    let nowhere = ("ISOVEC_CACHE", folder.path().as_os_str());
    let said = in_a_child(&[offer, nowhere]);
    assert!(said.contains("offered.so cannot be loaded"), "{said}");
    for name in ["ORT_DYLIB_PATH", "ISOVEC_TEST_LIBRARY"] {
        let said = in_a_child(&[offer, (name, named.as_os_str())]);
        assert!(said.contains("named.so cannot be loaded"), "{said}");
    }
    if !available() {
        return;
    }
    let real = real_library();
    let said = in_a_child(&[("ISOVEC_TEST_OFFERED", real.as_os_str()), nowhere]);
    assert!(said.contains("Available"), "{said}");
    // Behind one that is broken there is the cache.
    let file = format!("{}onnxruntime{}", consts::DLL_PREFIX, consts::DLL_SUFFIX);
    let version = folder.path().join("onnxruntime/1.31.1");
    fs::create_dir_all(&version).unwrap();
    fs::copy(&real, version.join(&file)).unwrap();
    let said = in_a_child(&[offer, nowhere]);
    assert!(said.contains("Available"), "{said}");
}

#[test]
fn the_library_is_found_by_path_by_variable_and_in_a_cache() {
    if !available() {
        return;
    }
    let real = real_library();
    let said = in_a_child(&[("ISOVEC_TEST_LIBRARY", real.as_os_str())]);
    assert!(said.contains("Available"), "{said}");
    let empty = tempfile::tempdir().unwrap();
    let said = in_a_child(&[
        ("ORT_DYLIB_PATH", real.as_os_str()),
        ("ISOVEC_CACHE", empty.path().as_os_str()),
    ]);
    assert!(said.contains("Available"), "{said}");
    // A cache with a newer library that is broken and an older one that works.
    let cache = tempfile::tempdir().unwrap();
    let file = format!("{}onnxruntime{}", consts::DLL_PREFIX, consts::DLL_SUFFIX);
    for version in ["1.31.1", "1.99.0"] {
        fs::create_dir_all(cache.path().join("onnxruntime").join(version)).unwrap();
    }
    fs::copy(&real, cache.path().join("onnxruntime/1.31.1").join(&file)).unwrap();
    fs::write(
        cache.path().join("onnxruntime/1.99.0").join(&file),
        "broken",
    )
    .unwrap();
    let said = in_a_child(&[("ISOVEC_CACHE", cache.path().as_os_str())]);
    assert!(said.contains("Available"), "{said}");
}

#[test]
fn a_second_library_is_refused_and_the_same_by_another_name_is_not() {
    if !available() {
        return;
    }
    let config = EngineConfig::default();
    let load = |factory: &OnnxRuntime| {
        pollster::block_on(factory.load(&affine_model(), &config, &Cancel::new()))
    };
    load(&OnnxRuntime::default()).unwrap();
    let real = real_library();
    let roundabout = real
        .parent()
        .unwrap()
        .join(".")
        .join(real.file_name().unwrap());
    load(&naming(Some(roundabout))).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(real.file_name().unwrap());
    fs::copy(&real, &copy).unwrap();
    let other = naming(Some(copy.clone()));
    let error = load(&other).unwrap_err();
    assert!(
        matches!(&error, EngineError::EngineUnavailable { reason, .. }
            if reason.contains("only one") && reason.contains(&copy.display().to_string())),
        "{error}"
    );
    assert!(
        matches!(other.probe(), Probe::Unavailable { reason, .. } if reason.contains("only one"))
    );
}
