//! The sizes of the first core's caches.

use std::path::Path;

use super::{line, listed};
use crate::hardware::CacheInfo;

/// As Linux says in its folder of devices (`Documentation/ABI/testing/sysfs-devices-system-cpu`), else as the processor.
pub(super) fn look(root: &Path) -> CacheInfo {
    let mut info = CacheInfo::default();
    for index in 0.. {
        let cache = format!("sys/devices/system/cpu/cpu0/cache/index{index}");
        let folder = root.join(cache);
        let Some(level) = line(&folder.join("level")) else {
            break;
        };
        let kind = line(&folder.join("type"));
        let size = line(&folder.join("size")).and_then(|size| bytes(&size));
        let shared = line(&folder.join("shared_cpu_list")).and_then(|list| listed(&list));
        note(
            &mut info,
            level.parse().unwrap_or(0),
            kind.as_deref() == Some("Instruction"),
            size,
            shared,
        );
    }
    match info == CacheInfo::default() {
        true => processor(),
        false => info,
    }
}

fn note(
    info: &mut CacheInfo,
    level: u8,
    instructions: bool,
    size: Option<u64>,
    shared: Option<usize>,
) {
    match (level, instructions) {
        (1, false) => info.l1d_bytes = size,
        (2, false) => info.l2_bytes = size,
        (3, false) => (info.l3_bytes, info.l3_shared_by) = (size, shared),
        _ => {}
    }
}

/// A size such as `32K`.
fn bytes(size: &str) -> Option<u64> {
    let (number, unit) = match size.strip_suffix(['K', 'M', 'G']) {
        Some(number) => (number, &size[number.len()..]),
        None => (size, ""),
    };
    let shift = match unit {
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => 0,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// As the processor itself says.
#[cfg(target_arch = "x86_64")]
fn processor() -> CacheInfo {
    let mut info = CacheInfo::default();
    let caches = raw_cpuid::CpuId::new().get_cache_parameters();
    for cache in caches.into_iter().flatten() {
        let lines = cache.associativity() * cache.physical_line_partitions();
        let size = lines * cache.coherency_line_size() * cache.sets();
        let instructions = cache.cache_type() == raw_cpuid::CacheType::Instruction;
        let shared = cache.max_cores_for_cache();
        note(
            &mut info,
            cache.level(),
            instructions,
            Some(size as u64),
            Some(shared),
        );
    }
    info
}

/// Others tell only their systems.
#[cfg(not(target_arch = "x86_64"))]
fn processor() -> CacheInfo {
    CacheInfo::default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn data_and_unified_caches_are_read() {
        let root = tempfile::tempdir().unwrap();
        let caches = [
            ("1", "Data", "48K", "0"),
            ("1", "Instruction", "32K", "0"),
            ("2", "Unified", "2M", "0"),
            ("3", "Unified", "32768K", "0-7"),
        ];
        for (index, (level, kind, size, shared)) in caches.into_iter().enumerate() {
            let folder = format!("sys/devices/system/cpu/cpu0/cache/index{index}");
            let folder = root.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            for (name, text) in [
                ("level", level),
                ("type", kind),
                ("size", size),
                ("shared_cpu_list", shared),
            ] {
                fs::write(folder.join(name), format!("{text}\n")).unwrap();
            }
        }
        let expected = CacheInfo {
            l1d_bytes: Some(48 << 10),
            l2_bytes: Some(2 << 20),
            l3_bytes: Some(32 << 20),
            l3_shared_by: Some(8),
        };
        assert_eq!(look(root.path()), expected);
    }

    #[test]
    fn no_size_is_made_of_what_is_none() {
        assert_eq!(bytes("12"), Some(12));
        for size in ["", "K", "12X", "-1K", "99999999999999999G"] {
            assert_eq!(bytes(size), None, "{size:?}");
        }
    }

    /// Where a system says nothing, the processor does: what both say has to be the same.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[test]
    fn the_processor_says_what_its_system_does() {
        let (system, own) = (look(Path::new("/")), processor());
        assert!(system.l1d_bytes.is_some(), "{system:?}");
        // A hypervisor may hide how many share the last level, and some of it.
        assert_eq!(
            (system.l1d_bytes, system.l2_bytes),
            (own.l1d_bytes, own.l2_bytes)
        );
    }
}
