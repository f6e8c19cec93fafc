"""pydantic-ai: one Agent with one tool, run for each case."""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

from peers.measuring import Arguments, parse_arguments, read_only, run_cases


async def main(args: Arguments) -> None:
    run = read_only(args.database) if args.database else lambda text: "noted"
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=args.base_url, api_key="none"))
    agent = Agent(model, system_prompt="You find the cheapest good. " * 20)

    @agent.tool_plain
    async def sql(text: str) -> str:
        """Query the database."""
        return run(text)

    async def one(_: int) -> int:
        result = await agent.run("Which good is the cheapest?", usage_limits=UsageLimits(request_limit=1000))
        return sum(message.kind == "response" for message in result.all_messages())

    await run_cases(one, args)


if __name__ == "__main__":
    asyncio.run(main(parse_arguments()))
