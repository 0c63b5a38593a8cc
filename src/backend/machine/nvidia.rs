//! NVIDIA GPUs, as reported by NVIDIA's management library (NVML), or else by Linux's driver.

use std::fs;
use std::path::Path;

#[cfg(feature = "nvml")]
use nvml_wrapper::error::NvmlError;
#[cfg(feature = "nvml")]
use nvml_wrapper::{Device, Nvml};

use super::told;
use crate::hardware::GpuInfo;

/// NVIDIA's GPUs, in the order of their numbers.
pub(super) fn look(root: &Path) -> Vec<GpuInfo> {
    // Opening the library takes its time, and logs where there is no driver: it is asked where there is one.
    let has_driver = cfg!(windows)
        || root.join("proc/driver/nvidia").exists()
        || root.join("dev/dxg").exists()
        || root.join("dev/nvidiactl").exists();
    if !has_driver {
        return Vec::new();
    }
    #[cfg(feature = "nvml")]
    match by_library() {
        Ok(gpus) => return gpus,
        Err(error) => tracing::debug!(target: "isovec", "NVML cannot be asked: {error}"),
    }
    by_driver(&root.join("proc/driver/nvidia"))
}

#[cfg(feature = "nvml")]
fn by_library() -> Result<Vec<GpuInfo>, NvmlError> {
    let library = Nvml::init()?;
    let driver = library.sys_driver_version().ok();
    let all = 0..library.device_count()?;
    // A GPU that fell off the bus must not hide the others.
    let gpus = all.filter_map(|index| library.device_by_index(index).ok());
    Ok(gpus.map(|gpu| describe(&gpu, driver.as_deref())).collect())
}

#[cfg(feature = "nvml")]
fn describe(gpu: &Device<'_>, driver: Option<&str>) -> GpuInfo {
    let pci = gpu.pci_info().ok();
    let memory = gpu.memory_info().ok();
    let capability = gpu.cuda_compute_capability().ok();
    GpuInfo {
        name: gpu.name().ok(),
        vendor: Some("nvidia".into()),
        vendor_id: pci.as_ref().map(|pci| pci.pci_device_id & 0xffff),
        device_id: pci.as_ref().map(|pci| pci.pci_device_id >> 16),
        pci: pci.map(|pci| place(&pci.bus_id)),
        memory_bytes: memory.as_ref().map(|memory| memory.total),
        memory_available_bytes: memory.map(|memory| memory.free),
        driver: driver.map(|version| format!("NVIDIA {version}")),
        compute_capability: capability.map(|of| format!("{}.{}", of.major, of.minor)),
        ..GpuInfo::default()
    }
}

/// A place on the bus as others write it: NVML has eight digits for the domain, and capitals.
fn place(bus_id: &str) -> String {
    let place = bus_id.to_ascii_lowercase();
    match place.split_once(':') {
        Some((domain, rest)) if domain.len() == 8 && domain.starts_with("0000") => {
            format!("{}:{rest}", &domain[4..])
        }
        _ => place,
    }
}

/// The driver's own folder: `gpus/0000:01:00.0/information` and `version`.
fn by_driver(folder: &Path) -> Vec<GpuInfo> {
    let Ok(entries) = fs::read_dir(folder.join("gpus")) else {
        return Vec::new();
    };
    let version = fs::read_to_string(folder.join("version")).unwrap_or_default();
    // `NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar ...`
    let version = version
        .split_whitespace()
        .find(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()));
    let driver = version.map(|version| format!("NVIDIA {version}"));
    let mut gpus: Vec<GpuInfo> = entries
        .flatten()
        .map(|entry| {
            let text = fs::read_to_string(entry.path().join("information")).unwrap_or_default();
            let mut lines = text.lines();
            let name = lines.find_map(|line| told(line.strip_prefix("Model:")?));
            GpuInfo {
                name,
                vendor: Some("nvidia".into()),
                vendor_id: Some(0x10de),
                pci: entry.file_name().to_str().map(place),
                driver: driver.clone(),
                ..GpuInfo::default()
            }
        })
        .collect();
    gpus.sort_by(|a, b| a.pci.cmp(&b.pci));
    gpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_written_as_others_write_them() {
        assert_eq!(place("00000000:0A:00.0"), "0000:0a:00.0");
        assert_eq!(place("0000:01:00.0"), "0000:01:00.0");
        assert_eq!(place("00010000:01:00.0"), "00010000:01:00.0");
    }

    #[test]
    fn without_the_library_the_drivers_folder_is_read() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(look(root.path()), [], "there is no driver");
        let folder = root.path().join("proc/driver/nvidia");
        for (place, model) in [("0000:41:00.0", "H100"), ("0000:01:00.0", "A10")] {
            let gpu = folder.join("gpus").join(place);
            fs::create_dir_all(&gpu).unwrap();
            let text = format!("Model: \t\t {model}\nIRQ:   16\n");
            fs::write(gpu.join("information"), text).unwrap();
        }
        let version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\n";
        fs::write(folder.join("version"), version).unwrap();
        let gpus = by_driver(&folder);
        let told: Vec<_> = gpus
            .iter()
            .map(|gpu| (gpu.name.as_deref(), gpu.driver.as_deref()))
            .collect();
        let driver = Some("NVIDIA 550.54.15");
        assert_eq!(told, [(Some("A10"), driver), (Some("H100"), driver)]);
    }
}
