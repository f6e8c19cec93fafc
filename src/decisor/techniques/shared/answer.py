"""From a final answer to a Decision: its name, its citations and the support of its figures.

An answer that departs from the computed ranking is described in one line, with the record that says otherwise. An
answer whose candidate was compared with no other is refused once, or noted: its citation is true, but does not show
that it is the best. ``EvidenceRule`` tells whether an answer must cite records.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, TypeVar

from decisor.errors import BudgetExceeded, Error, LLMError, ParseError
from decisor.parsing.attribution import iterate_scalars
from decisor.parsing.cleaning import clean_reply
from decisor.parsing.figures import (
    bracket_ids,
    check_figures,
    collect_record_numbers,
    find_citations,
    iterate_numbers,
    iterate_numeric_fields,
    without_citations,
)
from decisor.parsing.labelled import LABEL, LabelledReply, parse_answer, read_fields, read_labelled_object
from decisor.parsing.prompting import explain_error, vary_sampling, warn_of_unread_replies
from decisor.parsing.reply_form import Form
from decisor.runtime.prompt import PromptTemplate, PromptText
from decisor.runtime.run import Run
from decisor.techniques.shared.analyst import ANSWER, FINAL_ANSWER, build_answer_shape
from decisor.techniques.shared.compared import describe_runner_up, find_compared_table, mentions_candidate
from decisor.techniques.shared.objections import (
    Claims,
    describe_departure,
    find_fullest_ranking,
    find_objections,
    holds_name,
)
from decisor.techniques.shared.objections.reading import Ground
from decisor.techniques.shared.observations import Rendering, render_steps, show_steps
from decisor.trace.events import (
    ActionResult,
    ActionStart,
    Conclusion,
    LLMCall,
    Plan,
    PlanChange,
    UnreadableReply,
    events_of,
)
from decisor.types import (
    Action,
    Decision,
    Evidence,
    Message,
    Objection,
    Observation,
    Question,
    Ranking,
    Record,
    Replan,
    Sampling,
    Step,
    Stopped,
    Value,
)

T = TypeVar("T")
NAMED = "Each query that brought {name} named it, and no other candidate was looked at."
NOT_BEST = "{name} is not the first row of {id}, nor does any column there have its largest or smallest figure in it."
ONE_PASSAGE = "[{id}] alone is cited, and no passage with what {name} was compared with."
ADVICE = "Find the other candidates and compare them by what decides. Where you did, cite what shows it."
FEW_ROWS = 3


def explain_no_comparison(name: str, cited: Sequence[Record], question: Question, steps: Sequence[Step]) -> str:
    """Explain why the steps show no comparison with other candidates; empty if they may show one.

    Every query that brought the candidate named it; or a choice by rules among passages rests on one of them.
    """
    plain = name.strip().casefold()
    holders = [(step, one) for step in steps for one in step.observation.records if holds_name(one, plain)]
    if not plain or not holders or question.earlier:
        return ""
    brought = mentions_candidate(str(question), plain) or any(
        not mentions_candidate(step.action.input, plain) for step, _ in holders
    )
    if not brought and is_only_candidate(plain, [record for _, record in holders], steps):
        return NAMED.format(name=name)
    # One passage can hold the right candidate and still not show that the rules choose it.
    if len(cited) == 1 and cited[0].text and question.rules:
        return ONE_PASSAGE.format(name=name, id=cited[0].id)
    return ""


def explain_not_best(name: str, cited: Sequence[Record], steps: Sequence[Step]) -> str:
    """Explain that a candidate is in the middle of every column of every cited list; empty otherwise.

    It may still be the best allowed one, so the text is for readers of the decision.
    """
    plain = name.strip().casefold()
    lists = [step.observation.records for step in steps if is_list_with(plain, step)]
    rows = {row.id for some in lists for row in some}
    if not lists or not {one.id for one in cited} <= rows or any(is_extreme_candidate(plain, some) for some in lists):
        return ""
    return NOT_BEST.format(name=name, id=lists[-1][0].id.partition(".")[0])


def is_only_candidate(plain: str, holders: Sequence[Record], steps: Sequence[Step]) -> bool:
    """Return whether no other candidate was seen.

    For rows: no other value in the candidate's columns. For passages: no search for anything else.
    """
    # Passages have no columns to compare, so only the searches tell whether another candidate was looked for.
    if any(record.text for record in holders):
        return all(mentions_candidate(step.action.input, plain) for step in steps if step.observation.records)
    columns = {column for record in holders for column in find_candidate_columns(plain, record)}
    rows = (record for step in steps for record in step.observation.records)
    return all(
        column not in row.fields or column in find_candidate_columns(plain, row) for row in rows for column in columns
    )


def find_candidate_columns(plain: str, record: Record) -> Iterator[str]:
    for column, value in record.fields.items():
        if any(plain == str(one).strip().casefold() for one in iterate_scalars([value])):
            yield column


def is_list_with(plain: str, step: Step) -> bool:
    """Return whether a step returned the candidate in a list.

    That is one of several rows with figures, or one of fewer rows from a query that does not name it.
    """
    rows = step.observation.records
    if any(row.text for row in rows) or not any(holds_name(row, plain) for row in rows):
        return False
    # Of one or two rows each is an extreme by chance: only whether the query asked for the name tells anything.
    if len(rows) < FEW_ROWS:
        return not mentions_candidate(step.action.input, plain)
    return any(True for row in rows for _ in iterate_numeric_fields(row))


def is_extreme_candidate(plain: str, rows: Sequence[Record]) -> bool:
    """Return whether the candidate is in the first row or has the largest or smallest figure of a column.

    Also True for fewer than 3 rows.
    """
    if holds_name(rows[0], plain) or len(rows) < FEW_ROWS:
        return True
    ids = [row.id for row in rows if holds_name(row, plain)]
    columns = Ground({row.id: row for row in rows}).columns
    return any(1 in places for column in columns for id in ids for places in column.ranks(id) or ())


THINK = "think"
RAN_BEFORE = "You ran this as"
UNREADABLE = (3, 5)
"""First replies of a run, after which it ends where none holds a label or an object: of prose, or with empty ones."""
STOP = Sampling(stop=("Observation:",))
EvidenceRule = Literal["required", "asked", "free"]
"""Whether a final answer must cite records: it must; it is asked for them once and then taken as it is; it need not."""
NO_ANSWER = re.compile(r"\W*(none|no answer|unknown|undecidable|cannot decide|not enough data|n/?a)\W*", re.I)
LEFT_OUT = " \t\r\n.*_`\"'\u201c\u201d"


@dataclass(frozen=True)
class Trajectory:
    """The question, steps and plan of a technique so far."""

    question: Question
    steps: tuple[Step, ...] = ()
    plan: tuple[str, ...] = ()
    replans: tuple[Replan, ...] = ()
    first_plan: tuple[str, ...] = ()
    observations: tuple[Rendering, ...] = field(default=(), repr=False, compare=False)
    """The observations of the steps as the LLM reads them."""

    def __post_init__(self) -> None:
        # The dataclass is frozen. The renderings of earlier steps are reused, because each call shows the whole past.
        object.__setattr__(self, "observations", render_steps(self.steps, self.observations))

    def shown_records(self) -> dict[str, Record]:
        """Return the records that the LLM was actually shown, by id."""
        earlier = self.question.earlier.records if self.question.earlier else ()
        seen = [record for observation in self.observations for record in observation.records]
        return {record.id: record for record in (*earlier, *seen)}

    @property
    def seen(self) -> int:
        """Number of observations that an answer may rest on, those of an earlier decision included."""
        return len(self.steps) + (len(self.question.earlier.steps) if self.question.earlier else 0)

    @property
    def actions(self) -> int:
        """Number of steps without thoughts."""
        return sum(step.action.tool != THINK for step in self.steps)

    def goes_on(self, max_steps: int) -> bool:
        """Return whether another reply is allowed.

        The limits are ``max_steps`` actions, and twice as many steps with thoughts.
        """
        # Thoughts cost no action, but an LLM that only thinks must come to an end.
        return self.actions < max_steps and len(self.steps) < 2 * max_steps

    def show(self, thoughts: bool = True) -> PromptText:
        """Format the steps so far as the LLM reads them."""
        return show_steps(self.steps, thoughts, self.replans, self.observations)

    def decision(self, answer: str, because: str = "", stopped: Stopped = "answered", runner_up: str = "") -> Decision:
        """Build the decision with the evidence that it cites, the runner-up's evidence included."""
        shown_records, text = self.shown_records(), f"{answer}\n{because}\n{runner_up}"
        ids = tuple(name for name in find_citations(text, shown_records) if name in shown_records)
        name = without_citations(answer).strip(LEFT_OUT)
        figures = check_figures(f"{name}\n{because}\n{runner_up}", self.figures(shown_records, ids))
        fullest = find_fullest_ranking([step.observation for step in self.steps])
        claims = Claims(name, because, runner_up, find_citations(f"{answer}\n{because}", shown_records))
        objections = find_objections(claims, shown_records, str(self.question), fullest, self.known())
        is_told = any(objection.kind == "ranking" for objection in objections)
        departs = "" if is_told else describe_departure(name, fullest)
        reasons = tuple(line for line in (because.strip(), departs) if line)
        # Only where the answer is its best: of one further down nobody knows why it was passed over.
        compared = None if fullest else find_compared_table(name, self.steps)
        read_off = compared.ranking() if compared is not None and compared.is_best else None
        ranking = fullest.ranking if fullest else read_off
        if ranking and not departs and (text := describe_runner_up(runner_up, because, ranking)):
            objections = (*(one for one in objections if one.kind != "runner_up"), Objection("runner_up", text))
        return Decision(
            name,
            Evidence(ids, figures, objections=objections),
            ranking=ranking,
            plan=self.plan,
            replans=self.replans,
            reasons=reasons,
            stopped=stopped,
            runner_up=runner_up,
        )

    def known(self) -> str:
        """Return the texts that the LLM saw beside records, and the queries that it wrote."""
        earlier = self.question.earlier
        steps = [*(earlier.steps if earlier else ()), *self.steps]
        texts = [f"{step.action.input}\n{step.observation.note}\n{step.observation.total or ''}" for step in steps]
        return "\n".join([*(earlier.before if earlier else ()), *texts])

    def figures(self, shown_records: Mapping[str, Record], cited: Sequence[str]) -> Iterator[tuple[str, list[float]]]:
        """Iterate over possible sources of figures with their numbers, cited records first."""
        # In the order of trust: the first source that holds a figure is named as its support.
        yield from ((id, collect_record_numbers(shown_records[id])) for id in cited)
        if ranking := self.ranking():
            yield f"ranking of {ranking.measure}", [option.outcome for option in ranking.options]
        yield "question", list(iterate_numbers(str(self.question)))
        yield from ((id, collect_record_numbers(one)) for id, one in shown_records.items() if id not in cited)

    def ranking(self) -> Ranking | None:
        """Return the ranking that compared the most candidates; None without one."""
        observation = find_fullest_ranking([step.observation for step in self.steps])
        return observation.ranking if observation else None


def decide_from_reply(
    reply: LabelledReply,
    trajectory: Trajectory,
    lenient: bool = False,
    rule: EvidenceRule = "required",
    compares: bool = False,
) -> Decision:
    """Build the decision of a reply with an answer.

    ``lenient``: for the last call; missing parts are left out instead of asked for again. ``rule``: "free" accepts the
    answer with those citations that were shown.

    Raises:
        ParseError: a citation of something never shown (unknown_source), none at all (no_citation), nothing was found
            yet that could support an answer (no_evidence), or, where it ``compares``, it was compared with nothing.
    """
    shown_records, runner_up = trajectory.shown_records(), reply.runner_up
    answer, because = reply.answer or "", reply.because
    if not find_citations(f"{answer}\n{because}"):  # many write (o1.r1), or the id alone
        answer, because, runner_up = (bracket_ids(text, shown_records) for text in (answer, because, runner_up))
    if NO_ANSWER.fullmatch(without_citations(answer)):
        return replace(trajectory.decision("", because), answer="", stopped="no_answer")
    cited_ids = find_citations(f"{answer}\n{because}", shown_records)
    free = rule == "free"
    if not shown_records and not free:
        if lenient:
            return replace(trajectory.decision("", because or answer), answer="", stopped="no_answer")
        raise ParseError(
            "No record has come back yet, so nothing supports an answer. Query the data; if it cannot "
            "be decided, write Final answer: none",
            "no_evidence",
        )
    # A citation of what was never shown is made up, or copied from the form.
    if (unknown := [id for id in cited_ids if id not in shown_records]) and not (lenient or free):
        raise ParseError(f"You cite {', '.join(unknown)}, which you have not been shown.", "unknown_source")
    if not (cited_ids or lenient or free):
        raise ParseError(
            f"Cite the records your answer rests on, by the ids you were shown, like [{next(iter(shown_records))}].",
            "no_citation",
        )
    if not without_citations(answer).strip(LEFT_OUT):
        raise ParseError("Your final answer names no candidate.", "missing_field")
    decision = trajectory.decision(answer, because, runner_up=clean_optional_text(runner_up))
    cited = [shown_records[id] for id in decision.evidence.ids]
    alone = "" if free else explain_no_comparison(decision.answer, cited, trajectory.question, trajectory.steps)
    if alone and compares:
        raise ParseError(f"{alone} {ADVICE}", "not_compared")
    weak = alone or ("" if free else explain_not_best(decision.answer, cited, trajectory.steps))
    reasons = (*decision.reasons, weak) if weak else decision.reasons
    return replace(decision, assumptions=split_optional_texts(reply.assumptions), reasons=reasons)


def clean_optional_text(text: str) -> str:
    """Put a text on one line; empty if it says "none".

    >>> clean_optional_text("None."), clean_optional_text("elm, with 412 [o1.r2]")
    ('', 'elm, with 412 [o1.r2]')
    """
    text = " ".join(text.split())
    return "" if NO_ANSWER.fullmatch(text) else text


def split_optional_texts(text: str) -> tuple[str, ...]:
    """Split a text at line ends and semicolons; parts that say "none" are dropped.

    >>> split_optional_texts("- rents are monthly\\n- oak is open; elm too"), split_optional_texts("none")
    (('rents are monthly', 'oak is open', 'elm too'), ())
    """
    parts = [re.sub(r"^\s*(?:[-*]|\d{1,2}[.)])\s+", "", part) for part in re.split(r"\n|;\s", text)]
    return tuple(filter(None, map(clean_optional_text, parts)))


Check = Callable[[LabelledReply], Decision]


def build_answer_check(
    rule: EvidenceRule, trajectory: Trajectory, lenient: bool = False, compares: bool = False
) -> Check:
    """Build the check that turns the replies of one call into a decision.

    Under the rule ``asked`` it complains once about missing evidence. With ``compares`` it complains once about an
    answer without a comparison.
    """
    # Counted over all tries of one call, so that each complaint is made once.
    complaints = alone = 0

    def check(reply: LabelledReply) -> Decision:
        nonlocal complaints, alone
        free = rule == "free" or (rule == "asked" and (complaints or lenient))
        try:
            return decide_from_reply(reply, trajectory, lenient, "free" if free else "required", compares and not alone)
        except ParseError as complaint:
            complaints += complaint.reason in ("no_citation", "no_evidence", "unknown_source")
            alone += complaint.reason == "not_compared"
            raise

    return check


def read_labelled_answer(reply: str, read_bare: Callable[[str], str]) -> LabelledReply:
    """Read a reply that must hold a final answer.

    ``read_bare``: returns the answer of a reply without its label, or raises ParseError.
    """
    text = clean_reply(reply)
    fields = read_fields(text)
    if "answer" not in fields:
        fields["answer"] = read_bare(text)
    answer, because = parse_answer(fields)
    return LabelledReply(
        answer=answer,
        because=because,
        runner_up=fields.get("runner_up", ""),
        assumptions=fields.get("assumptions", ""),
        thought=fields.get("thought", ""),
    )


def read_answer_object(value: Mapping[str, Value]) -> LabelledReply:
    """Read a final answer from a JSON object with the keys final_answer and because."""
    reply = read_labelled_object(value)
    if reply.answer is None:
        raise ParseError("final_answer is missing: write the answer alone.", "missing_field")
    return reply


def build_answer_form(
    name: str,
    text: str,
    says: Mapping[str, str],
    decide: Callable[[LabelledReply], T],
    read_bare: Callable[[str], str],
) -> Form[T]:
    """Build the form of a final answer, in labels or as an object; see ``read_labelled_answer``."""
    return Form(
        name,
        text,
        lambda reply: decide(read_labelled_answer(reply, read_bare)),
        LabelledReply,
        (build_answer_shape(says),),
        lambda value: decide(read_answer_object(value)),
    )


def build_final_answer_form(
    trajectory: Trajectory, text: str, lenient: bool = False, rule: EvidenceRule = "required"
) -> Form[Decision]:
    def read_bare(reply: str) -> str:
        # On the last call a short reply without labels is taken as the name: better than no answer.
        if not lenient or LABEL.search(reply) or len(reply) > 200:
            raise ParseError("Write it as Final answer: and the name of the candidate.", "missing_field")
        return reply

    return build_answer_form("final answer", text, ANSWER, build_answer_check(rule, trajectory, lenient), read_bare)


async def retrieve_step(move: LabelledReply, trajectory: Trajectory, run: Run) -> Trajectory:
    """Execute the action of a reply and return the trajectory with its step.

    A thought returns nothing and costs no action. If a repeated query returns the same, the observation only refers to
    the earlier one.

    Raises:
        ParseError: it is made a third time (repeated).
    """
    assert move.call is not None
    action = Action(move.call.tool, move.call.input)
    query = normalize_action_input(action.input)
    earlier = [step for step in trajectory.steps if step.action.tool == action.tool]
    earlier = [step for step in earlier if normalize_action_input(step.action.input) == query]
    # It was told once already that the query was run; a third time it would go on until the limit.
    if any(step.observation.note.startswith(RAN_BEFORE) for step in earlier):
        raise ParseError("You made the same query three times.", "repeated")
    # A thought goes to no tool: it is in the trace, and costs no action.
    if action.tool == THINK and THINK not in run.env.tools():
        start = run.trace.add(ActionStart(THINK, action.input), run.span_id)
        observation = Observation(note="(noted)")
        run.trace.add(ActionResult(start, observation), run.span_id)
    else:
        observation = await run.act(action)
    # The same rows once more would only fill the prompt.
    if earlier and has_same_records(earlier[0].observation, observation):
        records = earlier[0].observation.records
        name = records[0].id.partition(".")[0] if records else f"step {trajectory.steps.index(earlier[0]) + 1}"
        came = "it failed in the same way" if observation.error else "the same came back"
        note = f"{RAN_BEFORE} {name}, and {came}. Use that, or ask for something else."
        observation = Observation(note=note, error=observation.error)
    step = Step(action, observation, thought=move.thought, plan_step=move.current)
    return replace(trajectory, steps=(*trajectory.steps, step))


@lru_cache(maxsize=4096)
def normalize_action_input(query: str) -> str:
    return " ".join(query.split()).rstrip("; ")


def has_same_records(a: Observation, b: Observation) -> bool:
    """Return whether two observations are equal except for the ids of records."""
    if len(a.records) != len(b.records) or (a.note, a.error) != (b.note, b.error):
        return False
    return all(x.fields == y.fields and x.text == y.text for x, y in zip(a.records, b.records, strict=True))


async def ask_for_move(
    prompt: Sequence[Message], form: Form[LabelledReply], trajectory: Trajectory, run: Run, left: int
) -> LabelledReply:
    """Ask for the next action or the answer, as often as actions are left.

    Raises:
        ParseError: none of the replies could be read; or the first three hold nothing of a form, five where some of
            them are empty (unreadable).
    """
    done = 0
    for most in UNREADABLE if not trajectory.steps and left > max(UNREADABLE) else ():
        try:
            return await run.ask(prompt, form, vary_sampling(STOP, done), tries=most - done)
        except ParseError as error:
            calls = [entry.event for entry in run.trace.entries if entry.span == run.span_id]
            replies = [call.texts[0] for call in calls if isinstance(call, LLMCall)]
            # A model that begins the form and fails may be asked on: it loses replies at random, several in a row too.
            has_form = any(LABEL.search(reply) or "{" in reply for reply in replies)
            is_prose = most == max(UNREADABLE) or all(re.search(r"\w", reply) for reply in replies)
            if not has_form and is_prose:
                raise ParseError(str(error), "unreadable") from error
            if len(replies) < most:  # it insisted on what is not asked for again
                raise
            done = most
            if has_form:
                break
    return await run.ask(prompt, form, vary_sampling(STOP, done), tries=left - done)


def record_plan(trajectory: Trajectory, steps: tuple[str, ...], why: str, run: Run) -> Trajectory:
    """Return the trajectory with its first plan, or with a new one as a replan; the trace notes it."""
    if not trajectory.plan:
        run.trace.add(Plan(steps), run.span_id)
        return replace(trajectory, plan=steps, first_plan=steps)
    change = Replan(len(trajectory.steps), why, steps)
    run.trace.add(PlanChange(change.after_step, change.why, change.plan), run.span_id)
    return replace(trajectory, plan=steps, replans=(*trajectory.replans, change))


def build_last_request(trajectory: Trajectory, run: Run) -> str:
    """Build the end of the last prompt, which replaces the request for the next action."""
    return LAST.substitute(form=run.wording(build_final_answer_form(trajectory, FINAL_ANSWER)))


async def ask_last_answer(
    prompt: Sequence[Message],
    trajectory: Trajectory,
    run: Run,
    error: Error | None = None,
    rule: EvidenceRule = "required",
) -> Decision:
    """Make the last call from the reserve of the budget; see ``end_run``."""

    async def ask() -> Decision:
        # Without a record an answer could rest on nothing, and was asked for in vain three times.
        if isinstance(error, ParseError) and error.reason == "unreadable" and rule == "required":
            raise error
        return await run.ask(prompt, build_final_answer_form(trajectory, FINAL_ANSWER, True, rule), final=True)

    steps = trajectory.actions or len(trajectory.steps)
    return record_decision(await end_run(ask, trajectory, error, f"The limit of {steps} steps is reached."), run)


async def end_run(
    ask: Callable[[], Awaitable[Decision | None]], trajectory: Trajectory, error: Error | None, limit: str = ""
) -> Decision:
    """Ask for the answer, after an error or at a limit the best supported one; else return the best known one.

    ``limit``: what is told of a run that ended at one.

    Raises:
        LLMError: the endpoint will not answer at all (key, quota, model), or not to the one question of a run.
    """
    stopped: Stopped = stopped_by(error) if error else "steps" if limit else "answered"
    why, missing, decision = explain_error(error) if error else limit, list[str](), None
    try:
        decision = await ask()
    except (BudgetExceeded, ParseError, LLMError) as failure:
        if isinstance(failure, LLMError) and (failure.permanent or not limit):
            raise
        missing.append(f"No last answer was given. {explain_error(failure)}")
        stopped = stopped if error or limit else stopped_by(failure)
    if decision is None:
        ranking = trajectory.ranking()
        # No reply can be used: the best of a computed ranking is still supported.
        best = ranking.options[0].name if ranking and ranking.options else ""
        decision = replace(trajectory.decision(best), reasons=tuple(missing))
    is_told = not why or any(why in reason for reason in decision.reasons)
    reasons = decision.reasons if is_told else (*decision.reasons, why)
    return replace(decision, reasons=reasons, stopped=decision.stopped if stopped == "answered" else stopped)


def stopped_by(error: Error) -> Stopped:
    return "budget" if isinstance(error, BudgetExceeded) else "failed"


def record_decision(decision: Decision, run: Run) -> Decision:
    """Add a decision to the trace and return it, with a warning if many replies were unreadable."""
    replies, unread = (sum(1 for _ in events_of(run.trace.entries, kind)) for kind in (LLMCall, UnreadableReply))
    if line := warn_of_unread_replies(unread, replies, run.calling):
        decision = replace(decision, reasons=(*decision.reasons, line))
    run.trace.add(Conclusion(decision), run.span_id)
    return decision


LAST = PromptTemplate("""\
# Answer
No more actions can be made. Write the answer that is best supported by what you have seen, as
$form""")
