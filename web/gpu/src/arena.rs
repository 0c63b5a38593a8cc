//! Memory that the runs of a model share: the results of kernels, and the batch that they read. It grows to the
//! largest batch. Bindings are decided once for each size.

use crate::device::Device;
use crate::dispatch::{Dispatches, Read};
use crate::upload::Uploaded;

/// The buffers, and what each dispatch binds.
#[derive(Debug)]
pub(crate) struct Arena {
    pub(crate) batch: wgpu::Buffer,
    pub(crate) slots: Vec<wgpu::Buffer>,
    /// By step.
    pub(crate) groups: Vec<wgpu::BindGroup>,
}

impl Arena {
    /// Bytes of all buffers.
    pub(crate) fn bytes(&self) -> u64 {
        self.slots.iter().map(wgpu::Buffer::size).sum::<u64>() + self.batch.size()
    }

    /// Whether a batch fits.
    pub(crate) fn holds(&self, dispatches: &Dispatches, size: &BatchSize) -> bool {
        self.batch.size() >= size.batch_bytes()
            && dispatches
                .slots
                .iter()
                .zip(&self.slots)
                .all(|(slot, buffer)| buffer.size() >= slot.bytes(size.tokens, size.texts))
    }
}

/// What decides how much memory a batch takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchSize {
    pub(crate) tokens: usize,
    pub(crate) texts: usize,
    pub(crate) words: usize,
}

impl BatchSize {
    fn batch_bytes(&self) -> u64 {
        (self.words * size_of::<u32>()) as u64
    }

    /// Somewhat more, so that memory does not grow with every batch.
    pub(crate) fn rounded(self, at_most: usize) -> Self {
        let up = |count: usize| count.next_multiple_of((count.next_power_of_two() / 4).max(16));
        Self {
            tokens: up(self.tokens).min(at_most.max(self.tokens)),
            texts: up(self.texts),
            words: up(self.words),
        }
    }
}

/// What dispatches bind beside the arena.
pub(crate) struct Fixed<'a> {
    pub(crate) device: &'a Device,
    pub(crate) dispatches: &'a Dispatches,
    pub(crate) weights: &'a Uploaded,
    pub(crate) constants: &'a wgpu::Buffer,
    /// By step.
    pub(crate) layouts: &'a [wgpu::BindGroupLayout],
}

impl Fixed<'_> {
    /// An arena for batches of that size.
    pub(crate) fn arena(&self, size: &BatchSize) -> Arena {
        let buffer = |label, bytes: u64, usage| {
            self.device.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(label),
                size: bytes.next_multiple_of(16).max(16),
                usage: wgpu::BufferUsages::STORAGE | usage,
                mapped_at_creation: false,
            })
        };
        let batch = buffer("batch", size.batch_bytes(), wgpu::BufferUsages::COPY_DST);
        let slots = self.dispatches.slots.iter().map(|slot| {
            let usage = match slot.output {
                true => wgpu::BufferUsages::COPY_SRC,
                false => wgpu::BufferUsages::empty(),
            };
            buffer("slot", slot.bytes(size.tokens, size.texts), usage)
        });
        let slots: Vec<wgpu::Buffer> = slots.collect();
        let groups = self.dispatches.steps.iter().zip(self.layouts);
        let groups = groups.map(|(step, layout)| {
            let reads = step.reads.iter().map(|read| match *read {
                Read::Slot(slot) => &slots[slot],
                Read::Product(product) => &self.weights.products[product],
                Read::Table { place, part } => &self.weights.tables[place][part],
                Read::Nothing => self.constants,
            });
            let constants = wgpu::BufferBinding {
                buffer: self.constants,
                offset: (step.constants.first * size_of::<f32>()) as u64,
                size: std::num::NonZero::new((step.constants.len * size_of::<f32>()) as u64),
            };
            let entries: Vec<_> = [
                slots[step.slot].as_entire_binding(),
                batch.as_entire_binding(),
                wgpu::BindingResource::Buffer(constants),
            ]
            .into_iter()
            .chain(reads.map(wgpu::Buffer::as_entire_binding))
            .enumerate()
            .map(|(binding, resource)| wgpu::BindGroupEntry {
                binding: binding as u32,
                resource,
            })
            .collect();
            self.device
                .device
                .create_bind_group(&wgpu::BindGroupDescriptor {
                    label: Some(step.name),
                    layout,
                    entries: &entries,
                })
        });
        let groups = groups.collect();
        Arena {
            batch,
            slots,
            groups,
        }
    }
}
