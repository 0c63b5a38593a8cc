//! The GPUs that drivers report.

use std::fs;
use std::path::Path;

use super::{line, told};
use crate::hardware::{GpuInfo, vendor};

/// NVIDIA's GPUs as its library names them, and all others that Linux lists.
pub(super) fn look(root: &Path) -> Vec<GpuInfo> {
    #[cfg(any(target_os = "linux", target_os = "windows"))]
    let mut gpus = super::nvidia::look(root);
    #[cfg(not(any(target_os = "linux", target_os = "windows")))]
    let mut gpus = Vec::new();
    let known: Vec<Option<String>> = gpus.iter().map(|gpu: &GpuInfo| gpu.pci.clone()).collect();
    let listed = cards(&root.join("sys/class/drm"));
    gpus.extend(listed.into_iter().filter(|gpu| !known.contains(&gpu.pci)));
    gpus
}

/// The cards that Linux's graphics drivers have (`Documentation/gpu/drm-uapi.rst`, and `amdgpu/driver-misc.rst` for what
/// AMD's says of its memory).
fn cards(folder: &Path) -> Vec<GpuInfo> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        // `card0`, and not its connectors, `card0-DP-1`.
        .filter(|name| {
            let number = name.strip_prefix("card").unwrap_or_default();
            !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
        })
        .collect();
    names.sort();
    let card = |name: &String| {
        let device = folder.join(name).join("device");
        let number = |file: &str| {
            let text = line(&device.join(file))?;
            u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
        };
        let memory = |file: &str| line(&device.join(file))?.parse::<u64>().ok();
        let event = fs::read_to_string(device.join("uevent")).unwrap_or_default();
        let event = |key: &str| {
            let mut values = event.lines().filter_map(|line| line.split_once('='));
            values
                .find(|(name, _)| *name == key)
                .and_then(|(_, value)| told(value))
        };
        // What has no vendor is no card of its own, but the screen of a virtual machine.
        let id = number("vendor")?;
        let total = memory("mem_info_vram_total");
        Some(GpuInfo {
            name: line(&device.join("product_name")),
            vendor: Some(vendor(id)),
            vendor_id: Some(id),
            device_id: number("device"),
            pci: event("PCI_SLOT_NAME"),
            memory_bytes: total,
            memory_available_bytes: total
                .zip(memory("mem_info_vram_used"))
                .map(|(total, used)| total.saturating_sub(used)),
            driver: event("DRIVER"),
            ..GpuInfo::default()
        })
    };
    names.iter().filter_map(card).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_read_and_connectors_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join("sys/class/drm").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("card0/device/vendor", "0x1002\n");
        write("card0/device/device", "0x740f\n");
        write("card0/device/mem_info_vram_total", "1000\n");
        write("card0/device/mem_info_vram_used", "400\n");
        write(
            "card0/device/uevent",
            "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n",
        );
        write("card0-DP-1/device/vendor", "0x1002\n");
        write("card1/device/uevent", "DRIVER=virtio\n");
        write("renderD128/device/vendor", "0x1002\n");
        let expected = GpuInfo {
            vendor: Some("amd".into()),
            vendor_id: Some(0x1002),
            device_id: Some(0x740f),
            pci: Some("0000:03:00.0".into()),
            memory_bytes: Some(1000),
            memory_available_bytes: Some(600),
            driver: Some("amdgpu".into()),
            ..GpuInfo::default()
        };
        assert_eq!(cards(&folder.path().join("sys/class/drm")), [expected]);
        assert_eq!(cards(&folder.path().join("none")), []);
    }
}
