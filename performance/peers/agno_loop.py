"""agno: one Agent with one tool on an OpenAI-like model, run for each case."""

from __future__ import annotations

import asyncio

from agno.agent import Agent
from agno.models.openai.like import OpenAILike

from peers.measuring import Arguments, parse_arguments, read_only, run_cases


async def main(args: Arguments) -> None:
    run = read_only(args.database) if args.database else lambda text: "noted"

    async def sql(text: str) -> str:
        """Query the database."""
        return run(text)

    model = OpenAILike(id="m", base_url=args.base_url, api_key="none", timeout=600)
    agent = Agent(model=model, tools=[sql], system_message="You find the cheapest good. " * 20, telemetry=False)

    async def one(_: int) -> int:
        result = await agent.arun("Which good is the cheapest?")
        return sum(message.role == "assistant" for message in result.messages or [])

    await run_cases(one, args)


if __name__ == "__main__":
    asyncio.run(main(parse_arguments()))
