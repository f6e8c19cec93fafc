"""A reply that an endpoint let run on after a stop word."""

import pytest

from decisor.llms.turns import postprocess_reply
from decisor.types import Completion, Sampling

STOP = Sampling(stop=("Observation:",))


@pytest.mark.parametrize(
    ("text", "finish"),
    [
        ("Action: sql\nAction input: SELECT 1\nObservation: 1\n1\n1", "stop"),
        ("Action: sql\nAction input: SELECT 1 FROM", "length"),
    ],
)
def test_what_ran_on_after_a_stop_word_until_its_length_ended_is_whole_before_it(text: str, finish: str) -> None:
    reply = postprocess_reply(Completion((text,), finish="length"), STOP, (), None, "m")
    assert reply.finish == finish
