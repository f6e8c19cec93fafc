"""Trace files and run stores of Decisor 0.1.0. A line holds id, parent, kind, at and data; what is not one of eight
kinds is a ``note``, told apart by the keys of its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Data = Mapping[str, Any]


def from_version_1(row: Data) -> Data:
    """The same entry as version 2 writes it. Raises KeyError, TypeError or AttributeError where it is none."""
    kind, data = row["kind"], row["data"]
    name, fields = note(data) if kind == "note" else KINDS[kind](data)
    return {"id": row["id"], "span": row["parent"], "at": row["at"], "event": name, "data": fields}


def run_start(data: Data) -> tuple[str, Data]:
    settings = {name: str(value) for name, value in data.get("settings", {}).items()}
    edit = {name: value for name, value in (data.get("edited") or {}).items() if value and isinstance(value, str)}
    return "RunStart", {**data, "settings": settings, "edit": edit}


def span(data: Data) -> tuple[str, Data]:
    if "ask" not in data:
        return "Span", data
    return "NodeSpan", {
        "node": data["node"],
        "question": data["ask"],
        "parents": data["needs"],
        "source": data["source"],
    }


def plan(data: Data) -> tuple[str, Data]:
    if "nodes" not in data:
        return "Plan", {"steps": data["plan"]}
    graph = {"parts": data["nodes"], "repairs": data["repairs"], "simple": data["simple"]}
    return "GraphPlan", {"steps": data["plan"], "graph": graph, "why": data.get("why", "")}


def plan_change(data: Data) -> tuple[str, Data]:
    return "PlanChange", {"after_step": data["after_step"], "why": data["why"], "steps": data["plan"]}


KINDS: Mapping[str, Callable[[Data], tuple[str, Data]]] = {
    "run": run_start,
    "span": span,
    "plan": plan,
    "replan": plan_change,
    "lm": lambda data: ("LMCall", data),
    "action": lambda data: ("ActionStart", data),
    "observation": lambda data: ("ActionResult", data),
    "decision": lambda data: ("Conclusion", data),
}


def note(data: Data) -> tuple[str, Data]:
    if "problem" in data:
        return problem(data)
    if "usage" in data:
        return "RunUsage", data
    if "answered" in data:
        answer = data["answered"]
        answer = {**answer, "question": answer["asked"], **attribution(answer)}
        return "NodeResult", {"answer": answer, "reused": data.get("reused", False)}
    if "counts" in data:
        return "GraphResult", {**data, **attribution(data)}
    if data.get("name") in NAMES:
        return NAMES[data["name"]](data)
    return "Note", {"text": str(data.get("text", ""))}


def attribution(data: Data) -> Data:
    names = {"own": "model_knowledge", "given": "manual"}
    kind = str(data.get("attribution", "unattributed"))
    return {"attribution": names.get(kind, kind)}


def problem(data: Data) -> tuple[str, Data]:
    kind = data["problem"]
    if kind == "reply":
        return "UnreadableReply", data
    if kind == "lm":
        return "FailedCall", {**data, "usage": data.get("used", {})}
    return ("UnscoredAnswer" if kind == "unscored" else "SearchProblem"), data


def search_node(data: Data) -> tuple[str, Data]:
    action = {"tool": data["tool"], "input": data["input"]}
    return "SearchNode", {**data, "parent": data["of"], "action": action}


def search_tree(data: Data) -> tuple[str, Data]:
    nodes = [{**node, "node": node["id"], "parent": node["of"]} for node in data["nodes"]]
    return "SearchTree", {"nodes": nodes, "chosen": data["chosen"]}


NAMES: Mapping[str, Callable[[Data], tuple[str, Data]]] = {
    "node": search_node,
    "tree": search_tree,
    "match": lambda data: ("SearchMatch", data),
    "snapshot": lambda data: ("AnswerSnapshot", data),
    "scores": lambda data: ("QueryScores", data),
    "auto": lambda data: ("TechniqueChoice", {"technique": data["technique"], "why": data.get("text", "")}),
}
