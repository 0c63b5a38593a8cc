//! The models that are served, and which of them a request is for.

use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use axum::http::HeaderValue;
use isovec::ModelTask;
use isovec_http::header;

use crate::admission::loading;
use crate::failure::{Failure, Kind};
use crate::served::Served;
use crate::spec::ModelSpec;

/// Characters of a name that is not known, in the error about it: it may be as long as the body.
const LONGEST_NAME: usize = 100;

/// The models that new requests are given.
#[derive(Debug, Clone)]
struct Listed {
    models: Arc<[Arc<Served>]>,
    /// All that may be loaded; empty where the server was given its model.
    specs: Arc<[ModelSpec]>,
    id: HeaderValue,
}

/// The models of a server. A request keeps the one that it began with, whatever comes in its place.
#[derive(Debug, Default)]
pub(crate) struct Models {
    /// Those that new requests are given; `None` until they are loaded.
    now: RwLock<Option<Listed>>,
    /// Every model that some request may still hold.
    all: Mutex<Vec<Weak<Served>>>,
}

impl Models {
    /// A model is there, served or not yet.
    pub(crate) fn hold(&self, model: &Arc<Served>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|held| held.strong_count() > 0);
        all.push(Arc::downgrade(model));
    }

    /// Serves these from now on, in the place of all others: those of `specs` that are loaded, in the same order.
    pub(crate) fn put(&self, models: Vec<Arc<Served>>, specs: Arc<[ModelSpec]>) {
        let listed = Listed {
            id: id(&models),
            models: models.into(),
            specs,
        };
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        let before = now.replace(listed);
        drop(now);
        // What is freed with it takes its time, in which requests find their models.
        drop(before);
    }

    /// The models in their order, once they are loaded.
    pub(crate) fn list(&self) -> Option<Arc<[Arc<Served>]>> {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        now.as_ref().map(|now| Arc::clone(&now.models))
    }

    /// All models that may be loaded, in their order; empty where the server was given its model.
    pub(crate) fn specs(&self) -> Arc<[ModelSpec]> {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        now.as_ref()
            .map_or_else(Arc::default, |now| Arc::clone(&now.specs))
    }

    /// What tells these models from others: equal values mean that every name has the same task and fingerprint.
    pub(crate) fn id(&self) -> Option<HeaderValue> {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        now.as_ref().map(|now| now.id.clone())
    }

    /// Those that some request may still hold, served or not.
    pub(crate) fn held(&self) -> Vec<Arc<Served>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).collect()
    }

    /// Bytes that they hold.
    pub(crate) fn bytes(&self) -> u64 {
        self.held().iter().map(|model| model.bytes()).sum()
    }

    /// The models, for a request that came before they are there.
    ///
    /// # Errors
    /// That they are being loaded.
    pub(crate) fn loaded(&self) -> Result<Arc<[Arc<Served>]>, Failure> {
        self.list().ok_or_else(loading)
    }

    /// The model of this name. Without a name it is the first that does the task; if none does, the first.
    ///
    /// # Errors
    /// A name that no model has, and models that are still being loaded or that nobody has loaded.
    pub(crate) fn choose(
        &self,
        name: Option<&str>,
        task: ModelTask,
    ) -> Result<Arc<Served>, Failure> {
        let models = self.loaded()?;
        let Some(name) = name else {
            let able = models.iter().find(|model| model.task() == task);
            return able.or(models.first()).cloned().ok_or_else(none);
        };
        self.named(name)
    }

    /// The model of this name.
    ///
    /// # Errors
    /// As [`choose`](Self::choose).
    pub(crate) fn named(&self, name: &str) -> Result<Arc<Served>, Failure> {
        let models = self.loaded()?;
        if let Some(model) = models.iter().find(|model| model.is_called(name)) {
            return Ok(Arc::clone(model));
        }
        if self.specs().iter().any(|spec| spec.is_called(name)) {
            let message = format!("the model {name:?} is not loaded");
            return Err(Failure::new(Kind::NoModel, message).about("model"));
        }
        if models.is_empty() {
            return Err(none());
        }
        let asked: String = name.chars().take(LONGEST_NAME).collect();
        let names: Vec<String> = models
            .iter()
            .map(|model| format!("{:?}", model.name))
            .collect();
        let message = format!(
            "the model {asked:?} is not served here; ask for {}",
            names.join(" or ")
        );
        Err(Failure::new(Kind::NoModel, message).about("model"))
    }
}

/// No model is loaded.
pub(crate) fn none() -> Failure {
    Failure::new(Kind::NoModel, "no model is loaded here").about("model")
}

/// A hash over names, tasks and fingerprints, in the order of the models: a request that names none gets the first.
fn id(models: &[Arc<Served>]) -> HeaderValue {
    let mut hasher = blake3::Hasher::new();
    let mut add = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    for model in models {
        add(&model.name);
        add(&model.aliases().len().to_string());
        model.aliases().iter().for_each(|alias| add(alias));
        add(model.task_name());
        add(&model.fingerprint().id());
    }
    header(&hasher.finalize().to_hex()[..16])
}
