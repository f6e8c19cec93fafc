"""What replies of all providers have in common: texts, stop words, token counts."""

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
    """The reply cut at its stop words, without keys, priced, and with the name of the model asked where it has none."""
    texts = tuple(redact_known(cut(text, sampling.stop), secrets) for text in reply.texts)
    usage, model = with_dollars(reply.usage, price), reply.model or name
    return Completion(texts, usage, reply.finish, model, logprobs=reply.logprobs)


def tokens_of(count: object, texts: Iterable[str]) -> int:
    """The endpoint's count where it is one; else an estimate of a token per four characters, so that a limit holds.

    >>> tokens_of(7, []), tokens_of(None, ["eight ch"]), tokens_of(-1, ["eight ch"])
    (7, 2, 2)
    """
    if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 2**53:
        return count
    return sum((len(text) + 3) // 4 for text in texts)
