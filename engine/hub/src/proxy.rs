//! Which proxy a request goes through.

use std::net::IpAddr;

use super::url::{Host, Url};

/// Proxies by the scheme of the request, and the hosts that are reached without.
///
/// A proxy is `http://[user:password@]host:port` (asked to `CONNECT`), or `socks5://...`,
/// `socks5h://...`, `socks4://...`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxyConfig {
    /// For `https` requests.
    pub https: Option<String>,
    /// For `http` requests.
    pub http: Option<String>,
    /// Hosts that are reached directly, each as `NO_PROXY` writes it: `example.com` with its
    /// subdomains, an address, a network like `10.0.0.0/8`, any of them with `:port`, or `*`.
    pub no_proxy: Vec<String>,
}

// A proxy's address may hold a password.
impl std::fmt::Debug for ProxyConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hide = |proxy: &Option<String>| proxy.as_ref().map(|_| "(set)");
        f.debug_struct("ProxyConfig")
            .field("https", &hide(&self.https))
            .field("http", &hide(&self.http))
            .field("no_proxy", &self.no_proxy)
            .finish()
    }
}

impl ProxyConfig {
    /// Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`; the lower-case spelling of
    /// each goes first. `HTTP_PROXY` in capitals is not read in a CGI program, where it is a
    /// header that the client chose.
    pub(super) fn from_lookup(lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
        let all = get("all_proxy").or_else(|| get("ALL_PROXY"));
        Self {
            https: get("https_proxy")
                .or_else(|| get("HTTPS_PROXY"))
                .or_else(|| all.clone()),
            http: get("http_proxy")
                .or_else(|| get("HTTP_PROXY").filter(|_| get("REQUEST_METHOD").is_none()))
                .or(all),
            no_proxy: get("no_proxy")
                .or_else(|| get("NO_PROXY"))
                .unwrap_or_default()
                .split([',', ' '])
                .map(|entry| entry.trim().to_owned())
                .filter(|entry| !entry.is_empty())
                .collect(),
        }
    }

    /// Whether a request is sent directly, whatever proxies are set.
    pub(super) fn is_direct(&self, url: &Url) -> bool {
        self.no_proxy.iter().any(|entry| matches(entry, url))
    }
}

fn matches(entry: &str, url: &Url) -> bool {
    if entry == "*" {
        return true;
    }
    // `[::1]:80` and `host:80` have a port, `::1` has none.
    let (name, port) = match entry.rsplit_once(':') {
        Some((name, port))
            if (!name.contains(':') || name.ends_with(']')) && port.parse::<u16>().is_ok() =>
        {
            (name, port.parse::<u16>().ok())
        }
        _ => (entry, None),
    };
    if port.is_some_and(|port| port != url.port()) {
        return false;
    }
    let name = name.trim_start_matches('[').trim_end_matches(']');
    match url.host() {
        Host::Name(domain) => {
            let name = name.trim_start_matches("*").trim_start_matches('.');
            let domain = domain.trim_end_matches('.');
            domain.eq_ignore_ascii_case(name)
                || (domain.len() > name.len()
                    && !name.is_empty()
                    && domain.is_char_boundary(domain.len() - name.len())
                    && domain[domain.len() - name.len()..].eq_ignore_ascii_case(name)
                    && domain[..domain.len() - name.len()].ends_with('.'))
        }
        Host::V4(address) => in_network(name, address.into()),
        Host::V6(address) => in_network(name, address.into()),
    }
}

/// Whether an address is, or is in, `address` or `address/bits`.
fn in_network(network: &str, address: IpAddr) -> bool {
    let (base, bits) = match network.split_once('/') {
        Some((base, bits)) => match bits.parse::<u32>() {
            Ok(bits) => (base, Some(bits)),
            Err(_) => return false,
        },
        None => (network, None),
    };
    match (base.parse::<IpAddr>(), address) {
        (Ok(IpAddr::V4(base)), IpAddr::V4(address)) => {
            let host_bits = 32 - bits.unwrap_or(32).min(32);
            let differing = u64::from(u32::from(base) ^ u32::from(address));
            differing >> host_bits == 0
        }
        (Ok(IpAddr::V6(base)), IpAddr::V6(address)) => {
            let host_bits = 128 - bits.unwrap_or(128).min(128);
            let differing = u128::from(base) ^ u128::from(address);
            differing.checked_shr(host_bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direct(entries: &str, url: &str) -> bool {
        let config = ProxyConfig::from_lookup(&|name| (name == "NO_PROXY").then(|| entries.into()));
        config.is_direct(&Url::parse(url).expect("a URL"))
    }

    #[test]
    fn hosts_that_need_no_proxy() {
        for (entries, url, expected) in [
            ("*", "https://huggingface.co", true),
            ("huggingface.co", "https://huggingface.co", true),
            ("huggingface.co", "https://cdn.HuggingFace.co", true),
            (".huggingface.co", "https://cdn.huggingface.co", true),
            ("*.huggingface.co", "https://cdn.huggingface.co", true),
            ("ace.co", "https://huggingface.co", false),
            ("huggingface.co.evil", "https://huggingface.co", false),
            ("localhost, 127.0.0.1", "http://127.0.0.1:8080/x", true),
            ("localhost 127.0.0.1", "http://localhost:8080/x", true),
            ("127.0.0.1:8080", "http://127.0.0.1:8080/x", true),
            ("127.0.0.1:8081", "http://127.0.0.1:8080/x", false),
            ("huggingface.co:443", "https://huggingface.co", true),
            ("10.0.0.0/8", "http://10.200.3.4", true),
            ("10.0.0.0/8", "http://11.0.0.1", false),
            ("0.0.0.0/0", "http://11.0.0.1", true),
            ("::1", "http://[::1]:80/", true),
            ("[::1]:80", "http://[::1]/", true),
            ("fd00::/8", "http://[fd12::1]/", true),
            ("fd00::/8", "http://[fe80::1]/", false),
            ("10.0.0.0/x", "http://10.0.0.1", false),
            ("", "https://huggingface.co", false),
        ] {
            assert_eq!(direct(entries, url), expected, "{entries:?} and {url}");
        }
    }

    #[test]
    fn the_usual_variables() {
        let read = |pairs: &'static [(&str, &str)]| {
            ProxyConfig::from_lookup(&|name| {
                pairs
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| value.to_string())
            })
        };
        let both = read(&[
            ("ALL_PROXY", "socks5h://a:1"),
            ("HTTPS_PROXY", "http://b:2"),
            ("https_proxy", "http://c:3"),
        ]);
        assert_eq!(both.https.as_deref(), Some("http://c:3"));
        assert_eq!(both.http.as_deref(), Some("socks5h://a:1"));
        assert_eq!(
            read(&[("HTTP_PROXY", "http://x"), ("REQUEST_METHOD", "GET")]).http,
            None
        );
        assert_eq!(read(&[("HTTP_PROXY", " ")]), ProxyConfig::default());
        assert!(!format!("{:?}", read(&[("HTTP_PROXY", "http://me:secret@x")])).contains("secret"));
    }
}
