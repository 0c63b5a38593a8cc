//! A device: its adapter, its limits and its state.

mod compiled;
#[cfg(not(target_arch = "wasm32"))]
mod poll;
#[cfg(test)]
pub(crate) mod testing;

use std::sync::{Arc, Mutex, PoisonError};

use futures_channel::oneshot;
use isovec_engine::maybe_send::MaybeSend;
use isovec_engine::{EngineError, Result};

use crate::PROVIDER;
use crate::host::Host;
use crate::limits::{Limits, Subgroups};

/// What to look for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// Whether a processor that plays a GPU will do.
    pub(crate) software: bool,
    /// Whether the adapter that uses less power is wanted, where there are two.
    pub(crate) low_power: bool,
    /// Whether products are cut into tiles, whatever the adapter is.
    pub(crate) tiles: Option<bool>,
    /// Whether kernels share by subgroups, where the adapter has them, whatever it is.
    pub(crate) subgroups: Option<bool>,
    /// Limits that are lower than the adapter's, for tests.
    pub(crate) binding_bytes: Option<u64>,
}

/// A device that computes.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) info: wgpu::AdapterInfo,
    pub(crate) limits: Limits,
    lost: Arc<Mutex<Option<String>>>,
    compiled: Option<compiled::Compiled>,
    #[cfg(not(target_arch = "wasm32"))]
    poller: poll::Poller,
}

impl Device {
    /// Opens the device of the best adapter that there is.
    ///
    /// # Errors
    /// [`EngineError::ProviderUnavailable`].
    pub(crate) async fn open(wanted: &Wanted, host: &dyn Host) -> Result<Self> {
        let adapter = adapter(wanted).await?;
        let info = adapter.get_info();
        let most = adapter.limits();
        let required_limits = wgpu::Limits {
            max_buffer_size: most.max_buffer_size,
            max_storage_buffer_binding_size: most.max_storage_buffer_binding_size,
            max_storage_buffers_per_shader_stage: most.max_storage_buffers_per_shader_stage,
            max_compute_workgroup_storage_size: most.max_compute_workgroup_storage_size,
            max_compute_invocations_per_workgroup: most.max_compute_invocations_per_workgroup,
            max_compute_workgroup_size_x: most.max_compute_workgroup_size_x,
            ..wgpu::Limits::downlevel_defaults().or_worse_values_from(&most)
        };
        let wanted_features = wgpu::Features::PIPELINE_CACHE
            | wgpu::Features::TIMESTAMP_QUERY
            | wgpu::Features::SHADER_F16
            | wgpu::Features::SUBGROUP;
        let features = adapter.features() & wanted_features;
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("isovec"),
            required_features: features,
            required_limits: required_limits.clone(),
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = adapter
            .request_device(&descriptor)
            .await
            .map_err(|error| unavailable(format!("{}: {error}", info.name)))?;
        let lost = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&lost);
        device.set_device_lost_callback(move |reason, message| {
            note(&seen, format!("{reason:?}: {message}"));
        });
        // Errors of what is submitted are caught where it is submitted; what comes from elsewhere
        // leaves the device in a state that nobody vouches for.
        let seen = Arc::clone(&lost);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            note(&seen, error.to_string());
        }));
        let software = info.device_type == wgpu::DeviceType::Cpu;
        let tiles = wanted.tiles.unwrap_or(!software);
        let mut limits = Limits::of(&required_limits, features, tiles);
        // A processor that plays a GPU has no threads that wait for one another.
        if features.contains(wgpu::Features::SUBGROUP) && wanted.subgroups.unwrap_or(!software) {
            limits.subgroups = Some(Subgroups::of(&info));
        }
        if let Some(bytes) = wanted.binding_bytes {
            limits.binding_bytes = limits.binding_bytes.min(bytes);
        }
        tracing::debug!(adapter = %info.name, backend = %info.backend, ?limits, "opened a device");
        Ok(Self {
            compiled: compiled::Compiled::recall(&device, &info, host).await,
            #[cfg(not(target_arch = "wasm32"))]
            poller: poll::Poller::new(&device)?,
            device,
            queue,
            info,
            limits,
            lost,
        })
    }

    /// A hash of the adapter, its driver, and what else is given.
    pub(crate) fn identity_with<'a>(&'a self, parts: impl Iterator<Item = &'a str>) -> String {
        let info = &self.info;
        let own = [
            &*info.name,
            &info.driver,
            &info.driver_info,
            info.backend.to_str(),
        ];
        let mut hash = blake3::Hasher::new();
        for part in own.into_iter().chain(parts) {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.finalize().to_hex().to_string()
    }

    /// What the driver compiled at earlier starts, where it does not remember that by itself.
    pub(crate) fn compiled(&self) -> Option<&wgpu::PipelineCache> {
        self.compiled.as_ref().map(compiled::Compiled::cache)
    }

    /// Keeps what the driver has compiled for the next start.
    pub(crate) async fn keep_compiled(&self, host: &dyn Host) {
        if let Some(compiled) = &self.compiled {
            compiled.keep(host).await;
        }
    }

    /// Refuses a device that is gone.
    pub(crate) fn check(&self) -> Result<()> {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        match &*lost {
            None => Ok(()),
            Some(detail) => Err(gone(detail)),
        }
    }

    /// Watches what is asked of the device until it is closed.
    pub(crate) fn watch(&self) -> Watch {
        let scope = |filter| self.device.push_error_scope(filter);
        Watch([
            scope(wgpu::ErrorFilter::OutOfMemory),
            scope(wgpu::ErrorFilter::Internal),
            scope(wgpu::ErrorFilter::Validation),
        ])
    }

    /// Has whoever waits for the device look at it.
    pub(crate) fn wake(&self) {
        #[cfg(not(target_arch = "wasm32"))]
        self.poller.wake();
    }

    /// Waits until everything that was submitted is done.
    pub(crate) async fn done(&self) -> Result<()> {
        let (sender, receiver) = oneshot::channel();
        self.queue.on_submitted_work_done(move || {
            let _ = sender.send(());
        });
        self.wake();
        receiver.await.map_err(|_| self.silent())?;
        self.check()
    }

    /// The bytes of a buffer that is mapped for reading.
    pub(crate) async fn read<T: bytemuck::Pod>(
        &self,
        buffer: &wgpu::Buffer,
        bytes: u64,
    ) -> Result<Vec<T>> {
        let (sender, receiver) = oneshot::channel();
        buffer
            .slice(..bytes)
            .map_async(wgpu::MapMode::Read, move |result| {
                let _ = sender.send(result);
            });
        self.wake();
        let mapped = receiver.await.map_err(|_| self.silent())?;
        self.check()?;
        mapped.map_err(|error| gone(&error.to_string()))?;
        let values = {
            let view = buffer
                .get_mapped_range(..bytes)
                .map_err(|error| gone(&error.to_string()))?;
            bytemuck::pod_collect_to_vec(&view)
        };
        buffer.unmap();
        self.check()?;
        Ok(values)
    }

    fn silent(&self) -> EngineError {
        match self.check() {
            Err(error) => error,
            Ok(()) => gone("it does not answer"),
        }
    }

    /// Destroys the device, as a driver that is reset does.
    pub(crate) fn destroy(&self) {
        self.device.destroy();
        note(&self.lost, "it was destroyed".into());
        self.wake();
    }
}

/// Catches the errors of what is asked of a device meanwhile.
#[must_use]
pub(crate) struct Watch([wgpu::ErrorScopeGuard; 3]);

impl Watch {
    /// Ends it. The future says, when the device has, whether anything was wrong.
    pub(crate) fn close(self) -> impl Future<Output = Result<(), String>> + MaybeSend {
        let [memory, internal, validation] = self.0;
        // The last scope that was opened is the first to be closed.
        let (validation, internal, memory) = (validation.pop(), internal.pop(), memory.pop());
        async move {
            let found = [validation.await, internal.await, memory.await];
            match found.into_iter().flatten().next() {
                None => Ok(()),
                Some(error) => Err(error.to_string()),
            }
        }
    }
}

fn note(lost: &Mutex<Option<String>>, detail: String) {
    let mut lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
    lost.get_or_insert(detail);
}

/// The error of a device that cannot be used any more.
pub(crate) fn gone(detail: &str) -> EngineError {
    EngineError::DeviceLost {
        provider: PROVIDER.into(),
        detail: detail.into(),
    }
}

/// The error of a device that cannot be had.
pub(crate) fn unavailable(reason: String) -> EngineError {
    EngineError::ProviderUnavailable {
        provider: PROVIDER.into(),
        reason,
        hint: "Leave it out of providers.execution_providers, or name cpu behind it".into(),
    }
}

/// What adapters are asked for.
pub(crate) fn instance() -> wgpu::Instance {
    wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    })
}

async fn adapter(wanted: &Wanted) -> Result<wgpu::Adapter> {
    let instance = instance();
    let options = wgpu::RequestAdapterOptions {
        power_preference: match wanted.low_power {
            true => wgpu::PowerPreference::LowPower,
            false => wgpu::PowerPreference::HighPerformance,
        },
        ..wgpu::RequestAdapterOptions::default()
    };
    let adapter = instance.request_adapter(&options).await;
    let adapter = adapter.map_err(|error| unavailable(format!("there is no adapter: {error}")))?;
    let info = adapter.get_info();
    if info.device_type == wgpu::DeviceType::Cpu && !wanted.software {
        return Err(EngineError::ProviderUnavailable {
            provider: PROVIDER.into(),
            reason: format!(
                "the only adapter, {}, is a processor that plays a GPU, slower than the processor \
                 itself",
                name(&info)
            ),
            hint: "Set providers.webgpu.software_adapter to use it all the same".into(),
        });
    }
    Ok(adapter)
}

/// An adapter's name, as far as it says one.
pub(crate) fn name(info: &wgpu::AdapterInfo) -> &str {
    match &*info.name {
        "" => "an adapter without a name",
        name => name,
    }
}
