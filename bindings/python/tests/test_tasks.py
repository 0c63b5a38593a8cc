"""Calls that asyncio waits for."""

from __future__ import annotations

import asyncio

import pytest

from isovec import ConfigError, Embedder

TEXTS = ["the dog has a tail", "money in the bank"]
MANY = [f"the dog has the tail number {at} and it is long" for at in range(500_000)]


def cancelled(embedder: Embedder) -> int:
    count = embedder.stats()["calls"]["cancelled"]
    assert isinstance(count, int)
    return count


def test_vectors_are_the_same(embedder: Embedder) -> None:
    async def main() -> None:
        assert (await embedder.aembed(TEXTS)).tobytes() == embedder.embed(TEXTS).tobytes()
        assert (await embedder.aembed_query("the dog")).tobytes() == embedder.embed_query("the dog").tobytes()
        passages = await embedder.aembed_passages(TEXTS)
        assert passages.tobytes() == embedder.embed_passages(TEXTS).tobytes()

    asyncio.run(main())


def test_many_calls_are_under_way_at_once(embedder: Embedder) -> None:
    async def main() -> None:
        texts = [f"text number {at}" for at in range(200)]
        found = await asyncio.gather(*(embedder.aembed([text]) for text in texts))
        for text, vectors in zip(texts, found, strict=True):
            assert vectors.tobytes() == embedder.embed([text]).tobytes()

    asyncio.run(main())


def test_the_loop_goes_on_meanwhile(embedder: Embedder) -> None:
    async def main() -> None:
        task = asyncio.create_task(embedder.aembed(MANY[:5_000]))
        turns = 0
        while not task.done():
            turns += 1
            await asyncio.sleep(0.001)
        assert turns > 1 and task.result().shape == (5_000, embedder.dimension)

    asyncio.run(main())


def test_a_cancelled_task_cancels_its_work(embedder: Embedder) -> None:
    before = cancelled(embedder)

    async def main() -> None:
        task = asyncio.create_task(embedder.aembed(MANY))
        await asyncio.sleep(0.2)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(embedder.aembed(MANY), 0.2)
        # It ends by the cancellation: all of these texts take far longer.
        while cancelled(embedder) < before + 2:
            await asyncio.sleep(0.01)
        assert (await embedder.aembed(TEXTS)).tobytes() == embedder.embed(TEXTS).tobytes()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_errors_come_out_of_the_await(embedder: Embedder) -> None:
    async def main() -> None:
        with pytest.raises(ConfigError, match="no such"):
            await embedder.aembed(TEXTS, prompt="no such")

    asyncio.run(main())


def test_one_model_serves_several_loops(embedder: Embedder) -> None:
    for _ in range(3):
        found = asyncio.run(embedder.aembed(TEXTS))
        assert found.shape == (2, embedder.dimension)


def test_a_closed_loop_harms_nobody(embedder: Embedder) -> None:
    loop = asyncio.new_event_loop()
    task = loop.create_task(embedder.aembed(MANY[:2000]))
    loop.run_until_complete(asyncio.sleep(0))
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()
    assert asyncio.run(embedder.aembed(TEXTS)).shape == (2, embedder.dimension)
