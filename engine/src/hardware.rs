//! The description of an adapter for graphics and compute, in types that all crates share.

use serde::{Deserialize, Serialize};

/// An adapter as Vulkan, Metal, DirectX 12 or a browser shows it. One GPU may be behind several of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AdapterInfo {
    /// As it names itself. Browsers leave it out.
    pub name: Option<String>,
    /// The interface to it: `vulkan`, `metal`, `dx12`, or the browser's.
    pub backend: String,
    /// The kind of device; `None` if unknown, as in browsers.
    pub kind: Option<AdapterKind>,
    /// The PCI number of the vendor. Browsers leave it out.
    pub vendor_id: Option<u32>,
    /// The vendor's number for the device. Browsers leave it out.
    pub device_id: Option<u32>,
    /// The place on the PCI bus, such as `0000:01:00.0`.
    pub pci: Option<String>,
    /// The driver and its version.
    pub driver: Option<String>,
    /// Whether shaders may compute with 16-bit floats.
    pub shader_f16: bool,
    /// Whether the threads of a group can exchange values without memory.
    pub subgroups: bool,
    /// Threads of such a subgroup, at least.
    pub subgroup_min_size: Option<u32>,
    /// Threads of such a subgroup, at most.
    pub subgroup_max_size: Option<u32>,
    /// Whether it can measure the time of its kernels.
    pub timestamp_query: bool,
    /// Bytes of a buffer, at most.
    pub max_buffer_bytes: u64,
    /// Bytes of a buffer that a kernel may bind, at most.
    pub max_binding_bytes: u64,
    /// Buffers that a kernel may bind, at most.
    pub max_storage_buffers: u32,
    /// Bytes that a group of threads may share, at most.
    pub max_workgroup_bytes: u32,
    /// Threads of a group, at most.
    pub max_workgroup_threads: u32,
}

impl AdapterInfo {
    /// Whether it emulates a GPU on the processor.
    pub fn is_software(&self) -> bool {
        self.kind == Some(AdapterKind::Cpu)
    }
}

/// The kind of device of an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AdapterKind {
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that shares the processor's memory.
    Integrated,
    /// A GPU that a virtual machine was given a part of.
    Virtual,
    /// A processor that emulates a GPU.
    Cpu,
}
