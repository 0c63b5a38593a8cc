//! Models whose queries and documents go different ways.
//!
//! Format: sentence-transformers' `Router` (`sentence_transformers/base/modules/router.py`). `router_config.json` has the class of
//! every step by the folder that it lies in, and the steps of each way by the way's name.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The class of a step of `modules.json` that is such a choice of ways.
pub const ROUTER: &str = "Router";
/// The file of the ways.
pub const ROUTER_CONFIG: &str = "router_config.json";
/// The class of a step that gives each token of a text its weight in a table.
pub const SPARSE_STATIC: &str = "SparseStaticEmbedding";

/// The ways of a `Router`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Routes {
    types: BTreeMap<String, String>,
    structure: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    parameters: Parameters,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Parameters {
    default_route: Option<String>,
}

/// One step of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteStep<'a> {
    /// Its folder, relative to the router's; empty for that one itself.
    pub folder: &'a str,
    /// Its class, with the module that it is in.
    pub class: &'a str,
}

impl Routes {
    /// Reads the file.
    ///
    /// # Errors
    /// Those of JSON, in words.
    pub fn read(json: &[u8]) -> Result<Self, String> {
        let routes: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let mut named = routes.structure.values().flatten();
        match named.find(|step| !routes.types.contains_key(*step)) {
            Some(step) => Err(format!("it states no type of the step {step:?}")),
            None => Ok(routes),
        }
    }

    /// The steps of a way; none where there is no such way.
    pub fn steps(&self, way: &str) -> Option<Vec<RouteStep<'_>>> {
        let steps = self.structure.get(way)?;
        let types = steps
            .iter()
            .filter_map(|folder| self.types.get_key_value(folder));
        Some(
            types
                .map(|(folder, class)| RouteStep { folder, class })
                .collect(),
        )
    }

    /// The steps of all ways.
    pub fn all(&self) -> impl Iterator<Item = RouteStep<'_>> {
        let types = self.types.iter();
        types.map(|(folder, class)| RouteStep { folder, class })
    }

    /// The names of the ways.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.structure.keys().map(String::as_str)
    }

    /// The way of a text of which nobody says what it is.
    pub fn default_way(&self) -> Option<&str> {
        self.parameters.default_route.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_have_steps_in_folders() {
        let routes = Routes::read(
            br#"{"types": {"": "a.b.MLMTransformer", "document_1_SpladePooling": "a.SpladePooling", "query_0_SparseStaticEmbedding": "a.SparseStaticEmbedding"},
                "structure": {"document": ["", "document_1_SpladePooling"], "query": ["query_0_SparseStaticEmbedding"]},
                "parameters": {"default_route": "document", "allow_empty_key": true}}"#,
        )
        .unwrap();
        let step = |folder, class| RouteStep { folder, class };
        let documents = [
            step("", "a.b.MLMTransformer"),
            step("document_1_SpladePooling", "a.SpladePooling"),
        ];
        assert_eq!(routes.steps("document").unwrap(), documents);
        let queries = [step(
            "query_0_SparseStaticEmbedding",
            "a.SparseStaticEmbedding",
        )];
        assert_eq!(routes.steps("query").unwrap(), queries);
        assert_eq!(routes.steps("image"), None);
        assert_eq!(routes.all().count(), 3);
        assert_eq!(routes.names().collect::<Vec<_>>(), ["document", "query"]);
        assert_eq!(routes.default_way(), Some("document"));
    }

    #[test]
    fn a_step_without_a_type_is_named() {
        let json = br#"{"types": {}, "structure": {"query": ["0"]}}"#;
        assert!(Routes::read(json).unwrap_err().contains("\"0\""));
        assert!(Routes::read(b"{}").unwrap_err().contains("types"));
        let without = br#"{"types": {}, "structure": {}}"#;
        assert_eq!(Routes::read(without).unwrap().default_way(), None);
    }
}
