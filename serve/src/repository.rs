//! Models that clients load and unload, where the operator lets them: those that the server was told of, and no others.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::admission::stopping;
use crate::app::App;
use crate::error::Error;
use crate::failure::{Failure, Kind};
use crate::models::{Known, place};
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

/// All models in their order, loaded or not, or only those that are ready.
///
/// # Errors
/// That the first of them are still being loaded.
pub(crate) async fn index(app: &App, only_ready: bool) -> Result<Vec<Entry>, Failure> {
    let known = app.models.known()?;
    let entries = known.iter().map(|known| async move {
        let ready = match known.served() {
            Some(model) => app.model_ready(model).await,
            None => Err(Failure::new(Kind::NoModel, "it is not loaded")),
        };
        Entry {
            name: known.name(),
            unready: ready.err().map(|failure| failure.message),
        }
    });
    let mut entries = join_all(entries).await;
    entries.retain(|entry| !only_ready || entry.unready.is_none());
    Ok(entries)
}

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// That a model is loaded.
    Load,
    /// That requests that have the model are finished, and it is freed then.
    Unload,
}

/// Changes a model, unless it is so already.
///
/// # Errors
/// Clients that may not, a name that nobody has, an unload of what a program gave the server, and those of a load: a model that does
/// not fit or whose files are at fault, and a server that stops.
pub(crate) async fn change(app: &App, name: &str, change: Change) -> Result<(), Failure> {
    if !app.options.model_control {
        let message = "clients may not load and unload models here; the server's operator allows it with --model-control";
        return Err(Failure::new(Kind::Forbidden, message));
    }
    let _turn = app.changing.lock().await;
    let before = app.models.known()?;
    let at = place(&before, name)?;
    let (spec, served) = match (&before[at], change) {
        (Known::Told(spec, served), _) => (spec, served),
        (Known::Given(_), Change::Load) => return Ok(()),
        (Known::Given(_), Change::Unload) => {
            let message = format!(
                "the model {name:?} was given to the server, which could not load it again"
            );
            return Err(Failure::new(Kind::Forbidden, message));
        }
    };
    let served = match (change, served) {
        (Change::Load, None) => Some(load(app, name, spec).await?),
        (Change::Unload, Some(_)) => None,
        _ => return Ok(()),
    };
    let mut after = before.to_vec();
    after[at] = Known::Told(Arc::clone(spec), served);
    reload::exchange(app, &before, after);
    Ok(())
}

async fn load(app: &App, name: &str, spec: &ModelSpec) -> Result<Arc<Served>, Failure> {
    if app.gate.is_closed() {
        return Err(stopping());
    }
    reload::load(app, spec).await.map_err(|error| match error {
        Error::Memory { .. } => Failure::new(Kind::NoMemory, error.to_string()),
        error => {
            // It names the server's folders, which are not the client's business.
            tracing::error!(%error, "a model that a request asked for is not loaded");
            let message = format!("the model {name:?} cannot be loaded; the log has the reason");
            Failure::new(Kind::Broken, message)
        }
    })
}
