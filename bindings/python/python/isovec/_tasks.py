"""The side of the event loop in calls that asyncio waits for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._isovec import Call


async def drive(call: Call) -> Any:
    """Starts a call and waits for its result. Cancelling the task cancels the call."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    call.start(lambda result, error: loop.call_soon_threadsafe(settle, future, result, error))
    try:
        return await future
    finally:
        call.cancel()


def settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    """Gives a future its result, unless nobody waits for it any more."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
