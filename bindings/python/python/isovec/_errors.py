"""The exceptions of isovec."""

from __future__ import annotations


class IsovecError(Exception):
    """An error of isovec."""

    kind: str
    """What went wrong, for programs: the stable name that Rust and JavaScript give the same failure."""

    def __init__(self, message: str, kind: str | None = None) -> None:
        super().__init__(message)
        # Polars makes an error again out of a message alone, to add the expression that it happened in.
        self.kind = kind or next((name for name, made in CLASSES.items() if made is type(self)), "Failed")

    def __reduce__(self) -> tuple[type[IsovecError], tuple[str, str]]:
        return type(self), (str(self), self.kind)


class ConfigError(IsovecError, ValueError):
    """Values in the configuration, or options of a call, that cannot work."""


class TextError(IsovecError, TypeError):
    """What was given as a text is none; the message names its place."""


class ModelNotFoundError(IsovecError, FileNotFoundError):
    """A model lacks a file that is needed, or is not where it was looked for."""


class FileError(IsovecError, OSError):
    """The operating system refused access to a file."""


class HubError(IsovecError, OSError):
    """The hub did not answer as it should."""


class InvalidModelError(IsovecError, ValueError):
    """A file of the model is damaged, or something else than its name says."""


class UnsupportedModelError(IsovecError):
    """The model is intact, but nothing here can run it."""


class IncompatibleIndexError(IsovecError, ValueError):
    """Vectors that were not made the same way and cannot be compared."""


class OverloadedError(IsovecError):
    """Too many calls wait; nothing of this one was taken."""


class ForkError(IsovecError, RuntimeError):
    """This process was forked from one that had loaded a model."""


CLASSES: dict[str, type[IsovecError]] = {
    "Config": ConfigError,
    "InvalidText": TextError,
    "MissingFile": ModelNotFoundError,
    "MissingTokenizer": ModelNotFoundError,
    "Hub": HubError,
    "Io": FileError,
    "InvalidModel": InvalidModelError,
    "InvalidTokenizer": InvalidModelError,
    "Weight": InvalidModelError,
    "UnsupportedModel": UnsupportedModelError,
    "UnsupportedOperator": UnsupportedModelError,
    "UnsupportedTokenizer": UnsupportedModelError,
    "IncompatibleIndex": IncompatibleIndexError,
    "Overloaded": OverloadedError,
    "Forked": ForkError,
}
"""The class of each kind; all other kinds are plain `IsovecError`."""


def of_kind(kind: str, message: str) -> IsovecError:
    """The exception of a kind."""
    return CLASSES.get(kind, IsovecError)(message, kind)
