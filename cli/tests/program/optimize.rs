//! `isovec optimize`.

use std::collections::BTreeMap;

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

/// All files in a folder and below, by their paths there.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).expect("a folder") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).expect("inside").to_owned();
            found.insert(name, std::fs::read(path).expect("readable"));
        }
    }
    found
}

#[test]
fn a_recipe_gives_the_bytes_of_its_flags() {
    let folder = tempfile::tempdir().expect("a folder");
    let texts = ["mine.jsonl", "others.jsonl"].map(|name| folder.path().join(name));
    let rows = [
        [
            "the dog and the cat",
            "money in the bank",
            "rain on the town",
        ],
        ["a cat", "the end of the day", "a river and a bank"],
    ];
    for (path, rows) in texts.iter().zip(rows) {
        let rows = rows.map(|row| format!("{{\"body\": \"{row}\"}}\n"));
        std::fs::write(path, rows.concat()).expect("written");
    }
    let [mine, others] = texts.each_ref().map(|path| path.display().to_string());
    let recipe = folder.path().join("recipe.toml");
    let made = |name: &str, flags: &[&str]| {
        let place = folder.path().join(name);
        let mut command = isovec(&["optimize", "--engine", "portable", "--json", "--out"]);
        let report = stdout(command.arg(&place).args(flags));
        let report: Value = serde_json::from_str(&report).expect("JSON");
        (files(&place), report)
    };
    let with = ["--recipe", &recipe.display().to_string()];
    let others = ["--field", "body", "--calibrate", &mine, "--texts", &others];
    for (place, (words, flags)) in [
        (
            "int8 = \"static\"\nsmooth = 0.25\ndtype = \"f16\"\n",
            &["--int8", "static", "--smooth", "0.25", "--dtype", "f16"][..],
        ),
        ("prune = \"5%\"\n", &["--prune", "0.05"]),
        (
            "int4 = true\nbits = 5\nkeep_tokens_of = \"mine.jsonl\"\n",
            &["--int4", "--bits", "5", "--keep-tokens-of", &mine],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let shared = "field = \"body\"\ncalibrate = \"mine.jsonl\"\ntexts = [\"others.jsonl\"]\n";
        std::fs::write(&recipe, format!("{shared}{words}")).expect("written");
        let by_recipe = made(&format!("recipe-{place}"), &with);
        let by_flags = made(&format!("flags-{place}"), &[&others[..], flags].concat());
        assert!(by_recipe.0.len() > 2, "{words}");
        assert!(by_recipe.0 == by_flags.0, "{words}");
        assert_eq!(by_recipe.1["quality"], by_flags.1["quality"], "{words}");
        assert_eq!(by_recipe.1["quality"]["texts"], 3, "{words}");
    }

    // A flag wins, and needs no other that the recipe has.
    std::fs::write(&recipe, "int4 = true\nbits = 5\n").expect("written");
    let by_flag = made("bits", &[&with[..], &["--bits", "3"]].concat());
    assert!(by_flag.0 == made("three", &["--int4", "--bits", "3"]).0);
    assert!(by_flag.0 != made("five", &with).0);
}

#[test]
fn what_is_wrong_with_a_recipe_is_wrong_usage() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("small").display().to_string();
    let recipe = folder.path().join("recipe.toml");
    let wrong = |text: &str, flags: &[&str], code| {
        std::fs::write(&recipe, text).expect("written");
        let mut command = isovec(&["optimize", "--out", &out, "--engine", "portable"]);
        let error = stderr(command.arg("--recipe").arg(&recipe).args(flags), code);
        assert!(error.contains("recipe.toml"), "{error}");
        error
    };
    for (text, flags, says) in [
        ("prun = 0.1", &[][..], "no key prun; its keys are"),
        ("prune = true", &[], "prune = true cannot be used"),
        ("smooth = 2", &[], "has to be from 0 to 1; give a number"),
        ("bits = [", &[], "TOML parse error"),
        // What does not go together, in the recipe and with a flag.
        (
            "smooth = 0.5\ndtype = \"f16\"",
            &[],
            "smoothing belongs to products in int8",
        ),
        ("int4 = true", &["--int8", "dynamic"], "choose one of them"),
        (
            "rounds = 6\ndtype = \"f16\"",
            &[],
            "--budget, which is not there",
        ),
        (
            "budget = [\"size<=1MB\", \"size<=2MB\"]",
            &[],
            "another bound already",
        ),
        (
            "budget = \"size<=1MB\"\nint4 = true",
            &[],
            "a budget chooses between techniques itself",
        ),
        ("", &[], "nothing is to be optimised"),
    ] {
        let error = wrong(text, flags, 2);
        assert!(error.contains(says), "{text}: {error}");
    }
    // Options that belong to another are refused without a recipe as well.
    for flags in [["--smooth", "0.5"], ["--bits", "5"], ["--in-f32", "one"]] {
        let mut command = isovec(&["optimize", "--out", &out, "--dtype", "f16"]);
        let error = stderr(command.args(flags), 2);
        assert!(error.contains("not asked for"), "{error}");
    }
    let mut command = isovec(&["optimize", "--out", &out, "--recipe"]);
    let error = stderr(command.arg(folder.path().join("none.toml")), 1);
    assert!(error.contains("none.toml"), "{error}");
    assert!(!Path::new(&out).exists());
}
