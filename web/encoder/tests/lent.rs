//! A table of words stays where a mapped file has it: nothing is read of it but the rows that are looked up, and the vectors have the
//! same bits.

#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use isovec_encoder::{Executable, NoTurns, Run};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::error::Result;
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::weights::{Sink, WeightInfo, WeightSource};
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::OneThread;
use isovec_model::head::Pooling;
use isovec_test_models::bundles::bundle;
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::models::bert_of;
use isovec_test_models::texts::{batch, texts};

/// What a source lends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lends {
    Nothing,
    /// Bytes from this place of an allocation on.
    From(usize),
    /// A few bytes less than all.
    Less,
}

#[derive(Debug)]
struct Mapped {
    inner: Arc<dyn WeightSource>,
    lends: Lends,
    /// The weights that were read.
    read: Mutex<BTreeSet<String>>,
}

impl Mapped {
    fn note(&self, index: usize) {
        let name = self.weights()[index].name.clone();
        self.read.lock().unwrap().insert(name);
    }
}

impl WeightSource for Mapped {
    fn weights(&self) -> &[WeightInfo] {
        self.inner.weights()
    }

    fn read<'a>(&'a self, index: usize) -> EngineFuture<'a, Bytes> {
        self.note(index);
        self.inner.read(index)
    }

    fn read_pieces<'a>(&'a self, index: usize, sink: &'a mut dyn Sink) -> EngineFuture<'a, ()> {
        self.note(index);
        self.inner.read_pieces(index, sink)
    }

    fn lent(&self, index: usize) -> Option<Bytes> {
        let bytes: Result<Bytes> = pollster::block_on(self.inner.read(index));
        let bytes = bytes.unwrap();
        match self.lends {
            Lends::Nothing => None,
            Lends::Less => Some(bytes.slice(..bytes.len() - 8)),
            Lends::From(place) => {
                let mut moved = vec![0; place];
                moved.extend_from_slice(&bytes);
                Some(Bytes::from(moved).slice(place..))
            }
        }
    }
}

/// The vectors, and the names of the weights that were read.
fn run(bundle: &ModelBundle, lends: Lends) -> (Vec<f32>, BTreeSet<String>) {
    let source = Arc::new(Mapped {
        inner: Arc::clone(&bundle.weights),
        lends,
        read: Mutex::default(),
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
    let read = source.read.lock().unwrap().clone();
    (vectors, read)
}

fn has_words(read: &BTreeSet<String>) -> bool {
    read.iter().any(|name| name.contains("word_embeddings"))
}

#[test]
fn a_table_that_is_lent_is_not_read_and_gives_the_same_bits() {
    let bundle = bundle(&bert_of(11, 600, 192, 2), Stored::F32, Pooling::Mean);
    let (wanted, all) = run(&bundle, Lends::Nothing);
    assert!(has_words(&all));
    let (vectors, read) = run(&bundle, Lends::From(0));
    assert_eq!(vectors, wanted);
    assert!(!has_words(&read), "{read:?}");
    // Matrices are packed, wherever they are.
    assert!(read.iter().any(|name| name.contains("dense")), "{read:?}");
}

#[test]
fn what_is_lent_and_cannot_be_used_where_it_is_is_read() {
    let model = bert_of(11, 600, 192, 2);
    let whole = bundle(&model, Stored::F32, Pooling::Mean);
    let (wanted, _) = run(&whole, Lends::Nothing);
    // An odd place in memory, and too few bytes.
    for lends in [Lends::From(1), Lends::Less] {
        let (vectors, read) = run(&whole, lends);
        assert_eq!(vectors, wanted, "{lends:?}");
        assert!(has_words(&read), "{lends:?}");
    }
    // In 16 bits it has a form of its own.
    let half = bundle(&model, Stored::F16, Pooling::Mean);
    let (wanted, _) = run(&half, Lends::Nothing);
    assert_eq!(run(&half, Lends::From(0)).0, wanted);
}
