//! The origin of a model's files, and the hub's settings in effect.

use std::path::PathBuf;

use crate::config::EmbeddingConfig;
use crate::effective::EffectiveConfig;
use crate::source::ModelSource;

/// What a hub delivered, and how it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub(crate) folder: PathBuf,
    pub(crate) revision: String,
    pub(crate) commit: String,
    pub(crate) endpoint: String,
    pub(crate) has_token: bool,
    pub(crate) cache_dir: Option<PathBuf>,
    pub(crate) offline: bool,
}

/// Files that can be opened, and how a hub was asked for them if it was.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) source: ModelSource,
    fetched: Option<Fetched>,
}

impl Origin {
    pub(crate) fn at_hand(source: ModelSource) -> Self {
        Self {
            source,
            fetched: None,
        }
    }

    pub(crate) fn fetched(fetched: Fetched) -> Self {
        Self {
            source: ModelSource::Folder(fetched.folder.clone()),
            fetched: Some(fetched),
        }
    }

    /// Takes the source, and leaves what is to be noted.
    pub(crate) fn split(self) -> (ModelSource, HubUse) {
        (self.source, HubUse(self.fetched))
    }
}

/// How a hub was asked for the model, if one was.
#[derive(Debug)]
pub(crate) struct HubUse(Option<Fetched>);

impl HubUse {
    /// Notes the hub's knobs. A token's presence is noted, never the token.
    pub(crate) fn note(&self, effective: &mut EffectiveConfig, config: &EmbeddingConfig) {
        let asked = &config.hub;
        let token = asked.token.as_ref().map(|_| "set");
        let folder = asked.cache_dir.as_ref().map(|path| path.display());
        let Some(used) = &self.0 else {
            let why = "the model's files were at hand, no hub was asked";
            effective.note("hub.revision", asked.revision.as_ref(), "none", why);
            effective.note("hub.endpoint", asked.endpoint.as_ref(), "none", why);
            effective.note("hub.token", token, "none", why);
            effective.note("hub.cache_dir", folder, "none", why);
            // Nothing was asked of the network, which is what `offline` promises.
            let offline = asked.offline;
            effective.note("hub.offline", offline, offline.unwrap_or(true), why);
            return;
        };
        effective.note(
            "hub.revision",
            asked.revision.as_ref(),
            &used.revision,
            format!("commit {}", used.commit),
        );
        let endpoint = "HF_ENDPOINT, or its default";
        effective.note_own(
            "hub.endpoint",
            asked.endpoint.as_ref(),
            &used.endpoint,
            endpoint,
        );
        let has_token = if used.has_token { "set" } else { "none" };
        effective.note_own(
            "hub.token",
            token.as_ref(),
            has_token,
            "HF_TOKEN or the token file",
        );
        let cache = match &used.cache_dir {
            Some(path) => path.display().to_string(),
            None => "none".to_owned(),
        };
        effective.note_own(
            "hub.cache_dir",
            folder.as_ref(),
            cache,
            "HF_HUB_CACHE, HF_HOME, or their default",
        );
        effective.note_own(
            "hub.offline",
            asked.offline.as_ref(),
            used.offline,
            "HF_HUB_OFFLINE, or false",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_that_was_not_asked_leaves_its_knobs_without_effect() {
        let config = EmbeddingConfig::default()
            .with_revision("v2")
            .with_token("secret")
            .with_offline(true);
        let mut effective = EffectiveConfig::default();
        let (_, hub) = Origin::at_hand(ModelSource::Folder("models/minilm".into())).split();
        hub.note(&mut effective, &config);
        let names: Vec<_> = effective.not_honoured().map(|knob| &*knob.name).collect();
        assert_eq!(names, ["hub.revision", "hub.token"]);
        assert!(!effective.to_string().contains("secret"));
    }

    #[test]
    fn what_a_hub_was_asked_stands_with_the_commit_it_came_to() {
        let config = EmbeddingConfig::default().with_revision("v2");
        let mut effective = EffectiveConfig::default();
        let fetched = Fetched {
            folder: "cache/snapshots/abc".into(),
            revision: "v2".into(),
            commit: "abc".into(),
            endpoint: "https://hub.example".into(),
            has_token: true,
            cache_dir: Some("cache".into()),
            offline: false,
        };
        let (source, hub) = Origin::fetched(fetched).split();
        assert_eq!(source, ModelSource::Folder("cache/snapshots/abc".into()));
        hub.note(&mut effective, &config);
        assert_eq!(effective.not_honoured().count(), 0);
        let revision = effective.get("hub.revision").unwrap();
        assert_eq!(
            (revision.used.as_str(), revision.why.as_str()),
            ("v2", "commit abc")
        );
        assert_eq!(effective.get("hub.token").unwrap().used, "set");
    }
}
