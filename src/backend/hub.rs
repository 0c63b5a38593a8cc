//! Models by id: downloaded into, or found in, the hub's standard cache.

use isovec_hub::{FileSelection, Hub, HubConfig, WeightFiles};
use isovec_model::convert;

use crate::config::{Dtype, EmbeddingConfig};
use crate::error::Result;
use crate::model::{Fetched, Progress, Watch};

/// Sees to it that a model's files are in a folder; they are downloaded as far as they are not.
pub(crate) async fn fetch(id: &str, config: &EmbeddingConfig, watch: &Watch) -> Result<Fetched> {
    let mut hub = HubConfig::from_env();
    let own = config.hub.clone();
    hub.endpoint = own.endpoint.unwrap_or(hub.endpoint);
    hub.token = own.token.or(hub.token);
    hub.cache_dir = own.cache_dir.or(hub.cache_dir);
    hub.offline = own.offline.unwrap_or(hub.offline);
    let revision = own.revision.as_deref().unwrap_or("main");

    let wanted = match &config.model.onnx_file {
        Some(file) => FileSelection::embedding().weights(WeightFiles::Onnx(file.clone())),
        // A checkpoint that cannot be converted is not worth downloading.
        None => {
            let origin = id.to_owned();
            let weights = match config.model.dtype {
                Some(Dtype::Auto) => WeightFiles::Smallest,
                _ => WeightFiles::Auto,
            };
            FileSelection::embedding()
                .weights(weights)
                .accept_safetensors_if(move |json| convert::family(&origin, json).map(|_| ()))
        }
    };
    let report = watch.progress.clone();
    let progress = move |progress: &isovec_hub::Progress| {
        if let Some(report) = &report {
            report(Progress::Downloading {
                file: progress.file.to_string(),
                bytes: progress.bytes,
                total: progress.total_bytes,
            });
        }
    };
    let hub = Hub::new(hub)?;
    let snapshot = hub
        .fetch(id, revision, &wanted, progress, &watch.cancel)
        .await?;
    let used = hub.config();
    Ok(Fetched {
        folder: snapshot.folder,
        revision: revision.to_owned(),
        commit: snapshot.commit,
        endpoint: used.endpoint.clone(),
        has_token: used.token.is_some(),
        cache_dir: used.cache_dir.clone(),
        offline: used.offline,
    })
}
