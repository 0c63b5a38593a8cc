//! `isovec optimize`.

use super::*;

#[test]
fn a_folder_that_loads_is_written_with_a_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let texts = folder.path().join("texts.txt");
    std::fs::write(&texts, "the dog and the cat\nmoney in the bank\n").expect("written");
    let (texts, out) = (texts.display().to_string(), folder.path().join("small"));
    let place = out.display().to_string();
    let page = folder.path().join("report.html").display().to_string();
    let args = [
        "optimize",
        "--keep-tokens-of",
        &texts,
        "--out",
        &place,
        "--engine",
        "portable",
    ];
    let json = stdout(isovec(&args).args(["--json", "--report", &page]));
    let report: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(report["quality"]["identical"], 2);
    let bytes = |side: &str| report[side]["stored_bytes"].as_u64().expect("bytes");
    assert!(bytes("after") < bytes("before"), "{json}");
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(html.contains("fewer bytes"), "{html}");

    let embed = |model: &str| {
        let args = [
            "embed",
            "the dog and the cat",
            "--model",
            model,
            "--engine",
            "portable",
        ];
        rows(&stdout(&mut isovec(&args)))[0]["embedding"].clone()
    };
    assert_eq!(embed(&place), embed(&model().display().to_string()));

    // Once more, into the same folder: it stays as it is.
    let error = stderr(&mut isovec(&args), 1);
    assert!(error.contains("name another one"), "{error}");
}

#[test]
fn passes_are_asked_for_by_level_and_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("passed").display().to_string();
    let args = ["optimize", "--out", &out, "--engine", "portable", "--json"];
    let json = stdout(isovec(&args).args(["--level", "basic", "--pass", "gelus"]));
    let report: Value = serde_json::from_str(&json).expect("JSON");
    let passes = report["passes"].as_array().expect("passes").iter();
    let names: Vec<&str> = passes
        .filter_map(|passed| passed["pass"].as_str())
        .collect();
    assert_eq!(
        names,
        ["constants", "shapes", "identities", "duplicates", "gelus"]
    );
    let error = stderr(isovec(&args).args(["--level", "fast"]), 2);
    assert!(error.contains("none, basic, extended, all"), "{error}");
    let error = stderr(isovec(&args).args(["--pass", "fast"]), 2);
    assert!(error.contains("hard-swishes"), "{error}");
}

#[test]
fn nothing_to_do_and_no_texts_are_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("small").display().to_string();
    let args = ["optimize", "--out", &out, "--engine", "portable"];
    let error = stderr(&mut isovec(&args), 2);
    assert!(error.contains("nothing is to be optimised"), "{error}");
    let empty = folder.path().join("empty.txt");
    std::fs::write(&empty, "\n\n").expect("written");
    let error = stderr(isovec(&args).arg("--keep-tokens-of").arg(&empty), 1);
    assert!(error.contains("no text whose tokens"), "{error}");
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("readable").count(),
        1
    );
}

#[test]
fn a_static_model_is_written_and_embeds() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("static").display().to_string();
    let args = [
        "optimize", "--static", "16", "--dtype", "int8", "--out", &out, "--engine", "portable",
    ];
    let report = stdout(&mut isovec(&args));
    assert!(
        report.contains("| static | applied: 16 components"),
        "{report}"
    );
    let rows = rows(&stdout(&mut isovec(&[
        "embed", "a cat", "--model", &out, "--engine", "portable",
    ])));
    assert_eq!(rows[0]["embedding"].as_array().map(Vec::len), Some(16));
}

#[test]
fn a_budget_is_kept_or_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let texts = folder.path().join("texts.txt");
    std::fs::write(&texts, "the dog and the cat\nmoney in the bank\na cat\n").expect("written");
    let (texts, out) = (texts.display().to_string(), folder.path().join("small"));
    let (place, page) = (out.display().to_string(), folder.path().join("report.html"));
    let args = |bound| {
        let mut command = isovec(&[
            "optimize",
            "--out",
            &place,
            "--texts",
            &texts,
            "--engine",
            "portable",
            "--rounds",
            "6",
            "--seconds",
            "0.001",
            "--json",
            "--budget",
            bound,
        ]);
        command.arg("--report").arg(&page);
        command
    };
    let error = stderr(&mut args("size<=100B"), 4);
    assert!(error.contains("comes nearest: size is"), "{error}");
    assert!(!out.exists());
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(
        html.contains("<svg") && html.contains("nothing was written"),
        "{html}"
    );

    let report: Value = serde_json::from_str(&stdout(&mut args("cosine>=0.9"))).expect("JSON");
    let chosen = report["chosen"].as_u64().expect("a choice") as usize;
    let figures = &report["points"][chosen]["tried"]["measured"]["figures"];
    assert_eq!(figures["bytes"], report["optimized"]["bytes"]);
    assert!(figures["cosine"].as_f64().expect("a cosine") >= 0.9);
    let embed = ["embed", "a cat", "--model", &place, "--engine", "portable"];
    assert_eq!(rows(&stdout(&mut isovec(&embed))).len(), 1);
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(html.contains("chosen, keeps the budget"), "{html}");
}

#[test]
fn a_wrong_budget_is_wrong_usage() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("small").display().to_string();
    let args = ["optimize", "--out", &out, "--engine", "portable"];
    for (more, words) in [
        (&["--budget", "speed>=2"][..], "no figure named"),
        (
            &["--budget", "size<=1MB", "--int8", "static"],
            "cannot be used with",
        ),
        (
            &["--budget", "size<=1MB", "--budget", "size<=2MB"],
            "another bound already",
        ),
        (&["--dtype", "f16", "--rounds", "6"], "--budget"),
    ] {
        let error = stderr(isovec(&args).args(more), 2);
        assert!(error.contains(words), "{error}");
    }
    let error = stderr(isovec(&args).args(["--budget", "size<=1MB"]), 1);
    assert!(error.contains("0 different text"), "{error}");
}

#[test]
fn a_share_is_taken_out_and_a_share_that_is_none_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let texts = folder.path().join("texts.txt");
    std::fs::write(
        &texts,
        "the dog and the cat\nmoney in the bank\nrain on the town\n",
    )
    .expect("written");
    let out = folder.path().join("small").display().to_string();
    let with = |share: &str| {
        let mut command = isovec(&["optimize", "--out", &out, "--engine", "portable"]);
        command.args(["--prune", share, "--texts"]).arg(&texts);
        command
    };
    for (share, why) in [
        ("0%", "more than 0"),
        ("100%", "less than all"),
        ("1.5", "less than all"),
        ("much", "give a share"),
    ] {
        let error = stderr(&mut with(share), 2);
        assert!(error.contains(why), "{error}");
    }
    let report = stdout(with("5%").arg("--json"));
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let bytes = |side: &str| report[side]["weights_bytes"].as_f64().expect("bytes");
    assert!(bytes("after") <= 0.95 * bytes("before"), "{report}");
    assert!(!report["pruned"].as_array().expect("a list").is_empty());
}
