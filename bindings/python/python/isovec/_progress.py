"""What `progress=True` shows while a model is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._isovec import Progress


def bar() -> Callable[[Progress], None]:
    """Shows tqdm's bar while files are downloaded."""
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("progress=True shows a bar of tqdm; install tqdm, or give a callable") from error
    shown: Any = None

    def show(said: Progress) -> None:
        nonlocal shown
        if said["stage"] == "downloading":
            if shown is None:
                shown = tqdm(total=said["total"], unit="B", unit_scale=True)
            shown.set_description(said["file"], refresh=False)
            shown.total = said["total"]
            shown.update(said["bytes"] - shown.n)
        elif shown is not None:
            shown.close()
            shown = None

    return show
