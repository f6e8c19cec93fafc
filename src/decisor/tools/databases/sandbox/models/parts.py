"""The statements of a program, parsed and checked once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from decisor.tools.databases.sandbox.models.program import Program
from decisor.tools.databases.sandbox.models.statements import Statement, changes, queries, with_tolerance


@dataclass(frozen=True)
class Parts:
    """``bounds``: the limits of rules on a measure."""

    choice: Statement | None
    change: list[Statement]
    recompute: list[Statement]
    until: Statement | None
    measures: Mapping[str, Statement]
    rules: Mapping[str, Statement]
    bounds: Mapping[str, Statement]
    scenarios: Mapping[str, list[Statement]]

    @classmethod
    def of(cls, program: Program) -> Parts:
        """Raises ToolError with the part of the file that is refused."""
        values = program.parameters

        def query(part: str, text: str) -> Statement:
            return queries(part, text, values)

        return cls(
            query("choice", program.choice) if program.choice else None,
            changes("change", program.change, values),
            changes("recompute.sql", program.recompute, values),
            query("recompute.until", program.until) if program.until else None,
            {name: query(f"measure.{name}.sql", text) for name, text in program.measures.items()},
            {name: with_tolerance(query(f"rule.{name}.broken", text)) for name, text in program.rules.items()},
            {name: query(f"rule.{name}", limit.sql) for name, limit in program.limits.items()},
            {name: changes(f"scenario.{name}.change", text, values) for name, text in program.scenarios.items()},
        )

    def every(self) -> Iterable[Statement]:
        if self.choice:
            yield self.choice
        yield from (*self.change, *self.recompute, *([self.until] if self.until else []))
        for group in (self.measures, self.rules, self.bounds):
            yield from group.values()
        for statements in self.scenarios.values():
            yield from statements

    def without(self, skip: int | None) -> Parts:
        """Less one of the statements that change, and then recompute."""
        if skip is None:
            return self
        change = [one for at, one in enumerate(self.change) if at != skip]
        recompute = [one for at, one in enumerate(self.recompute, len(self.change)) if at != skip]
        return replace(self, change=change, recompute=recompute)

    def keeps(self, at: int) -> bool:
        """Whether several statements read what the change number ``at`` makes: then it is computed once."""
        name, readers = self.change[at].target, 0
        for later in self.change[at + 1 :]:
            readers += name in later.reads
            if later.target == name:
                break
        else:
            ends = (*self.measures.values(), *self.rules.values(), *self.bounds.values())
            readers += sum(name in one.reads for one in ends)
        return readers > 1
