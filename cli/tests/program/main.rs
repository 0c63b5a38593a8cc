//! The program as a user runs it, on the tiny seeded model and the engine that needs nothing.

mod advise;
mod bench;
mod bench_kept;
mod classify;
mod compact;
mod features;
mod graph;
mod images;
#[cfg(feature = "jobs")]
mod job;
mod kept;
mod multi_vector;
#[cfg(feature = "ocr")]
mod ocr;
mod optimize;
mod rerank;
mod resume;
#[cfg(all(feature = "route", feature = "serve"))]
mod route;
#[cfg(feature = "serve")]
mod serve;
mod sparse;
mod streaming;
mod trace;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use assert_cmd::Command;
use serde_json::Value;

fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/tiny-bert")
}

/// The program that was built with these tests, under a name of its own: a build beside them, with other features, may put another in
/// its place.
fn program() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let built = assert_cmd::cargo::cargo_bin("isovec");
        let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("isovec-of-tests");
        let own = own.with_extension(std::env::consts::EXE_EXTENSION);
        // What an earlier run has left.
        let _ = std::fs::remove_file(&own);
        match std::fs::hard_link(&built, &own) {
            Ok(()) => own,
            Err(_) => built,
        }
    });
    &PROGRAM
}

fn isovec(args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(args)
        .env("ISOVEC_MODEL", model())
        .env_remove("ORT_DYLIB_PATH");
    command
}

/// The program with a configuration file, which lives as long as the folder.
fn configured(folder: &Path, name: &str, text: &str, args: &[&str]) -> Command {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    let mut command = isovec(args);
    command.arg("--config").arg(path);
    command
}

fn stderr(command: &mut Command, code: i32) -> String {
    let output = command.assert().code(code).get_output().stderr.clone();
    String::from_utf8(output).expect("UTF-8")
}

/// A knob of what `info --json` or `effective_config` says.
fn used(info: &Value, knob: &str) -> String {
    let knobs = info["effective_config"].as_array().expect("knobs");
    let found = knobs.iter().find(|one| one["name"] == knob);
    found.map_or_else(|| "absent".into(), |one| one["used"].to_string())
}

fn stdout(command: &mut Command) -> String {
    let output = command.assert().success().get_output().stdout.clone();
    String::from_utf8(output).expect("UTF-8")
}

fn rows(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a JSON object a line"))
        .collect()
}

#[test]
fn one_row_out_for_each_row_in_empty_ones_included() {
    let mut command = isovec(&["embed", "-", "--engine", "portable"]);
    let rows = rows(&stdout(command.write_stdin("a cat\n\nthe end\n")));
    let texts: Vec<_> = rows.iter().map(|row| row["text"].as_str()).collect();
    assert_eq!(texts, [Some("a cat"), Some(""), Some("the end")]);
    for row in &rows {
        let vector = row["embedding"].as_array().expect("an embedding");
        let squares: f64 = vector
            .iter()
            .map(|x| x.as_f64().unwrap_or(f64::NAN).powi(2))
            .sum();
        assert!((squares.sqrt() - 1.0).abs() < 1e-5, "{squares}");
    }
}

#[test]
fn every_format_holds_every_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.jsonl");
    std::fs::write(
        &input,
        "{\"id\":7,\"body\":\"a\"}\n{\"id\":8,\"body\":\"\"}\n",
    )
    .expect("written");
    let input = input.display().to_string();
    for ending in ["jsonl", "npy", "parquet", "arrow", "safetensors"] {
        let out = folder.path().join(format!("out.{ending}"));
        let path = out.display().to_string();
        let args = [
            "embed", "-f", &input, "--field", "body", "-o", &path, "--engine", "portable",
        ];
        isovec(&args).assert().success().stdout("");
        let bytes = std::fs::read(&out).expect("a file");
        match ending {
            "jsonl" => {
                let rows = rows(std::str::from_utf8(&bytes).expect("UTF-8"));
                assert_eq!((rows.len(), &rows[1]["id"]), (2, &Value::from(8)));
            }
            "npy" => {
                let header = String::from_utf8_lossy(&bytes[10..128]).into_owned();
                assert!(header.contains("'shape': (2, 32)"), "{header}");
                assert_eq!(bytes.len(), 128 + 2 * 32 * 4);
            }
            "parquet" => assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")),
            "arrow" => assert!(bytes.starts_with(b"ARROW1") && bytes.ends_with(b"ARROW1")),
            _ => assert_eq!(
                isovec::Embeddings::from_bytes(&bytes)
                    .expect("an index")
                    .len(),
                2
            ),
        }
    }
}

#[test]
fn similarity_and_search_agree_about_what_is_near() {
    let same = stdout(&mut isovec(&[
        "similarity",
        "a cat",
        "a cat",
        "--engine",
        "portable",
    ]));
    assert!((same.trim().parse::<f64>().expect("a number") - 1.0).abs() < 1e-5);

    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("a.txt"),
        "something else\n\nthe cat\nsat\n",
    )
    .expect("written");
    std::fs::write(folder.path().join("b.bin"), [0u8, 159, 146, 150]).expect("written");
    let path = folder.path().display().to_string();
    let args = [
        "search",
        "the cat\nsat",
        &path,
        "--json",
        "-k",
        "1",
        "--engine",
        "portable",
    ];
    let answer: Value = serde_json::from_str(&stdout(&mut isovec(&args))).expect("JSON");
    assert_eq!(answer["passages"], 2);
    assert_eq!(answer["hits"][0]["line"], 3);
}

#[test]
fn an_exported_folder_is_a_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("exported").display().to_string();
    isovec(&["export", "--out", &out]).assert().success();
    let ask = |model: &str| {
        let args = ["embed", "hello", "--model", model, "--engine", "portable"];
        rows(&stdout(&mut isovec(&args))).remove(0)["embedding"].clone()
    };
    assert_eq!(ask(&out), ask(&model().display().to_string()));
}

#[test]
fn what_cannot_work_says_so_with_its_exit_code() {
    let cases: [(&[&str], i32, &str); 6] = [
        (
            &["embed", "a", "--model", "./nowhere", "--engine", "portable"],
            3,
            "nowhere",
        ),
        (&["embed", "-f", "missing.txt"], 1, "missing.txt"),
        (&["embed", "a", "--format", "npy"], 2, "--out"),
        (&["embed", "a", "-o", "vectors.xyz"], 2, "--format"),
        (&["search", "a", ".", "-k", "0"], 2, "top-k"),
        (
            &["embed", "a", "--max-length", "0", "--engine", "portable"],
            2,
            "max_length",
        ),
    ];
    for (args, code, word) in cases {
        let assert = isovec(args).assert().code(code);
        let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(message.contains(word), "{args:?}: {message}");
    }
}

#[test]
fn info_names_the_engine() {
    let args = ["info", "--json", "--engine", "portable"];
    let info: Value = serde_json::from_str(&stdout(&mut isovec(&args))).expect("JSON");
    assert_eq!(info["provider"]["engine"], "portable");
    assert_eq!(info["model"]["dimension"], 32);
    assert!(
        info["effective_config"]
            .as_array()
            .is_some_and(|knobs| !knobs.is_empty())
    );
}

#[test]
fn a_configuration_file_is_read_and_options_override_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let toml = "engine = \"portable\"\n[text]\nmax_length = 20\ndimension = 16\n\
        [memory]\nmax_pool_memory = 1048576\nmemory_pressure_threshold = 0.9\n\
        [text.prompts]\nquery = \"find: \"\n";
    let json = r#"{"engine": "portable", "text": {"max_length": 20, "dimension": 16, "prompts":
        {"query": "find: "}}, "memory": {"max_pool_memory": 1048576,
        "memory_pressure_threshold": 0.9}}"#;
    for (name, text) in [("isovec.toml", toml), ("isovec.json", json)] {
        let args = ["info", "--json", "--dimension", "8"];
        let info: Value =
            serde_json::from_str(&stdout(&mut configured(folder.path(), name, text, &args)))
                .expect("JSON");
        assert_eq!(info["provider"]["engine"], "portable");
        assert_eq!(info["model"]["max_length"], 20, "{name}");
        assert_eq!(info["model"]["dimension"], 8, "the option wins");
        assert_eq!(used(&info, "memory.max_pool_memory"), "\"1048576\"");
        assert_eq!(used(&info, "text.query_prompt"), r#""\"find: \"""#);
    }
}

#[test]
fn a_preset_is_what_a_file_and_options_stand_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["info", "--json", "--engine", "portable", "--preset"];
    let info = |preset: &str, text: &str| -> Value {
        let args = [&args[..], &[preset]].concat();
        let mut command = configured(folder.path(), "over.toml", text, &args);
        serde_json::from_str(&stdout(&mut command)).expect("JSON")
    };
    let plain = info("memory-constrained", "");
    assert_eq!(used(&plain, "batching.max_batch_tokens"), "\"128\"");
    assert_eq!(used(&plain, "memory.max_pool_size"), "\"8\"");
    let over = info("memory-constrained", "[memory]\nmax_pool_size = 3\n");
    assert_eq!(used(&over, "batching.max_batch_tokens"), "\"128\"");
    assert_eq!(used(&over, "memory.max_pool_size"), "\"3\"");

    for preset in ["high-throughput", "low-latency", "cpu", "debug"] {
        let args = ["embed", "a cat", "--engine", "portable", "--preset", preset];
        isovec(&args).assert().success();
    }
    let args = ["embed", "a", "--engine", "portable", "--preset", "gpu"];
    let message = stderr(&mut isovec(&args), 2);
    assert!(message.contains("only ONNX Runtime has"), "{message}");
}

#[test]
fn a_configuration_that_cannot_work_is_refused_with_its_file_and_every_fault() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases: [(&str, &str, &[&str]); 6] = [
        (
            "provider.toml",
            "[providers]\nexecution_providers = [\"CUDAExecutionProvider\", \"cpu\"]\n",
            &["provider.toml", "did you mean \"cuda\""],
        ),
        (
            "group.toml",
            "[sesion]\npool_size = 2\n",
            &["group.toml", "did you mean \"session\""],
        ),
        (
            "knob.json",
            r#"{"session": {"threads": 2}}"#,
            &["knob.json", "threads", "intra_op_threads"],
        ),
        ("syntax.toml", "[session\n", &["syntax.toml", "line 1"]),
        ("knobs.yaml", "session: 1\n", &["knobs.yaml", ".toml"]),
        (
            "contradictions.toml",
            "[session]\nintra_op_threads = 0\n[memory]\nmemory_pool = false\n\
             max_pool_size = 2\n[providers]\nexecution_providers = [\"cpu\", \"cuda\"]\n",
            &[
                "contradictions.toml",
                "session.intra_op_threads is 0",
                "memory.max_pool_size is set, but memory.memory_pool is off",
                "names cuda behind cpu",
            ],
        ),
    ];
    for (name, text, words) in cases {
        let mut command = configured(folder.path(), name, text, &["embed", "a"]);
        let message = stderr(&mut command, 2);
        for word in words {
            assert!(message.contains(word), "{name}: {message}");
        }
    }
    let missing = stderr(&mut isovec(&["info", "--config", "none.toml"]), 1);
    assert!(missing.contains("none.toml"), "{missing}");
}

/// The model does not exist, so an error about it would come if it were asked for first.
#[test]
fn what_no_model_could_make_work_is_said_before_one_is_touched() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["embed", "a", "--model", "./nowhere"];
    let profile = "engine = \"onnxruntime\"\n[session]\nprofiling = \"/nonexistent/dir/x\"\n";
    let message = stderr(
        &mut configured(folder.path(), "profile.toml", profile, &args),
        2,
    );
    assert!(message.contains("profile.toml"), "{message}");
    assert!(message.contains("session.profiling"), "{message}");
    assert!(message.contains("/nonexistent/dir/x"), "{message}");
    assert!(!message.contains("nowhere"), "{message}");

    let text = folder.path().join("not-a-library.so");
    std::fs::write(&text, "no library").expect("written");
    let library = format!("onnxruntime_library = {:?}\n", text.display().to_string());
    let message = stderr(
        &mut configured(folder.path(), "library.toml", &library, &args),
        3,
    );
    assert!(message.contains("not-a-library.so"), "{message}");
    assert!(!message.contains("nowhere"), "{message}");
}

#[test]
fn statistics_stand_inside_json_or_on_standard_error() {
    let engine = ["--engine", "portable", "--stats"];
    let args = [&["similarity", "a cat", "a dog and a cat"][..], &engine].concat();
    let assert = isovec(&args).assert().success();
    let line = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    let line: Value = serde_json::from_str(&line).expect("a line of JSON");
    assert_eq!(line["stats"]["calls"]["texts"], 2);
    assert_eq!(line["stats"]["provider"]["engine"], "portable");

    let args = [&["similarity", "a cat", "a dog", "--json"][..], &engine].concat();
    let answer: Value = serde_json::from_str(&stdout(&mut isovec(&args))).expect("JSON");
    assert_eq!(answer["stats"]["calls"]["texts"], 2);

    let args = [&["embed", "a cat", "--json"][..], &engine].concat();
    let assert = isovec(&args).assert().success();
    let summary = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(summary["stats"]["calls"]["embedded"], 1);
    assert_eq!(summary["texts"], 1);
}

/// `/dev/full` takes nothing, as a full disk does.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    for format in ["jsonl", "npy", "parquet", "arrow", "safetensors"] {
        let args = [
            "embed",
            "a cat",
            "--engine",
            "portable",
            "-o",
            "/dev/full",
            "--format",
            format,
        ];
        let message = stderr(&mut isovec(&args), 1);
        assert!(message.contains("/dev/full"), "{format}: {message}");
        assert!(message.contains("No space left"), "{format}: {message}");
    }
    // The same for standard output, which a shell may have sent there.
    let full = || std::fs::File::create("/dev/full").expect("opens");
    for args in [
        &["embed", "a cat", "--engine", "portable"][..],
        &["similarity", "a", "b", "--engine", "portable"],
        &["info", "--json", "--engine", "portable"],
    ] {
        let mut command = std::process::Command::new(program());
        command
            .args(args)
            .env("ISOVEC_MODEL", model())
            .stdout(full());
        let output = command.output().expect("runs");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {message}");
        assert!(message.contains("standard output"), "{args:?}: {message}");
    }
}

#[test]
fn the_reference_shows_a_file_that_works() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let reference = std::fs::read_to_string(reference).expect("the reference");
    let (_, rest) = reference.split_once("```toml\n").expect("a TOML file");
    let (text, _) = rest.split_once("```").expect("its end");
    let config: isovec::EmbeddingConfig = toml::from_str(text).expect("readable");
    assert_ne!(config.build().expect("usable"), Default::default());
}

#[test]
fn an_export_in_small_weights_is_a_model_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let size = |dtype: &str| {
        let out = folder.path().join(dtype).display().to_string();
        let args = ["export", "--dtype", dtype, "-o", &out, "--json"];
        let told: Value = serde_json::from_str(&stdout(&mut isovec(&args))).expect("JSON");
        assert_eq!(told["precision"], dtype);
        let said = stderr(&mut isovec(&args[..5]), 0);
        assert!(said.contains(&format!("weights in {dtype}")), "{said}");

        let args = ["info", "--model", &out, "--engine", "portable", "--json"];
        let info: Value = serde_json::from_str(&stdout(&mut isovec(&args))).expect("JSON");
        assert_eq!(used(&info, "model.dtype"), format!("{dtype:?}"));
        told["bytes"].as_u64().expect("a number")
    };
    let [f32, f16, int8] = ["f32", "f16", "int8"].map(size);
    assert!(int8 < f16 && f16 < f32, "{int8} {f16} {f32}");
    // In 4 bits it is told as in any other.
    let [wanted, found] = ["f16", "int4"].map(|dtype| {
        let out = folder.path().join(dtype).display().to_string();
        let args = ["export", "--dtype", dtype, "-o", &out, "--json"];
        let told: Value = serde_json::from_str(&stdout(&mut isovec(&args))).expect("JSON");
        let names: Vec<String> = told
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect();
        (names, told["dimension"].as_u64().expect("a number"))
    });
    assert_eq!(found, wanted);
}

#[test]
fn a_dtype_that_there_is_not_is_wrong_usage() {
    let said = stderr(&mut isovec(&["export", "--dtype", "int3", "-o", "x"]), 2);
    assert!(said.contains("int3") && said.contains("int8"), "{said}");
    let said = stderr(&mut isovec(&["info", "--dtype", "int4"]), 2);
    assert!(said.contains("export --dtype int4"), "{said}");
    let both = ["export", "--dtype", "int4", "--no-head", "-o", "x"];
    assert!(stderr(&mut isovec(&both), 2).contains("--no-head"));
    let folder = tempfile::tempdir().expect("a folder");
    let knobs = "[model]\ndtype = \"int4\"\n";
    let mut command = configured(folder.path(), "c.toml", knobs, &["info"]);
    let said = stderr(&mut command, 2);
    assert!(said.contains("int4") && said.contains("int8"), "{said}");
}
