//! What was found out at an earlier start: entries of the browser's Cache API, beside the models' files and under keys
//! like theirs (`js/ts/store.ts`), so that what takes the site's models away takes these as well.

use js_sys::{ArrayBuffer, Reflect, Uint8Array, encode_uri_component};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Cache, CacheStorage, Response};

/// The cache's name.
const NAME: &str = "isovec";

/// What was kept of a kind under a name, if it was.
pub(crate) async fn recall(kind: &str, name: &str) -> Option<Vec<u8>> {
    read(kind, name).await.ok()
}

/// Keeps it, whole or not at all; a failure costs the next start its time, nothing else.
pub(crate) async fn keep(kind: &str, name: &str, bytes: &[u8]) {
    if let Err(error) = write(kind, name, bytes).await {
        tracing::debug!(target: "isovec", "{kind} {name}: {error:?}");
    }
}

async fn read(kind: &str, name: &str) -> Result<Vec<u8>, JsValue> {
    let found = JsFuture::from(cache().await?.match_with_str(&key(kind, name))).await?;
    let response: Response = found.dyn_into()?;
    let buffer: ArrayBuffer = JsFuture::from(response.array_buffer()?).await?.dyn_into()?;
    Ok(Uint8Array::new(&buffer).to_vec())
}

async fn write(kind: &str, name: &str, bytes: &[u8]) -> Result<(), JsValue> {
    let content = Uint8Array::from(bytes);
    let response = Response::new_with_opt_js_u8_array(Some(&content))?;
    JsFuture::from(cache().await?.put_with_str(&key(kind, name), &response)).await?;
    Ok(())
}

/// The cache; an error where there is none, as in node, on pages without TLS, and where the browser refuses it.
async fn cache() -> Result<Cache, JsValue> {
    let storage: CacheStorage = Reflect::get(&js_sys::global(), &"caches".into())?.dyn_into()?;
    JsFuture::from(storage.open(NAME)).await?.dyn_into()
}

/// Keys have to be HTTP addresses. Nobody is asked at this one.
fn key(kind: &str, name: &str) -> String {
    let kind = encode_uri_component(kind);
    let name = encode_uri_component(name);
    format!("https://cache.isovec.invalid/kept/{kind}/{name}")
}
