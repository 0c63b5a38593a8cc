//! Which headers go on: those of the request and the answer, and not those of a connection (RFC 9110, 7.6.1).

use axum::http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, VIA,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// What is of one connection alone.
const HOPS: [HeaderName; 9] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    PROXY_CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Takes away what is of this connection alone, and what `connection` names as such.
pub(crate) fn end_to_end(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOPS) {
        headers.remove(name);
    }
}

/// The head of a request as it goes on. The body is held, so its length is known anew; the host is the replica's.
pub(crate) fn onward(mut headers: HeaderMap, is_grpc: bool) -> HeaderMap {
    end_to_end(&mut headers);
    for name in [CONTENT_LENGTH, EXPECT, HOST] {
        headers.remove(name);
    }
    headers.append(VIA, HeaderValue::from_static("1.1 isovec-route"));
    if is_grpc {
        // What gRPC asks for, and HTTP/2 allows of all that is of a connection.
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    headers
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn what_is_of_a_connection_ends_with_it() {
        let given = headers(&[
            ("connection", "close, X-Private"),
            ("connection", "x-other"),
            ("x-private", "a"),
            ("x-other", "b"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("keep-alive", "1"),
            ("proxy-authorization", "secret"),
            ("host", "here"),
            ("content-length", "7"),
            ("expect", "100-continue"),
            ("authorization", "Bearer k"),
            ("x-request-id", "i"),
        ]);
        let left = headers(&[
            ("authorization", "Bearer k"),
            ("x-request-id", "i"),
            ("via", "1.1 isovec-route"),
        ]);
        assert_eq!(onward(given, false), left);
        let call = onward(headers(&[("te", "gzip")]), true);
        assert_eq!(
            call,
            headers(&[("via", "1.1 isovec-route"), ("te", "trailers")])
        );
    }
}
