"""What techniques share that read a fine-tuned model's control tokens and their probabilities."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from decisor.errors import BudgetExceeded, LMError, SetupError
from decisor.run import KEEP_OR_CORRECT, Run
from decisor.trace.events import UnreadableReply
from decisor.types import Decision, Message, Sampling, Token

LOGPROBS = 20  # as many as vLLM tells by default
API = "behind the older completions API (POST /v1/completions, not chat) with log-probabilities"
SERVE = "Serve those weights with vLLM and name them: --lm MODEL@http://HOST:PORT/v1"


@dataclass(frozen=True)
class Continuation:
    """What was written after a prompt, with its tokens, and why it ended (stop, length)."""

    text: str
    tokens: tuple[Token, ...]
    finish: str = "stop"

    @property
    def likelihood(self) -> float:
        """The geometric mean of the tokens' probabilities, 0 to 1."""
        return math.exp(sum(token.logprob for token in self.tokens) / len(self.tokens)) if self.tokens else 0.0


async def continue_text(prompt: str, run: Run, sampling: Sampling, needs: str, final: bool = False) -> Continuation:
    """Continue ``prompt`` as it stands. ``final`` may use what the budget keeps back.

    Raises:
        SetupError: the endpoint refuses such a request, or gives no log-probabilities; ``needs`` says what weights are
            wanted.
        LMError: the endpoint failed for good.
    """
    try:
        reply = await run.complete([Message("user", prompt)], sampling, final)
    except LMError as error:
        if error.kind != "request":
            raise
        raise SetupError(f"{needs}, {API}. {error}") from error
    if reply.text and not reply.logprobs:
        raise SetupError(f"{needs}, {API}; {run.lm.name} gave no log-probabilities. {SERVE}")
    return Continuation(reply.text, reply.logprobs[0] if reply.logprobs else (), reply.finish)


async def send_back(decision: Decision, run: Run, write: Callable[[str], Awaitable[Decision]]) -> Decision:
    """Have an answer written once more where something is objected to; the second stands, with what is left of it.

    Args:
        write: the answer to the question with this text behind it.
    """
    if not decision.evidence.objections:
        return decision
    complaint = " ".join([*(objection.text for objection in decision.evidence.objections), KEEP_OR_CORRECT])
    run.trace.add(UnreadableReply("objection", complaint), run.span_id)
    try:
        second = await write(f"Your answer was: {decision.answer}. {complaint}")
    except (BudgetExceeded, LMError):
        return decision
    return second if second.answer else decision


def check_weights(continuations: Iterable[Continuation], names: Sequence[str], run: Run, needs: str) -> None:
    """
    Raises:
        SetupError: the model wrote on and on, and at no place was one of its control tokens likely: other weights.
    """
    written = [one for one in continuations if one.tokens]
    likely = {text.strip() for one in written for token in one.tokens for text in (token.text, *token.top)}
    if written and all(one.finish == "length" for one in written) and not likely & {name.strip() for name in names}:
        raise SetupError(f"{needs}: {run.lm.name} knows none of its control tokens. {SERVE}")


def chances(token: Token | None, names: Sequence[str]) -> dict[str, float]:
    """The probability of each of these tokens at one place, made to add up to 1; all 0 where none was likely at all."""
    top = {name.strip(): math.exp(logprob) for name, logprob in token.top.items()} if token else {}
    if token and token.text.strip() not in top:
        top[token.text.strip()] = math.exp(token.logprob)
    probabilities = {name: top.get(name, 0.0) for name in names}
    whole = sum(probabilities.values())
    return {name: chance / whole if whole else 0.0 for name, chance in probabilities.items()}


def first_of(tokens: Iterable[Token], names: Sequence[str]) -> Token | None:
    """The first of the tokens that is one of these."""
    return next((token for token in tokens if token.text.strip() in names), None)


def strip_tokens(text: str, names: Iterable[str]) -> str:
    """``text`` without control tokens: what a question or passage holds may not steer the model."""
    for name in names:
        text = text.replace(name, "")
    return text
