//! The committed list of tests that an engine passes.
//!
//! A list is text: the tests that pass under `# passes`, and the others under `# differs: ` or
//! `# refused: ` with the reason, all in order.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// What became of a test.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Its outputs are what they have to be.
    Passes,
    /// They are not: the engine computes something else, in these words.
    Differs(String),
    /// The engine does not run it, for this reason.
    Refused(String),
}

/// The fates of all tests, by name.
pub type Fates = BTreeMap<String, Verdict>;

impl Verdict {
    fn heading(&self) -> String {
        match self {
            Self::Passes => "passes".into(),
            // Particulars may be another machine's.
            Self::Differs(how) => format!("differs: {}", how.split(" (").next().unwrap_or(how)),
            Self::Refused(why) => format!("refused: {why}"),
        }
    }

    /// The same without the words, which may be another's: a runtime's messages are not ours.
    fn kind(&self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Differs(_) => "differs",
            Self::Refused(_) => "is refused",
        }
    }
}

/// A list as text.
pub fn text(fates: &Fates) -> String {
    let mut groups: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
    for (name, verdict) in fates {
        // `passes` and `differs` before `is refused`.
        let order = if *verdict == Verdict::Passes {
            ""
        } else {
            verdict.kind()
        };
        groups
            .entry((order, verdict.heading()))
            .or_default()
            .push(name);
    }
    let mut text = String::new();
    for ((_, heading), names) in groups {
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "# {heading}");
        for name in names {
            let _ = writeln!(text, "{name}");
        }
    }
    text
}

/// Reads a list.
///
/// # Panics
/// For a text that is none.
pub fn parse(text: &str) -> Fates {
    let mut verdict = None;
    let mut fates = Fates::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("# ") {
            Some("passes") => verdict = Some(Verdict::Passes),
            Some(heading) => {
                let (kind, why) = heading.split_once(": ").expect("a heading with a reason");
                verdict = Some(match kind {
                    "differs" => Verdict::Differs(why.into()),
                    "refused" => Verdict::Refused(why.into()),
                    _ => panic!("no heading of a list: {line}"),
                });
            }
            None => {
                let verdict = verdict.clone().expect("a heading before the first test");
                assert!(
                    fates.insert(line.into(), verdict).is_none(),
                    "{line} is there twice"
                );
            }
        }
    }
    fates
}

/// What changed: a line for each test whose fate is another.
pub fn changes(known: &Fates, now: &Fates) -> Vec<String> {
    let mut changes = Vec::new();
    for (name, verdict) in now {
        let before = known.get(name).map_or("is not in the list", Verdict::kind);
        if before == verdict.kind() {
            continue;
        }
        changes.push(match verdict {
            Verdict::Passes => {
                format!("{name} {before} in the list and passes now: write the list anew")
            }
            Verdict::Differs(how) | Verdict::Refused(how) => {
                format!(
                    "{name} {before} in the list; now it {}: {how}",
                    verdict.kind()
                )
            }
        });
    }
    let gone = known.keys().filter(|name| !now.contains_key(*name));
    changes.extend(gone.map(|name| format!("{name} is in the list and was not run")));
    changes
}

/// Whether the lists are being written, and so not there to be read.
pub fn are_written() -> bool {
    std::env::var_os("ISOVEC_WRITE_LISTS").is_some_and(|value| value == "1")
}

/// The list that is committed for an engine.
///
/// # Panics
/// Where there is none.
pub fn committed(engine: &str) -> Fates {
    let known = std::fs::read_to_string(file(engine)).expect("the list can be read");
    parse(&known)
}

fn file(engine: &str) -> PathBuf {
    let lists = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/lists"));
    lists.join(format!("{engine}.txt"))
}

/// Holds an engine's fates to its list, which is of Linux on x86-64; writes it instead under
/// `ISOVEC_WRITE_LISTS=1`.
///
/// # Panics
/// When a test's fate is not the one in the list, naming each.
pub fn hold(engine: &str, fates: &Fates) {
    let kinds = ["passes", "differs", "is refused"];
    let count = |kind: &str| fates.values().filter(|own| own.kind() == kind).count();
    println!(
        "{engine}: {} tests, {:?}",
        fates.len(),
        kinds.map(|kind| (kind, count(kind)))
    );
    let file = file(engine);
    if are_written() {
        std::fs::write(&file, text(fates)).expect("the list can be written");
        return;
    }
    let changes = changes(&committed(engine), fates);
    // Elsewhere a runtime may have other kernels, and a GPU other roundings: that is said and no more.
    if !is_where_lists_were_written(engine) {
        return changes
            .iter()
            .for_each(|change| eprintln!("{engine}: {change}"));
    }
    assert!(
        changes.is_empty(),
        "{engine} no longer does what {} says (ISOVEC_WRITE_LISTS=1 writes it anew):\n{}",
        file.display(),
        changes.join("\n")
    );
}

/// Whether an engine does here what it did where its list was written. ONNX Runtime's products of 8-bit numbers saturate in
/// between on processors without VNNI.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn is_where_lists_were_written(engine: &str) -> bool {
    let vnni = [
        is_x86_feature_detected!("avx512vnni"),
        is_x86_feature_detected!("avxvnni"),
    ];
    vnni.contains(&true) || engine != "onnxruntime"
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn is_where_lists_were_written(_engine: &str) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(all: &[(&str, Verdict)]) -> Fates {
        let all = all
            .iter()
            .map(|(name, verdict)| ((*name).to_owned(), verdict.clone()));
        all.collect()
    }

    #[test]
    fn lists_come_back_as_they_were_written() {
        let all = fates(&[
            ("test_a", Verdict::Passes),
            (
                "test_b",
                Verdict::Refused("operator Conv: is not known".into()),
            ),
            ("test_c", Verdict::Passes),
            ("test_d", Verdict::Differs("another shape".into())),
        ]);
        let text = text(&all);
        assert!(
            text.starts_with("# passes\ntest_a\ntest_c\n\n# differs: "),
            "{text}"
        );
        assert_eq!(parse(&text), all);
        let particular = fates(&[(
            "test_a",
            Verdict::Differs("another shape ([1] for [])".into()),
        )]);
        assert_eq!(
            super::text(&particular),
            "# differs: another shape\ntest_a\n"
        );
    }

    #[test]
    fn every_change_of_a_fate_is_named() {
        let (passes, refused) = (Verdict::Passes, Verdict::Refused("no".into()));
        let known = fates(&[("test_a", passes.clone()), ("test_b", refused.clone())]);
        assert!(changes(&known, &known).is_empty());
        let reworded = fates(&[
            ("test_a", passes.clone()),
            ("test_b", Verdict::Refused("not".into())),
        ]);
        assert!(changes(&known, &reworded).is_empty());
        for (now, word) in [
            (
                fates(&[("test_a", refused.clone()), ("test_b", refused.clone())]),
                "test_a passes in",
            ),
            (
                fates(&[("test_a", passes.clone()), ("test_b", passes.clone())]),
                "passes now",
            ),
            (
                fates(&[
                    ("test_a", passes.clone()),
                    ("test_b", Verdict::Differs("x".into())),
                ]),
                "now it differs",
            ),
            (fates(&[("test_a", passes)]), "was not run"),
        ] {
            let changes = changes(&known, &now);
            assert!(
                changes.len() == 1 && changes[0].contains(word),
                "{changes:?}"
            );
        }
        assert_eq!(changes(&Fates::new(), &known).len(), 2);
    }
}
