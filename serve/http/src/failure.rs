//! Why a request gets no answer, before a dialect says it.

use std::time::Duration;

use axum::http::StatusCode;

/// What is wrong with a request, or with the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A value of the request cannot be used.
    Invalid,
    /// A text that the tokenizer makes nothing of.
    Tokens,
    /// The list of texts is empty.
    Empty,
    /// More texts than a request may have.
    TooMany,
    /// More tokens than a request may have.
    TooManyTokens,
    /// A body over the limit.
    TooLarge,
    /// The body is not said to be JSON.
    MediaType,
    /// A client that did not send its body in time.
    SlowBody,
    /// No route has this path.
    NoRoute,
    /// The path has no such method.
    Method,
    /// The API key is missing or wrong.
    Unauthorized,
    /// What the operator does not let clients do.
    Forbidden,
    /// No model of this name is served.
    NoModel,
    /// The model is for another task than the route.
    WrongTask,
    /// A model that does not fit the memory that models may hold.
    NoMemory,
    /// There is no room.
    Overloaded,
    /// The model is being loaded, or the server stops.
    Unready,
    /// The request's deadline has passed.
    TimedOut,
    /// The model or the server is at fault.
    Broken,
}

impl Kind {
    /// The status that HTTP has for it. Dialects differ in a few.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Invalid
            | Self::Tokens
            | Self::Empty
            | Self::TooMany
            | Self::TooManyTokens
            | Self::WrongTask => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::NoRoute | Self::NoModel => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NoMemory => StatusCode::INSUFFICIENT_STORAGE,
            Self::Overloaded => StatusCode::TOO_MANY_REQUESTS,
            Self::Unready => StatusCode::SERVICE_UNAVAILABLE,
            Self::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            Self::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Why a request gets no answer.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The kind.
    pub kind: Kind,
    /// What is wrong, where, and what to do.
    pub message: String,
    /// The field of the request that is wrong.
    pub field: Option<&'static str>,
    /// When to try again.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure of this kind, which says this.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            field: None,
            retry_after: None,
        }
    }

    /// That the server's own work panicked.
    pub fn panicked() -> Self {
        Self::new(Kind::Broken, "the server panicked; please report it")
    }

    /// A field of the request that cannot be used.
    pub fn field(field: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, message).about(field)
    }

    /// The field that is wrong.
    pub fn about(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }

    /// When to try again.
    pub fn retry_after(mut self, time: Duration) -> Self {
        self.retry_after = Some(time);
        self
    }
}
