"""The outcomes of an evaluation as JUnit XML, which CI servers read.

A suite is a technique with an LLM on a benchmark, a test case one try at a case. A wrong answer and a run over its
budget are failures, a crash is an error, an answer that nobody could score is skipped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from decisor.lab.benchmark import Outcome, State
from decisor.system.text import clean_text

TAGS: dict[State, str] = {"wrong": "failure", "over_budget": "failure", "crashed": "error", "unscored": "skipped"}
COUNTS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def write_junit_file(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write outcomes as a JUnit XML file; OSError if it cannot be written."""
    parts: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        parts[f"{outcome.benchmark}, {outcome.technique}, {outcome.model}"].append(outcome)
    every = [outcome for part in parts.values() for outcome in part]
    root = Element("testsuites", {"name": "decisor", **count_tests(every)})
    for name, part in parts.items():
        suite = SubElement(root, "testsuite", {"name": clean_text(name), **count_tests(part)})
        for outcome in part:
            add_test_case(suite, outcome)
    indent(root)
    ElementTree(root).write(path, "utf-8", xml_declaration=True)


def count_tests(part: Sequence[Outcome]) -> dict[str, str]:
    counts = {name: str(sum(TAGS.get(one.state) == tag for one in part)) for name, tag in COUNTS.items()}
    return {"tests": str(len(part)), **counts, "time": f"{sum(one.seconds for one in part):.3f}"}


def add_test_case(suite: Element, outcome: Outcome) -> None:
    name = f"{outcome.case} ({outcome.repeat + 1})" if outcome.repeat else outcome.case
    case = SubElement(suite, "testcase", name=clean_text(name), time=f"{outcome.seconds:.3f}")
    case.set("classname", clean_text(f"{outcome.benchmark}.{outcome.technique}"))
    if tag := TAGS.get(outcome.state):
        fault = SubElement(case, tag, message=clean_text(outcome.failure or outcome.state.replace("_", " ")))
        gold = f" (right: {', '.join(outcome.gold)})" if outcome.gold else ""
        fault.text = clean_text("\n".join([f"Answer: {outcome.text or 'none'}{gold}", *outcome.reasons]))
        if tag != "skipped":
            fault.set("type", outcome.state)
