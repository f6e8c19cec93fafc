"""The parts that techniques over documents share: retrieval, passages with ids, short cited answers and control
tokens.

``continue_text`` and the functions after it are for fine-tuned models, whose control tokens and probabilities they
read through the completions API with log-probabilities.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from decisor.errors import BudgetExceeded, Error, LLMError, ParseError, SetupError
from decisor.parsing.cleaning import NO_HELP
from decisor.parsing.figures import find_citations, without_citations
from decisor.parsing.labelled import LabelledReply
from decisor.parsing.reply_form import Form
from decisor.runtime.prompt import join_texts
from decisor.runtime.run import KEEP_OR_CORRECT, Run
from decisor.techniques.shared.analyst import list_tool_languages
from decisor.techniques.shared.answer import (
    NO_ANSWER,
    Trajectory,
    build_answer_form,
    end_run,
    read_answer_object,
    read_labelled_answer,
    record_decision,
)
from decisor.techniques.shared.observations import SAME, build_record_line, find_copies, show_text, show_value
from decisor.trace.events import UnreadableReply
from decisor.types import Action, Decision, Environment, Message, Record, Sampling, Step, Token, Value

PASSAGES = "passages"
NO_PASSAGES = ("sql", "cypher", "whatif", "calculator", "combine")
MAX_QUERY = 2_000
ANSWER_IS = re.compile(r"^.*?\b(?:final )?answer(?: is\b\s*:?|\s*:)\s*(?=\S)", re.I)


def find_passages_tool(env: Environment) -> str:
    """Return the tool that finds passages, or the only tool there is.

    Raises:
        SetupError: there is none, or there are several.
    """
    tools, forms = env.tools(), list_tool_languages(env)
    # A tool of a person's own need not say what it returns: if it is the only one, it is meant.
    finders = [name for name in tools if forms[name] == PASSAGES] or [name for name in tools if len(tools) == 1]
    if not finders or forms[finders[0]] in NO_PASSAGES:
        there = ", ".join(tools) or "none"
        raise SetupError(f"This technique reads passages, and the tools are: {there}. Give it documents, with --docs.")
    if len(finders) > 1:
        raise SetupError(
            f"This technique reads from one place, and there are {', '.join(finders)}: index "
            "them together with decisor index, or take another technique."
        )
    return finders[0]


async def find_passages(query: str, limit: int, trajectory: Trajectory, run: Run) -> Trajectory:
    """Retrieve passages for a query and return the trajectory with this step.

    Only the first ``limit`` passages are kept.
    """
    action = Action(find_passages_tool(run.env), " ".join(query.split())[:MAX_QUERY])
    observation = await run.act(action)
    first = replace(observation, records=observation.records[:limit])
    return replace(trajectory, steps=(*trajectory.steps, Step(action, first)))


def unique_passages(trajectory: Trajectory, most: int) -> tuple[Record, ...]:
    """Return the first ``most`` different passages in order, each under its first id."""
    # Ids differ between searches; the words tell whether it is the same passage.
    records = list_trajectory_records(trajectory)
    copies = find_copies(records)
    return tuple(record for record in records if record.id not in copies)[:most]


def list_trajectory_records(trajectory: Trajectory, count: int | None = None) -> tuple[Record, ...]:
    """Return all records of the first ``count`` retrievals. A passage found twice may be cited by either id."""
    return tuple(record for step in trajectory.steps[:count] for record in step.observation.records)


def format_passages(passages: Sequence[Record], earlier: Sequence[Record] = ()) -> str:
    """Format passages as id, title and text, as ``show_records`` does.

    A passage that stands in one of the ``earlier`` ones, or before it, only refers to that.
    """
    copies = find_copies((*earlier, *passages))
    lines = []
    for one in passages:
        title = [show_value(one.fields["title"])] if "title" in one.fields else []
        text = SAME.format(copies[one.id]) if one.id in copies else show_text(one.text)
        lines.append(build_record_line(one, " | ".join([f"[{one.id}]", *title, text])))
    return join_texts("\n", lines) or "(nothing was found)"


def read_bare_answer(text: str) -> str:
    """Return the answer of a short reply of one line without labels, or the text after "the answer is".

    Raises:
        ParseError: a refusal, reasoning of several lines, or an object of another form.
    """
    if NO_HELP.search(text):
        raise ParseError("That is a refusal. Write a final answer.", "model_refusal")
    if "\n" in text or len(text) > 200 or text.startswith("{"):
        raise ParseError("Write the answer alone on one line, as Final answer: ...", "missing_field")
    return ANSWER_IS.sub("", text)


def decide_cited_answer(reply: LabelledReply, trajectory: Trajectory, passages: Sequence[Record]) -> Decision:
    """Build the decision of a short answer. One that cites nothing is the LLM's own knowledge.

    Raises:
        ParseError: it is empty, or cites anything that is not among ``passages`` or earlier records.
    """
    answer, because = reply.answer or "", reply.because
    if not answer:
        raise ParseError("Your final answer is empty.", "missing_field")
    earlier = trajectory.question.earlier.records if trajectory.question.earlier else ()
    records = {record.id: record for record in (*passages, *earlier)}
    cited_ids = find_citations(f"{answer}\n{because}", records)
    if unknown := [id for id in cited_ids if id not in records]:
        raise ParseError(f"You cite {', '.join(unknown)}, which you have not been shown.", "unknown_source")
    if NO_ANSWER.fullmatch(without_citations(answer)):
        return replace(trajectory.decision("", because), stopped="no_answer")
    return trajectory.decision(answer, because)


def build_cited_answer_form(
    trajectory: Trajectory, passages: Sequence[Record], text: str, says: Mapping[str, str]
) -> Form[Decision]:
    def decide(reply: LabelledReply) -> Decision:
        return decide_cited_answer(reply, trajectory, passages)

    return build_answer_form("short answer", text, says, decide, read_bare_answer)


def parse_cited_answer(reply: str, trajectory: Trajectory, passages: Sequence[Record]) -> Decision:
    return decide_cited_answer(read_labelled_answer(reply, read_bare_answer), trajectory, passages)


def read_cited_answer(value: Mapping[str, Value], trajectory: Trajectory, passages: Sequence[Record]) -> Decision:
    return decide_cited_answer(read_answer_object(value), trajectory, passages)


def build_short_answer_form(trajectory: Trajectory, passages: Sequence[Record]) -> Form[Decision]:
    """Build the form of an answer in few words, with the passages that it rests on."""
    return build_cited_answer_form(trajectory, passages, CITED, SHORT_ANSWER)


async def ask_for_answer(
    prompt: str | Sequence[Message], form: Form[Decision], trajectory: Trajectory, run: Run, error: Error | None = None
) -> Decision:
    """Ask for the final answer with the reserve of the budget; see ``end_run``."""
    return record_decision(await end_run(lambda: run.ask(prompt, form, final=True), trajectory, error), run)


ALONE = "the answer alone, in the passages' own words and none of them shortened"
SENTENCE_WITH_IDS = "one sentence, with the ids of the passages it rests on, like [o1.r3]"
CITED = f"Final answer: {ALONE}\nBecause: {SENTENCE_WITH_IDS}\n"

SHORT_ANSWER = {"because": SENTENCE_WITH_IDS, "final_answer": ALONE}


LOGPROBS = 20  # as many as vLLM tells by default
API = "behind the older completions API (POST /v1/completions, not chat) with log-probabilities"
SERVE = "Serve those weights with vLLM and name them: --llm MODEL@http://HOST:PORT/v1"


@dataclass(frozen=True)
class Continuation:
    """A text that was written after a prompt, with its tokens."""

    text: str
    tokens: tuple[Token, ...]
    finish: str = "stop"
    """stop or length."""

    @property
    def first(self) -> Token | None:
        return self.tokens[0] if self.tokens else None

    @property
    def likelihood(self) -> float:
        """Geometric mean of the tokens' probabilities, 0 to 1."""
        return math.exp(sum(token.logprob for token in self.tokens) / len(self.tokens)) if self.tokens else 0.0


async def continue_text(prompt: str, run: Run, sampling: Sampling, needs: str, final: bool = False) -> Continuation:
    """Continue a prompt literally, through the completions API.

    ``needs``: the weights required, for error messages. ``final``: may use the reserve of the budget.

    Raises:
        SetupError: the endpoint refuses such a request, or gives no log-probabilities; ``needs`` says what weights are
            wanted.
        LLMError: the endpoint failed for good.
    """
    try:
        reply = await run.complete([Message("user", prompt)], sampling, final)
    except LLMError as error:
        # Most likely the endpoint has no completions API or gives no log-probabilities: a person must change it.
        if error.kind != "request":
            raise
        raise SetupError(f"{needs}, {API}. {error}") from error
    if reply.text and not reply.logprobs:
        raise SetupError(f"{needs}, {API}; {run.llm.name} gave no log-probabilities. {SERVE}")
    return Continuation(reply.text, reply.logprobs[0] if reply.logprobs else (), reply.finish)


async def send_back(decision: Decision, run: Run, write: Callable[[str], Awaitable[Decision]]) -> Decision:
    """Have an answer written once more where something is objected to; the second stands, with its objections.

    Args:
        write: the answer to the question with this text behind it.
    """
    if not decision.evidence.objections:
        return decision
    complaint = " ".join([*(objection.text for objection in decision.evidence.objections), KEEP_OR_CORRECT])
    run.trace.add(UnreadableReply("objection", complaint), run.span_id)
    try:
        second = await write(f"Your answer was: {decision.answer}. {complaint}")
    except (BudgetExceeded, LLMError):
        return decision
    return second if second.answer else decision


def check_weights(continuations: Iterable[Continuation], names: Sequence[str], run: Run, needs: str) -> None:
    """Raise SetupError if an LLM has other weights: it writes to the token limit without a likely control token."""
    written = [one for one in continuations if one.tokens]
    likely = {text.strip() for one in written for token in one.tokens for text in (token.text, *token.top)}
    # The fine-tuned weights end by a control token. Other weights write on, and their answers would look right.
    if written and all(one.finish == "length" for one in written) and not likely & {name.strip() for name in names}:
        raise SetupError(f"{needs}: {run.llm.name} knows none of its control tokens. {SERVE}")


def normalize_token_chances(token: Token | None, names: Sequence[str]) -> dict[str, float]:
    """Return the probabilities of tokens at one place, normalized to a sum of 1.

    All are 0 if none was among the likely ones.
    """
    top = {name.strip(): math.exp(logprob) for name, logprob in token.top.items()} if token else {}
    # The token that was drawn need not be among the likeliest, which is all that an endpoint lists.
    if token and token.text.strip() not in top:
        top[token.text.strip()] = math.exp(token.logprob)
    probabilities = {name: top.get(name, 0.0) for name in names}
    whole = sum(probabilities.values())
    return {name: chance / whole if whole else 0.0 for name, chance in probabilities.items()}


def find_first_token(tokens: Iterable[Token], names: Sequence[str]) -> Token | None:
    """Return the first token that has one of the names; None without one."""
    return next((token for token in tokens if token.text.strip() in names), None)


def strip_tokens(text: str, names: Iterable[str]) -> str:
    """Remove control tokens from a text, so that a question or passage cannot steer the LLM."""
    for name in names:
        text = text.replace(name, "")
    return text
