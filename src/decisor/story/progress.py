"""How far a run has come, from its events: the plan and where it stands, what it waits for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from decisor.trace.events import ActionStart, Event, LMCall, Plan, PlanChange
from decisor.trace.graph_events import GraphPlan, NodeResult

CURRENT = re.compile(r"current step\W{0,6}(?:step\W{0,3})?(\d{1,3})", re.I)


@dataclass
class Progress:
    """``current``: the number of the step that is under way, from 1."""

    plan: tuple[str, ...] = ()
    current: int = 1
    doing: str = "waiting for the LM"

    def follow(self, event: Event) -> None:
        self.doing = "waiting for the database" if isinstance(event, ActionStart) else "waiting for the LM"
        match event:
            case LMCall(texts=texts):
                if numbers := CURRENT.findall("\n".join(texts)):
                    self.current = int(numbers[-1])
            case Plan(steps=steps) | GraphPlan(steps=steps) | PlanChange(steps=steps):
                self.plan, self.current = steps, 1
            case NodeResult():
                self.current += 1
            case _:
                pass
