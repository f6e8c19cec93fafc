"""What one call costs the client: CPU and wall time, against a server that answers at once in a process of its own.

python performance/llm_overhead.py [CALLS]

A minute. Needs the openai SDK.

Bar: under 0.8 ms CPU per call, one at a time. Beside it, in the same run and of the same server, the openai SDK.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from decisor.llms.openai_compatible import OpenAICompatible
from decisor.system.tasks import map_concurrently
from decisor.types import Message, Sampling
from head import words

BAR_MS = 0.8
PROMPT = "Which plant should be expanded so that the price falls most?\n" * 30
STOP = ("\nObservation",)
REPLY = {
    "id": "c",
    "object": "chat.completion",
    "created": 0,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "logprobs": None,
            "message": {"role": "assistant", "content": "Thought: look at the suppliers first.\n" * 10},
        }
    ],
    "usage": {"prompt_tokens": 450, "completion_tokens": 90, "total_tokens": 540},
}


@dataclass(frozen=True)
class Cost:
    """Milliseconds a call."""

    cpu: float
    wall: float


async def serve() -> None:
    """Answer every request at once; print the port; stop when the standard input closes."""
    body = json.dumps(REPLY).encode()
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                await reader.readexactly(size)
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def measure(call: Callable[[int], Awaitable[object]], calls: int, at_once: int) -> Cost:
    """Median of five rounds, after one that warms up."""
    rounds = []
    for _ in range(6):
        cpu, wall = time.process_time(), time.perf_counter()
        await map_concurrently(call, range(calls), at_once)
        rounds.append(Cost(1000 * (time.process_time() - cpu) / calls, 1000 * (time.perf_counter() - wall) / calls))
    return Cost(statistics.median(r.cpu for r in rounds[1:]), statistics.median(r.wall for r in rounds[1:]))


async def compare(base_url: str, calls: int) -> float:
    """Print the table; returns our CPU in ms, one at a time."""
    from openai import AsyncOpenAI

    llm = OpenAICompatible("m", base_url, "sk-none")
    sdk = AsyncOpenAI(api_key="sk-none", base_url=base_url)

    async def ours(_: int) -> object:
        return await llm.complete([Message("user", PROMPT)], Sampling(STOP))

    async def theirs(_: int) -> object:
        return await sdk.chat.completions.create(
            model="m", messages=[{"role": "user", "content": PROMPT}], stop=list(STOP), temperature=0.0
        )

    print(f"{'ms per call':<24}{'decisor cpu':>12}{'wall':>8}{'openai cpu':>12}{'wall':>8}")
    costs = []
    for at_once in (1, 64):
        own, other = await measure(ours, calls, at_once), await measure(theirs, calls, at_once)
        costs.append(own.cpu)
        print(f"{f'{at_once} at once':<24}{own.cpu:>12.2f}{own.wall:>8.2f}{other.cpu:>12.2f}{other.wall:>8.2f}")
    await llm.close()
    await sdk.close()
    return costs[0]


def main() -> None:
    if sys.argv[1:] == ["--serve"]:
        asyncio.run(serve())
        return
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout and server.stdin
        port = int(server.stdout.readline())
        cpu = asyncio.run(compare(f"http://127.0.0.1:{port}/v1", calls))
        server.stdin.close()
    print(f"bar {BAR_MS} ms CPU, one at a time: {'kept' if cpu < BAR_MS else 'MISSED'}")
    sys.exit(cpu >= BAR_MS)


if __name__ == "__main__":
    words(__doc__)
    main()
