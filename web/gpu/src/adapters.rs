//! Lists the adapters and their features.

use isovec_engine::hardware::{AdapterInfo, AdapterKind};

/// Every adapter that [`WebGpu`](crate::WebGpu) could open, processors that play a GPU included; in a page the one that
/// the browser gives. No device is opened.
pub async fn adapters() -> Vec<AdapterInfo> {
    let instance = crate::device::instance();
    let adapters = instance.enumerate_adapters(wgpu::Backends::PRIMARY).await;
    adapters.iter().map(describe).collect()
}

fn describe(adapter: &wgpu::Adapter) -> AdapterInfo {
    let info = adapter.get_info();
    let (features, limits) = (adapter.features(), adapter.limits());
    let subgroups = features.contains(wgpu::Features::SUBGROUP);
    let mut described = AdapterInfo::default();
    described.name = told(&info.name);
    described.backend = info.backend.to_str().to_owned();
    described.kind = match info.device_type {
        wgpu::DeviceType::DiscreteGpu => Some(AdapterKind::Discrete),
        wgpu::DeviceType::IntegratedGpu => Some(AdapterKind::Integrated),
        wgpu::DeviceType::VirtualGpu => Some(AdapterKind::Virtual),
        wgpu::DeviceType::Cpu => Some(AdapterKind::Cpu),
        wgpu::DeviceType::Other => None,
    };
    // Numbers of 0 are those that are not told.
    described.vendor_id = (info.vendor != 0).then_some(info.vendor);
    described.device_id = (info.device != 0).then_some(info.device);
    described.pci = told(&info.device_pci_bus_id);
    described.driver = told(&format!("{} {}", info.driver, info.driver_info));
    described.shader_f16 = features.contains(wgpu::Features::SHADER_F16);
    described.subgroups = subgroups;
    described.subgroup_min_size = subgroups.then_some(info.subgroup_min_size);
    described.subgroup_max_size = subgroups.then_some(info.subgroup_max_size);
    described.timestamp_query = features.contains(wgpu::Features::TIMESTAMP_QUERY);
    described.max_buffer_bytes = limits.max_buffer_size;
    described.max_binding_bytes = limits.max_storage_buffer_binding_size;
    described.max_storage_buffers = limits.max_storage_buffers_per_shader_stage;
    described.max_workgroup_bytes = limits.max_compute_workgroup_storage_size;
    described.max_workgroup_threads = limits.max_compute_invocations_per_workgroup;
    described
}

/// What is not left empty.
fn told(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
