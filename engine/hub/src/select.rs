//! The choice of a model's files from a hub's list: [`crate::choice`], given a [`Listing`].

use std::borrow::Cow;

use isovec_engine::error::{EngineError, Result};

pub use crate::choice::{FileSelection, WeightFiles};

use super::listing::Listing;
use crate::choice::{Answer, Choice, Known, Presence, Question};

/// A listing, and a way to read files of it that were fetched.
pub(super) struct Listed<'a> {
    pub(super) origin: &'a str,
    pub(super) listing: &'a Listing,
    pub(super) read: &'a dyn Fn(&str) -> Result<Option<Vec<u8>>>,
}

impl Known for Listed<'_> {
    fn origin(&self) -> &str {
        self.origin
    }

    fn names(&self) -> Option<Vec<&str>> {
        Some(self.listing.files.keys().map(String::as_str).collect())
    }

    fn presence(&self, path: &str) -> Presence {
        match self.listing.files.get(path) {
            Some(file) => Presence::There { bytes: file.size },
            None => Presence::Absent,
        }
    }

    fn content(&self, path: &str) -> Result<Option<Cow<'_, [u8]>>> {
        Ok((self.read)(path)?.map(Cow::Owned))
    }
}

impl FileSelection {
    /// Chooses from a listing, given a way to read the files of it that the choice depends on.
    /// `origin` is for messages.
    ///
    /// # Errors
    /// As [`next`](Self::next); [`EngineError::MissingFile`] for a file that is listed and that
    /// `read` does not give.
    pub fn choose(
        &self,
        origin: &str,
        listing: &Listing,
        read: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Choice> {
        let known = Listed {
            origin,
            listing,
            read: &|path| Ok(read(path)),
        };
        match self.next(&known)? {
            Answer::Chosen(choice) => Ok(choice),
            // The listing knows everything but contents.
            Answer::Ask(questions) => Err(unread(origin, &questions)),
        }
    }
}

/// What is asked for cannot be read.
pub(super) fn unread(origin: &str, questions: &[Question]) -> EngineError {
    let paths: Vec<&str> = questions.iter().map(|asked| asked.path.as_str()).collect();
    EngineError::MissingFile {
        origin: origin.to_owned(),
        file: paths.join(", "),
        hint: "It is listed, and cannot be read".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::listing::RepoFile;
    use super::*;
    use crate::choice::{HALF_ONNX_FILE, Need, SAFETENSORS, SAFETENSORS_INDEX, Weights};

    fn listing(paths: &[&str]) -> Listing {
        Listing {
            commit: "0".repeat(40),
            files: paths
                .iter()
                .map(|path| {
                    (
                        path.to_string(),
                        RepoFile {
                            size: None,
                            checksum: None,
                        },
                    )
                })
                .collect(),
        }
    }

    fn nothing(_: &str) -> Option<Vec<u8>> {
        None
    }

    #[test]
    fn a_usual_repository() {
        let listing = listing(&[
            ".gitattributes",
            "1_Pooling/config.json",
            "2_Dense/config.json",
            "2_Dense/model.safetensors",
            "2_Dense/pytorch_model.bin",
            "README.md",
            "config.json",
            "data_config.json",
            "model.safetensors",
            "modules.json",
            "onnx/model.onnx",
            "onnx/model_O4.onnx",
            "openvino/openvino_model.bin",
            "pytorch_model.bin",
            "tokenizer.json",
            "vocab.txt",
        ]);
        let modules = br#"[{"idx":0,"name":"0","path":"","type":"x"},{"path":"1_Pooling"},{"path":"2_Dense"},{"path":"../.."}]"#;
        let read = |path: &str| (path == "modules.json").then(|| modules.to_vec());
        let selection = FileSelection::embedding();
        let known = Listed {
            origin: "a/b",
            listing: &listing,
            read: &|_| Ok(None),
        };
        let Ok(Answer::Ask(asked)) = selection.next(&known) else {
            panic!("modules.json decides")
        };
        assert_eq!(asked.len(), 1);
        assert_eq!(
            (asked[0].path.as_str(), asked[0].need),
            ("modules.json", Need::Content)
        );
        let chosen = selection.choose("a/b", &listing, &read);
        assert_eq!(
            chosen.expect("all there").files,
            [
                "1_Pooling/config.json",
                "2_Dense/config.json",
                "2_Dense/model.safetensors",
                "config.json",
                "model.safetensors",
                "modules.json",
                "tokenizer.json",
            ]
        );
    }

    #[test]
    fn a_decoder_that_scores_comes_with_its_template() {
        let there = listing(&[
            "1_LogitScore/config.json",
            "chat_template.jinja",
            "config.json",
            "model.safetensors",
            "modules.json",
            "tokenizer.json",
        ]);
        let all: Vec<&str> = there.files.keys().map(String::as_str).collect();
        let scores = r#"[{"path": "", "type": "a.Transformer"}, {"path": "1_LogitScore", "type": "a.LogitScore"}]"#;
        let embeds = r#"[{"path": "", "type": "a.Transformer"}]"#;
        let labels = r#"{"architectures": ["Qwen3ForSequenceClassification"]}"#;
        for (modules, config, has_template) in [
            (scores, "{}", true),
            (embeds, labels, true),
            (embeds, r#"{"architectures": ["Qwen3ForCausalLM"]}"#, false),
        ] {
            let read = |path: &str| match path {
                "modules.json" => Some(modules.as_bytes().to_vec()),
                "config.json" => Some(config.as_bytes().to_vec()),
                _ => None,
            };
            let selection = FileSelection::embedding().accept_safetensors_if(|_| Ok(()));
            let chosen = selection.choose("a/b", &there, &read).expect("all there");
            let wanted = all.iter().filter(|name| match **name {
                "chat_template.jinja" => has_template,
                "1_LogitScore/config.json" => modules == scores,
                _ => true,
            });
            let wanted: Vec<&str> = wanted.copied().collect();
            assert_eq!(chosen.files, wanted, "{config}");
        }
    }

    #[test]
    fn a_router_leads_to_the_transformer_of_documents() {
        let query = "query_0_SparseStaticEmbedding";
        let routes = |transformer: &str| {
            format!(
                r#"{{"types": {{"{transformer}": "a.MLMTransformer", "pooled": "a.SpladePooling", "{query}": "a.SparseStaticEmbedding"}},
                    "structure": {{"document": ["{transformer}", "pooled"], "query": ["{query}"]}}, "parameters": {{}}}}"#
            )
        };
        let table = ["config.json", "model.safetensors", "tokenizer.json"];
        let table = table.map(|name| format!("{query}/{name}"));
        for folder in ["", "own"] {
            let inside = |name: &str| match folder {
                "" => name.to_owned(),
                folder => format!("{folder}/{name}"),
            };
            let (index, shard) = (inside(SAFETENSORS_INDEX), inside("one.safetensors"));
            let of_transformer = ["config.json", "tokenizer.json"].map(inside);
            let mut wanted = of_transformer.to_vec();
            wanted.extend([index.clone(), shard.clone(), "modules.json".into()]);
            wanted.extend(["pooled/config.json".into(), "router_config.json".into()]);
            wanted.extend(table.clone());
            wanted.sort();
            let mut there: Vec<&str> = wanted.iter().map(String::as_str).collect();
            there.extend([
                "README.md",
                "own/pytorch_model.bin",
                "other/model.safetensors",
            ]);
            let listing = listing(&there);
            let read = |path: &str| match path {
                "modules.json" => Some(br#"[{"path": "", "type": "a.Router"}]"#.to_vec()),
                "router_config.json" => Some(routes(folder).into_bytes()),
                path if path == index => {
                    Some(br#"{"weight_map": {"a": "one.safetensors"}}"#.to_vec())
                }
                _ => None,
            };
            let chosen = FileSelection::embedding().choose("a/b", &listing, &read);
            let chosen = chosen.expect("all there");
            assert_eq!(chosen.files, wanted, "{folder}");
            assert_eq!(chosen.folder, folder);
            let tensors = [("a".to_owned(), shard)].into();
            assert_eq!(chosen.weights, Weights::Shards { index, tensors });
        }
        // What leads out of the model is not looked for.
        let outside = |path: &str| {
            assert_eq!(path, "modules.json");
            Some(br#"[{"path": "../..", "type": "a.Router"}]"#.to_vec())
        };
        let there = listing(&["../../router_config.json", "modules.json", SAFETENSORS]);
        let chosen = FileSelection::embedding().choose("a/b", &there, &outside);
        assert_eq!(
            chosen.expect("all there").files,
            [SAFETENSORS, "modules.json"]
        );
        // The ways are asked for before anything of the transformer is.
        let listing = listing(&["modules.json", "router_config.json"]);
        let known = Listed {
            origin: "a/b",
            listing: &listing,
            read: &|path| {
                let modules = br#"[{"path": "", "type": "a.Router"}]"#.to_vec();
                Ok((path == "modules.json").then_some(modules))
            },
        };
        let Ok(Answer::Ask(asked)) = FileSelection::embedding().next(&known) else {
            panic!("the ways decide")
        };
        assert_eq!(asked.len(), 1);
        assert_eq!(
            (asked[0].path.as_str(), asked[0].need),
            ("router_config.json", Need::Content)
        );
    }

    #[test]
    fn an_architecture_that_is_refused_falls_back_to_onnx_or_says_why() {
        let refuse = FileSelection::embedding().accept_safetensors_if(|config| {
            assert_eq!(config, b"{}");
            Err(EngineError::UnsupportedModel {
                origin: "config.json".into(),
                reason: "it is a gpt".into(),
                hint: "Choose another".into(),
            })
        });
        let read = |path: &str| (path == "config.json").then(|| b"{}".to_vec());
        let with = listing(&[
            "config.json",
            "model.safetensors",
            "onnx/model.onnx",
            "onnx/model.onnx_data",
            "onnx/model.onnx_data_1",
            "onnx/model.onnx.md",
        ]);
        assert_eq!(
            refuse.choose("a/b", &with, &read).expect("by ONNX").files,
            [
                "config.json",
                "onnx/model.onnx",
                "onnx/model.onnx_data",
                "onnx/model.onnx_data_1"
            ]
        );
        let without = listing(&["config.json", "model.safetensors"]);
        let error = refuse
            .choose("a/b", &without, &read)
            .expect_err("nothing is left");
        assert!(error.to_string().contains("it is a gpt"), "{error}");
    }

    #[test]
    fn shards_come_from_the_index_and_must_be_there() {
        let index = |shard: &str| {
            let json = format!(
                r#"{{"metadata":{{}},"weight_map":{{"a":"model-1.safetensors","b":{shard:?}}}}}"#
            );
            move |path: &str| (path == SAFETENSORS_INDEX).then(|| json.clone().into_bytes())
        };
        let listing = listing(&[
            SAFETENSORS_INDEX,
            "model-1.safetensors",
            "model-2.safetensors",
        ]);
        let selection = FileSelection::embedding();
        assert_eq!(
            selection
                .choose("a/b", &listing, &index("model-2.safetensors"))
                .expect("both shards")
                .files
                .len(),
            3
        );
        for (shard, said) in [("model-3.safetensors", "model-3"), ("../../x", "outside")] {
            let error = selection
                .choose("a/b", &listing, &index(shard))
                .expect_err(shard);
            assert!(error.to_string().contains(said), "{error}");
        }
        assert!(selection.choose("a/b", &listing, &nothing).is_err());
    }

    #[test]
    fn the_smallest_form_is_the_16_bit_file_unless_the_checkpoint_is_as_small() {
        let choose = |files: &[(&str, Option<u64>)]| {
            let files = files.iter().map(|&(path, size)| {
                let file = RepoFile {
                    size,
                    checksum: None,
                };
                (path.to_owned(), file)
            });
            let listing = Listing {
                commit: "0".repeat(40),
                files: files.collect(),
            };
            FileSelection::embedding()
                .weights(WeightFiles::Smallest)
                .choose("a/b", &listing, &nothing)
                .map(|choice| choice.files)
        };
        let half = (HALF_ONNX_FILE, Some(45));
        let quantised = ("onnx/model_quantized.onnx", Some(23));
        let full = (SAFETENSORS, Some(90));
        assert_eq!(choose(&[full, half, quantised]).unwrap(), [HALF_ONNX_FILE]);
        let data = ("onnx/model_fp16.onnx_data", Some(40));
        assert_eq!(
            choose(&[full, half, data]).unwrap(),
            [HALF_ONNX_FILE, "onnx/model_fp16.onnx_data"]
        );
        assert_eq!(choose(&[half, quantised]).unwrap(), [HALF_ONNX_FILE]);
        for others in [
            vec![(SAFETENSORS, Some(45)), half],
            // A module's own weights are no checkpoint; its data count.
            vec![
                (SAFETENSORS, Some(80)),
                ("2_Dense/model.safetensors", Some(9)),
                half,
                data,
            ],
            vec![full, quantised],
            vec![full, (HALF_ONNX_FILE, None)],
        ] {
            assert_eq!(choose(&others).unwrap(), [SAFETENSORS], "{others:?}");
        }
    }

    #[test]
    fn a_file_that_is_named_must_be_there() {
        let listing = listing(&["onnx/model_quantized.onnx", "config.json"]);
        let named = |name: &str| FileSelection::embedding().weights(WeightFiles::Onnx(name.into()));
        assert_eq!(
            named("onnx/model_quantized.onnx")
                .choose("a/b", &listing, &nothing)
                .expect("is there")
                .files,
            ["config.json", "onnx/model_quantized.onnx"]
        );
        for (selection, said) in [
            (named("onnx/model_q4.onnx"), "onnx/model_quantized.onnx"),
            (FileSelection::embedding(), "name the one to use"),
            (FileSelection::files(["nowhere.bin"]), "nowhere.bin"),
        ] {
            let error = selection.choose("a/b", &listing, &nothing).expect_err(said);
            assert_eq!(error.kind(), "MissingFile");
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
