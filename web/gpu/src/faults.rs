//! Takes devices away from engines that other code holds, for programs that test the consequences. It needs the
//! feature `faults`, which is never on in a release.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::device::Device;

/// The devices of all engines.
static DEVICES: Mutex<Vec<Weak<Device>>> = Mutex::new(Vec::new());

pub(crate) fn register(device: &Arc<Device>) {
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    devices.retain(|device| device.strong_count() > 0);
    devices.push(Arc::downgrade(device));
}

/// Takes the devices of all engines away, as a driver does that is reset, and says how many there were.
pub fn lose_devices() -> usize {
    let devices = std::mem::take(&mut *DEVICES.lock().unwrap_or_else(PoisonError::into_inner));
    let devices = devices.iter().filter_map(Weak::upgrade);
    devices.inspect(|device| device.destroy()).count()
}
