//! What a load keeps for the next one: it is used, and whatever became of it, no vector changes.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use common::{batch, config, factory_of, has_adapter, in_f16, options, run};
use isovec_encoder::Pause;
use isovec_engine::Result;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::engine::Engine;
use isovec_engine::maybe_send::BoxFuture;
use isovec_gpu::{Alone, GpuEngine, Host, Options};
use isovec_model::head::Pooling;
use isovec_test_models::bundles::bundle;
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::models;
use isovec_test_models::texts::texts;

/// What is kept, by its name.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl Host for Shelf {
    fn pause(&self) -> Result<Box<dyn Pause>> {
        Ok(Box::new(Alone))
    }

    fn recall<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Vec<u8>>> {
        let kept = self.0.lock().unwrap().get(name).cloned();
        Box::pin(std::future::ready(kept))
    }

    fn keep<'a>(&'a self, name: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, ()> {
        self.0.lock().unwrap().insert(name.into(), bytes);
        Box::pin(std::future::ready(()))
    }
}

impl Shelf {
    fn load(&self, pooling: Pooling) -> GpuEngine {
        self.load_with(pooling, &config())
    }

    fn load_with(&self, pooling: Pooling, config: &EngineConfig) -> GpuEngine {
        let bundle = bundle(&models::bert(), Stored::F32, pooling);
        let factory = factory_of(Box::new(self.clone()));
        pollster::block_on(factory.load_model(&bundle, config, &Cancel::new())).unwrap()
    }

    fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().keys().cloned().collect()
    }
}

#[test]
fn the_next_load_goes_by_what_was_kept() {
    if !has_adapter() {
        return;
    }
    let shelf = Shelf::default();
    let texts = texts(&[5, 9, 40]);
    let embed = |engine: &GpuEngine| run(engine, batch(engine, &texts, 0));
    let recalled = |engine: &GpuEngine| engine.stats().gpu.unwrap().check_recalled;
    let first = shelf.load(Pooling::Mean);
    let expected = embed(&first);
    assert!(!recalled(&first));
    let names = shelf.names();
    let checks = names.iter().filter(|name| name.ends_with(".f32")).count();
    let pipelines = names
        .iter()
        .filter(|name| name.ends_with(".pipelines"))
        .count();
    // Only Vulkan gives its compiled kernels out.
    let vulkan = first.stats().gpu.unwrap().backend == "vulkan";
    assert_eq!((checks, pipelines), (1, usize::from(vulkan)), "{names:?}");

    let second = shelf.load(Pooling::Mean);
    assert!(recalled(&second));
    assert_eq!(embed(&second), expected);
    assert_eq!(shelf.names(), names);

    // Another head is another model.
    assert!(!recalled(&shelf.load(Pooling::Cls)));
    assert_eq!(shelf.names().len(), names.len() + 1);

    // Whatever became of what was kept.
    for damage in [
        |bytes: &mut Vec<u8>| bytes.clear(),
        |bytes: &mut Vec<u8>| bytes.truncate(40),
        |bytes: &mut Vec<u8>| bytes.iter_mut().for_each(|byte| *byte ^= 0x55),
    ] {
        shelf.0.lock().unwrap().values_mut().for_each(damage);
        let damaged = shelf.load(Pooling::Mean);
        assert!(!recalled(&damaged));
        assert_eq!(embed(&damaged), expected);
        let mended = shelf.load(Pooling::Mean);
        assert!(recalled(&mended));
        assert_eq!(embed(&mended), expected);
    }
}

#[test]
fn nothing_is_kept_nor_recalled_where_that_is_not_wanted() {
    if !has_adapter() {
        return;
    }
    let shelf = Shelf::default();
    let mut config = config();
    config.remember = Some(false);
    shelf.load_with(Pooling::Mean, &config);
    assert_eq!(shelf.names(), [""; 0]);
    shelf.load(Pooling::Mean);
    let again = shelf.load_with(Pooling::Mean, &config);
    assert!(!again.stats().gpu.unwrap().check_recalled);
}

/// What was found out of one precision says nothing of the other.
#[test]
fn precisions_keep_their_own() {
    if !has_adapter() {
        return;
    }
    let shelf = Shelf::default();
    let bundle = bundle(&models::bert(), Stored::F32, Pooling::Mean);
    let load = |options: Options| {
        let factory = factory_of(Box::new(shelf.clone())).with_options(options);
        let factory = factory.with_tiles(true).with_tuning(true);
        let engine = pollster::block_on(factory.load_model(&bundle, &config(), &Cancel::new()));
        let gpu = engine.unwrap().stats().gpu.unwrap();
        (gpu.f16, gpu.check_recalled, gpu.tuning_recalled)
    };
    assert_eq!(load(options()), (false, false, false));
    let first = load(in_f16());
    if !first.0 {
        return eprintln!("not run: the adapter has no f16");
    }
    assert_eq!(first, (true, false, false));
    assert_eq!(load(in_f16()), (true, true, true));
    assert_eq!(load(options()), (false, true, true));
}

/// Whatever is the fastest: the vectors are the same to the last bit.
#[test]
fn kernels_that_were_measured_are_recalled_and_compute_the_same() {
    if !has_adapter() {
        return;
    }
    let shelf = Shelf::default();
    let bundle = bundle(&models::bert(), Stored::F32, Pooling::Mean);
    let texts = [&[3][..], &[64, 1, 9, 33], &[61; 40]].map(texts);
    let load = |tuning: bool| {
        let factory = factory_of(Box::new(shelf.clone()));
        let factory = factory.with_tiles(true).with_tuning(tuning);
        let (config, cancel) = (config(), Cancel::new());
        let engine = factory.load_model(&bundle, &config, &cancel);
        let engine = pollster::block_on(engine).unwrap();
        let vectors = texts
            .each_ref()
            .map(|texts| run(&engine, batch(&engine, texts, 0)));
        let gpu = engine.stats().gpu.unwrap();
        (vectors, (gpu.tuned, gpu.tuning_recalled))
    };
    let kept = || {
        let mut kept = shelf.0.lock().unwrap();
        let tiles = kept.iter_mut().filter(|(name, _)| name.ends_with(".tiles"));
        tiles
            .map(|(_, tiles)| std::mem::take(tiles))
            .collect::<Vec<_>>()
    };
    let (expected, how) = load(false);
    assert_eq!((how, kept().len()), ((false, false), 0));
    // Which kernels are the fastest, the clock says, and one of them adds in another order.
    let measured = || {
        let (vectors, how) = load(true);
        let pairs = expected.iter().flatten().zip(vectors.iter().flatten());
        let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart <= 2e-6, "{apart:e}");
        (vectors, how)
    };
    let (vectors, how) = measured();
    assert_eq!(how, (true, false));
    assert_eq!(load(true), (vectors, (true, true)));
    // A byte for each of five numbers of rows, for each of a layer's four products.
    assert_eq!(kept().iter().map(Vec::len).collect::<Vec<_>>(), [20]);
    // What was kept is empty now: it is measured again.
    let (vectors, how) = measured();
    assert_eq!(how, (true, false));
    assert_eq!(load(true), (vectors, (true, true)));
}
