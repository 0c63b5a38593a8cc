//! The models that are wanted, in the place of those that are there.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};

use crate::app::App;
use crate::error::{Error, Result};
use crate::models::Known;
use crate::served::Served;
use crate::spec::ModelSpec;

/// Serves every list of models that comes, one after the other.
///
/// # Errors
/// The first list cannot be served. A later one that cannot be leaves everything as it is, and the log says so.
pub(crate) async fn follow(app: &App, wanted: impl Stream<Item = Vec<ModelSpec>>) -> Result<()> {
    let mut wanted = pin!(wanted);
    while let Some(specs) = wanted.next().await {
        let Err(error) = serve(app, specs).await else {
            continue;
        };
        if app.models.list().is_none() {
            return Err(error);
        }
        tracing::error!(%error, "the models are served as before");
    }
    Ok(())
}

/// Loads what is new, and lets it take the place of what is there once all of it is loaded. A model whose spec is as
/// before goes on with its queue, or stays away if a request unloaded it; one that is not wanted any more is freed when its last
/// request is answered.
async fn serve(app: &App, specs: Vec<ModelSpec>) -> Result<()> {
    check(&specs, app.options.model_control)?;
    let _turn = app.changing.lock().await;
    let before = app.models.known().ok();
    let before = before.as_deref().unwrap_or_default();
    let mut after = Vec::with_capacity(specs.len());
    for spec in specs {
        let same = before.iter().find_map(|known| match known {
            Known::Told(old, served) if old.is_same(&spec) => Some((old, served)),
            _ => None,
        });
        let served = match same {
            // What a request did holds until the spec says something else.
            Some((old, served)) if **old == spec => served.clone(),
            _ if !spec.loaded => None,
            Some((_, Some(served))) => Some(Arc::clone(served)),
            _ => Some(load(app, &spec).await?),
        };
        after.push(Known::Told(spec.into(), served));
    }
    exchange(app, before, after);
    Ok(())
}

/// Serves what is loaded after a change in the place of what was before it, and says in the log who came and went.
pub(crate) fn exchange(app: &App, before: &[Known], after: Vec<Known>) {
    let loaded = |known: &[Known]| -> Vec<Arc<Served>> {
        known.iter().filter_map(Known::served).cloned().collect()
    };
    let (old, new) = (loaded(before), loaded(&after));
    let is_in = |all: &[Arc<Served>], model| all.iter().any(|other| Arc::ptr_eq(other, model));
    app.models.put(after);
    for model in old.iter().filter(|model| !is_in(&new, model)) {
        tracing::info!(model = &*model.name, "the model takes no more requests");
    }
    let came = new.iter().filter(|model| !is_in(&old, model));
    came.for_each(|model| model.announce());
}

/// Loads a model, if it fits what models may hold.
///
/// # Errors
/// [`Error::Memory`] before its weights are read, and [`Error::Model`].
pub(crate) async fn load(app: &App, spec: &ModelSpec) -> Result<Arc<Served>> {
    let name = spec.name();
    let failed = |source| Error::Model {
        name: Some(name.clone()),
        source: Box::new(source),
    };
    if let Some(budget) = app.options.memory_budget {
        let needed = spec.weights_bytes().await.map_err(failed)?;
        let held = app.models.bytes();
        if held.saturating_add(needed) > budget {
            return Err(Error::Memory {
                name,
                needed,
                held,
                budget,
            });
        }
    }
    tracing::info!(model = name, source = %spec.source, "loading");
    let model = spec.load().await.map_err(failed)?;
    let served = Arc::new(Served::of(model, spec));
    app.models.hold(&served);
    Ok(served)
}

/// Refuses lists of which a request could not choose.
///
/// # Errors
/// [`Error::Options`] with all faults.
fn check(specs: &[ModelSpec], model_control: bool) -> Result<()> {
    let mut faults = Vec::new();
    if specs.is_empty() {
        faults.push("there is no model to serve".to_owned());
    }
    let mut names = BTreeSet::new();
    for spec in specs {
        if !spec.loaded && !model_control {
            faults.push(format!(
                "the model {:?} waits for a request to load it, and requests may not (model_control)",
                spec.name()
            ));
        }
        for name in [spec.name()].into_iter().chain(spec.aliases.clone()) {
            if name.is_empty() {
                faults.push(format!("a name of the model {} is empty", spec.source));
            } else if !names.insert(name.clone()) {
                faults.push(format!("the name {name:?} stands there twice"));
            }
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Error::Options(faults))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_are_there_once() {
        let two = [ModelSpec::new("a/b"), ModelSpec::new("a/c").with_alias("d")];
        assert!(check(&two, false).is_ok());
        let three = [
            ModelSpec::new("a/b"),
            ModelSpec::new("a/c").with_alias("a/b").with_alias(""),
            ModelSpec::new("a/d").with_name("a/c"),
        ];
        let Err(Error::Options(faults)) = check(&three, false) else {
            panic!("nobody could choose");
        };
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(matches!(check(&[], false), Err(Error::Options(_))));
    }

    #[test]
    fn a_model_that_no_request_may_load_is_loaded_by_the_server() {
        let waits = [ModelSpec::new("a/b").with_loaded(false)];
        assert!(check(&waits, true).is_ok());
        let Err(Error::Options(faults)) = check(&waits, false) else {
            panic!("nobody could load it");
        };
        assert!(faults[0].contains("a/b") && faults[0].contains("model_control"));
    }
}
