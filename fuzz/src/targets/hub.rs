//! Answers of a hub: file lists, ranges, headers, shard indexes, and whole downloads.
//!
//! The oracles: a walk over `serde_json`'s values for lists; a parser written from the grammar of
//! RFC 9110, section 14.4, for ranges; the rules of `docs/models.md` written down plainly for the
//! choice of files, which has to come out alike with a list and without one; and for downloads the
//! file itself, whatever the server does on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use arbitrary::{Result, Unstructured};
use bytes::Bytes;
use isovec_engine::cancel::Cancel;
use isovec_engine::maybe_send::BoxFuture;
use isovec_hub::checksum::Checksum;
use isovec_hub::choice::{FileSelection, WeightFiles};
use isovec_hub::progress::Tracker;
use isovec_hub::range::ContentRange;
use isovec_hub::{
    Body, HubClient, Listing, MemorySink, ModelId, Progress, RemoteFile, Request, Response,
    RetryPolicy, Revision, Transport, TransportFailure,
};
use isovec_model::bundle::next_told;
use isovec_model::convert::family;
use serde_json::{Value, json};

use crate::bounds::ours;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// Tries one input.
pub fn run(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let _ = match data.first().map_or(0, |first| first % 6) {
        0 => raw_list(&data[data.len().min(1)..]),
        1 => list(&mut input, data.len()),
        2 => range(&mut input),
        3 => choice(&mut input, data.len()),
        4 => download(&mut input, data.len()),
        _ => headers(&mut input, data.len()),
    };
}

/// What a list has of a file: its size, and what it hashes to.
type Entry = (Option<u64>, Option<String>);

/// The list as a walk over values has it; `None` where it is none.
fn walked(json: &[u8]) -> Option<BTreeMap<String, Entry>> {
    let value: Value = serde_json::from_slice(json).ok()?;
    let hex = |text: &str, digits: usize| {
        text.len() == digits && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
    };
    if !hex(value.get("sha")?.as_str()?, 40) {
        return None;
    }
    let mut files = BTreeMap::new();
    for file in value.get("siblings")?.as_array()? {
        let path = file.get("rfilename")?.as_str()?;
        let number = |of: &Value, key: &str| match of.get(key) {
            None | Some(Value::Null) => Some(None),
            Some(value) => value.as_u64().map(Some),
        };
        let text = |of: &Value, key: &str| match of.get(key) {
            None | Some(Value::Null) => Some(None),
            Some(value) => value.as_str().map(|text| Some(text.to_owned())),
        };
        let none = Value::Null;
        let lfs = file.get("lfs").unwrap_or(&none);
        if !lfs.is_null() && !lfs.is_object() {
            return None;
        }
        let (size, large) = (number(file, "size")?, number(lfs, "size")?);
        let (blob, sha) = (text(file, "blobId")?, text(lfs, "sha256")?);
        if fault(path)? {
            continue;
        }
        let checksum = match (sha, blob) {
            (Some(sha), _) => Some(hex(&sha, 64).then_some(sha)?),
            (None, Some(blob)) => Some(hex(&blob, 40).then_some(blob)?),
            (None, None) => None,
        };
        if files
            .insert(path.to_owned(), (large.or(size), checksum))
            .is_some()
        {
            return None;
        }
    }
    Some(files)
}

/// Whether a file of that name is left out; `None` where the whole list is refused for it.
fn fault(path: &str) -> Option<bool> {
    let hostile = path.is_empty()
        || path.len() > 1024
        || path.contains('\\')
        || path.chars().any(char::is_control);
    if hostile {
        return None;
    }
    for part in path.split('/') {
        if part.is_empty() || part == "." || part == ".." || part.len() > 255 {
            return None;
        }
        if part.ends_with('.') || part.ends_with(' ') {
            return Some(true);
        }
    }
    Some(path.contains(':'))
}

fn entries(listing: &Listing) -> BTreeMap<String, Entry> {
    let entry = |checksum: &Option<Checksum>| checksum.as_ref().map(|one| one.hex().to_owned());
    let files = listing.files.iter();
    files
        .map(|(path, file)| (path.clone(), (file.size, entry(&file.checksum))))
        .collect()
}

/// What is kept of a list is the list.
fn is_kept(listing: &Listing) {
    let again = Listing::from_stored(&listing.commit, &listing.to_stored());
    assert_eq!(again.as_ref(), Ok(listing));
}

/// Any bytes. What we take, the walk takes; it takes more, such as keys that come twice. Fields that nobody asks for are passed
/// over here, whatever their texts and numbers are, so that there may be nothing to walk.
fn raw_list(json: &[u8]) -> Result<()> {
    if let Ok(listing) = ours(json.len(), || Listing::from_api(json)) {
        if serde_json::from_slice::<Value>(json).is_ok() {
            assert_eq!(Some(entries(&listing)), walked(json));
        }
        is_kept(&listing);
    }
    let _ = ours(json.len(), || Listing::from_stored(COMMIT, json));
    Ok(())
}

/// A list that is one but for what stands in it.
fn list(input: &mut Unstructured<'_>, length: usize) -> Result<()> {
    let mut siblings = Vec::new();
    while !input.is_empty() && siblings.len() < 64 {
        let mut file = json!({ "rfilename": name(input)? });
        let odd = [
            json!(null),
            json!(-1),
            json!(1.5),
            json!("x"),
            json!(u64::MAX),
            json!([]),
        ];
        match input.int_in_range(0..=9u8)? {
            0 => file["size"] = input.choose(&odd)?.clone(),
            1 => file["lfs"] = input.choose(&odd)?.clone(),
            2 => file["blobId"] = json!("a".repeat(input.int_in_range(38..=41)?)),
            3 => file["lfs"] = json!({"sha256": "b".repeat(input.int_in_range(63..=65)?)}),
            4 => file["lfs"] = json!({"sha256": "b".repeat(64), "size": input.arbitrary::<u32>()?}),
            5 => file["blobId"] = json!("A".repeat(40)),
            6 => file["rfilename"] = input.choose(&odd)?.clone(),
            _ => file["size"] = json!(input.arbitrary::<u32>()?),
        }
        siblings.push(file);
    }
    let json = json!({"id": "a/b", "sha": COMMIT, "siblings": siblings}).to_string();
    let listing = ours(length + json.len(), || Listing::from_api(json.as_bytes()));
    assert_eq!(
        listing.as_ref().ok().map(entries),
        walked(json.as_bytes()),
        "{json}"
    );
    if let Ok(listing) = listing {
        is_kept(&listing);
    }
    Ok(())
}

/// A path of a few parts, some of them none.
fn name(input: &mut Unstructured<'_>) -> Result<String> {
    const PARTS: [&str; 14] = [
        "a", "b", "model", ".", "..", "", "a:b", "c.", "d ", "e\\f", "g\n", "é", "\u{7f}", "...",
    ];
    let parts = input.int_in_range(1..=3)?;
    let parts: Vec<&str> = (0..parts)
        .map(|_| input.choose(&PARTS).copied())
        .collect::<Result<_>>()?;
    let mut name = parts.join("/");
    match input.int_in_range(0..=40u8)? {
        0 => name.push_str(&"x".repeat(260)),
        1 => name.push_str(&"/y".repeat(520)),
        number => name.push_str(&number.to_string()),
    }
    Ok(name)
}

/// A range, against the grammar:
///
/// ```text
/// Content-Range = range-unit SP ( range-resp / unsatisfied-range )
/// range-resp    = first-pos "-" last-pos "/" ( complete-length / "*" )
/// ```
fn range(input: &mut Unstructured<'_>) -> Result<()> {
    const PIECES: [&str; 16] = [
        "bytes",
        "Bytes",
        "lines",
        " ",
        "\t",
        "-",
        "/",
        "*",
        "0",
        "1",
        "99",
        "007",
        "+1",
        "18446744073709551615",
        "18446744073709551616",
        "x",
    ];
    let _ = input.arbitrary::<u8>()?;
    let text = if input.arbitrary()? {
        let number = |input: &mut Unstructured<'_>| input.choose(&PIECES[7..]).copied();
        let (first, last, total) = (number(input)?, number(input)?, number(input)?);
        format!("bytes {first}-{last}/{total}")
    } else {
        let pieces = input.int_in_range(0..=8)?;
        (0..pieces)
            .map(|_| input.choose(&PIECES).copied())
            .collect::<Result<String>>()?
    };
    let found = ContentRange::parse(&text).map(|range| (range.first, range.last, range.total));
    assert_eq!(found, by_grammar(&text), "{text:?}");
    Ok(())
}

fn by_grammar(text: &str) -> Option<(u64, u64, Option<u64>)> {
    /// Digits as far as they go.
    fn number(text: &[u8], at: &mut usize) -> Option<u64> {
        let (from, mut value) = (*at, 0u128);
        while text.get(*at).is_some_and(u8::is_ascii_digit) {
            value = (value * 10 + u128::from(text[*at] - b'0')).min(1 << 100);
            *at += 1;
        }
        (*at > from).then(|| u64::try_from(value).ok()).flatten()
    }
    // Optional white space around a field's value is none of it (section 5.5).
    let text = text.trim_matches([' ', '\t']).as_bytes();
    if !text.get(..6)?.eq_ignore_ascii_case(b"bytes ") {
        return None;
    }
    let mut at = 6;
    let first = number(text, &mut at)?;
    (text.get(at) == Some(&b'-')).then_some(())?;
    at += 1;
    let last = number(text, &mut at)?;
    (text.get(at) == Some(&b'/')).then_some(())?;
    at += 1;
    let total = if text.get(at) == Some(&b'*') {
        at += 1;
        None
    } else {
        Some(number(text, &mut at)?)
    };
    let whole = at == text.len();
    // "A Content-Range field value is invalid if ..." (the same section).
    let valid = last >= first && total.is_none_or(|total| total > last);
    (whole && valid).then_some((first, last, total))
}

/// What decides, and what is taken.
const NAMES: [&str; 22] = [
    "config.json",
    "tokenizer.json",
    "vocab.txt",
    "modules.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "model.onnx",
    "onnx/model.onnx",
    "onnx/model_fp16.onnx",
    "onnx/model_fp16.onnx_data",
    "onnx/model.onnx_data",
    "onnx/model.onnx_data_1",
    "model.onnx.data",
    "a.safetensors",
    "b.safetensors",
    "1_Pooling/config.json",
    "2_Dense/config.json",
    "2_Dense/model.safetensors",
    "onnx/other.onnx",
    "tokenizer_config.json",
    "sentence_bert_config.json",
    "README.md",
];

/// A repository and what is wanted of it.
struct Repo {
    files: BTreeMap<String, Vec<u8>>,
    onnx_file: Option<String>,
    smallest: bool,
}

impl Repo {
    fn made(input: &mut Unstructured<'_>) -> Result<Self> {
        let _ = input.arbitrary::<u8>()?;
        let there = input.arbitrary::<u32>()?;
        let mut files = BTreeMap::new();
        for (bit, name) in NAMES.iter().enumerate() {
            if there & (1 << bit) == 0 {
                continue;
            }
            let json = match *name {
                "config.json" => input.choose(&[
                    r#"{"model_type":"bert"}"#,
                    r#"{"model_type":"x"}"#,
                    "{}",
                    "",
                    "[",
                ])?,
                "modules.json" => input.choose(&[
                    "[]",
                    "{}",
                    "",
                    r#"[{"path":"1_Pooling","type":"a.Pooling"}]"#,
                    r#"[{"path":"2_Dense","type":"a.Dense"},{"path":"../x"},{"path":"gone"}]"#,
                ])?,
                "model.safetensors.index.json" => input.choose(&[
                    r#"{"weight_map":{"t":"a.safetensors"}}"#,
                    r#"{"weight_map":{}}"#,
                    "x",
                    r#"{"weight_map":{"t":"a.safetensors","u":"b.safetensors"}}"#,
                    r#"{"weight_map":{"t":"../a.safetensors"}}"#,
                    r#"{"weight_map":{"t":"/a"}}"#,
                    r#"{"weight_map":{"t":1}}"#,
                    r#"{"weight_map":{"t":"gone.safetensors"}}"#,
                ])?,
                _ => "",
            };
            let bytes = match json {
                "" => vec![b' '; usize::from(input.arbitrary::<u8>()?)],
                json => json.as_bytes().to_vec(),
            };
            files.insert((*name).to_owned(), bytes);
        }
        let named: Option<u8> = input.arbitrary()?;
        Ok(Self {
            files,
            onnx_file: named.map(|at| NAMES[usize::from(at) % NAMES.len()].to_owned()),
            smallest: input.arbitrary()?,
        })
    }

    fn has(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    fn json(&self, name: &str) -> Option<Value> {
        serde_json::from_slice(self.files.get(name)?).ok()
    }

    /// The rules of `docs/models.md`; `None` for an error, whichever it is.
    fn weights(&self) -> Option<String> {
        let checkpoint = "model.safetensors";
        let index = "model.safetensors.index.json";
        if let Some(name) = &self.onnx_file {
            return self.has(name).then(|| name.clone());
        }
        let shards = || -> Option<Vec<String>> {
            let index = self.json(index)?;
            let map = index.as_object()?.get("weight_map")?.as_object()?;
            let all: Option<BTreeSet<String>> = map
                .values()
                .map(|shard| Some(shard.as_str()?.to_owned()))
                .collect();
            let inside = |shard: &String| !shard.starts_with('/') && !shard.contains("..");
            let all = all.filter(|all| !all.is_empty() && all.iter().all(inside))?;
            Some(all.into_iter().collect())
        };
        let size = |name: &str| self.files.get(name).map(Vec::len);
        let half = "onnx/model_fp16.onnx";
        if self.smallest
            && let Some(bytes) = size(half)
        {
            let bytes = bytes + size("onnx/model_fp16.onnx_data").unwrap_or(0);
            let full = match size(checkpoint) {
                Some(full) => Some(full),
                None if self.has(index) => {
                    let sizes: Vec<usize> =
                        shards()?.iter().filter_map(|shard| size(shard)).collect();
                    (!sizes.is_empty()).then(|| sizes.iter().sum())
                }
                None => None,
            };
            if full.is_none_or(|full| bytes < full) {
                return Some(half.to_owned());
            }
        }
        if self.has(checkpoint) || self.has(index) {
            let config = self.files.get("config.json");
            let kind = match config {
                None => None,
                // A damaged one is an error.
                Some(_) => {
                    let config = self.json("config.json").filter(Value::is_object)?;
                    config.get("model_type").cloned()
                }
            };
            if kind == Some(json!("bert")) {
                if self.has(checkpoint) {
                    return Some(checkpoint.to_owned());
                }
                return shards()?
                    .iter()
                    .all(|shard| self.has(shard))
                    .then(|| index.to_owned());
            }
        }
        let graphs = ["model.onnx", "onnx/model.onnx"];
        graphs
            .iter()
            .find(|name| self.has(name))
            .map(|name| (*name).to_owned())
    }
}

impl fmt::Debug for Repo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &Vec<u8>| match bytes.iter().all(|byte| *byte == b' ') {
            true => format!("{} bytes", bytes.len()),
            false => String::from_utf8_lossy(bytes).into_owned(),
        };
        let files = self.files.iter().map(|(name, bytes)| (name, text(bytes)));
        f.debug_map().entries(files).finish()?;
        write!(
            f,
            ", onnx_file {:?}, smallest {}",
            self.onnx_file, self.smallest
        )
    }
}

type Chosen = std::result::Result<(Option<String>, Vec<String>), String>;

fn choice(input: &mut Unstructured<'_>, length: usize) -> Result<()> {
    let repo = Repo::made(input)?;
    let siblings: Vec<Value> = repo
        .files
        .iter()
        .map(|(name, bytes)| json!({"rfilename": name, "size": bytes.len()}))
        .collect();
    let list = json!({"sha": COMMIT, "siblings": siblings}).to_string();
    let listing = Listing::from_api(list.as_bytes()).expect("a list");
    let weights = match &repo.onnx_file {
        Some(name) => WeightFiles::Onnx(name.clone()),
        None if repo.smallest => WeightFiles::Smallest,
        None => WeightFiles::Auto,
    };
    let rules = FileSelection::embedding()
        .weights(weights)
        .accept_safetensors_if(|config| family("fuzz", config).map(|_| ()));
    let by_list: Chosen = ours(length, || {
        rules
            .choose("fuzz", &listing, &|path| repo.files.get(path).cloned())
            .map(|choice| (choice.weights.file().map(str::to_owned), choice.files))
            .map_err(|error| error.kind().to_owned())
    });
    // `modules.json` is read by another than the weights' rules, and refuses all of it.
    let modules = repo.files.get("modules.json").map(|bytes| {
        serde_json::from_slice::<Vec<BTreeMap<String, String>>>(bytes)
            .is_ok_and(|all| all.iter().all(|one| one.contains_key("path")))
    });
    let expected = repo.weights().filter(|_| modules != Some(false));
    let found = by_list
        .as_ref()
        .ok()
        .and_then(|(weights, _)| weights.clone());
    assert_eq!(found, expected, "{repo:?}: {by_list:?}");
    if let Ok((weights, files)) = &by_list {
        assert!(
            files.iter().all(|file| repo.has(file)),
            "{repo:?}: {files:?}"
        );
        assert!(files.is_sorted() && files.iter().collect::<BTreeSet<_>>().len() == files.len());
        assert!(
            weights.iter().all(|file| files.contains(file)),
            "{repo:?}: {files:?}"
        );
    }
    let by_asking = asking(&repo, length);
    let named_data = |files: &[String]| -> Vec<String> {
        // Who has no list asks for the usual names of external data, one after the other.
        let gap = !files.contains(&"onnx/model.onnx_data".to_owned());
        let odd = |file: &&String| !(gap && file.ends_with("model.onnx_data_1"));
        files.iter().filter(odd).cloned().collect()
    };
    match (&by_list, &by_asking) {
        (Ok((one, files)), Ok((other, others))) => {
            assert_eq!(
                (one, named_data(files)),
                (other, named_data(others)),
                "{repo:?}"
            );
        }
        (one, other) => assert_eq!(one, other, "{repo:?}"),
    }
    Ok(())
}

/// As a page comes to its choice.
fn asking(repo: &Repo, length: usize) -> Chosen {
    let mut known = serde_json::Map::new();
    for _ in 0..100 {
        let told = json!({
            "origin": "fuzz", "onnx_file": repo.onnx_file, "smallest": repo.smallest,
            "listed": false, "files": known,
        })
        .to_string();
        let said = ours(length + told.len(), || next_told(&told));
        let said: Value = match said {
            Ok(said) => serde_json::from_str(&said).expect("JSON"),
            Err(error) => return Err(error.kind().to_owned()),
        };
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        if let Some(files) = said.get("files") {
            let files = files.as_array().expect("files").iter().map(text).collect();
            return Ok((said.get("weights").map(text), files));
        }
        for question in said["ask"].as_array().expect("questions") {
            let path = text(&question[0]);
            let fact = repo
                .files
                .get(&path)
                .map(|bytes| json!({"bytes": bytes.len(), "text": String::from_utf8_lossy(bytes)}));
            let before = known.insert(path, json!(fact));
            assert!(before.is_none(), "{repo:?}: asked twice");
        }
    }
    panic!("{repo:?}: asks without end");
}

/// A status, headers, and the parts of a body, of which the one that is missing is a cut.
type Answered = (u16, Vec<(String, String)>, Vec<Option<Bytes>>);

/// A server that does what the input says, and who was asked with the token.
#[derive(Debug)]
struct Server {
    answers: Mutex<Vec<Answered>>,
    /// Of what is asked for: where it goes to, and whether the token goes along.
    asked: Mutex<Vec<(String, bool)>>,
}

struct Parts(std::vec::IntoIter<Option<Bytes>>);

impl Body for Parts {
    fn next_chunk(
        &mut self,
    ) -> BoxFuture<'_, std::result::Result<Option<Bytes>, TransportFailure>> {
        let part = match self.0.next() {
            Some(Some(bytes)) => Ok(Some(bytes)),
            Some(None) => Err(TransportFailure::transient("cut")),
            None => Ok(None),
        };
        Box::pin(async { part })
    }
}

impl Transport for Server {
    fn send(
        &self,
        request: Request,
    ) -> BoxFuture<'_, std::result::Result<Response, TransportFailure>> {
        let token = request
            .headers
            .iter()
            .any(|(_, value)| value.contains("secret"));
        let mut asked = self.asked.lock().expect("no panic");
        asked.push((request.url.as_str().to_owned(), token));
        let answer = self.answers.lock().expect("no panic").pop();
        Box::pin(async {
            let Some((status, headers, parts)) = answer else {
                return Err(TransportFailure::permanent("nobody is there any more"));
            };
            Ok(Response {
                status,
                headers,
                body: Box::new(Parts(parts.into_iter())),
            })
        })
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

/// A header's value: one that means something, or one that does not.
fn header(input: &mut Unstructured<'_>, size: usize) -> Result<(String, String)> {
    const NAMES: [&str; 10] = [
        "content-range",
        "content-length",
        "etag",
        "x-linked-etag",
        "x-linked-size",
        "x-repo-commit",
        "location",
        "content-encoding",
        "content-type",
        "retry-after",
    ];
    const VALUES: [&str; 18] = [
        "",
        "0",
        "7",
        "-1",
        "\"abc\"",
        "W/\"abc\"",
        "../x",
        "abc.incomplete",
        COMMIT,
        "https://hub.test/y",
        "https://evil.test/x",
        "http://hub.test/z",
        "//evil.test",
        "gzip",
        "text/html",
        "99999999999999999999",
        "Sat, 21 Nov 2026 10:00:00 GMT",
        "\u{fffd}",
    ];
    let name = *input.choose(&NAMES)?;
    let value = match (name, input.arbitrary::<bool>()?) {
        ("content-range", true) => {
            let first = input.int_in_range(0..=size)?;
            format!("bytes {first}-{}/{size}", size.wrapping_sub(1))
        }
        ("content-length" | "x-linked-size", true) => input.int_in_range(0..=size)?.to_string(),
        _ => (*input.choose(&VALUES)?).to_owned(),
    };
    Ok((name.to_owned(), value))
}

fn server(input: &mut Unstructured<'_>, content: &[u8]) -> Result<Arc<Server>> {
    let mut answers = Vec::new();
    for _ in 0..input.int_in_range(0..=24)? {
        let honest = input.int_in_range(0..=3u8)? > 0;
        let from = input.int_in_range(0..=content.len())?;
        let mut parts = Vec::new();
        let mut rest = &content[from..];
        while !rest.is_empty() && parts.len() < 4 {
            let (part, after) = rest.split_at(input.int_in_range(1..=rest.len())?);
            parts.push(Some(Bytes::copy_from_slice(part)));
            rest = after;
        }
        if honest {
            let range = format!(
                "bytes {from}-{}/{}",
                content.len().max(1) - 1,
                content.len()
            );
            let headers = vec![("content-range".to_owned(), range)];
            answers.push((if from > 0 { 206 } else { 200 }, headers, parts));
            continue;
        }
        if input.arbitrary()? {
            parts.push(None);
        }
        if input.arbitrary()? {
            parts.push(Some(Bytes::from_static(b"not of the file")));
        }
        let status = *input.choose(&[200, 206, 206, 302, 307, 404, 416, 429, 500, 503])?;
        let headers = (0..input.int_in_range(0..=3)?)
            .map(|_| header(input, content.len()))
            .collect::<Result<_>>()?;
        answers.push((status, headers, parts));
    }
    Ok(Arc::new(Server {
        answers: Mutex::new(answers),
        asked: Mutex::default(),
    }))
}

fn client(server: &Arc<Server>) -> HubClient {
    let transport = Arc::clone(server) as Arc<dyn Transport>;
    let token = Some("secret".to_owned());
    HubClient::new(transport, "https://hub.test", token, RetryPolicy::default())
        .expect("a usable configuration")
}

/// Runs a future that never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

/// The token went to the hub's own origin alone, and nobody was led to http.
fn is_discreet(server: &Server) {
    for (url, token) in server.asked.lock().expect("no panic").iter() {
        assert!(url.starts_with("https://"), "{url}");
        assert_eq!(*token, url.starts_with("https://hub.test/"), "{url}");
    }
}

/// Whatever the server does: what is said to be the file is the file.
fn download(input: &mut Unstructured<'_>, length: usize) -> Result<()> {
    let _ = input.arbitrary::<u8>()?;
    let size = usize::from(input.arbitrary::<u16>()? % 2000);
    let content: Vec<u8> = (0..size).map(|at| (at * 31 + at / 251) as u8).collect();
    let mut hasher = Checksum::from_etag(&"0".repeat(64))
        .expect("64 digits")
        .hasher(size as u64);
    hasher.update(&content);
    let checksum = hasher.finish();
    let file = RemoteFile {
        path: "f".into(),
        size: size as u64,
        etag: checksum.hex().to_owned(),
        checksum: Some(checksum),
    };
    let mut held = content[..input.int_in_range(0..=size)?].to_vec();
    if input.ratio(1u8, 8u8)? {
        held.push(0);
    }
    let server = server(input, &content)?;
    let client = client(&server);
    let silent = |_: &Progress| {};
    let mut sink = MemorySink(held);
    let mut tracker = Tracker::new(&silent, 1, file.size);
    let id = ModelId::parse("a/b").expect("an id");
    let cancel = Cancel::new();
    let fetched = ours(length + 25 * size, || {
        now(client.download(&id, COMMIT, &file, &mut sink, &mut tracker, &cancel))
    });
    if fetched.is_ok() {
        assert_eq!(sink.0, content);
    }
    // On an error it may hold what is wrong, but never more than the file has.
    assert!(sink.0.len() <= size + 1);
    is_discreet(&server);
    Ok(())
}

/// What a file's headers say, and lists that come with any.
fn headers(input: &mut Unstructured<'_>, length: usize) -> Result<()> {
    let _ = input.arbitrary::<u8>()?;
    let list = json!({"sha": COMMIT, "siblings": [{"rfilename": "f"}]}).to_string();
    let server = server(input, list.as_bytes())?;
    let client = client(&server);
    let id = ModelId::parse("a/b").expect("an id");
    let cancel = Cancel::new();
    let revision = Revision::parse("main").expect("a revision");
    let listing = ours(length + 25 * list.len(), || {
        now(client.list(&id, &revision, 3, &cancel))
    });
    if let Ok(listing) = listing {
        assert_eq!(listing.commit, COMMIT);
        let file = &listing.files["f"];
        let located = ours(length + 25 * list.len(), || {
            now(client.locate(&id, COMMIT, "f", file, &cancel))
        });
        if let Ok(file) = located {
            // It becomes the name of a file.
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            assert!(
                !file.etag.is_empty() && file.etag.chars().all(plain),
                "{}",
                file.etag
            );
            assert!(!file.etag.starts_with('.') && !file.etag.ends_with(".incomplete"));
        }
    }
    is_discreet(&server);
    Ok(())
}
