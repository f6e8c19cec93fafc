"""LangGraph: a model node and a tool node over MessagesState, compiled once, with langchain-openai."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from peers.measuring import Arguments, parse_arguments, read_only, run_cases


async def main(args: Arguments) -> None:
    run = read_only(args.database) if args.database else lambda text: "noted"

    @tool
    def sql(text: str) -> str:
        """Query the database."""
        return run(text)

    model = ChatOpenAI(model="m", base_url=args.base_url, api_key="none", timeout=600).bind_tools([sql])

    async def ask(state: Any) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("act", ToolNode([sql]))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", lambda state: "act" if state["messages"][-1].tool_calls else END)
    graph.add_edge("act", "ask")
    compiled = graph.compile()

    async def one(_: int) -> int:
        messages = [("system", "You find the cheapest good. " * 20), ("user", "Which good is the cheapest?")]
        state = await compiled.ainvoke({"messages": messages}, {"recursion_limit": 1000})
        return sum(isinstance(message, AIMessage) for message in state["messages"])

    await run_cases(one, args)


if __name__ == "__main__":
    asyncio.run(main(parse_arguments()))
