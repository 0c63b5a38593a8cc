//! The configuration of the native hub, and the variables that Python's `huggingface_hub` reads.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::client::RetryPolicy;
use super::proxy::ProxyConfig;

const DEFAULT_ENDPOINT: &str = "https://huggingface.co";

/// How models are fetched, and where the cache is.
///
/// ```
/// # #[cfg(feature = "fetch")] {
/// let mut config = isovec_hub::HubConfig::from_env();
/// config.offline = true;
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HubConfig {
    /// Where the hub is, without a slash at the end. `HF_ENDPOINT`, else `https://huggingface.co`.
    pub endpoint: String,
    /// An access token; it is sent to the endpoint's origin and to no other. `HF_TOKEN`,
    /// `HUGGING_FACE_HUB_TOKEN`, the file named by `HF_TOKEN_PATH`, or the file `token` in
    /// `HF_HOME`; none of them when `HF_HUB_DISABLE_IMPLICIT_TOKEN` is set.
    pub token: Option<String>,
    /// The cache: `HF_HUB_CACHE`, `HUGGINGFACE_HUB_CACHE`, `hub` in `HF_HOME`, in
    /// `$XDG_CACHE_HOME/huggingface` or in `~/.cache/huggingface`. `None` when none of these can
    /// be told.
    pub cache_dir: Option<PathBuf>,
    /// Make no request; load from the cache or fail. `HF_HUB_OFFLINE` or `TRANSFORMERS_OFFLINE`.
    pub offline: bool,
    /// Link from a snapshot to its blobs, as far as the file system can; copies otherwise.
    /// `HF_HUB_DISABLE_SYMLINKS` turns it off.
    pub symlinks: bool,
    /// `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`.
    pub proxy: ProxyConfig,
    /// The retries after a cut connection, a 429 or a 5xx.
    pub retry: RetryPolicy,
    /// The longest wait for a connection: 10 seconds.
    pub connect_timeout: Duration,
    /// The longest silence of a server: `HF_HUB_DOWNLOAD_TIMEOUT` in seconds, else 10. The connection is also closed
    /// if less than 60 KiB arrive in six times as long; the part that arrived is kept.
    pub read_timeout: Duration,
    /// No file may be larger; checked before it is downloaded: 64 GiB.
    pub max_file_bytes: u64,
    /// No more files are fetched for one model: 512.
    pub max_files: usize,
}

// The token stays out of logs.
impl std::fmt::Debug for HubConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubConfig")
            .field("endpoint", &self.endpoint)
            .field("token", &self.token.as_ref().map(|_| "(hidden)"))
            .field("cache_dir", &self.cache_dir)
            .field("offline", &self.offline)
            .field("symlinks", &self.symlinks)
            .field("proxy", &self.proxy)
            .field("retry", &self.retry)
            .field("connect_timeout", &self.connect_timeout)
            .field("read_timeout", &self.read_timeout)
            .field("max_file_bytes", &self.max_file_bytes)
            .field("max_files", &self.max_files)
            .finish()
    }
}

impl HubConfig {
    /// Reads the variables of this process, and the token's file.
    pub fn from_env() -> Self {
        Self::from_lookup(&|name| std::env::var_os(name), std::env::home_dir())
    }

    /// Reads variables through `lookup`, for programs that keep them elsewhere.
    pub fn from_lookup(lookup: &dyn Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Self {
        let env = Env { lookup, home };
        let hf_home = env.path("HF_HOME").or_else(|| {
            let cache = env
                .path("XDG_CACHE_HOME")
                .or_else(|| Some(env.home.as_ref()?.join(".cache")))?;
            Some(cache.join("huggingface"))
        });
        let cache_dir = env
            .path("HF_HUB_CACHE")
            .or_else(|| env.path("HUGGINGFACE_HUB_CACHE"))
            .or_else(|| Some(hf_home.as_ref()?.join("hub")));
        let token_file = || {
            let path = env
                .path("HF_TOKEN_PATH")
                .or_else(|| Some(hf_home.as_ref()?.join("token")))?;
            std::fs::read_to_string(path).ok()
        };
        let token = if env.is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN") {
            None
        } else {
            env.text("HF_TOKEN")
                .or_else(|| env.text("HUGGING_FACE_HUB_TOKEN"))
                .or_else(token_file)
                .map(|token| token.trim().to_owned())
                .filter(|token| !token.is_empty())
        };
        Self {
            endpoint: env.text("HF_ENDPOINT").map_or_else(
                || DEFAULT_ENDPOINT.to_owned(),
                |endpoint| endpoint.trim_end_matches('/').to_owned(),
            ),
            token,
            cache_dir,
            offline: env.is_true("HF_HUB_OFFLINE") || env.is_true("TRANSFORMERS_OFFLINE"),
            symlinks: !env.is_true("HF_HUB_DISABLE_SYMLINKS"),
            proxy: ProxyConfig::from_lookup(&|name| env.text(name)),
            retry: RetryPolicy::default(),
            connect_timeout: Duration::from_secs(10),
            read_timeout: env
                .text("HF_HUB_DOWNLOAD_TIMEOUT")
                .and_then(|seconds| seconds.parse().ok())
                .filter(|&seconds| seconds > 0)
                .map_or(Duration::from_secs(10), Duration::from_secs),
            max_file_bytes: 64 << 30,
            max_files: 512,
        }
    }
}

struct Env<'a> {
    lookup: &'a dyn Fn(&str) -> Option<OsString>,
    home: Option<PathBuf>,
}

impl Env<'_> {
    /// A variable that is set to more than spaces, without those around it.
    fn text(&self, name: &str) -> Option<String> {
        let value = (self.lookup)(name)?.into_string().ok()?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// As Python's `huggingface_hub` reads it.
    fn is_true(&self, name: &str) -> bool {
        self.text(name).is_some_and(|value| {
            matches!(
                value.to_ascii_uppercase().as_str(),
                "1" | "ON" | "YES" | "TRUE"
            )
        })
    }

    /// A path, with a `~` at its start and `$NAME` or `${NAME}` in it expanded. One that is not
    /// Unicode is taken as it is.
    fn path(&self, name: &str) -> Option<PathBuf> {
        let raw = (self.lookup)(name).filter(|value| !value.is_empty())?;
        let Some(text) = raw.to_str() else {
            return Some(raw.into());
        };
        let text = self.expand(text);
        match (text.strip_prefix('~'), &self.home) {
            (Some(""), Some(home)) => Some(home.clone()),
            (Some(rest), Some(home)) if rest.starts_with(['/', '\\']) => {
                Some(home.join(&rest[1..]))
            }
            _ => Some(text.into()),
        }
    }

    fn expand(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            let (name, skip) = match after
                .strip_prefix('{')
                .and_then(|inner| inner.split_once('}'))
            {
                Some((name, _)) => (name, name.len() + 2),
                None => {
                    let end = after
                        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                        .unwrap_or(after.len());
                    (&after[..end], end)
                }
            };
            match (self.lookup)(name).filter(|_| !name.is_empty()) {
                Some(value) => out.push_str(&value.to_string_lossy()),
                // Unknown variables stay as they were written.
                None => {
                    out.push('$');
                    out.push_str(&after[..skip]);
                }
            }
            rest = &after[skip..];
        }
        out.push_str(rest);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> HubConfig {
        let pairs: Vec<(String, String)> = pairs
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        HubConfig::from_lookup(
            &move |name| {
                pairs
                    .iter()
                    .find(|(key, _)| key == name)
                    .map(|(_, value)| value.into())
            },
            Some("/home/u".into()),
        )
    }

    #[test]
    fn the_cache_is_where_python_keeps_it() {
        for (pairs, expected) in [
            (&[][..], "/home/u/.cache/huggingface/hub"),
            (&[("XDG_CACHE_HOME", "/x")], "/x/huggingface/hub"),
            (
                &[("XDG_CACHE_HOME", "/x"), ("HF_HOME", "~/hf")],
                "/home/u/hf/hub",
            ),
            (
                &[("HF_HOME", "$BASE/${SUB}/hf"), ("BASE", "/b"), ("SUB", "s")],
                "/b/s/hf/hub",
            ),
            (
                &[("HF_HOME", "/h"), ("HUGGINGFACE_HUB_CACHE", "/old")],
                "/old",
            ),
            (
                &[("HUGGINGFACE_HUB_CACHE", "/old"), ("HF_HUB_CACHE", "/new")],
                "/new",
            ),
            (&[("HF_HUB_CACHE", "/a$UNSET/$")], "/a$UNSET/$"),
            (&[("HF_HUB_CACHE", "")], "/home/u/.cache/huggingface/hub"),
        ] {
            assert_eq!(read(pairs).cache_dir, Some(expected.into()), "{pairs:?}");
        }
        let homeless = HubConfig::from_lookup(&|_| None, None);
        assert_eq!(homeless.cache_dir, None);
    }

    #[test]
    fn tokens_come_from_variables_then_from_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("token"), " from-file\n").expect("a file");
        let home = folder.path().to_str().expect("unicode");
        let token = |pairs: &[(&str, &str)]| {
            let mut all = vec![("HF_HOME", home)];
            all.extend_from_slice(pairs);
            read(&all).token
        };
        assert_eq!(token(&[]).as_deref(), Some("from-file"));
        assert_eq!(
            token(&[("HUGGING_FACE_HUB_TOKEN", "old")]).as_deref(),
            Some("old")
        );
        assert_eq!(
            token(&[("HUGGING_FACE_HUB_TOKEN", "old"), ("HF_TOKEN", "new\n")]).as_deref(),
            Some("new")
        );
        assert_eq!(
            token(&[("HF_TOKEN", "new"), ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")]),
            None
        );
        assert_eq!(token(&[("HF_TOKEN_PATH", "/nowhere")]), None);
        let config = read(&[("HF_TOKEN", "secret")]);
        assert!(!format!("{config:?}").contains("secret"));
    }

    #[test]
    fn the_other_variables() {
        let config = read(&[
            ("HF_ENDPOINT", "https://mirror.example/"),
            ("HF_HUB_OFFLINE", "yes"),
            ("HF_HUB_DISABLE_SYMLINKS", "True"),
            ("HF_HUB_DOWNLOAD_TIMEOUT", "33"),
            ("https_proxy", "http://p:1"),
        ]);
        assert_eq!(config.endpoint, "https://mirror.example");
        assert!(config.offline);
        assert!(!config.symlinks);
        assert_eq!(config.read_timeout, Duration::from_secs(33));
        assert_eq!(config.proxy.https.as_deref(), Some("http://p:1"));
        assert!(read(&[("TRANSFORMERS_OFFLINE", "1")]).offline);
        let plain = read(&[("HF_HUB_OFFLINE", "0"), ("HF_ENDPOINT", "")]);
        assert!(!plain.offline);
        assert_eq!(plain.endpoint, DEFAULT_ENDPOINT);
    }
}
