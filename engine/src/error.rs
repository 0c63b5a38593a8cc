//! The one error type of this crate: what was wrong, where, and what to do.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::budget::Resource;

/// Shorthand used throughout the crate.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// Everything that can go wrong between a model's files and its output.
///
/// Cloneable, because one failed run may answer several waiting callers.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A file of the model does not have the format that its name promises: it is cut short, corrupted, or something
    /// else.
    #[error("{origin} is not a usable model: {detail}")]
    InvalidModel {
        /// The file or bundle.
        origin: String,
        /// The fault.
        detail: String,
    },

    /// The model is intact, but nothing here can run it.
    #[error("{origin} cannot be loaded: {reason}. {hint}")]
    UnsupportedModel {
        /// The file or bundle.
        origin: String,
        /// Which part is not supported.
        reason: String,
        /// What to do instead.
        hint: String,
    },

    /// The engine has no implementation of an operator that the graph uses.
    #[error("engine {engine} does not implement {}; choose another engine or export the model with a different opset", .operators.join(", "))]
    UnsupportedOperator {
        /// The engine's name.
        engine: &'static str,
        /// Operator names as ONNX writes them.
        operators: Vec<String>,
    },

    /// A bundle lacks a file that is needed.
    #[error("{origin} has no {file}. {hint}")]
    MissingFile {
        /// The folder, model id or byte set that was searched.
        origin: String,
        /// The name of the file, or names of alternatives.
        file: String,
        /// What to do.
        hint: String,
    },

    /// External tensor data that would be read from outside the bundle.
    #[error(
        "tensor {tensor} stores its data in {location:?}, outside the bundle; isovec reads external data only from inside it"
    )]
    OutsideBundle {
        /// The tensor's name.
        tensor: String,
        /// The location as the file gives it.
        location: String,
    },

    /// A weight that the graph names and the source does not hold, or holds in another form.
    #[error("weight {name}: {detail}")]
    Weight {
        /// The weight's name in the graph.
        name: String,
        /// The fault.
        detail: String,
    },

    /// A tensor handed to an engine does not fit the model's inputs.
    #[error("input {name}: {detail}")]
    InvalidInput {
        /// The input's name.
        name: String,
        /// The mismatch.
        detail: String,
    },

    /// A batch exceeds a limit; it is refused before memory is allocated.
    #[error("input of {asked} {unit} is past the limit of {limit}; split it or raise the limit")]
    InputTooLarge {
        /// The requested amount.
        asked: u64,
        /// The limit.
        limit: u64,
        /// The unit.
        unit: &'static str,
    },

    /// Reading a model's files would cost more than files of their size may; refused before it is spent.
    #[error(
        "{place} needs {asked} {resource} in total, but reading a model of this size may use only {allowed}; its files are damaged or hostile"
    )]
    OverBudget {
        /// Which of the budgets.
        resource: Resource,
        /// The total amount that was requested.
        asked: u64,
        /// The limit.
        allowed: u64,
        /// Where in the model.
        place: String,
    },

    /// The model produced NaN or an infinity; the vector is refused.
    #[error(
        "output {output} holds a value that is not finite in row {row}; the model's weights or its precision are broken"
    )]
    NotFinite {
        /// The output's name.
        output: String,
        /// The first such row.
        row: usize,
    },

    /// The call was cancelled.
    #[error("cancelled")]
    Cancelled,

    /// The device was lost during work; the batch can be run again elsewhere.
    #[error("{provider} lost its device: {detail}")]
    DeviceLost {
        /// The provider's name.
        provider: String,
        /// The message of the runtime.
        detail: String,
    },

    /// An engine that is compiled in cannot be used on this machine.
    #[error("engine {engine} is not available: {reason}. {hint}")]
    EngineUnavailable {
        /// The engine's name.
        engine: &'static str,
        /// Why.
        reason: String,
        /// How to get it.
        hint: String,
    },

    /// A requested execution provider cannot be used.
    #[error("execution provider {provider} is not available: {reason}. {hint}")]
    ProviderUnavailable {
        /// The provider's name, as configurations write it.
        provider: String,
        /// Why.
        reason: String,
        /// How to get it.
        hint: String,
    },

    /// The runtime under an engine failed.
    #[error("engine {engine} failed while {doing}: {detail}")]
    Runtime {
        /// The engine's name.
        engine: &'static str,
        /// Its work at that moment.
        doing: &'static str,
        /// The message of the runtime.
        detail: String,
    },

    /// An earlier panic left this engine unusable; load it again.
    #[error("engine {engine} is poisoned by an earlier panic ({detail}); load the model again")]
    EnginePoisoned {
        /// The engine's name.
        engine: &'static str,
        /// The panic's message.
        detail: String,
    },

    /// A model hub could not deliver.
    #[error("{url}: {detail}. {hint}")]
    Hub {
        /// The requested address.
        url: String,
        /// The answer.
        detail: String,
        /// What to do.
        hint: String,
    },

    /// Values in the configuration that cannot work, all of them.
    #[error("the configuration is not usable: {}", .0.join("; "))]
    Config(Vec<String>),

    /// The operating system refused access to a file.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: Arc<io::Error>,
    },
}

impl EngineError {
    /// Names the path that an I/O error is about.
    pub fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source: Arc::new(source),
        }
    }

    /// The error of a model file with a fault.
    pub fn invalid_model(origin: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::InvalidModel {
            origin: origin.into(),
            detail: detail.into(),
        }
    }

    /// A stable, machine-readable name of the kind, the same in Rust, in JSON and in JavaScript.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::InvalidModel { .. } => "InvalidModel",
            Self::UnsupportedModel { .. } => "UnsupportedModel",
            Self::UnsupportedOperator { .. } => "UnsupportedOperator",
            Self::MissingFile { .. } => "MissingFile",
            Self::OutsideBundle { .. } => "OutsideBundle",
            Self::Weight { .. } => "Weight",
            Self::InvalidInput { .. } => "InvalidInput",
            Self::InputTooLarge { .. } => "InputTooLarge",
            Self::OverBudget { .. } => "OverBudget",
            Self::NotFinite { .. } => "NotFinite",
            Self::Cancelled => "Cancelled",
            Self::DeviceLost { .. } => "DeviceLost",
            Self::EngineUnavailable { .. } => "EngineUnavailable",
            Self::ProviderUnavailable { .. } => "ProviderUnavailable",
            Self::Runtime { .. } => "Runtime",
            Self::EnginePoisoned { .. } => "EnginePoisoned",
            Self::Hub { .. } => "Hub",
            Self::Config(_) => "Config",
            Self::Io { .. } => "Io",
        }
    }
}
