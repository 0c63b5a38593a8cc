//! The models that are served, and which of them a request is for.

use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use axum::http::HeaderValue;
use isovec::ModelTask;
use isovec_http::header;

use crate::admission::loading;
use crate::failure::{Failure, Kind};
use crate::served::Served;
use crate::spec::ModelSpec;

/// Characters of a name that is not known, in the error about it: the name may be as long as the body.
const LONGEST_NAME: usize = 100;

/// A model that the server knows of, loaded or not.
#[derive(Debug, Clone)]
pub(crate) enum Known {
    /// One that a program gave the server, which could not load it again.
    Given(Arc<Served>),
    /// How the server loads it, and the model while it is loaded.
    Told(Arc<ModelSpec>, Option<Arc<Served>>),
}

impl Known {
    /// The model, if it is loaded.
    pub(crate) fn served(&self) -> Option<&Arc<Served>> {
        match self {
            Self::Given(served) => Some(served),
            Self::Told(_, served) => served.as_ref(),
        }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Given(served) => served.name.to_string(),
            Self::Told(spec, _) => spec.name(),
        }
    }

    fn is_called(&self, name: &str) -> bool {
        match self {
            Self::Given(served) | Self::Told(_, Some(served)) => served.is_called(name),
            Self::Told(spec, None) => spec.is_called(name),
        }
    }
}

/// What the server knows of, and what follows from it.
#[derive(Debug)]
struct Listed {
    known: Arc<[Known]>,
    /// Those of them that are loaded, in the same order.
    models: Arc<[Arc<Served>]>,
    id: HeaderValue,
}

/// The models of a server. A request keeps the one that it began with, whatever comes in its place.
#[derive(Debug, Default)]
pub(crate) struct Models {
    /// `None` until the first of them are loaded.
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

    /// Knows these from now on, in the place of all others, and gives new requests those that are loaded.
    pub(crate) fn put(&self, known: Vec<Known>) {
        let models: Arc<[_]> = known.iter().filter_map(Known::served).cloned().collect();
        let listed = Listed {
            id: id(&models),
            models,
            known: known.into(),
        };
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        let before = now.replace(listed);
        drop(now);
        // What is freed with it takes its time, in which requests find their models.
        drop(before);
    }

    /// The loaded models in their order, once the first are loaded.
    pub(crate) fn list(&self) -> Option<Arc<[Arc<Served>]>> {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        now.as_ref().map(|now| Arc::clone(&now.models))
    }

    /// All models in their order, loaded or not.
    ///
    /// # Errors
    /// That the first of them are being loaded.
    pub(crate) fn known(&self) -> Result<Arc<[Known]>, Failure> {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        let now = now.as_ref().ok_or_else(loading)?;
        Ok(Arc::clone(&now.known))
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
        if let Some(name) = name {
            return self.named(name);
        }
        let models = self.loaded()?;
        let able = models.iter().find(|model| model.task() == task);
        able.or(models.first()).cloned().ok_or_else(none)
    }

    /// The model of this name.
    ///
    /// # Errors
    /// As [`choose`](Self::choose).
    pub(crate) fn named(&self, name: &str) -> Result<Arc<Served>, Failure> {
        let known = self.known()?;
        let served = known[place(&known, name)?].served();
        served.cloned().ok_or_else(|| {
            let message = format!("the model {name:?} is not loaded");
            Failure::new(Kind::NoModel, message).about("model")
        })
    }
}

/// Where the model of this name stands, loaded or not.
///
/// # Errors
/// A name that no model has.
pub(crate) fn place(known: &[Known], name: &str) -> Result<usize, Failure> {
    let place = known.iter().position(|known| known.is_called(name));
    place.ok_or_else(|| {
        let loaded = known.iter().filter_map(Known::served);
        let names: Vec<String> = loaded.map(|model| format!("{:?}", model.name)).collect();
        if names.is_empty() {
            return none();
        }
        let message = format!(
            "the model {:?} is not served here; ask for {}",
            shown(name),
            names.join(" or ")
        );
        Failure::new(Kind::NoModel, message).about("model")
    })
}

/// A name that is not known, in the error about it.
pub(crate) fn shown(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
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
        add(&model.aliases.len().to_string());
        model.aliases.iter().for_each(|alias| add(alias));
        add(model.task_name());
        add(&model.fingerprint().id());
    }
    header(&hasher.finalize().to_hex()[..16])
}
