//! A model on a device: its pipelines, its weights, and its runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use async_lock::Mutex as AsyncMutex;
use isovec_encoder::program::{Output, Rows};
use isovec_encoder::{Pause, Program, Texts};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::Batch;
use isovec_engine::profile::{Detail, Scope};
use isovec_engine::{EngineError, Result};
use web_time::Instant;

use crate::arena::{Arena, BatchSize, Fixed};
use crate::batch;
use crate::device::{Device, gone};
use crate::dispatch::{self, Dispatches, Step};
use crate::limits::Limits;
use crate::timing::{Timed, Timer};
use crate::tuning::Tuning;
use crate::upload::{Forms, Uploaded, Uploader};

/// How long what is submitted at once may take, so that a run can be cancelled: in milliseconds.
const SUBMISSION: u64 = 50;

/// Multiply-adds of a millisecond, as long as nothing has been measured: those of a processor that
/// plays a GPU.
const SLOW: u64 = 1_000_000;

/// A model, ready to run.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) device: Arc<Device>,
    pub(crate) dispatches: Dispatches,
    /// What its kernels take of the device.
    pub(crate) limits: Limits,
    pub(crate) tuning: Tuning,
    weights: Uploaded,
    constants: wgpu::Buffer,
    /// By step and kernel.
    pipelines: Vec<Vec<wgpu::ComputePipeline>>,
    layouts: Vec<wgpu::BindGroupLayout>,
    arena: AsyncMutex<Option<Arena>>,
    /// Buffers to read from, of runs that are over.
    spare: Mutex<Vec<wgpu::Buffer>>,
    pub(crate) timer: Option<Timer>,
    /// Multiply-adds of a millisecond, as measured.
    speed: AtomicU64,
    /// The most tokens of a batch.
    pub(crate) most_tokens: usize,
    pub(crate) counts: Counts,
}

/// A batch that fits the model, as the device reads it.
pub(crate) struct Prepared {
    texts: Texts,
    words: Vec<u32>,
}

/// What was done, counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) dispatches: AtomicU64,
    pub(crate) submissions: AtomicU64,
    pub(crate) up: AtomicU64,
    pub(crate) down: AtomicU64,
    pub(crate) pipelines: AtomicU64,
    pub(crate) arena: AtomicU64,
}

/// An output of the graph: its name, its shape and its values.
pub(crate) type Answer = (String, Vec<usize>, Vec<f32>);

impl Model {
    /// Compiles a program for a device within `limits`, and uploads the weights.
    ///
    /// # Errors
    /// [`EngineError::ProviderUnavailable`] for a device that cannot hold or run the model, and what
    /// reading the weights fails with.
    pub(crate) async fn load(
        bundle: &ModelBundle,
        program: &Program,
        device: Arc<Device>,
        limits: Limits,
        cancel: &Cancel,
        pause: &mut dyn Pause,
    ) -> Result<Self> {
        let forms = Forms::of(program, bundle, &limits);
        let dispatches =
            dispatch::compile(program, &forms, &limits).map_err(crate::device::unavailable)?;
        let mut uploader = Uploader::new(&device, &forms, &dispatches.products);
        program
            .read_weights(bundle, &mut uploader, cancel, pause)
            .await?;
        let weights = uploader.finish().await?;
        let counts = Counts::default();
        let watch = device.watch();
        let constants = device.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("constants"),
            size: size_of_val(&dispatches.constants[..]) as u64,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let bytes = bytemuck::cast_slice(&dispatches.constants);
        device.queue.write_buffer(&constants, 0, bytes);
        let (pipelines, layouts) = pipelines(&device, &dispatches.steps, &counts);
        watch.close().await.map_err(|error| {
            crate::device::unavailable(format!("it does not take the model's kernels: {error}"))
        })?;
        let timer = Timer::new(&device, dispatches.steps.len());
        let tuning = Tuning::rule(&dispatches.steps);
        let widest = dispatches
            .slots
            .iter()
            .map(|slot| slot.token_bytes.max(slot.text_bytes));
        let widest = widest.max().unwrap_or(1).max(size_of::<f32>());
        let most_tokens = (device.limits.binding_bytes / widest as u64) as usize;
        Ok(Self {
            device,
            dispatches,
            limits,
            weights,
            constants,
            pipelines,
            layouts,
            arena: AsyncMutex::new(None),
            spare: Mutex::default(),
            timer,
            tuning,
            speed: AtomicU64::new(SLOW),
            most_tokens,
            counts,
        })
    }

    /// What a batch amounts to, before anything is asked of the device.
    ///
    /// # Errors
    /// [`EngineError::InvalidInput`], `InputTooLarge`, and `DeviceLost` where there is no device any
    /// more.
    pub(crate) fn prepare(&self, batch: &Batch) -> Result<Prepared> {
        self.device.check()?;
        let texts = Texts::of(batch, self.dispatches.positions)?;
        let (tokens, limit) = (texts.tokens(), self.most_tokens);
        if tokens > limit {
            return Err(EngineError::InputTooLarge {
                asked: tokens as u64,
                limit: limit as u64,
                unit: "tokens in a batch",
            });
        }
        let (inputs, ids) = (&self.dispatches.inputs, &self.dispatches.ids);
        let words = batch::words(&texts, batch, inputs, ids)?;
        Ok(Prepared { texts, words })
    }

    /// Runs a batch by the kernels that `tuning` chooses, when it is its turn: then `begun` is called, and says where
    /// kernels are recorded.
    ///
    /// # Errors
    /// `Cancelled`, and `DeviceLost` for whatever goes wrong on the device.
    pub(crate) async fn run(
        &self,
        prepared: &Prepared,
        tuning: &Tuning,
        begun: impl FnOnce() -> Scope,
        cancel: &Cancel,
    ) -> Result<Vec<Answer>> {
        let Prepared { texts, words } = prepared;
        let size = BatchSize {
            tokens: texts.tokens(),
            texts: texts.count(),
            words: words.len(),
        };
        let mut turn = self.arena.lock().await;
        let scope = begun();
        cancel.check()?;
        let timer = self.timer.as_ref();
        let timer = timer.filter(|_| scope.wants_device_operators());
        let started = Instant::now();
        let arena = match &mut *turn {
            Some(arena) if arena.holds(&self.dispatches, &size) => arena,
            arena => {
                // The old one goes first.
                *arena = None;
                let rounded = size.rounded(self.most_tokens);
                let watch = self.device.watch();
                let made = self.fixed().arena(&rounded);
                watch.close().await.map_err(|error| gone(&error))?;
                self.counts.arena.store(made.bytes(), Relaxed);
                arena.insert(made)
            }
        };
        let (pieces, cost) = self.pieces(texts);
        let last = pieces.len().saturating_sub(1);
        let mut verdicts = Vec::new();
        let mut staging = None;
        let mut times = None;
        let mut submitted = None;
        for (number, piece) in pieces.into_iter().enumerate() {
            if number > 0 {
                // What is submitted cannot be taken back: one piece waits for the other.
                self.device.done().await?;
                cancel.check()?;
            }
            let watch = self.device.watch();
            if number == 0 {
                let bytes = bytemuck::cast_slice(words);
                self.device.queue.write_buffer(&arena.batch, 0, bytes);
                self.counts.up.fetch_add(bytes.len() as u64, Relaxed);
            }
            let mut encoder = self.encode(arena, tuning, piece, texts, timer);
            if number == last {
                staging = Some(self.copy_out(arena, texts, &mut encoder));
                times = timer.map(|timer| timer.copy_out(&self.device, &mut encoder));
            }
            submitted.get_or_insert_with(Instant::now);
            self.device.queue.submit([encoder.finish()]);
            self.counts.submissions.fetch_add(1, Relaxed);
            verdicts.push(watch.close());
        }
        // The device keeps the order, so the next batch may be put together while this one runs.
        drop(turn);
        self.device.wake();
        for verdict in verdicts {
            verdict.await.map_err(|error| gone(&error))?;
        }
        let Some((staging, bytes)) = staging else {
            return Ok(Vec::new());
        };
        let values: Vec<f32> = self.device.read(&staging, bytes).await?;
        self.counts.down.fetch_add(bytes, Relaxed);
        self.spare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(staging);
        if let (Some(timer), Some(times), Some(submitted)) = (timer, times, submitted) {
            self.counts.down.fetch_add(times.size(), Relaxed);
            let steps = self.dispatches.steps.iter();
            let kernels = steps.map(|step| timed(step, texts));
            let read = timer.read(&self.device, &times, submitted, &scope, kernels);
            read.await?;
        }
        let took = started.elapsed().as_micros().max(1) as u64;
        self.measured(cost.saturating_mul(1000) / took);
        let mut at = 0;
        let outputs = self.dispatches.outputs.iter().map(|(output, _)| {
            let own = values_of(output, texts);
            let mut shape = vec![texts.count()];
            let own_values = &values[at..at + own];
            at += own;
            let values = match output.of_tokens {
                false => own_values.to_vec(),
                true => {
                    shape.push(texts.length());
                    texts.padded(own_values, output.extents.iter().product())
                }
            };
            shape.extend(&output.extents);
            (output.name.clone(), shape, values)
        });
        Ok(outputs.collect())
    }

    /// Lets the memory of runs go, and with it whatever they left there.
    pub(crate) async fn clear(&self) {
        *self.arena.lock().await = None;
    }

    /// Writes something else into its kernels and compiles them again; how many of them had it.
    #[cfg(test)]
    pub(crate) fn mutate(&mut self, written: &str, instead: &str) -> usize {
        let steps = &mut self.dispatches.steps;
        let kernels = steps.iter_mut().flat_map(|step| &mut step.kernels);
        let mut found = 0;
        for (_, kernel) in kernels {
            found += usize::from(kernel.source.contains(written));
            kernel.source = kernel.source.replace(written, instead);
        }
        (self.pipelines, self.layouts) =
            pipelines(&self.device, &self.dispatches.steps, &self.counts);
        found
    }

    /// Bytes of the weights.
    pub(crate) fn weight_bytes(&self) -> u64 {
        self.weights.bytes
    }

    /// The graph's outputs.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.dispatches.outputs.iter().map(|(output, _)| output)
    }

    /// The inputs whose numbers are rows of tables, and how many rows those have.
    pub(crate) fn ids(&self) -> &[(String, usize)] {
        &self.dispatches.ids
    }

    /// The sources of all kernels that batches are given.
    pub(crate) fn kernels(&self) -> impl Iterator<Item = &str> {
        let steps = self.dispatches.steps.iter().enumerate();
        steps.flat_map(move |(at, step)| {
            let kernels = step.kernels.iter().enumerate();
            let given = kernels.filter(move |(kernel, _)| self.tuning.takes(at, *kernel));
            given.map(|(_, (_, kernel))| &*kernel.source)
        })
    }

    /// What messages say of the steps that are given the kernel of this place among theirs.
    pub(crate) fn how(&self, kernel: usize) -> String {
        let steps = self.dispatches.steps.iter().enumerate();
        let steps =
            steps.filter(|(at, step)| step.kernels.len() > 1 && self.tuning.takes(*at, kernel));
        let mut all: Vec<&str> = steps
            .map(|(_, step)| &*step.kernels[kernel].1.how)
            .collect();
        all.sort_unstable();
        all.dedup();
        all.join(" and ")
    }

    /// Dispatches of a run.
    pub(crate) fn dispatches(&self) -> usize {
        self.dispatches.steps.len()
    }

    /// What dispatches bind beside an arena.
    pub(crate) fn fixed(&self) -> Fixed<'_> {
        Fixed {
            device: &self.device,
            dispatches: &self.dispatches,
            weights: &self.weights,
            constants: &self.constants,
            layouts: &self.layouts,
        }
    }

    fn measured(&self, speed: u64) {
        // Half of what is new: one slow run says little.
        let old = self.speed.load(Relaxed);
        self.speed.store(((old + speed) / 2).max(1), Relaxed);
    }

    /// Steps that are submitted together, and the multiply-adds of all.
    fn pieces(&self, texts: &Texts) -> (Vec<std::ops::Range<usize>>, u64) {
        let most = self.speed.load(Relaxed).saturating_mul(SUBMISSION);
        let (mut pieces, mut from, mut own, mut all) = (Vec::new(), 0, 0u64, 0u64);
        for (at, step) in self.dispatches.steps.iter().enumerate() {
            let cost = cost(step, texts);
            if own > 0 && own + cost > most {
                pieces.push(from..at);
                (from, own) = (at, 0);
            }
            own += cost;
            all += cost;
        }
        pieces.push(from..self.dispatches.steps.len());
        (pieces, all)
    }

    fn encode(
        &self,
        arena: &Arena,
        tuning: &Tuning,
        piece: std::ops::Range<usize>,
        texts: &Texts,
        timer: Option<&Timer>,
    ) -> wgpu::CommandEncoder {
        let mut encoder = self
            .device
            .device
            .create_command_encoder(&Default::default());
        self.counts
            .dispatches
            .fetch_add(piece.len() as u64, Relaxed);
        // A pass notes one time; without a timer there is no reason for more than one pass.
        let each = if timer.is_some() {
            1
        } else {
            piece.len().max(1)
        };
        for first in piece.clone().step_by(each) {
            let descriptor = wgpu::ComputePassDescriptor {
                label: None,
                timestamp_writes: timer.map(|timer| timer.of(first)),
            };
            let mut pass = encoder.begin_compute_pass(&descriptor);
            for at in (first..piece.end).take(each) {
                let rows = rows(&self.dispatches.steps[at], texts);
                let kernel = tuning.kernel(at, rows);
                self.dispatch(&mut pass, arena, (at, kernel), rows);
            }
        }
        encoder
    }

    /// Has a step's kernel run.
    pub(crate) fn dispatch(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        arena: &Arena,
        (step, kernel): (usize, usize),
        rows: usize,
    ) {
        let [x, y, z] = self.dispatches.steps[step].kernels[kernel]
            .1
            .grid
            .groups(rows);
        pass.set_pipeline(&self.pipelines[step][kernel]);
        pass.set_bind_group(0, &arena.groups[step], &[]);
        pass.dispatch_workgroups(x, y, z);
    }

    /// Copies the outputs, and nothing else, to where they can be read.
    fn copy_out(
        &self,
        arena: &Arena,
        texts: &Texts,
        encoder: &mut wgpu::CommandEncoder,
    ) -> (wgpu::Buffer, u64) {
        let outputs =
            self.dispatches.outputs.iter().map(|(output, slot)| {
                (*slot, (values_of(output, texts) * size_of::<f32>()) as u64)
            });
        let outputs: Vec<_> = outputs.collect();
        let bytes = outputs.iter().map(|(_, bytes)| bytes).sum();
        let staging = self.staging(bytes);
        let mut at = 0;
        for (slot, bytes) in outputs {
            encoder.copy_buffer_to_buffer(&arena.slots[slot], 0, &staging, at, bytes);
            at += bytes;
        }
        (staging, bytes)
    }

    /// A buffer that can be read, of at least so many bytes.
    fn staging(&self, bytes: u64) -> wgpu::Buffer {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = spare.iter().position(|buffer| buffer.size() >= bytes) {
            return spare.swap_remove(at);
        }
        // Those that are too small have had their time.
        spare.clear();
        self.device.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("outputs"),
            size: bytes.next_power_of_two().max(16),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })
    }
}

/// Values of an output, without padding.
fn values_of(output: &Output, texts: &Texts) -> usize {
    let rows = match output.of_tokens {
        true => texts.tokens(),
        false => texts.count(),
    };
    rows * output.extents.iter().product::<usize>()
}

fn rows(step: &Step, texts: &Texts) -> usize {
    match step.rows {
        Rows::Tokens => texts.tokens(),
        Rows::Texts => texts.count(),
    }
}

/// What a profile says of a step.
fn timed(step: &Step, texts: &Texts) -> Timed {
    let rows = rows(step, texts);
    Timed {
        name: step.name,
        detail: Detail::Operator {
            rows,
            inner: step.inner,
            width: step.width,
            multiply_adds: cost(step, texts),
            bytes: (rows * step.row_bytes) as u64,
        },
    }
}

/// Multiply-adds of a step, or what takes about as long.
fn cost(step: &Step, texts: &Texts) -> u64 {
    let length = match step.quadratic {
        true => texts.longest().unwrap_or(1),
        false => 1,
    };
    step.cost * (rows(step, texts) * length) as u64
}

/// The pipelines of all steps, each kernel compiled once, and what they bind.
fn pipelines(
    device: &Device,
    steps: &[Step],
    counts: &Counts,
) -> (Vec<Vec<wgpu::ComputePipeline>>, Vec<wgpu::BindGroupLayout>) {
    let mut known: HashMap<(&str, usize), wgpu::ComputePipeline> = HashMap::new();
    let mut layouts: HashMap<usize, (wgpu::BindGroupLayout, wgpu::PipelineLayout)> = HashMap::new();
    let made = steps.iter().map(|step| {
        let reads = step.reads.len();
        let (layout, pipeline_layout) = layouts
            .entry(reads)
            .or_insert_with(|| layout(device, reads))
            .clone();
        let pipelines = step.kernels.iter().map(|(_, kernel)| {
            let pipeline = known.entry((&kernel.source, reads)).or_insert_with(|| {
                counts.pipelines.fetch_add(1, Relaxed);
                pipeline(device, step.name, &kernel.source, &pipeline_layout)
            });
            pipeline.clone()
        });
        (pipelines.collect(), layout)
    });
    made.unzip()
}

fn pipeline(
    device: &Device,
    label: &str,
    source: &str,
    layout: &wgpu::PipelineLayout,
) -> wgpu::ComputePipeline {
    let module = device
        .device
        .create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(label),
            source: wgpu::ShaderSource::Wgsl(source.into()),
        });
    device
        .device
        .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(label),
            layout: Some(layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                // Every kernel writes what it shares before it reads it.
                zero_initialize_workgroup_memory: false,
                ..wgpu::PipelineCompilationOptions::default()
            },
            cache: device.compiled(),
        })
}

/// What a kernel binds that reads so many buffers: its result, the batch, the constants, and those.
fn layout(device: &Device, reads: usize) -> (wgpu::BindGroupLayout, wgpu::PipelineLayout) {
    let entries: Vec<_> = (0..crate::kernels::row::ALWAYS + reads)
        .map(|binding| wgpu::BindGroupLayoutEntry {
            binding: binding as u32,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage {
                    read_only: binding > 0,
                },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        })
        .collect();
    let layout = device
        .device
        .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &entries,
        });
    let pipeline = device
        .device
        .create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
    (layout, pipeline)
}
