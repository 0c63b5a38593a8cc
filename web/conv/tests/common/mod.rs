//! Graphs with seeded weights, and their runs.
#![allow(dead_code, reason = "every test file uses some of it")]

pub(crate) mod tokens;

use std::collections::BTreeMap;
use std::sync::Arc;

use isovec_conv::{CompileError, Executable, Run};
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::Batch;
use isovec_engine::pause::NoTurns;
use isovec_kernels::Arithmetic;
use isovec_kernels::parallel::{OneThread, Pool};
use isovec_test_models::convolutions::Net;
use isovec_test_models::exact::{self, Array};

/// What is asked of a net.
pub(crate) trait Checked {
    /// What the graph says of pictures, in double precision.
    fn exact(&mut self, outputs: &[&str], pictures: &[f32]) -> Vec<Array>;
    /// Compiles it.
    fn compile(&mut self, outputs: &[&str]) -> Result<Arc<Executable>, CompileError>;
    /// Runs pictures one by one, together, in slices and on two threads, which give the same bits, and compares them with the
    /// graph in double precision. Tells the program's operators.
    fn check(&mut self, outputs: &[&str]) -> Vec<&'static str>;
}

impl Checked for Net {
    fn exact(&mut self, outputs: &[&str], pictures: &[f32]) -> Vec<Array> {
        let len: usize = self.picture.iter().product();
        let mut shape = vec![pictures.len() / len];
        shape.extend(self.picture);
        let mut values = BTreeMap::new();
        values.insert("x".to_owned(), Array::of(&shape, pictures));
        for (name, shape, weight) in &self.weights {
            values.insert(name.clone(), Array::of(shape, weight));
        }
        exact::evaluate(self.graph(), &mut values);
        outputs
            .iter()
            .map(|output| values[*output].clone())
            .collect()
    }

    fn compile(&mut self, outputs: &[&str]) -> Result<Arc<Executable>, CompileError> {
        let bundle = self.bundle(outputs);
        let (cancel, mut turns) = (Cancel::new(), NoTurns);
        let compiled = Executable::compile(&bundle, Arithmetic::Fast, &cancel, &mut turns);
        pollster::block_on(compiled).map(Arc::new)
    }

    fn check(&mut self, outputs: &[&str]) -> Vec<&'static str> {
        let executable = self.compile(outputs).unwrap();
        let len: usize = self.picture.iter().product();
        let pictures = self.pictures(7, 3);
        let together = run(&executable, &self.batch(&pictures), None, &OneThread);
        for (number, exact) in self.exact(outputs, &pictures).into_iter().enumerate() {
            let (name, shape, got) = &together[number];
            assert_eq!((&**name, &shape[..]), (outputs[number], &exact.shape[..]));
            let scale = exact
                .values
                .iter()
                .fold(0.0_f64, |most, x| most.max(x.abs()));
            for (at, (got, exact)) in got.iter().zip(&exact.values).enumerate() {
                let error = (f64::from(*got) - exact).abs() / scale;
                assert!(
                    error <= 1e-6,
                    "{name}: value {at} is {got}, exactly {exact}: {error:e}"
                );
            }
        }
        let mut alone: Vec<Vec<f32>> = vec![Vec::new(); outputs.len()];
        for picture in pictures.chunks(len) {
            let own = run(&executable, &self.batch(picture), None, &OneThread);
            for (all, (_, _, values)) in alone.iter_mut().zip(own) {
                all.extend(values);
            }
        }
        let sliced = run(&executable, &self.batch(&pictures), Some(1000), &OneThread);
        let threads = run(&executable, &self.batch(&pictures), None, &Two);
        for (number, (name, _, values)) in together.iter().enumerate() {
            assert_eq!(bits(values), bits(&alone[number]), "{name}, alone");
            assert_eq!(bits(values), bits(&sliced[number].2), "{name}, in slices");
            assert_eq!(
                bits(values),
                bits(&threads[number].2),
                "{name}, on two threads"
            );
        }
        executable.operators()
    }
}

/// The outputs of a run: name, shape, values.
pub(crate) fn run(
    executable: &Arc<Executable>,
    batch: &Batch,
    budget: Option<u64>,
    pool: &dyn Pool,
) -> Vec<(String, Vec<usize>, Vec<f32>)> {
    let mut run = Run::new(Arc::clone(executable), batch).unwrap();
    while run.step(batch, budget, pool).unwrap().is_some() {}
    let pictures = run.pictures();
    let outputs = run.finish().into_iter().map(|(name, extents, values)| {
        let shape = [pictures].into_iter().chain(extents).collect();
        (name, shape, values)
    });
    outputs.collect()
}

pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// Two threads.
pub(crate) struct Two;

impl Pool for Two {
    fn threads(&self) -> usize {
        2
    }

    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            scope.spawn(|| (0..jobs).step_by(2).for_each(job));
            (1..jobs).step_by(2).for_each(job);
        });
    }
}
