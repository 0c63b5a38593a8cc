//! What the SDK's errors are to a client.

pub(crate) use isovec_http::{Failure, Kind};

/// The failure that an error of the SDK is.
pub(crate) fn of(error: isovec::Error) -> Failure {
    use isovec::Error::{Config, Engine, NoDirection, NoTokens, Overloaded, ShutDown, Tokenize};
    use isovec::error::EngineError::{InputTooLarge, InvalidInput};
    let message = error.to_string();
    #[cfg(feature = "image")]
    if matches!(error, isovec::Error::Picture { .. }) {
        return Failure::new(Kind::Invalid, message);
    }
    match error {
        Overloaded { retry_after, .. } => {
            Failure::new(Kind::Overloaded, message).retry_after(retry_after)
        }
        ShutDown => Failure::new(
            Kind::Unready,
            "the server was stopped before it had computed this",
        ),
        NoTokens { .. } | Tokenize(_) => Failure::new(Kind::Tokens, message),
        Config(_) | NoDirection { .. } | Engine(InputTooLarge { .. } | InvalidInput { .. }) => {
            Failure::new(Kind::Invalid, message)
        }
        _ => Failure::new(Kind::Broken, message),
    }
}
