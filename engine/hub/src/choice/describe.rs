//! The small files beside the weights.

use isovec_engine::error::EngineError;
use serde::Deserialize;

use super::{Known, MODULES, Need, Question, Stop, content, is_there};
use crate::paths::path_fault;

/// Where a step of the model has its weights. Steps of these classes have none.
const MODULE_WEIGHTS: &str = "model.safetensors";
const WITHOUT_WEIGHTS: [&str; 3] = ["Pooling", "Normalize", "Dropout"];

/// More steps than any model has; each is two files to ask for.
const MAX_MODULES: usize = 64;

#[derive(Deserialize)]
struct Module {
    path: String,
    #[serde(default)]
    r#type: String,
}

/// Those of the paths that are there.
pub(super) fn optional(
    known: &dyn Known,
    paths: &[String],
    need: Need,
) -> Result<Vec<String>, Stop> {
    let mut found = Vec::new();
    let mut questions: Vec<Question> = Vec::new();
    for path in paths {
        match is_there(known, path, need) {
            Ok(true) => found.push(path.clone()),
            Ok(false) => {}
            Err(Stop::Ask(asked)) => questions.extend(asked),
            Err(refused) => return Err(refused),
        }
    }
    if questions.is_empty() {
        Ok(found)
    } else {
        Err(Stop::Ask(questions))
    }
}

/// The first of the paths that is there.
pub(super) fn first_of(known: &dyn Known, paths: &[&str]) -> Result<Vec<String>, Stop> {
    for path in paths {
        if is_there(known, path, Need::Taken)? {
            return Ok(vec![(*path).to_owned()]);
        }
    }
    Ok(Vec::new())
}

/// `modules.json` of sentence-transformers, and what lies in the folders that it names.
pub(super) fn modules(known: &dyn Known) -> Result<Vec<String>, Stop> {
    let Some(bytes) = content(known, MODULES)? else {
        return Ok(Vec::new());
    };
    let wrong = |detail: String| {
        EngineError::invalid_model(format!("{MODULES} of {}", known.origin()), detail)
    };
    let modules: Vec<Module> =
        serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    if modules.len() > MAX_MODULES {
        return Err(wrong(format!(
            "it names {} steps, past the limit of {MAX_MODULES}",
            modules.len()
        ))
        .into());
    }
    let mut wanted = Vec::new();
    for Module { path, r#type } in modules {
        if path_fault(&path).is_some() {
            continue;
        }
        let class = r#type.rsplit('.').next().unwrap_or_default();
        let weights = (!WITHOUT_WEIGHTS.contains(&class)).then_some(MODULE_WEIGHTS);
        for file in [Some("config.json"), weights].into_iter().flatten() {
            wanted.push(format!("{path}/{file}"));
        }
    }
    // A folder's path may be as long as a path may be.
    wanted.retain(|path| path_fault(path).is_none());
    let mut found = optional(known, &wanted, Need::Taken)?;
    found.push(MODULES.to_owned());
    Ok(found)
}
