//! The hardware of this machine or page, and which of it can be used.

use isovec_engine::maybe_send::BoxFuture;
use serde::{Deserialize, Serialize};

pub use isovec_engine::hardware::{AdapterInfo, AdapterKind};

use crate::backend;
use crate::error::Result;
pub use crate::features::{EngineFeature, Features, ProviderFeature};
use crate::json;

/// The hardware of this machine or page. Unknown values are `None`; nothing is guessed.
///
/// ```no_run
/// # async fn example() -> isovec::Result<()> {
/// let hardware = isovec::hardware::HardwareInfo::detect().await?;
/// println!("{:?}, {:?} cores for this process", hardware.cpu.model, hardware.cpu.usable_cores);
/// println!("measured on {}", hardware.id());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HardwareInfo {
    /// The system: `linux`, `macos`, `windows`. A page is not told.
    pub os: Option<String>,
    /// The architecture that the program was compiled for: `x86_64`, `aarch64`, `wasm32`.
    pub arch: String,
    /// The processor.
    pub cpu: CpuInfo,
    /// The memory.
    pub memory: MemoryInfo,
    /// Every GPU once, those that NVIDIA's library names first, in its order.
    pub gpus: Vec<GpuInfo>,
    /// The adapters that the `webgpu` provider could open. A GPU may be listed once for each way to reach it, and a
    /// processor that emulates a GPU is listed as well. `None` in a build without the feature `webgpu`.
    pub adapters: Option<Vec<AdapterInfo>>,
    /// The facts that a browser reports; `None` natively.
    pub page: Option<PageInfo>,
}

/// The processor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CpuInfo {
    /// As it names itself.
    pub model: Option<String>,
    /// The vendor, as the processor states it: `GenuineIntel`, `AuthenticAMD`, `ARM`.
    pub vendor: Option<String>,
    /// Cores.
    pub physical_cores: Option<usize>,
    /// Threads that the cores run at a time. In a page, the number that the browser reports, which may be too low.
    pub logical_cores: Option<usize>,
    /// The number of these that this process may use at a time, by its affinity and its control group's quota,
    /// rounded down.
    pub usable_cores: Option<usize>,
    /// Logical cores that the process's affinity leaves. On Linux.
    pub affinity_cores: Option<usize>,
    /// Cores' worth of time that the control group's quota leaves. On Linux, where there is a quota.
    pub quota_cores: Option<f64>,
    /// Instruction sets that matter to arithmetic, by Rust's names for them. In a page, those that the module was
    /// compiled for; [`PageInfo`] has those that the browser could run.
    pub simd: Vec<String>,
    /// The widest of them that the portable engine's kernels use.
    pub kernels: String,
    /// The sizes of the first core's caches.
    pub caches: CacheInfo,
}

/// Bytes of the caches that one core sees. On Linux as the system says, elsewhere as x86 processors do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CacheInfo {
    /// Of the first level, for data.
    pub l1d_bytes: Option<u64>,
    /// Of the second level.
    pub l2_bytes: Option<u64>,
    /// Of the third level.
    pub l3_bytes: Option<u64>,
    /// Logical cores that share the third level.
    pub l3_shared_by: Option<usize>,
}

/// The memory. A page is not told; [`PageInfo`] has the hint that some get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct MemoryInfo {
    /// Bytes that the machine has.
    pub total_bytes: Option<u64>,
    /// Bytes that can still be had on the machine.
    pub available_bytes: Option<u64>,
    /// Bytes that the process's control group allows, where it has a limit. On Linux.
    pub limit_bytes: Option<u64>,
}

/// A GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GpuInfo {
    /// As its driver names it.
    pub name: Option<String>,
    /// The vendor: `nvidia`, `amd`, `intel`, `apple`; others by their PCI number.
    pub vendor: Option<String>,
    /// The PCI number of the vendor.
    pub vendor_id: Option<u32>,
    /// The vendor's number for the device.
    pub device_id: Option<u32>,
    /// The place on the PCI bus, such as `0000:01:00.0`.
    pub pci: Option<String>,
    /// Whether it has its own memory; `None` if unknown.
    pub kind: Option<AdapterKind>,
    /// Bytes of its own memory.
    pub memory_bytes: Option<u64>,
    /// Bytes of it that can still be had.
    pub memory_available_bytes: Option<u64>,
    /// The driver and its version.
    pub driver: Option<String>,
    /// NVIDIA's name of its generation, such as `9.0`.
    pub compute_capability: Option<String>,
}

/// The facts that a browser reports about itself and the device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PageInfo {
    /// The device's memory in GiB, rounded and capped by the browser. Only Chromium reports it, and only over TLS.
    pub device_memory_gib: Option<f64>,
    /// Whether the page is cut off from others (by its COOP and COEP headers), which threads need. `None` where there are
    /// no pages, as in node.
    pub cross_origin_isolated: Option<bool>,
    /// Whether there is memory that workers can share.
    pub shared_memory: bool,
    /// Whether WebAssembly has SIMD here.
    pub simd: bool,
    /// Whether WebAssembly has relaxed SIMD here.
    pub relaxed_simd: bool,
    /// Whether isovec can compute on several threads here.
    pub threads: bool,
    /// Whether the browser has WebGPU; [`HardwareInfo::adapters`] says whether it gives an adapter.
    pub webgpu: bool,
}

impl HardwareInfo {
    /// Looks at the hardware. Natively on a thread of its own; with NVIDIA's library or a driver for Vulkan that may take
    /// a few hundred milliseconds.
    ///
    /// # Errors
    /// [`Error::Panicked`](crate::Error::Panicked) where a driver did, and
    /// [`Error::Engine`](crate::Error::Engine) where no thread can be started.
    pub fn detect() -> BoxFuture<'static, Result<Self>> {
        Box::pin(backend::offload("looking at the hardware", async {
            let mut found = backend::machine::look();
            found.adapters = backend::adapters().await;
            found.gpus = with_adapters(found.gpus, found.adapters.as_deref().unwrap_or_default());
            Ok(found)
        }))
    }

    /// A short hash of the processor's model, its cores and instruction sets, and the GPUs. A measurement with
    /// another id was made on another machine. Memory and drivers are not included. Machines that report little, such
    /// as pages, may share an id.
    pub fn id(&self) -> String {
        let cpu = &self.cpu;
        let mut parts = vec![
            self.arch.clone(),
            cpu.model.clone().unwrap_or_default(),
            json::text(&(cpu.physical_cores, cpu.logical_cores, cpu.usable_cores)),
            cpu.simd.join(" "),
        ];
        // In an order that does not depend on how they were found.
        let mut gpus: Vec<String> = self
            .gpus
            .iter()
            .map(|gpu| json::text(&(&gpu.name, gpu.vendor_id, gpu.device_id)))
            .collect();
        gpus.sort();
        parts.append(&mut gpus);
        let mut hash = blake3::Hasher::new();
        for part in &parts {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.finalize().to_hex()[..16].to_owned()
    }
}

/// The GPUs that drivers told of, completed by what adapters say, and those that only an adapter tells of.
fn with_adapters(mut gpus: Vec<GpuInfo>, adapters: &[AdapterInfo]) -> Vec<GpuInfo> {
    // One GPU has an adapter for each way to reach it, and not all of them tell its place on the bus.
    for adapter in adapters.iter().filter(|adapter| !adapter.is_software()) {
        let at = |gpu: &GpuInfo| match (&gpu.pci, &adapter.pci) {
            (Some(own), Some(other)) => own == other,
            _ => {
                (gpu.vendor_id, gpu.device_id) == (adapter.vendor_id, adapter.device_id)
                    && (gpu.vendor_id.is_some() || gpu.name == adapter.name)
            }
        };
        match gpus.iter().position(at) {
            Some(known) => {
                let gpu = &mut gpus[known];
                gpu.kind = gpu.kind.or(adapter.kind);
                if gpu.name.is_none() {
                    gpu.name.clone_from(&adapter.name);
                }
                if gpu.driver.is_none() {
                    gpu.driver.clone_from(&adapter.driver);
                }
            }
            None => gpus.push(GpuInfo {
                name: adapter.name.clone(),
                vendor: adapter.vendor_id.map(vendor),
                vendor_id: adapter.vendor_id,
                device_id: adapter.device_id,
                pci: adapter.pci.clone(),
                kind: adapter.kind,
                driver: adapter.driver.clone(),
                ..GpuInfo::default()
            }),
        }
    }
    gpus
}

/// Who has a PCI vendor's number.
pub(crate) fn vendor(id: u32) -> String {
    match id {
        0x10de => "nvidia".into(),
        0x1002 | 0x1022 => "amd".into(),
        0x8086 => "intel".into(),
        0x106b => "apple".into(),
        other => format!("{other:#06x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(name: &str, pci: Option<&str>, kind: AdapterKind) -> AdapterInfo {
        let mut adapter = AdapterInfo::default();
        adapter.name = Some(name.into());
        adapter.pci = pci.map(str::to_owned);
        adapter.kind = Some(kind);
        (adapter.vendor_id, adapter.device_id) = (Some(0x10de), Some(0x2330));
        adapter
    }

    #[test]
    fn a_gpu_stands_there_once_however_it_was_found() {
        let named = GpuInfo {
            pci: Some("0000:01:00.0".into()),
            memory_bytes: Some(80 << 30),
            ..GpuInfo::default()
        };
        let adapters = [
            adapter("H100", Some("0000:01:00.0"), AdapterKind::Discrete),
            // Another one of the same kind.
            adapter("H100", Some("0000:02:00.0"), AdapterKind::Discrete),
            // The same, by a way that tells no place.
            adapter("H100", None, AdapterKind::Discrete),
            adapter("llvmpipe", None, AdapterKind::Cpu),
        ];
        let gpus = with_adapters(vec![named], &adapters);
        let places: Vec<_> = gpus.iter().map(|gpu| gpu.pci.as_deref()).collect();
        assert_eq!(places[..1], [Some("0000:01:00.0")]);
        assert_eq!(gpus.len(), 2, "{gpus:?}");
        assert_eq!(gpus[0].memory_bytes, Some(80 << 30));
        assert_eq!(gpus[0].name.as_deref(), Some("H100"));
        assert_eq!(gpus[0].kind, Some(AdapterKind::Discrete));
        assert_eq!(gpus[1].vendor.as_deref(), Some("nvidia"));
    }

    #[test]
    fn the_id_is_the_machines_and_not_the_moments() {
        let mut one = HardwareInfo {
            arch: "x86_64".into(),
            ..HardwareInfo::default()
        };
        one.cpu.model = Some("a processor".into());
        one.cpu.usable_cores = Some(2);
        let id = one.id();
        assert_eq!(id.len(), 16);
        let mut later = one.clone();
        later.memory.available_bytes = Some(1);
        assert_eq!(later.id(), id);
        let changes: [fn(&mut HardwareInfo); 5] = [
            |other| other.cpu.model = Some("another".into()),
            |other| other.cpu.usable_cores = Some(3),
            |other| other.cpu.simd = vec!["avx2".into()],
            |other| other.gpus = vec![GpuInfo::default()],
            |other| other.arch = "aarch64".into(),
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let mut other = one.clone();
            change(&mut other);
            assert_ne!(other.id(), id, "change {at}");
        }
    }

    #[test]
    fn what_was_written_is_read_even_where_it_says_less() {
        let info = HardwareInfo::default();
        let text = serde_json::to_string(&info).unwrap();
        assert_eq!(serde_json::from_str::<HardwareInfo>(&text).unwrap(), info);
        assert_eq!(serde_json::from_str::<HardwareInfo>("{}").unwrap(), info);
    }

    /// Every name of the JSON, nested ones behind a dot, one a line.
    fn names(of: &serde_json::Value, before: &str, into: &mut Vec<String>) {
        match of {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    let name = format!("{before}{name}");
                    match value {
                        serde_json::Value::Object(_) | serde_json::Value::Array(_) => {
                            names(value, &format!("{name}."), into);
                        }
                        _ => into.push(name),
                    }
                }
            }
            serde_json::Value::Array(items) => {
                for item in items {
                    match item {
                        serde_json::Value::Object(_) => names(item, before, into),
                        _ => into.push(before.trim_end_matches('.').to_owned()),
                    }
                }
            }
            _ => {}
        }
    }

    /// Scripts read these names, and the npm package's `hardware()` has the same in camel case (`bindings/js/tests/hardware.test.mjs`
    /// holds it to the same file).
    #[test]
    fn the_json_has_the_names_that_it_always_had() {
        let mut info = HardwareInfo::default();
        info.cpu.simd = vec!["avx2".into()];
        info.gpus = vec![GpuInfo::default()];
        info.adapters = Some(vec![AdapterInfo::default()]);
        info.page = Some(PageInfo::default());
        let mut found = Vec::new();
        names(&serde_json::to_value(&info).unwrap(), "", &mut found);
        found.sort();
        let kept = include_str!("../tests/data/hardware-keys.txt");
        let kept: Vec<&str> = kept.lines().collect();
        assert_eq!(found, kept, "\n{}", found.join("\n"));
    }
}
