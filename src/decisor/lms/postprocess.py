"""What replies of all providers have in common: texts, stop words, prices."""

from __future__ import annotations

from collections.abc import Iterable

from decisor.lms.prices import Price, with_dollars
from decisor.secrets import Secret, redact_known
from decisor.types import Completion, Sampling


def tidy(text: str) -> str:
    """``text`` without lone surrogates, which no UTF-8 file takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def cut(text: str, stops: Iterable[str]) -> str:
    """``text`` before the first of these words: some endpoints ignore them, all take only a few.

    >>> cut("Action: query\\nObservation: made up", ["\\nObservation"])
    'Action: query'
    """
    for stop in stops:
        if stop:
            text = text.partition(stop)[0]
    return text


def postprocess(
    reply: Completion, sampling: Sampling, secrets: Iterable[Secret], price: Price | None, name: str
) -> Completion:
    """The reply cut at its stop words, without keys, priced, and with the name of the model asked where it has none.
    What ran on after a stop word until its length ended is whole before that word."""
    whole = [cut(text, sampling.stop) for text in reply.texts]
    ran_on = reply.finish == "length" and all(one != text for one, text in zip(whole, reply.texts, strict=True))
    texts = tuple(redact_known(text, secrets) for text in whole)
    usage, model = with_dollars(reply.usage, price) if price else reply.usage, reply.model or name
    return Completion(texts, usage, "stop" if ran_on else reply.finish, model, logprobs=reply.logprobs)
