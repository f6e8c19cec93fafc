"""The critical path of made traces."""

from decisor.evaluation.critical_path import critical
from decisor.trace.events import Trace
from decisor.types import Usage


def lm(trace: Trace, seconds: float, since: int) -> None:
    trace.add("lm", usage=Usage(1, seconds=seconds), since=since)


def test_calls_in_a_row_add_up_and_calls_at_once_do_not() -> None:
    row, fan = Trace(), Trace()
    for at in range(3):
        lm(row, 2.0, at)
        lm(fan, 1.0 + at, 0)
    assert (critical(row.events), critical(fan.events)) == (6.0, 3.0)


def test_an_action_counts_from_its_own_start() -> None:
    trace = Trace()
    lm(trace, 1.0, 0)
    first = trace.add("action", tool="sql", input="")
    second = trace.add("action", tool="sql", input="")
    trace.add("observation", action=first, seconds=5.0)
    trace.add("observation", action=second, seconds=2.0)
    lm(trace, 1.0, 5)
    assert critical(trace.events) == 7.0


def test_nothing_takes_no_time() -> None:
    assert critical([]) == 0.0
