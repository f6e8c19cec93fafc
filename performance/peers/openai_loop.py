"""A bare loop over the openai SDK: a list of messages, one client for all cases."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from openai import AsyncOpenAI

from peers.measuring import Arguments, parse_arguments, read_only, run_cases

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "sql",
        "description": "Query the database.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
}


async def main(args: Arguments) -> None:
    client = AsyncOpenAI(base_url=args.base_url, api_key="none", max_retries=2, timeout=600)
    run = read_only(args.database) if args.database else lambda text: "noted"

    async def one(_: int) -> int:
        messages: list[Any] = [
            {"role": "system", "content": "You find the cheapest good. " * 20},
            {"role": "user", "content": "Which good is the cheapest?"},
        ]
        calls = 0
        while True:
            calls += 1
            reply = await client.chat.completions.create(model="m", messages=messages, tools=[TOOL])
            said: Any = reply.choices[0].message
            if not said.tool_calls:
                return calls
            messages.append(said)
            for call in said.tool_calls:
                text = json.loads(call.function.arguments)["text"]
                messages.append({"role": "tool", "tool_call_id": call.id, "content": run(text)})

    await run_cases(one, args)


if __name__ == "__main__":
    asyncio.run(main(parse_arguments()))
