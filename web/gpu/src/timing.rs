//! The time of each kernel of a run, by the device's own clock.
//!
//! A pass notes when it begins and ends (WebGPU's `timestamp-query`), so a timed run has a pass for each kernel, and
//! reads sixteen bytes of each back. This is done only for profiles with operators.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use isovec_engine::Result;
use isovec_engine::profile::{Detail, Scope};
use isovec_engine::stats::KernelStats;
use web_time::Instant;

use crate::device::Device;

/// Bytes of a time.
const TIME: u64 = size_of::<u64>() as u64;

/// Times of one run after another.
#[derive(Debug)]
pub(crate) struct Timer {
    set: wgpu::QuerySet,
    /// Where the device writes them, before they can be read.
    resolved: wgpu::Buffer,
    kernels: u32,
    /// Nanoseconds of a tick.
    period: f64,
    /// Dispatches and their time, by the kernel's name: some twenty.
    sums: Mutex<Vec<(&'static str, u64, Duration)>>,
}

/// A kernel of a run that was timed.
pub(crate) struct Timed {
    pub(crate) name: &'static str,
    pub(crate) detail: Detail,
}

impl Timer {
    /// For runs of so many kernels; `None` where the device has no clock, or not for as many.
    pub(crate) fn new(device: &Device, kernels: usize) -> Option<Self> {
        let features = device.device.features();
        if !features.contains(wgpu::Features::TIMESTAMP_QUERY)
            || kernels * 2 > wgpu::QUERY_SET_MAX_QUERIES as usize
        {
            return None;
        }
        let count = kernels as u32 * 2;
        Some(Self {
            set: device.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("times"),
                ty: wgpu::QueryType::Timestamp,
                count,
            }),
            resolved: device.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("times"),
                size: u64::from(count) * TIME,
                usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            }),
            kernels: kernels as u32,
            period: f64::from(device.queue.get_timestamp_period()),
            sums: Mutex::default(),
        })
    }

    /// What a kernel's pass notes.
    pub(crate) fn of(&self, kernel: usize) -> wgpu::ComputePassTimestampWrites<'_> {
        let first = kernel as u32 * 2;
        wgpu::ComputePassTimestampWrites {
            query_set: &self.set,
            beginning_of_pass_write_index: Some(first),
            end_of_pass_write_index: Some(first + 1),
        }
    }

    /// Brings the times of a run to where they can be read, behind its last kernel.
    pub(crate) fn copy_out(
        &self,
        device: &Device,
        encoder: &mut wgpu::CommandEncoder,
    ) -> wgpu::Buffer {
        let bytes = self.resolved.size();
        let staging = device.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("times"),
            size: bytes,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        encoder.resolve_query_set(&self.set, 0..self.kernels * 2, &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &staging, 0, bytes);
        staging
    }

    /// Reads them, and records the kernels as operators of a run that was handed to the device at `submitted`.
    ///
    /// The device's clock has another zero than the host's: the first kernel is put where the run was handed over,
    /// which is the earliest that it can have begun.
    pub(crate) async fn read(
        &self,
        device: &Device,
        staging: &wgpu::Buffer,
        submitted: Instant,
        scope: &Scope,
        kernels: impl Iterator<Item = Timed>,
    ) -> Result<()> {
        let ticks: Vec<u64> = device.read(staging, staging.size()).await?;
        // A driver that leaves one out leaves a zero.
        let zero = ticks.iter().copied().filter(|tick| *tick > 0).min();
        let since = |from: u64, to: u64| {
            let ticks = to.saturating_sub(from) as f64;
            Duration::from_nanos((ticks * self.period) as u64)
        };
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        for (pair, kernel) in ticks.chunks_exact(2).zip(kernels) {
            let (began, took) = (since(zero.unwrap_or(0), pair[0]), since(pair[0], pair[1]));
            scope.ran_on_device(submitted + began, took, kernel.name, kernel.detail);
            match sums.iter_mut().find(|(name, ..)| *name == kernel.name) {
                Some((_, dispatches, time)) => {
                    *dispatches += 1;
                    *time += took;
                }
                None => sums.push((kernel.name, 1, took)),
            }
        }
        Ok(())
    }

    /// What the kernels of all timed runs took.
    pub(crate) fn stats(&self) -> Vec<KernelStats> {
        let sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let stats = sums.iter().map(|(name, dispatches, time)| {
            let mut stats = KernelStats::default();
            (*name).clone_into(&mut stats.name);
            stats.dispatches = *dispatches;
            stats.seconds = time.as_secs_f64();
            stats
        });
        stats.collect()
    }
}
