//! Addresses of hubs and of what they redirect to.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use iri_string::components::AuthorityComponents;
use iri_string::types::{UriReferenceStr, UriString};

/// What an address may hold as it is (RFC 3986, section 2), the fragment's `#` apart.
const OF_ADDRESSES: &[u8] = b"-._~:/?@!$&'()*+,;=";
/// What a segment of a path may hold as it is (RFC 3986, section 3.3).
const OF_SEGMENTS: &[u8] = b"-._~:@!$&'()*+,;=";

/// An `http` or `https` address with a host. It has no fragment: servers do not see one.
#[derive(Clone, PartialEq, Eq)]
pub struct Url(UriString);

/// The host of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host<'a> {
    Name(&'a str),
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

impl Url {
    /// Reads an address; `None` if it is invalid or has another scheme.
    ///
    /// Characters that an address may not hold are escaped, as browsers do: servers send them in
    /// redirects. An authority is taken as it is or not at all, so that every reader finds the same host in it.
    pub fn parse(text: &str) -> Option<Self> {
        Self::checked(&tolerant(text))
    }

    /// The address in the one way of writing it: scheme and host in lower case, no port where it is the scheme's own, and a path.
    fn checked(text: &str) -> Option<Self> {
        let url = UriString::try_from(text).ok()?;
        let scheme = url.scheme_str().to_ascii_lowercase();
        let own = own_port(&scheme)?;
        let authority = url.authority_components()?;
        let mut plain = format!("{scheme}://");
        if let Some(user) = authority.userinfo() {
            plain.push_str(user);
            plain.push('@');
        }
        let host = authority.host().to_ascii_lowercase();
        plain.push_str(&host);
        let port = authority.port().filter(|port| !port.is_empty());
        let port = port.map(str::parse::<u16>).transpose().ok()?;
        if let Some(port) = port.filter(|&port| port != own) {
            plain.push_str(&format!(":{port}"));
        }
        plain.push_str(if url.path_str().is_empty() {
            "/"
        } else {
            url.path_str()
        });
        if let Some(query) = url.query_str() {
            plain.push('?');
            plain.push_str(query);
        }
        let usable = !host.is_empty();
        usable.then(|| UriString::try_from(plain).ok().map(Self))?
    }

    /// Resolves a redirect's `location` that this address sends (RFC 3986, section 5.2).
    pub fn join(&self, location: &str) -> Option<Self> {
        let location = tolerant(location);
        let location = UriReferenceStr::new(&location).ok()?;
        Self::checked(&location.resolve_against(self.0.to_absolute()).to_string())
    }

    /// The address with these segments after its path.
    pub(super) fn with_segments<'a>(&self, segments: impl Iterator<Item = &'a str>) -> Self {
        let mut text = self.as_str().trim_end_matches('/').to_owned();
        for segment in segments {
            text.push('/');
            text.push_str(&escaped(segment, |_, byte| OF_SEGMENTS.contains(&byte)));
        }
        // Escaped segments make any address longer, and none invalid.
        Self::checked(&text).unwrap_or_else(|| self.clone())
    }

    /// The address with this query, which has to be one.
    pub(super) fn with_query(&self, query: &'static str) -> Self {
        let path = self.as_str().split('?').next().unwrap_or_default();
        Self::checked(&format!("{path}?{query}")).unwrap_or_else(|| self.clone())
    }

    /// The whole address, as it is sent.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &str {
        self.0.scheme_str()
    }

    /// The port, the scheme's own where none is named.
    pub fn port(&self) -> u16 {
        let named = self.authority().and_then(|all| all.port()?.parse().ok());
        named.or(own_port(self.scheme())).unwrap_or_default()
    }

    pub(super) fn host(&self) -> Host<'_> {
        let host = self.authority().map_or("", |all| all.host());
        let inner = host.trim_start_matches('[').trim_end_matches(']');
        match (host.parse(), inner.parse()) {
            (Ok(address), _) => Host::V4(address),
            (_, Ok(address)) => Host::V6(address),
            _ => Host::Name(host),
        }
    }

    /// Whether two addresses have the same scheme, host and port.
    pub(super) fn same_origin(&self, other: &Self) -> bool {
        self.host() == other.host()
            && self.scheme() == other.scheme()
            && self.port() == other.port()
    }

    /// Whether it is an address and nothing else: no user and no query.
    pub(super) fn is_plain(&self) -> bool {
        let user = self.authority().is_some_and(|all| all.userinfo().is_some());
        !user && self.0.query_str().is_none()
    }

    /// For messages: without user and query, which may hold secrets.
    pub(super) fn shown(&self) -> String {
        let authority = self.0.authority_str().unwrap_or_default();
        let host = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        format!("{}://{host}{}", self.scheme(), self.0.path_str())
    }

    fn authority(&self) -> Option<AuthorityComponents<'_>> {
        self.0.authority_components()
    }
}

/// As messages show it: a debugger's output is one.
impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({})", self.shown())
    }
}

/// The port that is not named, of the schemes that there are.
fn own_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// An address, or what stands for one, with everything after its authority escaped and without a fragment.
fn tolerant(text: &str) -> String {
    let text = text.split('#').next().unwrap_or_default();
    let authority = match (text.find("//"), text.find(['/', '?'])) {
        (Some(mark), first) if first == Some(mark) => mark + 2,
        _ => 0,
    };
    let rest = match authority {
        0 => 0,
        start => text[start..]
            .find(['/', '?'])
            .map_or(text.len(), |end| start + end),
    };
    let (head, rest) = text.split_at(rest);
    let hexadecimal = |at: usize| rest.as_bytes().get(at).is_some_and(u8::is_ascii_hexdigit);
    let escaped = escaped(rest, |at, byte| {
        OF_ADDRESSES.contains(&byte) || (byte == b'%' && hexadecimal(at + 1) && hexadecimal(at + 2))
    });
    format!("{head}{escaped}")
}

/// Text in which every byte is escaped that is neither a letter or digit of ASCII nor kept.
fn escaped(text: &str, kept: impl Fn(usize, u8) -> bool) -> String {
    let mut all = String::with_capacity(text.len());
    for (at, byte) in text.bytes().enumerate() {
        if byte.is_ascii_alphanumeric() || kept(at, byte) {
            all.push(char::from(byte));
        } else {
            all.push_str(&format!("%{byte:02X}"));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap_or_else(|| panic!("{text} is an address"))
    }

    #[test]
    fn what_is_an_address() {
        for text in [
            "https://hub.example",
            "HTTP://127.0.0.1:8080/mirror/",
            "https://user:word@hub.example/a?b=c",
            "http://[::1]:80/",
        ] {
            url(text);
        }
        for text in [
            "",
            "hub.example",
            "ftp://hub.example/",
            "file:///etc/passwd",
            "https:///path",
            "https://",
            "https://hub example/",
            "https://hub.example\\@other/",
            "https://hub.example:99999/",
            "https://hub.example:port/",
            "https://[::1/",
        ] {
            assert_eq!(Url::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_address_is_written_in_one_way() {
        for (text, expected) in [
            ("HTTPS://Hub.Example:443", "https://hub.example/"),
            ("http://h:8080?a=B", "http://h:8080/?a=B"),
            ("http://h:/A/../b", "http://h/A/../b"),
            ("https://Me:Word@H/a%2fb", "https://Me:Word@h/a%2fb"),
        ] {
            assert_eq!(url(text).as_str(), expected, "{text}");
        }
    }

    #[test]
    fn redirects_lead_where_browsers_go() {
        let base = url("https://hub.example/a/b/resolve/main/x.bin?download=1");
        for (location, expected) in [
            ("/c/d", "https://hub.example/c/d"),
            ("../y.bin", "https://hub.example/a/b/resolve/y.bin"),
            ("z.bin", "https://hub.example/a/b/resolve/main/z.bin"),
            ("?q=1", "https://hub.example/a/b/resolve/main/x.bin?q=1"),
            ("//cdn.example/x", "https://cdn.example/x"),
            (
                "https://cdn.example/x?s=a%2Fb#part",
                "https://cdn.example/x?s=a%2Fb",
            ),
            (
                "/name with spaces?f=[\"ä\"]&p=100%",
                "https://hub.example/name%20with%20spaces?f=%5B%22%C3%A4%22%5D&p=100%25",
            ),
        ] {
            let joined = base.join(location).map(|url| url.as_str().to_owned());
            assert_eq!(joined.as_deref(), Some(expected), "{location}");
        }
        for location in [
            "ftp://cdn.example/x",
            "javascript:x",
            "https://a b/",
            "https:///x",
        ] {
            assert_eq!(base.join(location), None, "{location}");
        }
    }

    #[test]
    fn segments_are_escaped_and_put_after_the_path() {
        for endpoint in ["https://hub.example/mirror", "https://hub.example/mirror/"] {
            let file = url(endpoint).with_segments(["a", "b c", "100%#1?.txt"].into_iter());
            assert_eq!(
                file.as_str(),
                "https://hub.example/mirror/a/b%20c/100%25%231%3F.txt"
            );
        }
        let file = url("http://h")
            .with_segments(["x"].into_iter())
            .with_query("y=1");
        assert_eq!(file.as_str(), "http://h/x?y=1");
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |one, two| url(one).same_origin(&url(two));
        assert!(same("https://Hub.example/a", "HTTPS://hub.EXAMPLE:443/b"));
        assert!(same("http://[::1]/", "http://[0:0:0:0:0:0:0:1]:80/"));
        assert!(!same("https://hub.example/", "http://hub.example/"));
        assert!(!same("https://hub.example/", "https://hub.example:8443/"));
        assert!(!same("https://hub.example/", "https://hub.example.evil/"));
        assert!(!same("http://10.0.0.1/", "http://10.0.0.2/"));
        assert!(!same("https://hub.example/", "https://hub.example@evil/"));
    }

    #[test]
    fn messages_show_no_secret() {
        let secret = url("https://me:secret@hub.example:8443/a?signature=secret");
        assert_eq!(secret.shown(), "https://hub.example:8443/a");
        assert!(!format!("{secret:?}").contains("secret"));
        assert!(
            !secret.is_plain() && !url("https://h/?q").is_plain() && url("https://h/a").is_plain()
        );
    }
}
