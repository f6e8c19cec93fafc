"""Rules that are executed: each bound to the query that tests it, for one candidate."""

from __future__ import annotations

from decisor.decision_models.explain import say
from decisor.decision_models.machine import OpenModel
from decisor.types import RuleTest as RuleTest


def rule_tests(model: OpenModel, candidate: str) -> tuple[RuleTest, ...]:
    """In the order of the file. A rule without a query is not testable.

    Raises:
        ToolError: there is no such candidate, or a query fails.
    """
    file = model.model
    if not file.choice:
        return tuple(RuleTest(one.name, one.text, "kept", "required of the solver", one.sum, candidate=candidate)
                     for one in file.requires)  # fmt: skip
    number = model.candidates.find(candidate)
    outcomes = model.outcomes([number])
    tests = []
    for rule in file.rules:
        if rule.name not in outcomes.rules:
            tests.append(RuleTest(rule.name, rule.text, "not testable", "nothing in the data says it",
                                  candidate=candidate))  # fmt: skip
            continue
        test = rule.broken or f"{rule.measure} {'at most' if rule.at_most is not None else 'at least'} {rule.bound}"
        if not outcomes.broken[0, outcomes.rules.index(rule.name)]:
            tests.append(RuleTest(rule.name, rule.text, "kept", "its query gives no row", test, candidate=candidate))
            continue
        reason = outcomes.reasons.get((number, rule.name))
        rows = reason.rows if reason else ()
        tests.append(RuleTest(rule.name, rule.text, "broken", say(file, rule.name, reason), test,
                              reason.count if reason else len(rows), rows, candidate))  # fmt: skip
    return tuple(tests)
