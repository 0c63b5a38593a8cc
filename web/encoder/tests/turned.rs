//! Matrices are packed as they are stored: a source need not turn them, and the vectors have the same bits.

#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use isovec_encoder::{Executable, NoTurns, Run};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::weights::{WeightInfo, WeightSource};
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;
use isovec_model::head::Pooling;
use isovec_test_models::bundles::bundle;
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::models::bert_of;
use isovec_test_models::texts::{batch, texts};

/// Counts the matrices that are read as they are stored.
#[derive(Debug)]
struct Counted {
    inner: Arc<dyn WeightSource>,
    /// Whether it knows how they are stored.
    knows: bool,
    turned: AtomicUsize,
    /// Matrices of two axes that it was made to turn.
    read: AtomicUsize,
}

impl WeightSource for Counted {
    fn weights(&self) -> &[WeightInfo] {
        self.inner.weights()
    }

    fn read<'a>(&'a self, index: usize) -> EngineFuture<'a, Bytes> {
        let is_matrix = self.inner.turned(index).is_some();
        self.read.fetch_add(usize::from(is_matrix), Relaxed);
        self.inner.read(index)
    }

    fn turned<'a>(&'a self, index: usize) -> Option<EngineFuture<'a, Bytes>> {
        let turned = self.inner.turned(index).filter(|_| self.knows);
        self.turned
            .fetch_add(usize::from(turned.is_some()), Relaxed);
        turned
    }
}

/// The vectors, and how many matrices were read as they are stored, and turned.
fn run(bundle: &ModelBundle, knows: bool) -> (Vec<f32>, usize, usize) {
    let source = Arc::new(Counted {
        inner: Arc::clone(&bundle.weights),
        knows,
        turned: AtomicUsize::new(0),
        read: AtomicUsize::new(0),
    });
    let bundle = ModelBundle {
        weights: source.clone(),
        ..bundle.clone()
    };
    let (cancel, mut turns) = (Cancel::new(), NoTurns);
    let executable = Executable::compile(&bundle, Arithmetic::Fast, &cancel, &mut turns);
    let executable = Arc::new(pollster::block_on(executable).unwrap());
    let mut run = Run::new(executable, &batch(&texts(&[7, 1, 40]), 0)).unwrap();
    while run.step(None, &OneThread).unwrap().is_some() {}
    let vectors = run.finish().remove(0).2;
    (
        vectors,
        source.turned.load(Relaxed),
        source.read.load(Relaxed),
    )
}

#[test]
fn matrices_are_packed_as_they_are_stored_and_give_the_same_bits() {
    // All matrices of its layers are too large to be known while the graph is read.
    let model = bert_of(11, 600, 192, 2);
    for stored in [Stored::F32, Stored::F16] {
        let bundle = bundle(&model, stored, Pooling::Mean);
        let (vectors, turned, read) = run(&bundle, true);
        let (wanted, none, all) = run(&bundle, false);
        assert_eq!(vectors, wanted);
        assert_eq!((turned, none), (2 * 6, 0));
        assert_eq!(turned + read, all);
    }
}
