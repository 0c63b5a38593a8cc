//! The native description of the hardware, from the system, the processor and the drivers.

mod caches;
mod gpus;
#[cfg(any(target_os = "linux", target_os = "windows"))]
mod nvidia;
pub(crate) mod process;

use std::path::Path;

use isovec_engine::cores;
use isovec_engine::cores::cgroup::{self, line, listed};
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use crate::hardware::{CpuInfo, HardwareInfo, MemoryInfo};

/// Whether there is anybody to ask for a GPU's adapter: the system's drivers.
#[cfg(feature = "webgpu")]
pub(crate) fn knows_adapters() -> bool {
    true
}

/// What there is, but for what adapters tell.
pub(crate) fn look() -> HardwareInfo {
    let root = Path::new("/");
    let wanted = RefreshKind::nothing()
        .with_cpu(CpuRefreshKind::nothing())
        .with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(wanted);
    let group = cgroup::limits(root);
    let first = system.cpus().first();
    let sets = isovec_kernels::instruction_sets();
    HardwareInfo {
        os: Some(std::env::consts::OS.to_owned()),
        arch: std::env::consts::ARCH.to_owned(),
        cpu: CpuInfo {
            model: first.and_then(|cpu| told(cpu.brand())),
            vendor: first.and_then(|cpu| told(cpu.vendor_id())),
            physical_cores: System::physical_core_count(),
            logical_cores: counted(system.cpus().len()),
            usable_cores: Some(cores::usable()),
            affinity_cores: cgroup::affinity(root),
            quota_cores: group.cores,
            simd: sets.into_iter().map(str::to_owned).collect(),
            kernels: isovec_kernels::instruction_set().to_owned(),
            caches: caches::look(root),
        },
        memory: MemoryInfo {
            total_bytes: counted(system.total_memory()),
            available_bytes: counted(system.total_memory()).map(|_| system.available_memory()),
            limit_bytes: group.memory,
        },
        gpus: gpus::look(root),
        ..HardwareInfo::default()
    }
}

/// What is not left empty.
fn told(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// None of something that every machine has means that nobody knows.
fn counted<T: Default + PartialEq>(count: T) -> Option<T> {
    (count != T::default()).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_is_what_its_system_says() {
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        let info = look();
        assert_eq!(info.os.as_deref(), Some("linux"));
        let stat = read("/proc/stat");
        let cores = stat
            .lines()
            .filter(|line| {
                let rest = line.strip_prefix("cpu").unwrap_or_default();
                rest.starts_with(|c: char| c.is_ascii_digit())
            })
            .count();
        assert_eq!(info.cpu.logical_cores, Some(cores));
        // As coreutils count them.
        let nproc = std::process::Command::new("nproc")
            .env_remove("OMP_NUM_THREADS")
            .output()
            .unwrap();
        let nproc: usize = String::from_utf8(nproc.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        assert_eq!(info.cpu.affinity_cores, Some(nproc));
        assert!(info.cpu.usable_cores.unwrap() <= nproc, "{info:?}");
        let total = read("/proc/meminfo");
        let total = total
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"));
        let total: u64 = total
            .unwrap()
            .trim()
            .strip_suffix(" kB")
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(info.memory.total_bytes, Some(total * 1024));
        assert!(info.memory.available_bytes < info.memory.total_bytes);
    }

    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[test]
    fn the_processor_is_the_one_of_proc_cpuinfo() {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let field = |name: &str| {
            let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
            let found = lines.find(|(key, _)| key.trim() == name);
            found.map(|(_, value)| value.trim().to_owned())
        };
        let cpu = look().cpu;
        assert_eq!(cpu.model, field("model name"));
        assert_eq!(cpu.vendor, field("vendor_id"));
        let flags = field("flags").unwrap();
        let flags: Vec<&str> = flags.split(' ').collect();
        for (ours, theirs) in [
            ("avx", "avx"),
            ("avx2", "avx2"),
            ("fma", "fma"),
            ("f16c", "f16c"),
            ("sse4.1", "sse4_1"),
            ("avxvnni", "avx_vnni"),
            ("avx512f", "avx512f"),
            ("avx512vl", "avx512vl"),
            ("avx512vnni", "avx512_vnni"),
            ("avx512bf16", "avx512_bf16"),
            ("avx512fp16", "avx512_fp16"),
        ] {
            let has = cpu.simd.iter().any(|set| set == ours);
            assert_eq!(has, flags.contains(&theirs), "{ours}: {:?}", cpu.simd);
        }
    }
}
