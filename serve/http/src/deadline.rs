//! How long a request may take, as its head says it.

use std::time::Duration;

use axum::http::HeaderMap;

use crate::failure::{Failure, Kind};

/// A client's own limit: seconds (`2`, `0.25`), or a number with its unit (`250ms`, `1m 30s`).
pub const HEADER: &str = "x-request-timeout";

/// The same for calls of gRPC: up to eight digits and a unit.
pub const GRPC: &str = "grpc-timeout";

/// The time that a request has, from its head on: the server's, or less if its header says so.
///
/// # Errors
/// What is no time above 0.
pub fn of(headers: &HeaderMap, most: Duration) -> Result<Duration, Failure> {
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

/// The time that a client gives its call, if it says so.
///
/// # Errors
/// What is no time.
pub fn of_grpc(head: &HeaderMap) -> Result<Option<Duration>, Failure> {
    let Some(value) = head.get(GRPC) else {
        return Ok(None);
    };
    let time = value.to_str().ok().and_then(|text| {
        let (count, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let digits = count.len() <= 8 && count.bytes().all(|digit| digit.is_ascii_digit());
        let count: u64 = digits.then(|| count.parse().ok()).flatten()?;
        Some(match unit {
            "H" => Duration::from_secs(count * 3600),
            "M" => Duration::from_secs(count * 60),
            "S" => Duration::from_secs(count),
            "m" => Duration::from_millis(count),
            "u" => Duration::from_micros(count),
            "n" => Duration::from_nanos(count),
            _ => return None,
        })
    });
    let wrong = || Failure::new(Kind::Invalid, format!("the header {GRPC} is no time"));
    time.map(Some).ok_or_else(wrong)
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

    #[test]
    fn times_have_one_of_six_units() {
        let read = |value: &str| {
            let mut head = HeaderMap::new();
            head.insert(GRPC, value.parse().unwrap());
            of_grpc(&head)
        };
        for (value, micros) in [
            ("1H", 3_600_000_000),
            ("2M", 120_000_000),
            ("3S", 3_000_000),
            ("4m", 4_000),
            ("5u", 5),
            ("6000n", 6),
            ("99999999S", 99_999_999_000_000),
        ] {
            assert_eq!(read(value).unwrap(), Some(Duration::from_micros(micros)));
        }
        for value in ["", "S", "5", "5x", "-5S", "1.5S", "123456789S", "+5S"] {
            assert!(read(value).is_err(), "{value}");
        }
        assert_eq!(of_grpc(&HeaderMap::new()).unwrap(), None);
    }
}
