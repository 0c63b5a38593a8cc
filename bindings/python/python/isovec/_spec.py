"""A model as what travels to the processes of a data engine: its name, its knobs, and the fingerprint that it has to have there."""

from __future__ import annotations

import json
import os
import platform
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Union

from . import _isovec
from ._errors import ConfigError, IncompatibleIndexError, IsovecError
from ._isovec import Embedder

if TYPE_CHECKING:
    from ._isovec import Embeddings, Source, Texts

    ModelLike = Union["EmbedderSpec", Embedder, Source]

MOST_THREADS = 4
"""Threads that work on one operator, at most, as by default: `session.intra_op_threads`."""

_loaded: dict[str, Embedder] = {}
"""The models of this process, by what they were loaded from and how. They stay until it ends."""

_loading = threading.Lock()


class EmbedderSpec:
    """A model by its name and its knobs. It is pickled without the model, and each process loads the model when it first embeds.

    A process whose isovec has another version, or whose model has another fingerprint than the one where this was made, refuses
    to embed.

    >>> from isovec import EmbedderSpec
    >>> spec = EmbedderSpec("sentence-transformers/all-MiniLM-L6-v2", config={"engine": "portable"})
    >>> spec.dimension
    384
    """

    def __init__(
        self,
        model: Embedder | Source,
        *,
        prompt: str | None = None,
        prefix: str | None = None,
        fingerprint: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """Takes a loaded model, or what `Embedder` takes, which is loaded here for its fingerprint.

        With `fingerprint`, which a loaded model or a set of vectors has, nothing is loaded here. `prompt` is the name of one of the
        model's prompts, `"passage"` if neither it nor `prefix`, a text to put before each, is given.
        """
        if prompt is not None and prefix is not None:
            raise ConfigError("`prompt` and `prefix` are both given; give one of them", "Config")
        self._prompt = "passage" if prompt is None and prefix is None else prompt
        self._prefix = prefix
        self._version: str = _isovec.__version__
        self._embedder: Embedder | None = None
        if isinstance(model, Embedder):
            if options:
                raise ConfigError(f"{_names(options)}: the model is loaded already; give its name instead", "Config")
            self._embedder = model
            self._model, self._options = _origin(model)
            # An engine may unpickle in this process what it pickled here.
            with _loading:
                _loaded[self._key(None)] = model
        else:
            self._model, self._options = _anywhere(model), options
            if fingerprint is None:
                model = _shared(self._key(None), lambda: Embedder(self._model, **options))
                # As it was read: without the hub's token, and with what was asked for by words among the knobs.
                self._model, self._options = _origin(model)
                self._embedder = _shared(self._key(None), lambda: model)
            else:
                self._options = _without_what_stays(options)
        if fingerprint is None and self._embedder is not None:
            fingerprint = self._embedder.fingerprint
        self._fingerprint = _checked(fingerprint)
        if self._embedder is not None:
            self._compare(self._embedder)
            # A prompt that the model has not is an error here, and not in each process.
            self._embedder.embeddings([], prompt=self._prompt, prefix=self._prefix)

    @classmethod
    def of(cls, model: ModelLike, **options: Any) -> EmbedderSpec:
        """One that was made already, or a new one of what makes one."""
        if not isinstance(model, EmbedderSpec):
            return cls(model, **options)
        given = {name: value for name, value in options.items() if value is not None}
        if given:
            raise ConfigError(f"{_names(given)}: the spec is made already; give it to EmbedderSpec(…)", "Config")
        return model

    @property
    def fingerprint(self) -> dict[str, Any]:
        """Says which vectors can be compared with this model's."""
        return self._fingerprint

    @property
    def dimension(self) -> int:
        """Components of a vector."""
        return int(self._fingerprint["identity"]["dimension"])

    def embedder(self, *, cpus: int | None = None) -> Embedder:
        """The model in this process, which is loaded by the first call. `cpus` limits its threads, unless the knobs do."""
        if self._embedder is None:
            if self._version != _isovec.__version__:
                raise IncompatibleIndexError(
                    f"{_here()} has isovec {_isovec.__version__}, and the work was planned with {self._version}; "
                    "install the same version on every machine",
                    "IncompatibleIndex",
                )
            model = _shared(self._key(cpus), lambda: self._load(cpus))
            self._compare(model)
            self._embedder = model
        return self._embedder

    def embeddings(self, texts: Texts, *, cpus: int | None = None) -> Embeddings:
        """The vectors of texts, under the prompt of this."""
        return self.embedder(cpus=cpus).embeddings(texts, prompt=self._prompt, prefix=self._prefix)

    def _key(self, cpus: int | None) -> str:
        model = self._model if isinstance(self._model, str) else repr(self._model)
        return json.dumps([type(self._model).__name__, model, self._options, cpus], sort_keys=True, default=repr)

    def _load(self, cpus: int | None) -> Embedder:
        try:
            return Embedder(self._model, **_within(self._options, cpus))
        except IsovecError as error:
            raise type(error)(
                f"{_here()} could not load the model {self._model!r}: {error}; each machine needs the model's files at that place, "
                "or the way to the hub",
                error.kind,
            ) from error

    def _compare(self, model: Embedder) -> None:
        here, wanted = model.fingerprint, self._fingerprint
        differences = [f"{name}: {one} here, {other} there" for name, one, other in _differences(here, wanted)]
        if differences:
            raise IncompatibleIndexError(
                f"{_here()} has loaded the model {self._model!r} and it is not the one that the work was planned with "
                f"({'; '.join(differences)}); give every machine the same files and isovec the same knobs, or name a `revision`",
                "IncompatibleIndex",
            )

    def __reduce__(self) -> tuple[Any, tuple[dict[str, Any]]]:
        if isinstance(self._model, Mapping) and any(isinstance(file, bytes) for file in self._model.values()):
            raise TypeError(
                "the model was given as bytes, which do not travel to other processes; give a folder that every machine has, or an id"
            )
        return _restore, (
            {
                "model": self._model,
                "options": self._options,
                "prompt": self._prompt,
                "prefix": self._prefix,
                "fingerprint": self._fingerprint,
                "version": self._version,
            },
        )

    def __repr__(self) -> str:
        return f"<EmbedderSpec {self._model!r}, {self.dimension} components>"


def _restore(state: Mapping[str, Any]) -> EmbedderSpec:
    """A spec that came from another process."""
    spec = EmbedderSpec.__new__(EmbedderSpec)
    spec._embedder = None
    for name, value in state.items():
        setattr(spec, f"_{name}", value)
    return spec


def _shared(key: str, load: Callable[[], Embedder]) -> Embedder:
    """The one model of this process under a key."""
    with _loading:
        if key not in _loaded:
            _loaded[key] = load()
        return _loaded[key]


def _origin(embedder: Embedder) -> tuple[Any, dict[str, Any]]:
    """What a loaded model is loaded from again: as it is pickled."""
    given: Any = embedder.__reduce__()
    _, (_, source, named) = given
    return _anywhere(source), named


def _anywhere(model: Any) -> Any:
    """The model's name for processes of other working folders."""
    if isinstance(model, os.PathLike):
        return os.path.abspath(model)
    if isinstance(model, Mapping):
        return {name: file if isinstance(file, bytes) else os.path.abspath(file) for name, file in model.items()}
    # A string that is a path, and not from a root or a home: as Rust reads it.
    if isinstance(model, str) and (model.startswith(".") or model.count("/") > 1 and not model.startswith(("/", "~/"))):
        return os.path.abspath(model)
    return model


def _without_what_stays(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options without the hub's token and without who listens."""
    kept = {name: value for name, value in options.items() if name != "progress"}
    config = kept.get("config")
    if isinstance(config, Mapping) and isinstance(config.get("hub"), Mapping):
        hub = {name: value for name, value in config["hub"].items() if name != "token"}
        kept["config"] = {**config, "hub": hub}
    return kept


def _within(options: Mapping[str, Any], cpus: int | None) -> dict[str, Any]:
    """Options under which a model computes with so many threads, where they do not say it themselves."""
    config = options.get("config") or {}
    session = config.get("session") or {} if isinstance(config, Mapping) else {}
    if cpus is None or not isinstance(session, Mapping) or {"intra_op_threads", "pool_size"} & session.keys():
        return dict(options)
    threads = min(cpus, MOST_THREADS)
    session = {"intra_op_threads": threads, "pool_size": cpus // threads, **session}
    return {**options, "config": {**config, "session": session}}


def _checked(fingerprint: Any) -> dict[str, Any]:
    """A fingerprint, if it is one of a model of vectors."""
    identity = fingerprint.get("identity") if isinstance(fingerprint, Mapping) else None
    if not isinstance(identity, Mapping) or not str(identity.get("dimension")).isdecimal():
        raise ConfigError(
            "`fingerprint` is none of a model that embeds; Embedder(…).fingerprint and Embeddings.load(…).fingerprint are", "Config"
        )
    return dict(fingerprint)


def _differences(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Entries in which two fingerprints differ. Vectors of another precision could be compared, but are not the same."""
    one = {**here["identity"], "precision": here.get("precision")}
    other = {**there["identity"], "precision": there.get("precision")}
    return [(key, one.get(key), other.get(key)) for key in sorted(one.keys() | other.keys()) if one.get(key) != other.get(key)]


def _names(options: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}`" for name in options)


def _here() -> str:
    return f"process {os.getpid()} on {platform.node()}"
