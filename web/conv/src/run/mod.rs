//! One run of a program over the pictures of a batch, one picture after another.

mod compute;

use std::sync::Arc;

use isovec_engine::engine::Batch;
use isovec_engine::profile::Stepped;
use isovec_engine::{EngineError, Result};
use isovec_kernels::gemm::Buffer;
use isovec_kernels::parallel::Pool;

use crate::cost;
use crate::executable::Executable;

/// Memory that a run has for itself.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The maps, by place.
    maps: Vec<Buffer>,
    /// Rows that a convolution makes of what its window sees.
    rows: Buffer,
}

/// A run: the maps of one picture, and the outputs so far.
#[derive(Debug)]
pub struct Run {
    executable: Arc<Executable>,
    memory: Memory,
    pictures: usize,
    /// The picture and the step under way, and the units of it that are done.
    picture: usize,
    at: usize,
    done: usize,
    outputs: Vec<Vec<f32>>,
}

impl Run {
    /// A run of a batch, which has one tensor `[batch, channels, rows, columns]` of f32 by the graph's name. Memory is asked
    /// for before anything is computed.
    ///
    /// # Errors
    /// [`InvalidInput`](EngineError::InvalidInput) for a batch without that tensor;
    /// [`InputTooLarge`](EngineError::InputTooLarge) when memory cannot be had.
    pub fn new(executable: Arc<Executable>, batch: &Batch) -> Result<Self> {
        let pictures = planes(&executable, batch)?.len() / executable.input.map.len();
        let mut memory = executable.memory();
        memory
            .maps
            .resize_with(executable.places.sizes.len(), Buffer::default);
        for (map, &size) in memory.maps.iter_mut().zip(&executable.places.sizes) {
            map.grow(size).map_err(|_| too_large(size))?;
        }
        let outputs = executable.outputs.iter().map(|output| {
            let each: usize = output.extents.iter().product();
            let mut values = Vec::new();
            let count = pictures.saturating_mul(each);
            values
                .try_reserve_exact(count)
                .map_err(|_| too_large(count))?;
            Ok(values)
        });
        Ok(Self {
            outputs: outputs.collect::<Result<_>>()?,
            memory,
            pictures,
            picture: 0,
            at: 0,
            done: 0,
            executable,
        })
    }

    /// Computes the next rows of the next operator, about `budget` multiply-adds of it (`None`: all of it); `None` when there
    /// is nothing left to do. `batch` is the one that the run began with.
    ///
    /// # Errors
    /// [`InvalidInput`](EngineError::InvalidInput) for another batch; [`InputTooLarge`](EngineError::InputTooLarge) when
    /// memory cannot be had.
    pub fn step(
        &mut self,
        batch: &Batch,
        budget: Option<u64>,
        pool: &dyn Pool,
    ) -> Result<Option<Stepped>> {
        if self.picture == self.pictures {
            return Ok(None);
        }
        let executable = Arc::clone(&self.executable);
        let step = &executable.steps[self.at];
        let node = &step.node;
        let (units, each) = (cost::units(node), cost::of_unit(node).max(1));
        let most = budget.map_or(units, |budget| (budget / each).max(1) as usize);
        let range = self.done..units.min(self.done.saturating_add(most));
        let picture = executable.input.map.len();
        let planes = planes(&executable, batch)?;
        let planes = planes.get(self.picture * picture..(self.picture + 1) * picture);
        let planes =
            planes.ok_or_else(|| invalid(&executable, "is another than the run began with"))?;
        compute::compute(
            &executable,
            self.at,
            planes,
            range.clone(),
            &mut self.memory,
            pool,
        )?;
        let values = node.map.len() / units * range.len();
        let report = Stepped {
            operator: node.op.name(node.map),
            inner: compute::steps_of_sum(node),
            width: node.map.channels,
            rows: values / node.map.channels,
            multiply_adds: each * range.len() as u64,
            bytes: (values * size_of::<f32>()) as u64,
        };
        self.done = range.end;
        if self.done == units {
            (self.done, self.at) = (0, self.at + 1);
            if self.at == executable.steps.len() {
                self.finish_picture(&executable);
            }
        }
        Ok(Some(report))
    }

    fn finish_picture(&mut self, executable: &Executable) {
        for (output, values) in executable.outputs.iter().zip(&mut self.outputs) {
            let len = executable.steps[output.node.0].node.map.len();
            let place = executable.places.of[output.node.0];
            values.extend_from_slice(&self.memory.maps[place].as_slice()[..len]);
        }
        (self.at, self.picture) = (0, self.picture + 1);
    }

    /// The outputs, in the graph's order: name, extents of a picture's part, and the pictures' values.
    pub fn finish(mut self) -> Vec<(String, Vec<usize>, Vec<f32>)> {
        let executable = Arc::clone(&self.executable);
        executable.keep(std::mem::take(&mut self.memory));
        let outputs = executable
            .outputs
            .iter()
            .zip(std::mem::take(&mut self.outputs));
        let outputs =
            outputs.map(|(output, values)| (output.name.clone(), output.extents.clone(), values));
        outputs.collect()
    }

    /// Pictures of the batch.
    pub fn pictures(&self) -> usize {
        self.pictures
    }
}

/// The pictures of a batch, one after another, as planes.
fn planes<'b>(executable: &Executable, batch: &'b Batch) -> Result<&'b [f32]> {
    let input = &executable.input;
    let tensor = batch
        .input(&input.name)
        .ok_or_else(|| invalid(executable, "is missing from the batch"))?;
    let map = input.map;
    let fits = matches!(*tensor.shape(), [_, channels, height, width]
        if (channels, height, width) == (map.channels, map.height, map.width));
    match tensor.as_slice::<f32>() {
        Ok(values) if fits => Ok(values),
        _ => Err(invalid(
            executable,
            &format!(
                "{tensor:?} is no [batch, {}, {}, {}] of f32",
                map.channels, map.height, map.width
            ),
        )),
    }
}

fn invalid(executable: &Executable, detail: &str) -> EngineError {
    EngineError::InvalidInput {
        name: executable.input.name.clone(),
        detail: detail.to_owned(),
    }
}

/// Memory for so many values cannot be had.
fn too_large(values: usize) -> EngineError {
    EngineError::InputTooLarge {
        asked: (values as u64).saturating_mul(size_of::<f32>() as u64),
        limit: isize::MAX as u64,
        unit: "bytes of memory that can be had",
    }
}
