//! Models that clients load and unload, where the operator lets them: those that the server was told of, and no others.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::admission::stopping;
use crate::app::App;
use crate::error::Error;
use crate::failure::{Failure, Kind};
use crate::reload;
use crate::served::Served;
use crate::spec::ModelSpec;

/// A model in the list of all.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Why it cannot be asked now.
    pub(crate) unready: Option<String>,
}

/// All models that the server was told of, in their order.
///
/// # Errors
/// That the first of them are still being loaded.
pub(crate) async fn index(app: &App) -> Result<Vec<Entry>, Failure> {
    let models = app.models.loaded()?;
    let specs = app.models.specs();
    let loaded = |name: &str| models.iter().find(|model| *model.name == *name);
    let rows: Vec<(String, Option<&Arc<Served>>)> = match specs.is_empty() {
        true => models
            .iter()
            .map(|model| (model.name.to_string(), Some(model)))
            .collect(),
        false => specs
            .iter()
            .map(ModelSpec::name)
            .map(|name| (name.clone(), loaded(&name)))
            .collect(),
    };
    let rows = rows.into_iter().map(|(name, model)| async move {
        let unready = match model {
            Some(model) => app.model_ready(model).await.err(),
            None => return (name, Some("it is not loaded".to_owned())),
        };
        (name, unready.map(|failure| failure.message))
    });
    let rows = join_all(rows).await.into_iter();
    Ok(rows
        .map(|(name, unready)| Entry { name, unready })
        .collect())
}

/// Loads a model. One that is loaded goes on.
///
/// # Errors
/// Clients that may not, a name that nobody has, a model that does not fit or whose files are at fault, and a server that stops.
pub(crate) async fn load(app: &App, name: &str) -> Result<(), Failure> {
    allowed(app)?;
    let _turn = app.changing.lock().await;
    if app.gate.is_closed() {
        return Err(stopping());
    }
    let models = app.models.loaded()?;
    if models.iter().any(|model| model.is_called(name)) {
        return Ok(());
    }
    let specs = app.models.specs();
    let Some(spec) = specs.iter().find(|spec| spec.is_called(name)) else {
        return Err(app.models.named(name).err().unwrap_or_else(stopping));
    };
    let served = reload::load(app, spec).await.map_err(|error| match error {
        Error::Memory { .. } => Failure::new(Kind::NoMemory, error.to_string()),
        error => {
            // It names the server's folders, which are not the client's business.
            tracing::error!(%error, "a model that a request asked for is not loaded");
            let message = format!("the model {name:?} cannot be loaded; the log has the reason");
            Failure::new(Kind::Broken, message)
        }
    })?;
    let of = |spec: &ModelSpec| {
        let all = models.iter().chain([&served]);
        all.clone()
            .find(|model| model.spec.as_ref().is_some_and(|one| one.is_same(spec)))
            .cloned()
    };
    app.models
        .put(specs.iter().filter_map(of).collect(), Arc::clone(&specs));
    served.announce();
    Ok(())
}

/// Unloads a model: requests that have it are finished, and then it is freed. One that is not loaded stays so.
///
/// # Errors
/// Clients that may not, a name that nobody has, and a model that a program gave the server, which could not load it again.
pub(crate) async fn unload(app: &App, name: &str) -> Result<(), Failure> {
    allowed(app)?;
    let _turn = app.changing.lock().await;
    let models = app.models.loaded()?;
    let specs = app.models.specs();
    let Some(leaves) = models.iter().find(|model| model.is_called(name)) else {
        return match specs.iter().any(|spec| spec.is_called(name)) {
            true => Ok(()),
            false => app.models.named(name).map(drop),
        };
    };
    if leaves.spec.is_none() {
        let message =
            format!("the model {name:?} was given to the server, which could not load it again");
        return Err(Failure::new(Kind::Forbidden, message));
    }
    let stay = models.iter().filter(|model| !Arc::ptr_eq(model, leaves));
    app.models.put(stay.cloned().collect(), specs);
    tracing::info!(model = &*leaves.name, "the model takes no more requests");
    Ok(())
}

fn allowed(app: &App) -> Result<(), Failure> {
    if app.options.model_control {
        return Ok(());
    }
    let message = "clients may not load and unload models here; the server's operator allows it with --model-control";
    Err(Failure::new(Kind::Forbidden, message))
}
