//! Transformer encoders as programs.

use std::sync::Arc;

use isovec_encoder::{Executable, Run};
use isovec_engine::Result;
use isovec_engine::engine::Batch;
use isovec_engine::fingerprint::Precision;
use isovec_engine::profile::Stepped;
use isovec_kernels::parallel::Pool;

use crate::program::{Program, Steps};

impl Program for Executable {
    type Run = Run;

    #[cfg(all(target_arch = "wasm32", feature = "event-loop"))]
    fn timed(self) -> Self {
        self.with_clock(crate::executor::event_loop::clock)
    }

    fn ragged(&self) -> bool {
        true
    }

    fn precision(&self) -> Precision {
        match self.rounds_activations() {
            true => Precision::Int8Fast,
            false => Precision::F32,
        }
    }

    fn start(self: Arc<Self>, batch: &Batch) -> Result<Run> {
        Run::new(self, batch)
    }
}

impl Steps for Run {
    fn step(
        &mut self,
        _batch: &Batch,
        budget: Option<u64>,
        pool: &dyn Pool,
    ) -> Result<Option<Stepped>> {
        Run::step(self, budget, pool)
    }

    fn rows(&self) -> usize {
        self.texts()
    }

    fn finish(self) -> Vec<(String, Vec<usize>, Vec<f32>)> {
        Run::finish(self)
    }
}
