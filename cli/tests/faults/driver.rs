//! Runs the program again and again, with another call disturbed each time.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;

/// What happens to a call, as `shim.c` names it.
pub(crate) const KINDS: [&str; 7] = [
    "ENOSPC", "FULL", "EIO", "EACCES", "SHORT", "BEFORE", "AFTER",
];

/// Of so many pairs of a call and a fault one is tried, where not all are.
const SAMPLE: usize = 4;

/// A run of the program, its files, and what may be found of them.
pub(crate) trait Case {
    /// Makes the files that are there before.
    fn prepare(&self, work: &Path);

    /// The run that is disturbed, and its standard input.
    fn command(&self, work: &Path) -> (Command, Vec<u8>);

    /// The code with which it ends when nothing disturbs it.
    fn code(&self) -> i32 {
        0
    }

    /// The run that follows a disturbed one, and has to succeed.
    fn again(&self, work: &Path) -> (Command, Vec<u8>) {
        self.command(work)
    }

    /// Whether a failing disk costs time and nothing else.
    fn forgives(&self) -> bool {
        false
    }

    /// Whether a file is as it may be after a disturbed run; without a better rule, as it was or as it will be.
    fn is_sound(
        &self,
        _name: &str,
        found: &[u8],
        before: Option<&Found>,
        after: Option<&Found>,
    ) -> bool {
        [before, after]
            .into_iter()
            .flatten()
            .any(|one| matches!(one, Found::File(bytes) if bytes == found))
    }

    /// Whether every run says the same on its standard output.
    fn repeats(&self) -> bool {
        true
    }

    /// Whether the run that follows need not leave this as an undisturbed one would.
    fn may_differ(&self, _name: &str) -> bool {
        false
    }
}

/// Something in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    File(Vec<u8>),
    Link(PathBuf),
}

/// What is in a folder, by names from there.
pub(crate) fn look(folder: &Path) -> BTreeMap<String, Found> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        let entries = match fs::read_dir(&inner) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries.expect("a folder"),
        };
        for entry in entries {
            let path = entry.expect("an entry").path();
            let kind = fs::symlink_metadata(&path).expect("metadata").file_type();
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path
                .strip_prefix(folder)
                .expect("inside")
                .display()
                .to_string();
            found.insert(
                name,
                match kind.is_symlink() {
                    true => Found::Link(fs::read_link(&path).expect("a link")),
                    false => Found::File(fs::read(&path).expect("a file")),
                },
            );
        }
    }
    found
}

/// The library that is loaded into the program; nothing where there is no compiler to make it.
pub(crate) fn shim() -> Option<&'static Path> {
    static SHIM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let made = SHIM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/shim.c");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults-shim.so");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let made = Command::new(&compiler)
            .args(["-shared", "-fPIC", "-O1", "-w", "-o"])
            .arg(&library)
            .arg(source)
            .arg("-ldl")
            .status();
        match made {
            Ok(status) => {
                assert!(status.success(), "{compiler:?} does not compile shim.c");
                Some(library)
            }
            Err(error) => {
                eprintln!(
                    "left out: there is no C compiler to make shim.c with ({compiler:?}: {error})"
                );
                None
            }
        }
    });
    made.as_deref()
}

/// The program with these arguments, the small model, and caches in `work`, so that nothing of this machine is read.
pub(crate) fn isovec(work: &Path, args: &[&str]) -> Command {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/tiny-bert");
    let mut command = Command::new(env!("CARGO_BIN_EXE_isovec"));
    command
        .args(args)
        .env("ISOVEC_MODEL", model)
        .env("ISOVEC_CACHE", work.join("cache"))
        .env("HF_HOME", work.join("hf"))
        .env("TMPDIR", work)
        .env_remove("ORT_DYLIB_PATH");
    command
}

/// A run that has ended.
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The shim's log.
    pub(crate) calls: Vec<String>,
}

impl Ran {
    /// The call that was disturbed, if the run came that far.
    pub(crate) fn met(&self) -> Option<&str> {
        self.calls.iter().find_map(|call| call.strip_suffix(" !"))
    }
}

/// Starts a run under the shim and hands it its input.
pub(crate) fn start(
    shim: &Path,
    work: &Path,
    (mut command, input): (Command, Vec<u8>),
    fault: Option<(&str, usize)>,
) -> Child {
    let log = log(work);
    fs::remove_file(&log).ok();
    command
        .env("LD_PRELOAD", shim)
        .env("FAULT_UNDER", work)
        .env("FAULT_LOG", log)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some((kind, at)) = fault {
        command
            .env("FAULT_KIND", kind)
            .env("FAULT_AT", at.to_string());
    }
    let mut child = command.spawn().expect("starts");
    // It may have ended before it read anything.
    child.stdin.take().expect("a pipe").write_all(&input).ok();
    child
}

fn log(work: &Path) -> PathBuf {
    work.with_extension("log")
}

/// Runs to the end.
pub(crate) fn run(
    shim: &Path,
    work: &Path,
    command: (Command, Vec<u8>),
    fault: Option<(&str, usize)>,
) -> Ran {
    let ended = start(shim, work, command, fault)
        .wait_with_output()
        .expect("ends");
    let calls = fs::read_to_string(log(work)).unwrap_or_default();
    // What was written is named in answers too, and every run has a folder of its own.
    let stdout = String::from_utf8_lossy(&ended.stdout);
    let stdout = stdout.replace(&*work.to_string_lossy(), "");
    Ran {
        status: ended.status,
        stdout,
        stderr: String::from_utf8_lossy(&ended.stderr).into_owned(),
        calls: calls.lines().map(str::to_owned).collect(),
    }
}

/// A folder for one run, named as `/proc` names it.
pub(crate) fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let work = fs::canonicalize(folder.path())
        .expect("a path")
        .join("work");
    fs::create_dir(&work).expect("made");
    (folder, work)
}

/// What was being made when the process was killed.
fn is_left_over(name: &str) -> bool {
    name.ends_with(".partial") || name.contains(".partial/")
}

/// Whether a file is the whole hash of a checkpoint. Its name is made of the state of the checkpoint's files, which are others in each
/// folder.
fn is_kept_hash(name: &str, found: &[u8]) -> bool {
    let hash = found.strip_prefix(b"isovec identity 1\n");
    let hash = hash.and_then(|hash| hash.strip_suffix(b"\n"));
    name.starts_with("cache/identities/")
        && hash.is_some_and(|hash| hash.len() == 64 && hash.iter().all(u8::is_ascii_hexdigit))
}

/// Tries a case with every fault at every call, or with a part of them.
pub(crate) fn try_all(case: &impl Case) {
    let Some(shim) = shim() else { return };
    let all = std::env::var("ISOVEC_FAULTS").is_ok_and(|which| which == "all");
    let (_folder, work) = folder();
    case.prepare(&work);
    let before = look(&work);
    let undisturbed = run(shim, &work, case.command(&work), None);
    assert_eq!(
        undisturbed.status.code(),
        Some(case.code()),
        "{}",
        undisturbed.stderr
    );
    assert!(!undisturbed.calls.is_empty(), "the shim sees no call");
    let after = look(&work);
    let (_other_folder, finished) = folder();
    case.prepare(&finished);
    run(shim, &finished, case.command(&finished), None);
    run(shim, &finished, case.again(&finished), None);
    let finished = look(&finished);

    let mut tried = 0;
    for (number, kind) in KINDS.into_iter().enumerate() {
        // Threads may make a call more or less: it ends where none is met any more.
        for at in 1.. {
            if !all && !(at + number * 3).is_multiple_of(SAMPLE) {
                if at > undisturbed.calls.len() {
                    break;
                }
                continue;
            }
            let (_folder, work) = folder();
            case.prepare(&work);
            let ran = run(shim, &work, case.command(&work), Some((kind, at)));
            let Some(met) = ran.met() else {
                assert!(
                    at > undisturbed.calls.len() / 2,
                    "call {at} is not made again"
                );
                break;
            };
            tried += 1;
            let what = format!("{kind} at call {met}");
            check_end(case, &work, kind, &ran, &undisturbed, &what);
            check_files(case, &work, &before, &after, &ran, &what);
            let went_on = run(shim, &work, case.again(&work), None);
            assert!(went_on.status.success(), "{what}, then {}", went_on.stderr);
            let found = look(&work);
            let names = found.keys().chain(finished.keys());
            for name in names.filter(|name| !is_left_over(name) && !case.may_differ(name)) {
                assert!(
                    found.get(name) == finished.get(name),
                    "{what}: {name} differs in the end"
                );
            }
        }
    }
    eprintln!("{tried} faults over {} calls", undisturbed.calls.len());
}

/// The run succeeds with what it should give, or says what failed and why.
fn check_end(case: &impl Case, work: &Path, kind: &str, ran: &Ran, undisturbed: &Ran, what: &str) {
    if ran.status.signal().is_some() {
        assert!(
            matches!(kind, "BEFORE" | "AFTER"),
            "{what}: {:?} {}",
            ran.status,
            ran.stderr
        );
        return;
    }
    assert!(!ran.stderr.contains("panicked"), "{what}: {}", ran.stderr);
    if ran.status.success() || (case.code() != 0 && ran.status == undisturbed.status) {
        let same = ran.stdout == undisturbed.stdout;
        assert!(same || !case.repeats(), "{what}: another answer");
        return;
    }
    assert!(!case.forgives(), "{what}: {}", ran.stderr);
    let why = ["No space left", "Input/output error", "Permission denied"];
    assert!(
        why.iter().any(|why| ran.stderr.contains(why)),
        "{what} is not said: {}",
        ran.stderr
    );
    let place = work.to_string_lossy();
    assert!(
        ran.stderr.contains(&*place),
        "{what}: no file is named: {}",
        ran.stderr
    );
}

/// What can be seen is whole, what was there before is there, and what was being made is gone unless the process was killed.
fn check_files(
    case: &impl Case,
    work: &Path,
    before: &BTreeMap<String, Found>,
    after: &BTreeMap<String, Found>,
    ran: &Ran,
    what: &str,
) {
    let found = look(work);
    for (name, one) in &found {
        if is_left_over(name) {
            let removing = ran.met().is_some_and(|met| met.contains(" unlink "));
            assert!(
                ran.status.signal().is_some() || removing,
                "{what}: {name} is left"
            );
            continue;
        }
        let (before, after) = (before.get(name), after.get(name));
        let sound = match one {
            Found::File(bytes) => {
                is_kept_hash(name, bytes) || case.is_sound(name, bytes, before, after)
            }
            Found::Link(target) => {
                let is_there = work.join(name).exists();
                is_there && (Some(one) == after || target.is_relative())
            }
        };
        assert!(
            sound,
            "{what}: {name} is neither what it was nor what it is to be"
        );
    }
    for name in before.keys().filter(|name| !found.contains_key(*name)) {
        // It may be gone where the process was killed between taking it away and putting the new one there.
        let moved = ran.status.signal().is_some()
            && found
                .keys()
                .any(|one| one.starts_with(name.as_str()) && is_left_over(one));
        assert!(moved || !after.contains_key(name), "{what}: {name} is gone");
    }
}
