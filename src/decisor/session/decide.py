"""A technique decides: the one place where a limit or replies that cannot be read end a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decisor.asking import in_words
from decisor.errors import BudgetExceeded, ModelMistake, OutageError, SetupError
from decisor.lms.prices import FREE, Price
from decisor.log import note_faults
from decisor.plurals import counted
from decisor.replies.reasons import for_people
from decisor.run import Run, Technique
from decisor.trace.events import Conclusion, Note, with_pitfalls
from decisor.types import Completion, Decision, Message, Question, Sampling, Usage

NAME_ONE = "name one with --lm MODEL[@URL] (in Python, lm=), or set DECISOR_LM, OPENAI_API_KEY or ANTHROPIC_API_KEY"


@dataclass(frozen=True)
class NoLM:
    """Stands where no LM is to be asked."""

    name: str = ""
    price: Price = FREE

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        raise SetupError(f"There is no LM: {NAME_ONE}.")


def cost_line(usage: Usage) -> str:
    """
    >>> cost_line(Usage(2, 1_000, 200, 0.0125, estimates=1)), cost_line(Usage(1, 10, 5, None))
    ('2 LM calls, 1,200 tokens, $0.0125, in part estimated', '1 LM call, 15 tokens, price unknown')
    """
    cost = "price unknown" if usage.dollars is None else f"${usage.dollars:.4f}"
    guess = ", in part estimated" if usage.estimates else ""
    return f"{counted(usage.calls, 'LM call')}, {usage.tokens:,} tokens, {cost}{guess}"


async def decide(technique: Technique, question: Question, run: Run) -> Decision:
    """The technique's decision, which is the last word of the run's trace too. Where a limit, unreadable replies or a
    database that went away ended it, a decision without an answer that says so.

    Raises:
        SetupError: the technique lacks something (a tool, an LM).
        LMError: the endpoint failed for good.
    """
    try:
        with in_words(run.asking.words), note_faults(lambda text: run.trace.add(Note(text), run.span_id)):
            decision = await technique(question, run)
    except BudgetExceeded as error:
        decision = Decision("", reasons=(str(error),), stopped="budget")
    except ModelMistake as error:
        decision = Decision("", reasons=(for_people(error),), stopped="failed")
    except OutageError as error:
        decision = Decision(
            "", reasons=(f"{error} The run stopped there; ask again when it is back.",), stopped="failed"
        )
    if not any(isinstance(entry.event, Conclusion) and entry.span == run.span_id for entry in run.trace.entries):
        run.trace.add(Conclusion(decision), run.span_id)
    return with_pitfalls(decision, run.trace.entries)
