"""The critical path of made traces."""

from decisor.lab.evaluation.case_run import critical_seconds
from decisor.trace.events import ActionResult, ActionStart, LLMCall, Trace
from decisor.types import Observation, Usage


def llm(trace: Trace, seconds: float, since: int) -> None:
    trace.add(LLMCall("m", (), (), usage=Usage(1, seconds=seconds), since=since))


def test_calls_in_a_row_add_up_and_calls_at_once_do_not() -> None:
    row, fan = Trace(), Trace()
    for at in range(3):
        llm(row, 2.0, at)
        llm(fan, 1.0 + at, 0)
    assert (critical_seconds(row.entries), critical_seconds(fan.entries)) == (6.0, 3.0)


def test_an_action_counts_from_its_own_start() -> None:
    trace = Trace()
    llm(trace, 1.0, 0)
    first = trace.add(ActionStart("sql", ""))
    second = trace.add(ActionStart("sql", ""))
    trace.add(ActionResult(first, Observation(), 5.0))
    trace.add(ActionResult(second, Observation(), 2.0))
    llm(trace, 1.0, 5)
    assert critical_seconds(trace.entries) == 7.0


def test_nothing_takes_no_time() -> None:
    assert critical_seconds([]) == 0.0
