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
        async with places:
            inside, most = inside + 1, max(most, inside + 1)
            await go_on.wait()
            inside -= 1

    tasks = [asyncio.create_task(run()) for _ in range(6)]
    await asyncio.sleep(0)
    go_on.set()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert most == 2 and [type(end) for end in ends] == [type(None)] * 5 + [Full]
    async with places, places:
        waits = asyncio.create_task(run())
        await asyncio.sleep(0)
        assert places.are_taken and places.waiting == 1
        waits.cancel()
        await asyncio.wait([waits])
    assert not places.are_taken and places.waiting == 0
