//! A device for tests, if there is one.

use std::sync::Arc;

use super::{Device, Wanted};
use crate::host::Alone;

/// The device of the adapter that there is; `None`, aloud, where there is none. `ISOVEC_REQUIRE_GPU=1` makes that a
/// failure.
pub(crate) async fn device(wanted: &Wanted) -> Option<Arc<Device>> {
    match Device::open(wanted, &Alone).await {
        Ok(device) => Some(Arc::new(device)),
        Err(error) if std::env::var("ISOVEC_REQUIRE_GPU").is_ok_and(|must| must == "1") => {
            panic!("{error}")
        }
        Err(error) => {
            eprintln!("not run: {error}");
            None
        }
    }
}
