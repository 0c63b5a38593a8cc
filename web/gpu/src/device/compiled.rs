//! Kernels that the driver compiled at an earlier start.
//!
//! Vulkan exports them and imports them again; other drivers, and browsers, cache them themselves.

use crate::host::Host;

/// Bytes of the hash that what is kept begins with.
const HASH: usize = 32;

/// What the driver has compiled, and what of it was kept.
#[derive(Debug)]
pub(super) struct Compiled {
    cache: wgpu::PipelineCache,
    /// What it is kept under.
    name: String,
    /// The hash of what was kept at an earlier start.
    kept: Option<blake3::Hash>,
}

impl Compiled {
    /// What was kept of this adapter, in the driver's hands; `None` where the driver does not take it.
    pub(super) async fn recall(
        device: &wgpu::Device,
        info: &wgpu::AdapterInfo,
        host: &dyn Host,
    ) -> Option<Self> {
        let key = wgpu::util::pipeline_cache_key(info)?;
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        // The driver's version as well: wgpu looks at it and takes nothing of another one, but a file that two
        // drivers wrote by turns would be of use to neither.
        let name = format!("{key}-{}.pipelines", plain(&info.driver_info));
        let bytes = host.recall(&name).await;
        let whole = bytes.as_deref().and_then(whole);
        let descriptor = wgpu::PipelineCacheDescriptor {
            label: Some("isovec"),
            data: whole.map(|(_, data)| data),
            fallback: true,
        };
        // SAFETY: `data` has to be what `get_data` gave out, of this driver. It is: only `keep` writes under this
        // name, which has the adapter's and the driver's identity in it (wgpu compares those as well, and begins anew
        // with others), and the hash shows that no byte has changed since. Whoever writes a file with a fitting hash
        // into the user's own cache on purpose is one who may change the user's programs, too.
        let cache = unsafe { device.create_pipeline_cache(&descriptor) };
        let kept = whole.map(|(hash, _)| hash);
        Some(Self { cache, name, kept })
    }

    pub(super) fn cache(&self) -> &wgpu::PipelineCache {
        &self.cache
    }

    /// Keeps what has been compiled by now, if it is more than was kept.
    pub(super) async fn keep(&self, host: &dyn Host) {
        let Some(data) = self.cache.get_data() else {
            return;
        };
        let hash = blake3::hash(&data);
        if self.kept != Some(hash) {
            let bytes = [hash.as_bytes(), &data[..]].concat();
            host.keep(&self.name, bytes).await;
        }
    }
}

/// What was kept, if no byte of it has changed.
fn whole(bytes: &[u8]) -> Option<(blake3::Hash, &[u8])> {
    let (hash, data) = bytes.split_first_chunk::<HASH>()?;
    let hash = blake3::Hash::from_bytes(*hash);
    (blake3::hash(data) == hash).then_some((hash, data))
}

/// A text as a part of a file's name.
fn plain(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    text.chars().map(plain).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_changed_is_not_handed_to_the_driver() {
        let data = b"compiled kernels";
        let mut kept = [blake3::hash(data).as_bytes(), &data[..]].concat();
        assert_eq!(whole(&kept).map(|(_, data)| data), Some(&data[..]));
        assert!(whole(&kept[..HASH - 1]).is_none());
        assert!(whole(&kept[..HASH + 3]).is_none());
        kept[HASH] ^= 1;
        assert!(whole(&kept).is_none());
    }
}
