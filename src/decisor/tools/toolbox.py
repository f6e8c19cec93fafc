"""The environment of a run on databases: named tools, and ids for all they bring back (o3.r1)."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from decisor.errors import ToolError
from decisor.types import Action, Observation, Record, Tool


@dataclass
class Toolbox:
    """Tools by name. Forks share the connections and the counter, so an id is given once in a run."""

    members: Sequence[Tool]
    counter: Iterator[int] = field(default_factory=lambda: count(1))

    def tools(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self.members)

    def forms(self) -> dict[str, str]:
        """Of the tools that have one: sql, cypher, passages."""
        return {tool.name: form for tool in self.members if (form := getattr(tool, "form", ""))}

    def describe(self) -> str:
        return "\n\n".join(f"### Tool: {tool.name}\n{tool.describe().strip()}" for tool in self.members)

    async def step(self, action: Action) -> Observation:
        """Raises ToolError where there is no such tool, or the tool refuses or fails."""
        for tool in self.members:
            if tool.name == action.tool:
                number = next(self.counter)
                observation = await tool.call(action.input)
                records = tuple(
                    Record(f"o{number}.{one.id}", one.fields, one.text, one.source, one.score)
                    for one in observation.records
                )
                return replace(observation, records=records)
        near = difflib.get_close_matches(action.tool, self.tools(), 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ToolError(f"There is no tool {action.tool!r}; there is {', '.join(self.tools())}.{hint}")

    def fork(self) -> Toolbox:
        return Toolbox(self.members, self.counter)

    async def close(self) -> None:
        for tool in self.members:
            await tool.close()
