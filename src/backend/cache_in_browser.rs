//! The cache of measurements in a page: entries of the browser's Cache API, beside the models' files and under
//! similar keys (`bindings/js/ts/store.ts`), so that removing the site's models removes these as well.

use js_sys::{Array, Function, Promise, Reflect, Uint8Array, encode_uri_component};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::Response;

/// The cache's name.
pub(crate) const NAME: &str = "isovec";

/// The cached entry of a kind and a name, if there is one.
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
    let caches = caches()?;
    // Opening a cache makes one, and a site that has kept nothing should not have any.
    if ask(&caches, "has", &[NAME.into()]).await?.is_falsy() {
        return Err(JsValue::NULL);
    }
    let cache = ask(&caches, "open", &[NAME.into()]).await?;
    let found = ask(&cache, "match", &[key(kind, name)]).await?;
    let buffer = ask(&found, "arrayBuffer", &[]).await?;
    Ok(Uint8Array::new(&buffer).to_vec())
}

async fn write(kind: &str, name: &str, bytes: &[u8]) -> Result<(), JsValue> {
    let response = Response::new_with_opt_js_u8_array(Some(&Uint8Array::from(bytes)))?;
    let cache = ask(&caches()?, "open", &[NAME.into()]).await?;
    ask(&cache, "put", &[key(kind, name), response.into()]).await?;
    Ok(())
}

/// All caches; nothing in node and on pages without TLS.
pub(crate) fn caches() -> Result<JsValue, JsValue> {
    Reflect::get(&js_sys::global(), &"caches".into())
}

/// Calls a method and waits for its answer. Edge runtimes have some of these methods, and throw at once in others,
/// which the typed bindings do not catch.
pub(crate) async fn ask(of: &JsValue, method: &str, with: &[JsValue]) -> Result<JsValue, JsValue> {
    JsFuture::from(Promise::resolve(&asked(of, method, with)?)).await
}

/// Calls a method, whose answer may be a promise.
pub(crate) fn asked(of: &JsValue, method: &str, with: &[JsValue]) -> Result<JsValue, JsValue> {
    let method: Function = Reflect::get(of, &method.into())?.dyn_into()?;
    method.apply(of, &with.iter().collect::<Array>())
}

/// Keys have to be HTTP addresses. Nobody is asked at this one.
pub(crate) fn key(kind: &str, name: &str) -> JsValue {
    let kind = encode_uri_component(kind);
    let name = encode_uri_component(name);
    format!("https://cache.isovec.invalid/kept/{kind}/{name}").into()
}
