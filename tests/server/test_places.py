"""How many runs go at once, and how many may wait."""

from __future__ import annotations

import asyncio

from decisor.server.settings import Full, Places


async def test_so_many_run_at_once_and_the_line_has_an_end() -> None:
    places, inside, most = Places(most=2, line=3), 0, 0
    go_on = asyncio.Event()

    async def run() -> None:
        nonlocal inside, most
        places.check()
        async with places.one():
            inside, most = inside + 1, max(most, inside + 1)
            await go_on.wait()
            inside -= 1

    tasks = [asyncio.create_task(run()) for _ in range(6)]
    await asyncio.sleep(0)
    go_on.set()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert most == 2 and [type(end) for end in ends] == [type(None)] * 5 + [Full]
    async with places.one(), places.one():
        waits = asyncio.create_task(run())
        await asyncio.sleep(0)
        assert places.are_taken and places.waiting == 1
        waits.cancel()
        await asyncio.wait([waits])
    assert not places.are_taken and places.waiting == 0


async def test_who_has_many_runs_waits_behind_who_has_few() -> None:
    places, ends = Places(most=1), list[str]()

    async def run(owner: str) -> None:
        async with places.one(owner):
            ends.append(owner)
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(run(owner)) for owner in ["ann"] * 5 + ["bob"] * 2 + ["eve"]]
    tasks[3].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert ends == ["ann", "bob", "eve", "ann", "bob", "ann", "ann"]
    assert places.taken == 0 and not places.are_taken


async def test_a_run_that_is_stopped_as_its_turn_comes_leaves_its_place_to_the_next() -> None:
    places = Places(most=1)

    async def run() -> None:
        async with places.one():
            await asyncio.sleep(0)

    async with places.one():
        tasks = [asyncio.create_task(run()) for _ in range(3)]
        await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert places.taken == 0 and places.waiting == 0
