"""What a decision took as certain, what it leaves open and what would settle that, and what its reader is warned of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from decisor.decision_models.parse import parse
from decisor.decision_record.format import Content, OpenPoint
from decisor.errors import ModelMistake, SetupError
from decisor.plurals import counted
from decisor.rankings import share
from decisor.tools.databases.sandbox.policy import TOKEN
from decisor.trace.events import ActionStart, Entry, LMCall, Note, ShortenedPrompt, events_of

if TYPE_CHECKING:
    from decisor.types import Decision, Ranking

SURE = 0.95
"""The share of trials in which the best stays in front, below which that is an open point."""
MOST = 12
ENDS = {
    "budget": ("A limit ended the run.", "Go on with more: decisor resume"),
    "steps": ("The technique's step limit ended the run.", "Allow it more steps, or ask a narrower question."),
    "no_answer": ("The data do not decide it.", "Data that say what is missing, or a rule for this case."),
    "failed": ("The run failed.", "Ask again when the cause is mended."),
}


def assumptions_of(content: Content, decision: Decision) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*decision.assumptions, *certain(content), *partial(content)]))


def certain(content: Content) -> Iterator[str]:
    """What of a decision model nothing varied."""
    ranking = content.alternatives
    if ranking is None or ranking.varied_percent:
        return
    spread = spread_inputs(content.model.text if content.model else "")
    if ranking.robustness is None or not (spread or ranking.varied):
        yield "All that the decision model reads is as the data say: nothing was varied."
    elif spread:
        yield f"All that the decision model reads is as the data say but {', '.join(spread)}: nothing else was varied."


def spread_inputs(text: str) -> list[str]:
    """Names of the inputs of a decision model that have a spread."""
    try:
        return [one.name for one in parse(text).inputs if one.spread] if text else []
    except (SetupError, ModelMistake):
        return []


def partial(content: Content) -> Iterator[str]:
    """What was not for who asked, or was not to be read, would not change the decision."""
    for source in content.data.sources:
        for row in source.rows:
            which = f" that fulfil {row.condition}" if row.condition else " that are for who asked"
            yield f"Of {source.name}, {row.table}: only the rows{which} were read; the others would not change it."
    if content.data.tables:
        yield f"Only these tables might be read: {', '.join(content.data.tables)}."
    if content.request.before:
        yield "What was decided before it holds."


def open_points_of(content: Content) -> tuple[OpenPoint, ...]:
    points = [*of_the_end(content), *of_readings(content), *of_rules(content), *of_alternatives(content),
              *of_evidence(content), *of_origin(content)]  # fmt: skip
    return tuple(dict.fromkeys(points))


def of_the_end(content: Content) -> Iterator[OpenPoint]:
    if content.decision.stopped in ENDS:
        yield OpenPoint(*ENDS[content.decision.stopped])


def of_readings(content: Content) -> Iterator[OpenPoint]:
    settles = "Say which is meant, once, in the definitions of these data: decisor definitions propose"
    for one in content.readings:
        if one.by or not one.other:
            continue
        begin = f'Nobody said whether "{one.words}" means {one.means} or {one.other}'
        if not one.gives:
            yield OpenPoint(f"{begin}; what the other would give was not computed.", settles)
        elif one.gives.casefold() != content.decision.answer.casefold():
            yield OpenPoint(f"{begin}: the other would give {one.gives}.", settles)


def of_rules(content: Content) -> Iterator[OpenPoint]:
    answer = content.decision.answer.casefold()
    for one in content.rules:
        if one.state == "not testable":
            yield OpenPoint(f'No data can test "{one.text or one.name}".', "A person who vouches for it.")
        elif one.candidate and one.candidate.casefold() not in answer and answer not in one.candidate.casefold():
            yield OpenPoint(f"{one.name} was tested on {one.candidate}, not on what was decided.",
                            "Test it on the decision: decisor verify")  # fmt: skip
    if content.request.rules.strip() and not content.rules:
        yield OpenPoint("The rules were read as words, and none was executed.",
                        "A decision model with a query for each rule: decisor model draft")  # fmt: skip


def of_alternatives(content: Content) -> Iterator[OpenPoint]:
    ranking = content.alternatives
    if ranking is None:
        yield OpenPoint("No outcome of any alternative was computed: the answer was read from the cited rows.",
                        "A decision model: decisor model draft, then decisor ask --model")  # fmt: skip
        return
    yield from of_trials(ranking)
    if ranking.candidates is not None and ranking.count < ranking.candidates and not ranking.method:
        left = ranking.candidates - ranking.count
        yield OpenPoint(f"{counted(left, 'candidate')} of {ranking.candidates:,} were not computed.",
                        "More time, or a model for the solver.")  # fmt: skip
    if len(ranking.ties) > 1:
        others = ", ".join(ranking.ties[:MOST])
        yield OpenPoint(f"Equally good by {ranking.measure}: {others}.", "A second measure, or a rule that tells them "
                        "apart.")  # fmt: skip


def of_trials(ranking: Ranking) -> Iterator[OpenPoint]:
    if ranking.robustness is None:
        if ranking.options:
            yield OpenPoint("How robust the choice is was not measured.", "Spreads for the inputs of the model, and "
                            "trials.")  # fmt: skip
    elif ranking.robustness < SURE:
        others = ", ".join(f"{one.name} in {share(one.share)}" for one in ranking.winners
                           if one.name not in ranking.ties)  # fmt: skip
        yield OpenPoint(
            f"Within the spread of its inputs the choice stays best in {share(ranking.robustness)} of the trials; "
            f"else wins {others or 'another'}.",
            "Better figures for the inputs that move it most: decisor model whatif MODEL sensitivity",
        )


def of_evidence(content: Content) -> Iterator[OpenPoint]:
    evidence = content.evidence
    for objection in evidence.objections[:MOST]:
        yield OpenPoint(objection.text, "An answer whose claims stand on its rows.")
    if evidence.missing:
        yield OpenPoint(f"Cited, but not among what was brought: {', '.join(evidence.missing[:MOST])}.",
                        "Ask again.")  # fmt: skip
    if content.decision.answer and not any(one.rows for one in evidence.queries):
        yield OpenPoint("The decision cites no record.", "Ask again, of data that hold the answer.")
    for one in evidence.queries:
        if one.cut and one.rows and content.alternatives is None:
            of = f" of {one.total:,}" if one.total else ""
            yield OpenPoint(f"{one.name} brought only the first {one.brought:,}{of} rows, and it is cited.",
                            "A query that sums or sorts in the database.")  # fmt: skip


def of_origin(content: Content) -> Iterator[OpenPoint]:
    if not content.means.version:
        yield OpenPoint("When, by whom and on which data it was asked is not in the trace.",
                        "Ask again with this version of Decisor.")  # fmt: skip


def warnings_of(content: Content, entries: Sequence[Entry]) -> tuple[str, ...]:
    lines = [f"{', '.join(one.records)}: {one.text}" for one in content.evidence.pitfalls]
    lines += [f"{name} is broken: {one.why}" for one in content.rules if one.state == "broken"
              for name in [one.text or one.name]]  # fmt: skip
    lines += [one.text for one in events_of(entries, ShortenedPrompt)]
    lines += notes_of(entries)
    if TOKEN.search(repr((content.decision, content.evidence, content.alternatives))):
        lines.append("Values of masked columns stand as tokens, which another session makes anew.")
    if content.usage.dollars is None and content.usage.calls:
        lines.append("What it cost is not known: the LM has no price.")
    return tuple(dict.fromkeys(lines))


def notes_of(entries: Sequence[Entry]) -> Iterator[str]:
    """On the data: what was said before anything was done."""
    for entry in entries:
        match entry.event:
            case LMCall() | ActionStart():
                return
            case Note(text=text, passing=False) if text and not entry.span:
                yield text
