"""smolagents: a ToolCallingAgent for each case, in threads, since it is synchronous."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from smolagents import OpenAIServerModel, ToolCallingAgent, tool

from peers.measuring import Arguments, parse_arguments, read_only, report


def main(args: Arguments) -> None:
    run = read_only(args.database) if args.database else lambda text: "noted"

    @tool
    def sql(text: str) -> str:
        """Query the database.

        Args:
            text: one SELECT
        """
        return run(text)

    model = OpenAIServerModel("m", api_base=args.base_url, api_key="none")

    def one(_: int) -> int:
        agent = ToolCallingAgent([sql], model, max_steps=1000, verbosity_level=0)
        agent.run("Which good is the cheapest?")
        return len([step for step in agent.memory.steps if getattr(step, "model_output_message", None)])

    with ThreadPoolExecutor(args.at_once) as pool:
        list(pool.map(one, range(2)))
        began, cpu = time.perf_counter(), time.process_time()
        calls = list(pool.map(one, range(args.cases)))
        report(sum(calls), began, cpu)


if __name__ == "__main__":
    main(parse_arguments())
