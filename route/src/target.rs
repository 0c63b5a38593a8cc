//! Where a replica is.

use std::fmt;
use std::str::FromStr;

use axum::http::Uri;
use axum::http::uri::{Authority, Scheme};

use crate::error::Error;

/// The largest weight.
const MOST: u32 = 1000;

/// A replica's address, and how much it takes: `http://10.0.0.1:8080` or `http://10.0.0.1:8080=2`. With the feature `tls` also
/// `https://`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    scheme: Scheme,
    authority: Authority,
    weight: u32,
}

impl Target {
    /// Whether connections to it are of TLS.
    pub(crate) fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// The name or number of the host, and its port.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// How many requests it gets for each one of a replica of weight 1; 1 to 1000.
    pub fn weight(&self) -> u32 {
        self.weight
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self, Error> {
        let fail = |detail| Error::Target {
            given: given.to_owned(),
            detail,
        };
        let (url, weight) = match given.rsplit_once('=') {
            Some((url, weight)) => {
                let weight = weight
                    .parse()
                    .ok()
                    .filter(|weight| (1..=MOST).contains(weight));
                (
                    url,
                    weight.ok_or_else(|| {
                        fail("the weight behind = is a whole number from 1 to 1000")
                    })?,
                )
            }
            None => (given, 1),
        };
        let uri: Uri = url.parse().map_err(|_| {
            fail("write it as http://HOST:PORT, and a weight as http://HOST:PORT=2")
        })?;
        let scheme = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => scheme,
            Some(scheme) if *scheme == Scheme::HTTPS && cfg!(feature = "tls") => scheme,
            Some(scheme) if *scheme == Scheme::HTTPS => {
                return Err(fail(
                    "https:// needs TLS, which this program was built without (the feature tls)",
                ));
            }
            _ => return Err(fail("it begins with http:// or https://")),
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(fail(
                "it has a path; the router keeps the paths of requests",
            ));
        }
        let authority = uri.authority().ok_or_else(|| fail("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(fail(
                "it has a user; replicas know API keys, which requests carry",
            ));
        }
        Ok(Self {
            scheme: scheme.clone(),
            authority: authority.clone(),
            weight,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_tls_needs_the_feature() {
        let target = "https://a:1=2".parse::<Target>();
        if cfg!(feature = "tls") {
            assert_eq!(target.unwrap().to_string(), "https://a:1");
        } else {
            assert!(target.unwrap_err().to_string().contains("built without"));
        }
    }

    #[test]
    fn an_address_has_a_host_a_port_and_a_weight() {
        for (given, shown, weight) in [
            ("http://10.0.0.1:8080", "http://10.0.0.1:8080", 1),
            ("http://[::1]:8080/=1000", "http://[::1]:8080", 1000),
            ("http://embed.example=3", "http://embed.example", 3),
        ] {
            let target: Target = given.parse().unwrap();
            assert_eq!(
                (target.to_string().as_str(), target.weight()),
                (shown, weight)
            );
        }
        for (given, said) in [
            ("a:1", "http://"),
            ("ftp://a:1", "http://"),
            ("http://", "HOST:PORT"),
            ("http://a:1=0", "weight"),
            ("http://a:1=1001", "weight"),
            ("http://a:1=x", "weight"),
            ("http://a:1/v1", "path"),
            ("http://a:1/?q", "path"),
            ("http://user@a:1", "user"),
        ] {
            let error = given.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains(said) && error.contains(given), "{error}");
        }
    }
}
