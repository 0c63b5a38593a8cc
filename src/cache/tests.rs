//! Kept vectors around an engine that only counts.
#![allow(clippy::unwrap_used)] // Also outside the functions marked as tests.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use isovec_engine::EngineError;
use isovec_engine::config::MemoryConfig;
use isovec_engine::fingerprint::Fingerprint;
use isovec_engine::onnx::proto::ModelProto;
use isovec_model::bundle::{self, BundleOptions};
use proptest::prelude::*;

use super::*;
use crate::batcher::{DynamicBatcher, Shutdown};
use crate::config::{EmbeddingConfig, EngineChoice};
use crate::embedder::Embedder;
use crate::embeddings::Embeddings;
use crate::fallback::Engines;
use crate::model::counting::{Counting, HELD, NAN, text, with_config};
use crate::model::{EmbedOptions, Prompt, Vectors};
use crate::source::ModelSource;

fn config() -> EmbeddingConfig {
    EmbeddingConfig::default()
        .with_max_batch_size(4)
        .with_max_batch_tokens(12)
}

fn in_memory() -> EmbeddingConfig {
    config().with_embedding_cache_memory(1 << 20)
}

fn on_disk(folder: &Path, bytes: u64) -> EmbeddingConfig {
    config()
        .with_embedding_cache_disk(bytes)
        .with_embedding_cache_folder(folder)
}

fn model(config: &EmbeddingConfig) -> (Arc<Model>, Arc<Counting>) {
    with_config(Counting::free(), &MemoryConfig::default(), config)
}

fn embed(model: &Arc<Model>, texts: &[String]) -> Result<Embeddings> {
    backend::wait(Arc::clone(model).call::<Vectors, _>(texts.to_vec(), EmbedOptions::default()))
}

fn stats(model: &Model) -> EmbeddingCacheStats {
    model.stats().embedding_cache.unwrap()
}

/// Texts that were run, and that were tokenised: those that were not kept.
fn ran(model: &Model, engine: &Counting) -> (usize, u64) {
    let shapes = engine.shapes.lock().unwrap();
    (
        shapes.iter().map(|shape| shape[0]).sum(),
        model.stats().calls.texts,
    )
}

fn texts(words: &[u32]) -> Vec<String> {
    words.iter().map(|&word| text(&[word])).collect()
}

/// The files of a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let shards = fs::read_dir(folder).unwrap().flatten();
    let files = shards.flat_map(|shard| fs::read_dir(shard.path()).unwrap().flatten());
    files.map(|file| file.path()).collect()
}

/// The folder of the seeded model.
fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tiny-bert")
}

/// The name of a file in the shard `ab`, with a key that no text has.
fn named(ending: &str) -> String {
    format!("{}.{ending}", "ab".repeat(32))
}

/// A file that was not touched for years.
fn old(path: &Path, bytes: usize) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, vec![0u8; bytes]).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
}

/// An engine of some version.
fn version(version: &str) -> Arc<Counting> {
    let mut engine = Counting::free();
    engine.provider.version = version.into();
    Arc::new(engine)
}

/// Engines of which the second takes the first one's place when its device is lost.
fn two(first: &Arc<Counting>, second: &Arc<Counting>) -> Engines {
    let bundle = bundle::from_folder(tiny(), &BundleOptions::default()).unwrap();
    Engines::with_beside(Arc::clone(first) as _, Arc::clone(second) as _, bundle)
}

/// Takes the device of what computes away.
async fn lose_device(engines: &Engines) {
    let lost = EngineError::DeviceLost {
        provider: "counting".into(),
        detail: "it fell off the bus".into(),
    };
    let cancel = Cancel::new();
    let next = engines.after_loss(engines.current(), lost, &cancel).await;
    next.unwrap();
}

#[test]
fn what_was_computed_once_is_not_computed_again_whichever_way_it_is_asked_for() {
    let (plain, _) = model(&config());
    let (model, engine) = model(&in_memory());
    let texts = texts(&[5, 6, 5, 7]);
    let expected = embed(&plain, &texts).unwrap();
    assert_eq!(embed(&model, &texts).unwrap(), expected);
    assert_eq!(
        ran(&model, &engine),
        (3, 3),
        "the text that comes twice runs once"
    );
    let embedder = Embedder {
        model: Arc::clone(&model),
    };
    let batcher = DynamicBatcher::new(&embedder);
    let options = EmbedOptions::default();
    assert_eq!(backend::wait(batcher.embed(&texts)).unwrap(), expected);
    assert_eq!(
        model.call_blocking::<Vectors, _>(&texts, &options).unwrap(),
        expected
    );
    let stream = embedder.embed_stream(futures_util::stream::iter(texts.clone()));
    let streamed: Vec<_> = backend::wait(stream.map(|one| one.unwrap().vector).collect());
    assert_eq!(streamed.concat(), expected.as_slice());
    #[cfg(feature = "chunking")]
    {
        let chunked =
            backend::wait(embedder.embed_chunks(&texts, crate::ChunkOptions::default())).unwrap();
        assert_eq!(chunked.embeddings.as_slice(), expected.as_slice());
    }
    assert_eq!(ran(&model, &engine), (3, 3));
    let stats = stats(&model);
    assert_eq!((stats.misses, stats.entries, stats.evictions), (3, 3, 0));
    assert!(stats.hit_ratio() > 0.8, "{stats:?}");
    assert_eq!(plain.stats().embedding_cache, None);
}

proptest! {
    #[test]
    fn only_what_is_missing_is_computed_and_every_text_has_its_place(
        calls in prop::collection::vec(prop::collection::vec(prop::collection::vec(2u32..20, 1..11), 0..12), 1..6),
        // From room for a few vectors to room for all.
        room in 1u64..20,
    ) {
        let (plain, _) = model(&config());
        let (kept, _) = model(&config().with_embedding_cache_memory(room * Memory::size(3)));
        for words in calls {
            let texts: Vec<String> = words.iter().map(|words| text(words)).collect();
            prop_assert_eq!(embed(&kept, &texts).unwrap(), embed(&plain, &texts).unwrap());
            let stats = stats(&kept);
            prop_assert!(stats.bytes <= room * Memory::size(3) && stats.entries <= room);
            prop_assert_eq!(stats.misses, kept.stats().calls.texts);
        }
    }
}

#[test]
fn white_space_around_a_text_makes_no_other_and_a_prompt_does() {
    let (model, engine) = model(&in_memory());
    let one = |text: &str, prompt: Prompt| {
        let options = EmbedOptions::default().with_prompt(prompt);
        model
            .call_blocking::<Vectors, _>(&[text], &options)
            .unwrap()
    };
    one("w5 w6", Prompt::None);
    one("  w5 w6 ", Prompt::None);
    assert_eq!(ran(&model, &engine).0, 1);
    let prompted = one("w6", Prompt::Text("w5 ".into()));
    assert_eq!(ran(&model, &engine).0, 1, "the same behind its prompt");
    assert_eq!(prompted.prompt(), Some("text"));
    assert_eq!(one("w5 w6", Prompt::None).prompt(), None);
    one("w6", Prompt::None);
    assert_eq!(ran(&model, &engine).0, 2);
}

#[test]
fn a_call_that_fails_names_its_text_and_leaves_nothing_behind() {
    let (model, engine) = model(&in_memory());
    embed(&model, &texts(&[5])).unwrap();
    let error = embed(&model, &texts(&[5, 6, 5, NAN])).unwrap_err();
    assert!(matches!(error, Error::NotFinite { text: 3 }), "{error}");
    assert_eq!(stats(&model).entries, 1);
    let (before, _) = ran(&model, &engine);
    embed(&model, &texts(&[6])).unwrap();
    assert_eq!(ran(&model, &engine).0, before + 1);
}

#[test]
fn a_call_that_is_given_up_leaves_nothing_behind() {
    let (model, _) = model(&in_memory());
    let cancel = Cancel::new();
    let options = EmbedOptions::default().with_cancel(cancel.clone());
    let call = Arc::clone(&model).call::<Vectors, _>(texts(&[5, HELD]), options.clone());
    let given_up = futures_util::future::join(call, async { cancel.cancel() });
    let (result, ()) = backend::wait(given_up);
    assert!(result.unwrap_err().is_cancelled());
    assert_eq!(stats(&model).entries, 0);
    // Nor is a call answered that was given up before.
    embed(&model, &texts(&[5])).unwrap();
    let late = backend::wait(Arc::clone(&model).call::<Vectors, _>(texts(&[5]), options));
    assert!(late.unwrap_err().is_cancelled());
}

#[test]
fn a_batcher_that_was_shut_down_answers_nobody() {
    let (model, _) = model(&in_memory());
    embed(&model, &texts(&[5])).unwrap();
    let batcher = DynamicBatcher::new(&Embedder { model });
    backend::wait(batcher.shutdown(Shutdown::Drain));
    let refused = backend::wait(batcher.embed(texts(&[5])));
    assert_eq!(refused.unwrap_err().kind(), "ShutDown");
}

#[test]
fn many_callers_at_once_get_their_own_vectors() {
    let (plain, _) = model(&config());
    let (model, _) = model(&config().with_embedding_cache_memory(12 * Memory::size(3)));
    std::thread::scope(|scope| {
        for caller in 0..8u32 {
            let (plain, model) = (&plain, &model);
            scope.spawn(move || {
                for round in 0..40 {
                    let words: Vec<u32> = (0..7)
                        .map(|at| 2 + (caller * 3 + round + at) % 30)
                        .collect();
                    let texts = texts(&words);
                    assert_eq!(embed(model, &texts).unwrap(), embed(plain, &texts).unwrap());
                }
            });
        }
    });
    let stats = stats(&model);
    assert_eq!(stats.hits + stats.misses, 8 * 40 * 7);
    assert!(stats.bytes <= 12 * Memory::size(3), "{stats:?}");
}

#[test]
fn the_disk_outlives_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let config = on_disk(folder.path(), 1 << 20);
    let (first, engine) = model(&config);
    let made = embed(&first, &texts(&[5, 6])).unwrap();
    assert_eq!(ran(&first, &engine).0, 2);
    assert_eq!((stats(&first).disk_entries, stats(&first).entries), (2, 0));
    drop(first);
    let (second, engine) = model(&config.with_embedding_cache_memory(1 << 20));
    assert_eq!(embed(&second, &texts(&[5, 6])).unwrap(), made);
    assert_eq!(embed(&second, &texts(&[6, 5])).unwrap().len(), 2);
    assert_eq!(ran(&second, &engine), (0, 0));
    let stats = stats(&second);
    assert_eq!((stats.hits, stats.disk_hits, stats.misses), (4, 2, 0));
    assert_eq!(stats.entries, 2, "now at hand");
}

#[test]
fn damaged_and_foreign_files_are_replaced_and_never_served() {
    let folder = tempfile::tempdir().unwrap();
    let config = on_disk(folder.path(), 1 << 20);
    let all = texts(&[5, 6, 7]);
    let made = embed(&model(&config).0, &all).unwrap();
    let paths = files(folder.path());
    let [cut, flipped, other] = paths.as_slice() else {
        panic!("{paths:?}");
    };
    let bytes = fs::read(cut).unwrap();
    fs::write(cut, &bytes[..bytes.len() - 1]).unwrap();
    let mut bytes = fs::read(flipped).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(flipped, bytes).unwrap();
    // Whole, but another text's.
    let (model, engine) = model(&config);
    embed(&model, &texts(&[8])).unwrap();
    let foreign = files(folder.path());
    let foreign = foreign.iter().find(|path| !paths.contains(path)).unwrap();
    fs::copy(foreign, other).unwrap();
    assert_eq!(embed(&model, &all).unwrap(), made);
    assert_eq!(stats(&model).disk_rejected, 3);
    assert_eq!(ran(&model, &engine).0, 4);
    // What took their place is sound.
    assert_eq!(embed(&model, &all).unwrap(), made);
    assert_eq!(ran(&model, &engine).0, 4);
    assert_eq!(files(folder.path()).len(), 4);
}

#[test]
fn the_disk_keeps_its_bound_and_what_was_used_last() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = model(&on_disk(folder.path(), 1 << 20));
    embed(&first, &texts(&[5])).unwrap();
    let file = files(folder.path()).remove(0);
    let size = fs::metadata(&file).unwrap().len();
    // All were used long ago, and the first of them least long.
    let long_ago = |path: &Path, seconds: u64| {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    };
    long_ago(&file, 2000);
    embed(&first, &texts(&[6, 7, 8, 9])).unwrap();
    for path in files(folder.path()).iter().filter(|path| **path != file) {
        long_ago(path, 1000);
    }
    let limit = 4 * size + size / 2;
    let (second, _) = model(&on_disk(folder.path(), limit));
    embed(&second, &texts(&[10])).unwrap();
    let left = files(folder.path());
    let bytes: u64 = left
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert!(bytes <= limit, "{bytes} of {limit}");
    assert!(left.contains(&file), "it was used last");
    let stats = stats(&second);
    assert_eq!(stats.disk_bytes, bytes);
    assert_eq!(stats.disk_entries, left.len() as u64);
    assert_eq!(stats.disk_evictions, 6 - left.len() as u64);
    // Reading marks it as used.
    embed(&second, &texts(&[5])).unwrap();
    let used = fs::metadata(&file).unwrap().modified().unwrap();
    assert!(
        used > SystemTime::UNIX_EPOCH + Duration::from_secs(2000),
        "{used:?}"
    );
}

#[test]
fn a_disk_that_fails_costs_nobody_a_vector() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("taken");
    fs::write(&taken, "a file, and no folder").unwrap();
    let (plain, _) = model(&config());
    let (model, _) = model(&on_disk(&taken, 1 << 20));
    for _ in 0..2 {
        let texts = texts(&[5, 6]);
        assert_eq!(
            embed(&model, &texts).unwrap(),
            embed(&plain, &texts).unwrap()
        );
    }
    let stats = stats(&model);
    assert!(stats.disk_failures > 0, "{stats:?}");
    assert_eq!((stats.misses, stats.disk_entries), (4, 0));
}

#[test]
fn what_an_interrupted_process_left_is_cleared_away() {
    let folder = tempfile::tempdir().unwrap();
    let shard = folder.path().join("ab");
    let (left, under_way) = (
        shard.join(named("12.partial")),
        shard.join(named("34.partial")),
    );
    old(&left, 1);
    fs::write(&under_way, "another process's").unwrap();
    let (model, _) = model(&on_disk(folder.path(), 1 << 20));
    embed(&model, &texts(&[5])).unwrap();
    assert!(!left.exists() && under_way.exists());
}

#[test]
fn files_of_others_are_neither_counted_nor_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let others = [
        "README".to_owned(),
        // As git, DVC and others name what they keep.
        format!("ab/{}", "cd".repeat(19)),
        format!("ab/{}.safetensors", "cd".repeat(19)),
        format!("ab/{}", named("json")),
        "ab/notes.partial".into(),
        // The right names in the wrong shard.
        format!("cd/{}", named("safetensors")),
        format!("cd/{}", named("12.partial")),
        format!("weights/{}", named("safetensors")),
    ];
    let others = others.map(|name| folder.path().join(name));
    for path in &others {
        old(path, 4096);
    }
    // Less than theirs: room is made.
    let (model, _) = model(&on_disk(folder.path(), 2 * Shelf::size(3)));
    embed(&model, &texts(&[5, 6, 7, 8])).unwrap();
    for path in &others {
        assert!(path.exists(), "{}", path.display());
    }
    let stats = stats(&model);
    assert_eq!(
        (stats.disk_entries, stats.disk_bytes),
        (1, Shelf::size(3)),
        "{stats:?}"
    );
    assert_eq!((stats.disk_evictions, stats.disk_failures), (3, 0));
}

#[test]
fn what_cannot_be_taken_away_is_a_failure_and_still_counts() {
    let folder = tempfile::tempdir().unwrap();
    // A folder, which is not removed as a file is, whoever asks.
    let stays = folder.path().join("ab").join(named("safetensors"));
    fs::create_dir_all(&stays).unwrap();
    let size = Shelf::size(3);
    let (model, _) = model(&on_disk(folder.path(), size + size / 2));
    embed(&model, &texts(&[5, 6])).unwrap();
    let left = files(folder.path());
    assert!(left.contains(&stays));
    let bytes: u64 = left
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    let stats = stats(&model);
    assert!(stats.disk_failures > 0, "{stats:?}");
    assert_eq!(
        (stats.disk_entries, stats.disk_bytes),
        (left.len() as u64, bytes),
        "{stats:?}"
    );
}

#[test]
fn a_shard_that_cannot_be_listed_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ab"), "a file, and no folder").unwrap();
    let (model, _) = model(&on_disk(folder.path(), 1 << 20));
    embed(&model, &texts(&[5])).unwrap();
    assert!(stats(&model).disk_failures > 0);
}

#[cfg(unix)]
#[test]
fn a_link_in_an_entrys_place_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let config = on_disk(&folder.path().join("kept"), 1 << 20);
    let made = embed(&model(&config).0, &texts(&[5])).unwrap();
    let path = files(&folder.path().join("kept")).remove(0);
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    let (model, engine) = model(&config);
    assert_eq!(embed(&model, &texts(&[5])).unwrap(), made);
    assert_eq!(
        (stats(&model).disk_rejected, ran(&model, &engine).0),
        (1, 1)
    );
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
    assert!(elsewhere.exists());
}

#[test]
fn models_that_differ_only_in_their_graph_share_a_folder_and_no_vector() {
    let folder = tempfile::tempdir().unwrap();
    let config = EmbeddingConfig::default()
        .with_engine(EngineChoice::Portable)
        .with_embedding_cache_disk(1 << 20)
        .with_embedding_cache_folder(folder.path().join("kept"));
    let four = fs::read_to_string(tiny().join("config.json")).unwrap();
    let heads = r#""num_attention_heads": "#;
    let two = four.replace(&format!("{heads}4"), &format!("{heads}2"));
    assert_ne!(four, two);
    fs::write(folder.path().join("config.json"), two).unwrap();
    let names = [
        "1_Pooling/config.json",
        "config.json",
        "config_sentence_transformers.json",
        "model.safetensors",
        "modules.json",
        "sentence_bert_config.json",
        "tokenizer.json",
    ];
    let files = |config: PathBuf| {
        let path = |name: &str| match name {
            "config.json" => config.clone(),
            other => tiny().join(other),
        };
        ModelSource::Files(names.map(|name| (name.to_owned(), path(name))).into())
    };
    let made = |at: PathBuf| {
        let embedder =
            backend::wait(Embedder::builder(files(at)).config(config.clone()).load()).unwrap();
        let made = backend::wait(embedder.embed(["the end of a cat"])).unwrap();
        (made, stats(&embedder.model).misses)
    };
    let (first, misses) = made(tiny().join("config.json"));
    assert_eq!(misses, 1);
    let (second, misses) = made(folder.path().join("config.json"));
    assert_eq!(misses, 1, "another model's is not its own");
    let differences = first.fingerprint().differences(second.fingerprint());
    let keys: Vec<&str> = differences.iter().map(|other| other.key.as_str()).collect();
    assert_eq!(
        keys,
        ["architecture"],
        "the same weights, put to another use"
    );
    let refused = first.search(&second, 1).unwrap_err();
    assert_eq!(refused.kind(), "IncompatibleIndex");
    assert_ne!(first.as_slice(), second.as_slice());
    // Whoever loads it, it is the same model.
    let (again, misses) = made(tiny().join("config.json"));
    assert_eq!((again, misses), (first, 0));
}

#[test]
fn the_graph_and_what_computes_small_batches_are_part_of_the_scope() {
    let scope = |engines: &Engines, producer: &str| {
        let graph = ModelProto {
            producer_name: producer.into(),
            ..ModelProto::default()
        };
        let (fingerprint, effective) = (Fingerprint::default(), EffectiveConfig::default());
        Scope::of(&fingerprint, &graph, engines, &effective, "")
    };
    let first = version("1");
    let alone = Engines::only(Arc::clone(&first) as _);
    let [one, same, other] = ["1", "1", "2"].map(|beside| two(&first, &version(beside)));
    assert_eq!(scope(&one, "a"), scope(&same, "a"));
    assert_ne!(scope(&one, "a"), scope(&one, "b"));
    assert_ne!(scope(&one, "a"), scope(&other, "a"));
    assert_ne!(scope(&one, "a"), scope(&alone, "a"));
}

#[test]
fn what_a_device_makes_that_came_back_is_kept_and_what_another_makes_in_its_place_is_not() {
    for (next, kept) in [("1", 1), ("2", 0)] {
        let (model, first) = model(&in_memory());
        let mut model = Arc::into_inner(model).unwrap();
        model.engines = two(&first, &version(next));
        backend::wait(lose_device(&model.engines));
        let model = Arc::new(model);
        embed(&model, &texts(&[5])).unwrap();
        assert_eq!(ran(&model, &first).0, 0, "its device is lost");
        assert_eq!(stats(&model).entries, kept, "{next}");
    }
}

#[test]
fn nothing_is_kept_of_a_call_during_which_the_device_changed() {
    let (model, first) = model(&in_memory());
    let mut model = Arc::into_inner(model).unwrap();
    let next = version("1");
    model.engines = two(&first, &next);
    let model = Arc::new(model);
    let call = Arc::clone(&model).call::<Vectors, _>(texts(&[HELD]), EmbedOptions::default());
    let change = async {
        lose_device(&model.engines).await;
        first.let_go.cancel();
        next.let_go.cancel();
    };
    let (made, ()) = backend::wait(futures_util::future::join(call, change));
    made.unwrap();
    assert_eq!(stats(&model).entries, 0);
    embed(&model, &texts(&[5])).unwrap();
    assert_eq!(stats(&model).entries, 1);
}

#[test]
fn a_bound_below_one_vector_is_refused() {
    let provider = isovec_engine::engine::ProviderInfo::new("counting", "CPU", "1");
    let fingerprint = isovec_engine::fingerprint::Fingerprint::default();
    let effective = EffectiveConfig::default();
    let scope = Scope::new(&fingerprint, (&provider, ""), &effective, "");
    let config = EmbeddingCacheConfig {
        memory: Some(100),
        ..EmbeddingCacheConfig::default()
    };
    let opened = EmbeddingCache::open(&config, Some(384), scope, &mut EffectiveConfig::default());
    assert!(matches!(opened, Err(Error::Config(_))), "{opened:?}");
}

#[test]
fn the_smallest_bound_that_a_disk_may_have_keeps_a_vector() {
    let folder = tempfile::tempdir().unwrap();
    let size = Shelf::size(3);
    assert!(size > Memory::size(3), "a file takes more");
    let (model, _) = model(&on_disk(folder.path(), size));
    embed(&model, &texts(&[5])).unwrap();
    let path = files(folder.path()).remove(0);
    assert_eq!(fs::metadata(path).unwrap().len(), size);
    let effective = &mut EffectiveConfig::default();
    let scope = model.cache.as_ref().unwrap().scope.clone();
    let config = on_disk(folder.path(), size - 1).embedding_cache;
    let opened = EmbeddingCache::open(&config, Some(3), scope, effective);
    assert!(matches!(opened, Err(Error::Config(_))), "{opened:?}");
}
