//! `isovec features`.

use serde_json::Value;

use crate::{configured, isovec, stderr, stdout};

fn features(args: &[&str]) -> Value {
    let args = [&["features", "--json"], args].concat();
    serde_json::from_str(&stdout(&mut isovec(&args))).expect("JSON")
}

#[test]
fn every_engine_and_provider_says_whether_and_why() {
    let features = features(&[]);
    let engines = features["engines"].as_array().expect("engines");
    let names: Vec<_> = engines.iter().map(|engine| &engine["name"]).collect();
    assert_eq!(names, ["onnxruntime", "portable"]);
    let mut providers = Vec::new();
    for engine in engines {
        assert_ne!(
            engine["usable"],
            Value::from(engine["reason"].is_string()),
            "{engine}"
        );
        for provider in engine["providers"].as_array().expect("providers") {
            assert_ne!(
                provider["usable"],
                Value::from(provider["reason"].is_string()),
                "{provider}"
            );
            providers.push(provider["name"].as_str().expect("a name").to_owned());
        }
    }
    let all = "cuda tensorrt rocm directml coreml openvino ort-webgpu cpu cpu webgpu";
    assert_eq!(providers.join(" "), all);
    let portable = &engines[1];
    assert_eq!(portable["providers"][0]["usable"], true, "{portable}");
    assert!(features["built_with"].to_string().contains("webgpu"));
}

/// Scripts read these names. Those of the hardware are held by `src/hardware.rs`.
#[test]
fn the_json_has_the_names_that_it_always_had() {
    let features = features(&[]);
    let names = |of: &Value| -> String {
        let names = of.as_object().expect("an object").keys();
        names.cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        names(&features),
        "auto_engine built_with engines hardware hardware_id version"
    );
    let engine = &features["engines"][1];
    assert_eq!(names(engine), "hint name providers reason usable version");
    assert_eq!(names(&engine["providers"][0]), "hint name reason usable");
}

#[test]
fn the_machine_is_the_same_each_time() {
    let (one, other) = (features(&[]), features(&[]));
    assert_eq!(one["hardware_id"], other["hardware_id"]);
    assert_eq!(one["hardware_id"].as_str().map(str::len), Some(16));
    assert_eq!(one["hardware"]["arch"], std::env::consts::ARCH);
    let cores = std::thread::available_parallelism().expect("cores").get();
    assert_eq!(one["hardware"]["cpu"]["usable_cores"], cores);
    assert!(
        one["hardware"]["adapters"].is_array(),
        "the program has webgpu"
    );
    assert_eq!(one["hardware"]["page"], Value::Null);
}

#[test]
fn a_library_that_is_none_is_said_and_is_no_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("none.so");
    let knobs = format!("onnxruntime_library = {library:?}\n");
    let text = stdout(&mut configured(
        folder.path(),
        "c.toml",
        &knobs,
        &["features"],
    ));
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.ends_with(" onnxruntime"));
    let at = at.unwrap_or_else(|| panic!("{text}"));
    assert!(lines[at + 1].contains("not usable: "), "{text}");
    assert!(lines[at + 1].contains("none.so"), "{text}");
    let auto = "portable (isovec";
    let auto = lines.iter().find(|line| line.contains(auto));
    assert!(
        auto.is_some_and(|line| line.contains("engine = \"auto\"")),
        "{text}"
    );
    for key in ["machine", "processor", "memory", "gpu", "engine"] {
        assert!(
            lines.iter().any(|line| line.starts_with(key)),
            "{key}: {text}"
        );
    }
}

#[test]
fn a_configuration_that_cannot_be_read_is_wrong_usage() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = configured(folder.path(), "c.toml", "engin = 1\n", &["features"]);
    assert!(stderr(&mut command, 2).contains("engin"));
}
