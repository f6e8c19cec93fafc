"""Heuristic: rules of thumb for Decision QA, without an LLM and without a simulation.

    locating   the upstream neighbour of home with the largest outgoing * (1 - 1/outdegree)
    building   the supplier with the largest max_supply/level * share of its inputs that it gets

They answer most of the released questions, so an LLM's score says little until it stands beside theirs. That is all
they are for: they know two kinds of question, and look at neither the rules nor the outcome.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from decisor.errors import SetupError
from decisor.runtime.run import Run
from decisor.techniques.shared.analyst import list_tool_languages
from decisor.trace.events import Conclusion
from decisor.types import Action, Decision, Evidence, Observation, Question, Record, Value

HOME = re.compile(r"home node is [\"']?([\w-]+(?: [\w-]+)*)", re.I)
GOODS = re.compile(r"market price of (?:the goods )?[\"']?([\w -]+?)[\"']?(?:\s*[?.]|\s*$)", re.I | re.M)
NOT_MINE = (
    'heuristic knows two kinds of question: where a country whose home node is "N" should put its merchant, '
    "and which building lowers the market price of a good. Use another technique for this one."
)


@dataclass(frozen=True)
class Heuristic:
    """Two rules of thumb that read a few columns of the first database, without an LLM."""

    asks_llm: ClassVar[bool] = False

    async def __call__(self, question: Question, run: Run) -> Decision:
        """Answer the question by its rule of thumb.

        Raise SetupError if the question is of neither kind or no database is available.
        """
        tool, form = next(
            ((name, form) for name, form in list_tool_languages(run.env).items() if form in LOCATING), ("", "")
        )
        if not tool:
            raise SetupError("heuristic needs a database: give one with --db URL.")
        if home := HOME.search(question.text):
            query, worth = LOCATING[form], rate_neighbour
            name = home[1]
        elif goods := GOODS.search(question.text):
            query, worth = BUILDING[form], rate_supplier
            name = goods[1]
        else:
            raise SetupError(NOT_MINE)
        observation = await run.act(Action(tool, query.replace("NAME", name.replace("'", "''"))))
        decision = decide_by_worth(observation, worth)
        run.trace.add(Conclusion(decision), run.span_id)
        return decision


def decide_by_worth(observation: Observation, worth: Callable[[Mapping[str, Value]], float]) -> Decision:
    """Return a decision for the record of the largest worth, the first of equals."""
    if observation.error or not observation.records:
        why = observation.note or "The database has no candidate that the rule of thumb looks at."
        return Decision("", reasons=(why,), stopped="failed" if observation.error else "no_answer")
    first: Record = max(observation.records, key=lambda record: worth(record.fields))
    most = f"{worth(first.fields):.6g}, the most of {len(observation.records)}"
    why = f"A rule of thumb, not a simulation: it scores {most}."
    return Decision(str(first.fields["candidate"]), Evidence((first.id,)), reasons=(why,))


def rate_neighbour(fields: Mapping[str, Value]) -> float:
    """Compute the additional trade from an upstream neighbour if all of its outgoing trade came home."""
    return convert_to_number_or_zero(fields["outgoing"]) * (1 - 1 / convert_to_number_or_zero(fields["outdegree"]))


def rate_supplier(fields: Mapping[str, Value]) -> float:
    """Compute the supply that one level adds, limited by its inputs."""
    ratio = fields.get("input_ratio")
    return (
        convert_to_number_or_zero(fields["max_supply"])
        / convert_to_number_or_zero(fields["level"])
        * (1.0 if ratio is None else convert_to_number_or_zero(ratio))
    )


def convert_to_number_or_zero(value: Value) -> float:
    return float(value) if isinstance(value, int | float | str) else 0.0


LOCATING = {
    "sql": """SELECT n.trade_node AS candidate, n.outgoing AS outgoing,
  (SELECT COUNT(*) FROM flow AS o WHERE o.source = n.trade_node) AS outdegree
FROM flow AS f JOIN trade_node AS n ON n.trade_node = f.source WHERE f.dest = 'NAME'""",
    "cypher": """MATCH (n:Trade_node)-[:source]->(:Trade_node {name: 'NAME'})
MATCH (n)-[o:source]->(:Trade_node)
RETURN n.name AS candidate, n.outgoing AS outgoing, count(o) AS outdegree""",
}

BUILDING = {
    "sql": """SELECT s.building_id AS candidate, s.max_supply AS max_supply, s.level AS level,
  (SELECT AVG(CASE WHEN d.max_demand <= d.current_input THEN 1.0 ELSE d.current_input / d.max_demand END)
   FROM demand AS d WHERE d.building_id = s.building_id AND d.max_demand > 0) AS input_ratio
FROM supply AS s JOIN goods AS g ON g.code = s.goods_id WHERE g.goods_name = 'NAME' AND s.level > 0""",
    "cypher": """MATCH (b:Building)-[s:Supply]->(:Goods {name: 'NAME'}) WHERE s.level > 0
OPTIONAL MATCH (:Goods)-[d:Demand]->(b)
RETURN b.id AS candidate, s.max_supply AS max_supply, s.level AS level,
  avg(CASE WHEN d.max_demand <= d.current_input THEN 1.0 ELSE d.current_input / d.max_demand END) AS input_ratio""",
}
