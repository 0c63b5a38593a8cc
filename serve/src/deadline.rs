//! How long a request may take.

use std::time::Duration;

use axum::http::HeaderMap;

use crate::failure::{Failure, Kind};

/// A client's own limit: seconds (`2`, `0.25`), or a number with its unit (`250ms`, `1m 30s`).
pub(crate) const HEADER: &str = "x-request-timeout";

/// The time that a request has, from its head on: the server's, or less if its header says so.
pub(crate) fn of(headers: &HeaderMap, most: Duration) -> Result<Duration, Failure> {
    let Some(value) = headers.get(HEADER) else {
        return Ok(most);
    };
    let text = value.to_str().unwrap_or_default().trim();
    let seconds = text.parse().ok();
    let time = seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .or_else(|| humantime::parse_duration(text).ok())
        .filter(|time| !time.is_zero());
    match time {
        Some(time) => Ok(time.min(most)),
        None => Err(Failure::new(
            Kind::Invalid,
            format!(
                "the header {HEADER} is no time above 0; write seconds (2, 0.25) or a number with its unit (250ms)"
            ),
        )),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const MOST: Duration = Duration::from_secs(60);

    fn read(value: &[u8]) -> Result<Duration, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_bytes(value).unwrap());
        of(&headers, MOST)
    }

    #[test]
    fn a_header_shortens_the_time_and_never_lengthens_it() {
        assert_eq!(of(&HeaderMap::new(), MOST).unwrap(), MOST);
        for (value, millis) in [
            ("2", 2_000),
            (" 0.25 ", 250),
            ("250ms", 250),
            ("1s 5ms", 1_005),
            ("3600", 60_000),
        ] {
            let read = read(value.as_bytes());
            assert_eq!(read.unwrap(), Duration::from_millis(millis), "{value}");
        }
        for value in [
            "",
            "0",
            "-1",
            "NaN",
            "inf",
            "1e300",
            "soon",
            "0ms",
            "5 parsecs",
        ] {
            assert!(read(value.as_bytes()).is_err(), "{value}");
        }
        assert!(read(b"\xff").is_err());
    }
}
