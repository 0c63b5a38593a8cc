//! A thread that polls a device. Natively a device makes no progress unless it is polled.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use isovec_engine::{EngineError, Result};

use crate::ENGINE;

/// A thread that waits for what was submitted, and ends with the device.
#[derive(Debug)]
pub(super) struct Poller {
    asked: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Poller {
    pub(super) fn new(device: &wgpu::Device) -> Result<Self> {
        let (sender, receiver) = channel::<()>();
        let device = device.clone();
        let thread = std::thread::Builder::new()
            .name("isovec-gpu".into())
            .spawn(move || {
                while receiver.recv().is_ok() {
                    // An error is a lost device, which its callback has heard of.
                    let _ = device.poll(wgpu::PollType::wait_indefinitely());
                }
            })
            .map_err(|error| EngineError::Runtime {
                engine: ENGINE,
                doing: "starting the thread that waits for the device",
                detail: error.to_string(),
            })?;
        Ok(Self {
            asked: Some(sender),
            thread: Some(thread),
        })
    }

    /// Has the thread wait for everything that has been submitted by now.
    pub(super) fn wake(&self) {
        if let Some(asked) = &self.asked {
            let _ = asked.send(());
        }
    }
}

impl Drop for Poller {
    /// Waits for the thread: a driver that is still being asked while the program ends crashes it.
    fn drop(&mut self) {
        drop(self.asked.take());
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}
