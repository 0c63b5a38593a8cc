//! ONNX Runtime's messages as isovec's errors.

use isovec_engine::error::EngineError;
use ort::ErrorCode;

use crate::NAME;
use crate::options::Provider;

/// An error's message on one line, without colours and source lines' leading noise.
pub(crate) fn text(error: &ort::Error) -> String {
    error
        .message()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Why a session could not be made.
pub(crate) fn load(origin: &str, error: &ort::Error) -> EngineError {
    let message = text(error);
    if error.code() == ErrorCode::ModelLoadCanceled {
        return EngineError::Cancelled;
    }
    let operators = unknown_operators(&message);
    if !operators.is_empty() {
        return EngineError::UnsupportedOperator {
            engine: NAME,
            operators,
        };
    }
    if message.contains("Unsupported model IR version") || message.contains("is under development")
    {
        return EngineError::UnsupportedModel {
            origin: origin.into(),
            reason: message,
            hint: "Use a newer ONNX Runtime, or export the model for an older opset".into(),
        };
    }
    match error.code() {
        ErrorCode::InvalidProtobuf
        | ErrorCode::InvalidGraph
        | ErrorCode::InvalidArgument
        | ErrorCode::NoModel
        | ErrorCode::GenericFailure => EngineError::invalid_model(origin, message),
        ErrorCode::NotImplemented => EngineError::UnsupportedModel {
            origin: origin.into(),
            reason: message,
            hint: "Choose another engine, or export the model in another precision".into(),
        },
        _ => EngineError::Runtime {
            engine: NAME,
            doing: "loading the model",
            detail: message,
        },
    }
}

/// Why a call that computes nothing failed.
pub(crate) fn run(error: &ort::Error) -> EngineError {
    EngineError::Runtime {
        engine: NAME,
        doing: "running the model",
        detail: text(error),
    }
}

/// Why a run on a provider failed.
pub(crate) fn run_on(provider: Provider, error: &ort::Error) -> EngineError {
    let detail = text(error);
    if error.code() == ErrorCode::DeviceReset || is_loss(provider, &detail) {
        return EngineError::DeviceLost {
            provider: provider.name().into(),
            detail,
        };
    }
    run(error)
}

/// Whether a device's own failure is meant, after which it computes nothing any more. ONNX Runtime
/// has no code for it: CUDA's failures come as text (`CUDA failure 719: unspecified launch
/// failure`, `CUBLAS failure 13`), DirectX's as `DXGI_ERROR_DEVICE_REMOVED`. A device that has
/// only run out of memory is not lost.
fn is_loss(provider: Provider, message: &str) -> bool {
    if provider == Provider::Cpu || message.contains("out of memory") {
        return false;
    }
    [
        "CUDA failure",
        "CUDA error",
        "CUDNN failure",
        "CUBLAS failure",
        "HIP failure",
        "DXGI_ERROR_DEVICE",
        "Device was lost",
        "device is lost",
    ]
    .iter()
    .any(|mark| message.contains(mark))
}

/// The operators that a message says are unknown. Its known forms:
/// `Could not find an implementation for Foo(13) node with name ...`,
/// `No Op registered for Foo with domain_version of 17`,
/// `com.example:Foo(-1) is not a registered function/op`.
fn unknown_operators(message: &str) -> Vec<String> {
    let name = |word: &str| {
        let word = word.split('(').next().unwrap_or(word);
        let word = word.rsplit(':').next().unwrap_or(word);
        (!word.is_empty()).then(|| word.to_owned())
    };
    let after = |mark: &str| {
        let (_, rest) = message.split_once(mark)?;
        name(rest.split_whitespace().next()?)
    };
    let before = |mark: &str| {
        let (rest, _) = message.split_once(mark)?;
        name(rest.split_whitespace().next_back()?)
    };
    after("Could not find an implementation for ")
        .or_else(|| after("No Op registered for "))
        .or_else(|| before(" is not a registered function/op"))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_fails_is_lost_and_one_that_is_full_is_not() {
        let cuda = Provider::Cuda;
        assert!(is_loss(
            cuda,
            "CUDA failure 719: unspecified launch failure"
        ));
        assert!(is_loss(cuda, "CUBLAS failure 13: execution failed"));
        assert!(!is_loss(cuda, "CUDA failure 2: out of memory"));
        assert!(!is_loss(cuda, "Invalid feed input name: x"));
        assert!(!is_loss(Provider::Cpu, "CUDA failure 719"));
    }

    #[test]
    fn unknown_operators_are_read_from_every_form_of_the_message() {
        for message in [
            "Could not find an implementation for Foo(13) node with name 'x'",
            "This is an invalid model. In Node, (\"n\", Foo, \"\", -1) : No Op registered for Foo with domain_version of 17",
            "Load model from memory failed: Fatal error: com.example:Foo(-1) is not a registered function/op",
        ] {
            assert_eq!(unknown_operators(message), ["Foo"], "{message}");
        }
        assert!(unknown_operators("Protobuf parsing failed.").is_empty());
    }
}
