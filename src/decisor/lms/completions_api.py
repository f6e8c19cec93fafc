"""The older completions API of OpenAI, which vLLM and llama.cpp speak too: a text is continued as it stands, without a
chat template. And log-probabilities, in the form of either API."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from decisor.lms.counts import chat_usage
from decisor.lms.faults import fault_in_reply
from decisor.lms.postprocess import tidy
from decisor.lms.retry import Again
from decisor.types import Completion, Message, Sampling, Token

# vLLM's: control tokens are part of the text, and no spaces are put between them.
KEEP_CONTROL_TOKENS = {"skip_special_tokens": False, "spaces_between_special_tokens": False}
MAX_STOPS = 4


def continuation_request(
    model: str, messages: Sequence[Message], sampling: Sampling, without: set[str]
) -> dict[str, object]:
    """The body of a request to ``/completions``, leaving out what the endpoint is known to refuse."""
    parts: dict[str, object] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "stop": list(sampling.stop[:MAX_STOPS]) or None,
        "n": sampling.n if sampling.n > 1 else None,
        "seed": sampling.seed,
        "logprobs": sampling.logprobs or None,
        **KEEP_CONTROL_TOKENS,
    }
    settings = {name: value for name, value in parts.items() if value is not None and name not in without}
    return {"model": model, "prompt": "".join(message.content for message in messages), **settings}


def choices_of(reply: Mapping[str, object], where: str) -> list[object]:
    """What a completion of either API offers, one at least.

    Raises:
        Again: there is none, or a passing error in its place.
        LMError: there is an error that will not pass.
    """
    choices = reply.get("choices")
    if isinstance(choices, list) and choices:
        return choices
    error = reply.get("error")
    if error:
        raise fault_in_reply(error if isinstance(error, Mapping) else {"message": str(error)}, where)
    raise Again(f"{where} sent a completion without choices.")


def parse_continuation(reply: object, messages: Sequence[Message], where: str) -> Completion:
    """A completion object as a Completion.

    Raises:
        Again: it is none, it is empty, or it holds a passing error.
        LMError: it holds an error that will not pass.
    """
    if not isinstance(reply, Mapping):
        raise Again(f"{where} sent JSON that is no completion.")
    choices = choices_of(reply, where)
    rows = [choice for choice in choices if isinstance(choice, Mapping) and isinstance(choice.get("text"), str)]
    if len(rows) < len(choices):
        raise Again(f"{where} sent a completion without text.")
    texts = tuple(tidy(row["text"]) for row in rows)
    finish, model = rows[0].get("finish_reason"), reply.get("model")
    return Completion(
        texts,
        chat_usage(reply, messages, texts),
        finish if isinstance(finish, str) else "stop",
        tidy(model) if isinstance(model, str) else "",
        logprobs=logprobs_of(choices),
    )


def logprobs_of(choices: Sequence[object]) -> tuple[tuple[Token, ...], ...]:
    """The tokens of each choice, or none at all where one lacks them."""
    if not any(choice.get("logprobs") for choice in choices if isinstance(choice, dict)):
        return ()
    read = [tokens_in(choice.get("logprobs") if isinstance(choice, dict) else None) for choice in choices]
    return tuple(read) if any(read) else ()


def tokens_in(logprobs: object) -> tuple[Token, ...]:
    """From the chat form (``content``: objects with token, logprob, top_logprobs) or the older one (parallel lists).

    >>> tokens_in({"tokens": ["a"], "token_logprobs": [-0.5], "top_logprobs": [{"a": -0.5, "b": -1.0}]})
    (Token(text='a', logprob=-0.5, top={'a': -0.5, 'b': -1.0}),)
    >>> tokens_in({"content": [{"token": "a", "logprob": -0.5, "top_logprobs": [{"token": "b", "logprob": -1.0}]}]})
    (Token(text='a', logprob=-0.5, top={'b': -1.0}),)
    """
    if not isinstance(logprobs, Mapping):
        return ()
    try:
        if isinstance(content := logprobs.get("content"), list):
            return tuple(
                token(one["token"], one["logprob"], {t["token"]: t["logprob"] for t in one.get("top_logprobs") or ()})
                for one in content
            )
        tops = logprobs.get("top_logprobs") or [{}] * len(logprobs["tokens"])
        rows = zip(logprobs["tokens"], logprobs["token_logprobs"], tops, strict=True)
        return tuple(token(text, logprob, top or {}) for text, logprob, top in rows)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()


def token(text: object, logprob: Any, top: Mapping[str, Any]) -> Token:
    """Raises ValueError or TypeError where a number is none. The first token of a text may have no log-probability."""
    values = {tidy(str(name)): min(0.0, float(value)) for name, value in top.items() if math.isfinite(float(value))}
    return Token(tidy(str(text)), min(0.0, float(logprob)) if logprob is not None else 0.0, values)
