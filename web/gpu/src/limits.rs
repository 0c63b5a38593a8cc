//! The limits of a device that dispatches depend on.

/// What kernels may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Storage buffers that a kernel binds.
    pub(crate) storage_buffers: usize,
    /// Bytes of a buffer that it binds.
    pub(crate) binding_bytes: u64,
    /// Floats that a group of threads shares.
    pub(crate) shared_floats: usize,
    /// Threads of a group.
    pub(crate) threads: usize,
    /// Whether products of many rows are cut into tiles: what GPUs want, and processors do not.
    pub(crate) tiles: bool,
    /// Whether weights, and what only products and attention read, are held as f16.
    pub(crate) half: bool,
    /// Where kernels share by subgroups, how large these are.
    pub(crate) subgroups: Option<Subgroups>,
}

/// Threads of a subgroup, of which a driver takes as many as it thinks best for a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subgroups {
    /// In the smallest.
    pub(crate) least: usize,
    /// In most of them, as far as anybody can tell: kernels are right with any other number, and slower.
    pub(crate) usual: usize,
}

impl Subgroups {
    pub(crate) fn of(info: &wgpu::AdapterInfo) -> Self {
        /// Drivers that can do with less take at least so many where they may.
        const USUAL: usize = 16;
        let least = info.subgroup_min_size.max(1) as usize;
        let most = (info.subgroup_max_size as usize).max(least);
        Self {
            least,
            usual: USUAL.clamp(least, most),
        }
    }
}

impl Limits {
    pub(crate) fn of(limits: &wgpu::Limits, features: wgpu::Features, tiles: bool) -> Self {
        Self {
            storage_buffers: limits.max_storage_buffers_per_shader_stage as usize,
            binding_bytes: limits
                .max_storage_buffer_binding_size
                .min(limits.max_buffer_size),
            shared_floats: limits.max_compute_workgroup_storage_size as usize / size_of::<f32>(),
            threads: limits
                .max_compute_invocations_per_workgroup
                .min(limits.max_compute_workgroup_size_x)
                .min(256) as usize,
            tiles,
            half: features.contains(wgpu::Features::SHADER_F16),
            subgroups: None,
        }
    }
}
