//! A page for people that shows what the server does now. It reads `/metrics`, and nothing that is not the server's.

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};

use crate::route::Route;

const PAGE: &str = "/status";
const SCRIPT: &str = "/status.js";

/// The page runs its own script, and asks this server alone.
const ITS_OWN: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'";

pub(crate) fn routes() -> [Route; 2] {
    [
        Route::get(PAGE, page, "What the server does now, as a page."),
        Route::get(SCRIPT, script, "The script of that page."),
    ]
}

/// Whether a path is one of the page's, for which no key is needed: a browser has none to send, and the page, which says
/// nothing of the server, asks for it.
pub(crate) fn is_asked_by(path: &str) -> bool {
    [PAGE, SCRIPT].contains(&path)
}

async fn page() -> Response {
    answer("text/html; charset=utf-8", include_str!("page.html"))
}

async fn script() -> Response {
    answer("text/javascript; charset=utf-8", include_str!("page.mjs"))
}

fn answer(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(ITS_OWN)),
    ];
    (headers, text).into_response()
}
