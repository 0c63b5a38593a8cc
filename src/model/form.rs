//! The form of a call's vectors: the number of components, and unit length or not.

use std::sync::Arc;

use isovec_engine::fingerprint::{DIMENSION, Fingerprint, NORMALIZE};

use super::{EmbedOptions, Model};
use crate::embeddings::Embeddings;
use crate::error::{Error, Result};
use crate::similarity::norm;

/// The length up to which the graph's own head scales no vector to unit length.
const NO_LENGTH: f64 = 1e-12;

/// The form of a call's vectors.
///
/// The graph ends in the head that the model was loaded with, so a call can only go on from there:
/// it keeps the first components, and scales what it keeps. Whatever computes, batches or keeps
/// vectors handles the model's own, and the form is applied to what it gives.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    pub(crate) dim: usize,
    pub(crate) normalized: bool,
    pub(crate) fingerprint: Arc<Fingerprint>,
    /// Whether it is the model's own.
    own: bool,
}

impl Model {
    /// The form of the model's own vectors.
    pub(crate) fn own_form(&self) -> Form {
        Form {
            dim: self.dim,
            normalized: self.normalized,
            fingerprint: Arc::clone(&self.fingerprint),
            own: true,
        }
    }

    /// The form that a call asks for.
    ///
    /// # Errors
    /// [`Error::Config`] with every option that the loaded model cannot give.
    pub(crate) fn form(&self, options: &EmbedOptions) -> Result<Form> {
        let mut form = self.own_form();
        let mut faults = Vec::new();
        match options.dimension {
            Some(0) => faults.push(format!(
                "the option dimension is 0; leave it out for the model's own, {}",
                self.dim
            )),
            Some(dim) if dim > self.dim => faults.push(format!(
                "the option dimension is {dim}, and the vectors of this model, as it was loaded, have {}",
                self.dim
            )),
            Some(dim) => form.dim = dim,
            None => {}
        }
        match options.normalize {
            Some(false) if self.normalized => faults.push(
                "the option normalize is false, and this model was loaded with vectors of unit length; load it with text.normalize = false"
                    .into(),
            ),
            Some(normalize) => form.normalized = normalize,
            None => {}
        }
        if !faults.is_empty() {
            return Err(Error::Config(faults));
        }
        form.own = form.dim == self.dim && form.normalized == self.normalized;
        if !form.own {
            let identity = &mut Arc::make_mut(&mut form.fingerprint).identity;
            identity.insert(DIMENSION.into(), form.dim.to_string());
            identity.insert(NORMALIZE.into(), form.normalized.to_string());
        }
        Ok(form)
    }
}

impl Form {
    /// Brings the model's own vectors into this form. Nothing is touched where they have it.
    ///
    /// # Errors
    /// [`Error::NoDirection`] names the text whose components have no length to scale.
    pub(crate) fn apply(&self, set: Embeddings) -> Result<Embeddings> {
        if self.own {
            return Ok(set);
        }
        set.cut(self.dim, Arc::clone(&self.fingerprint), |text, row| {
            if !self.normalized {
                return Ok(());
            }
            let length = norm(row);
            if length <= NO_LENGTH {
                return Err(Error::NoDirection { text });
            }
            for value in row {
                *value = (f64::from(*value) / length) as f32;
            }
            Ok(())
        })
    }
}
