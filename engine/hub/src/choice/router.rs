//! Models whose queries and documents go different ways.
//!
//! Format: sentence-transformers' `Router` (`sentence_transformers/base/modules/router.py`). `router_config.json` has the class of
//! every step by the folder that it lies in, and the steps of each way by the way's name.

use serde_json::Value;

/// The class of a step of `modules.json` that is such a choice of ways.
pub const ROUTER: &str = "Router";
/// The file of the ways.
pub const ROUTER_CONFIG: &str = "router_config.json";
/// The way of texts to search in.
pub const DOCUMENT: &str = "document";
/// The way of texts to search with.
pub const QUERY: &str = "query";
/// The class of a step that gives each token of a text its weight in a table.
pub const SPARSE_STATIC: &str = "SparseStaticEmbedding";

/// The ways of a `Router`. A page reads JSON as it lies there: code that reads types of its own would be more to download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes(Value);

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
    /// Those of JSON, and a step of a way without a class, in words.
    pub fn read(json: &[u8]) -> Result<Self, String> {
        let routes = Self(serde_json::from_slice(json).map_err(|error| error.to_string())?);
        for way in routes.names() {
            let steps = routes.steps_of(way);
            let mut without = steps.iter().filter(|step| routes.class(step).is_none());
            if let Some(step) = without.next() {
                return Err(format!("it states no class of {step:?}, a step of {way:?}"));
            }
        }
        Ok(routes)
    }

    /// The steps of a way; none where there is no such way.
    pub fn steps(&self, way: &str) -> Option<Vec<RouteStep<'_>>> {
        self.0["structure"].get(way)?;
        let step = |folder| {
            let class = self.class(folder)?;
            Some(RouteStep { folder, class })
        };
        Some(self.steps_of(way).into_iter().filter_map(step).collect())
    }

    /// The steps of all ways.
    pub fn all(&self) -> Vec<RouteStep<'_>> {
        let types = self.0["types"].as_object().into_iter().flatten();
        let classes = types.filter_map(|(folder, class)| Some((folder, class.as_str()?)));
        let steps = classes.map(|(folder, class)| RouteStep { folder, class });
        steps.collect()
    }

    /// The names of the ways.
    pub fn names(&self) -> Vec<&str> {
        let ways = self.0["structure"].as_object().into_iter();
        ways.flatten().map(|(way, _)| way.as_str()).collect()
    }

    /// The way of a text of which nobody says what it is.
    pub fn default_way(&self) -> Option<&str> {
        self.0["parameters"]["default_route"].as_str()
    }

    /// The folders of a way's steps; "?" for what is no folder.
    fn steps_of(&self, way: &str) -> Vec<&str> {
        let steps = self.0["structure"][way].as_array().into_iter().flatten();
        steps.map(|step| step.as_str().unwrap_or("?")).collect()
    }

    fn class(&self, folder: &str) -> Option<&str> {
        self.0["types"][folder].as_str()
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
        assert_eq!(routes.all().len(), 3);
        assert_eq!(routes.names(), ["document", "query"]);
        assert_eq!(routes.default_way(), Some("document"));
    }

    #[test]
    fn a_step_without_a_type_is_refused_and_whatever_else_there_is_has_no_ways() {
        for structure in [r#"{"query": ["0"]}"#, r#"{"query": [7]}"#] {
            let json = format!(r#"{{"types": {{}}, "structure": {structure}}}"#);
            let error = Routes::read(json.as_bytes()).unwrap_err();
            assert!(error.contains("\"query\""), "{error}");
        }
        assert!(Routes::read(b"{").is_err());
        for json in ["{}", "[]", "null", r#"{"types": 1, "structure": [2]}"#] {
            let routes = Routes::read(json.as_bytes()).unwrap();
            assert_eq!(routes.steps("query"), None);
            assert_eq!((routes.names().len(), routes.all().len()), (0, 0));
            assert_eq!(routes.default_way(), None);
        }
    }
}
