"""Claims of order: the highest, the second, more than another, above the mean, rose.

A claim has subjects, a column and, where it compares, objects. It is read in every way that its clause leaves open, and
objected to where all of them are false. Where its words name a column that was not shown, nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from decisor.parsing.quantities import Quantity, iterate_periods, split_name
from decisor.techniques.shared.objections import words
from decisor.techniques.shared.objections.claims import Clause, fits, stem
from decisor.techniques.shared.objections.ground import Mention
from decisor.techniques.shared.objections.reading import AnswerReading, Place
from decisor.types import Objection

MEAN_OF_ALL = "the mean"


@dataclass(frozen=True, slots=True)
class Rank:
    """A place in an order as it is written, and the name that it may be said of."""

    text: str
    number: int
    start: int
    end: int
    is_verb: bool
    goal: str


def noun_phrase(text: str) -> list[str]:
    """Return the words after a superlative, as stems.

    >>> noun_phrase(" number of orders of all shops"), noun_phrase(", 23 EUR")
    (['number', 'order'], [])
    """
    stems = []
    for match in re.finditer(r"([^\w]*)(\w+)", text):
        word = match[2].lower()
        is_end = word in words.END or not word.isalpha() or match[2].startswith(("XX", "YY"))
        if is_end or re.search(r"[^\s-]", match[1]):
            break
        stems += [] if word in words.SMALL else [stem(word)]
    return stems


@dataclass(frozen=True)
class OrderCheck(AnswerReading):
    """Claims of order in one answer."""

    def of_order_words(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        yield from self.of_trend(clause)
        if self.has_texts or not self.deciding:
            return
        yield from self.of_superlatives(clause, memory)
        yield from self.of_ranks(clause, memory)
        for match in words.COMPARATIVE.finditer(clause.masked):
            yield from self.of_comparative(match, clause, memory)
        for figure in clause.figures:
            yield from self.of_sign(figure, clause, memory)

    def of_trend(self, clause: Clause) -> Iterator[Objection]:
        text = clause.masked
        trend = list(words.TREND.finditer(text)) if len(clause.figures) > 1 else []
        pair = [
            figure
            for word in ("from", "to")
            for figure in (clause.figures if trend else ())
            if re.search(rf"\b{word}\s+[*]*$", text[: figure.start], re.I)
        ]
        if len(pair) == 2 and len(trend) == 1 and not words.LIMITED.search(text[: trend[0].start()][-15:]):
            change = pair[1].meanings[0].value - pair[0].meanings[0].value
            if change and (change > 0) != bool(trend[0]["up"]):
                yield Objection("direction", f"You wrote {trend[0].group()}, from {pair[0].text} to {pair[1].text}.")

    def column_of(self, phrase: Sequence[str], clause: Clause) -> Place | None:
        """Return the column that a claim of order is about.

        None where its words are of no column and not of the question.
        """
        question_words = {stem(word) for word in re.findall(r"\w+", self.question.lower())}
        stems_of = {place: {*map(stem, split_name(place[1]))} for place in self.ranked_columns}
        named = [place for place, own in stems_of.items() if own & {*phrase} - words.GENERIC]
        if not {*phrase} <= question_words.union(words.GENERIC, *stems_of.values()):
            return None
        if self.deciding in named or not named:
            return self.deciding if named or not phrase or {*phrase} & (question_words | words.GENERIC) else None
        return named[0] if len(named) == 1 else None

    # Superlatives.

    def of_superlatives(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        text = clause.masked
        for match in words.SUPERLATIVE.finditer(text):
            before, after = text[: match.start()], text[match.end() :]
            is_limited = words.LIMITED.search(f"{before[-45:]}{match.group()}{after[:45]}")
            if is_limited or re.search(rf"(?:{words.ORDINAL}[ -]|\b(?:its|their|his|her|at|than)\s+)$", before, re.I):
                continue
            near = [time for time in clause.periods if -1 < time.start - match.end() < 15]
            if any(not any(own.holds(time) for own in iterate_periods(self.question)) for time in near):
                continue
            place = self.column_of(noun_phrase(after), clause)
            subjects = self.beside(match, clause) or self.recent(memory)
            rows = [row for name in subjects if place and (row := self.row_of(name, place))]
            at = 0 if match["max"] else 1
            ranks = [(row, ends[at][0]) for row in rows if place and (ends := self.ranks(row, place))]
            if place and ranks and all(number > 1 for _, number in ranks):
                row, number = ranks[0]
                claim = f"You wrote that {self.name(row)} has the {match.group()} {place[1]}"
                yield Objection("rank", f"{claim}; among the rows of {place[0]} it is number {number}.")

    def beside(self, match: re.Match[str], clause: Clause) -> list[Mention]:
        """Return the names that a word may be said of: the one before it, the row cited before it, the one after it."""
        if re.search(r"\b(?:former|latter|two|both|ones)\b", clause.masked, re.I):
            return list(clause.names)
        before = said_before(match.start(), clause)
        cited = [self.mention(ids[0]) for _, end, ids in clause.cited if len(ids) == 1 and 0 < match.start() - end < 8]
        return [*(cited or before), *[name for name in clause.names if name.start >= match.end()][:1]]

    def recent(self, memory: Sequence[Mention]) -> list[Mention]:
        """Return the names of which a clause without a name may speak."""
        return [*reversed(memory), *([self.subject] if self.subject else [])]

    # Places.

    def of_ranks(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        matches = words.RANK.finditer(clause.masked) if words.MAY_RANK.search(clause.masked) else ()
        tokens = [rank for match in matches if (rank := self.rank_of(match, clause))]
        tokens += self.ranks_of_line(clause)
        if not tokens:
            return
        if not clause.names:
            readings = [[name for _ in tokens] for name in self.recent(memory)]
            distinct = list({name.name: name for name in memory}.values())[-len(tokens) :]
            readings += [distinct] if len(distinct) == len(tokens) else []
        else:
            first = [self.owner(token, clause, is_after=False) for token in tokens]
            second = [self.owner(token, clause, is_after=True) for token in tokens]
            is_plain = len({name.start for name in first}) == len(tokens) and all(
                token.is_verb or (0 <= token.start - name.end < 45 and not self.is_linked(token, after, clause))
                for token, name, after in zip(tokens, first, second, strict=True)
            )
            readings = [first] if is_plain else [first, second]
            if len(tokens) == 1 and first[0].end <= tokens[0].start:
                readings += [[name] for name in said_before(tokens[0].start, clause)]
            readings += [list(clause.names)] if not is_plain and len(clause.names) == len(tokens) else []
        apart = [names for names in readings if len({name.start for name in names}) == len(tokens)]
        tried = [list(self.false_ranks(tokens, names)) for names in apart or readings]
        yield from min(tried, key=len, default=[])

    def rank_of(self, match: re.Match[str], clause: Clause) -> Rank | None:
        kind = next(kind for kind in ("sign", "after", "bare", "before", "word") if match[kind])
        text = match[kind].lower()
        start, end = match.start(kind), match.end()
        if words.LIMITED.search(clause.masked[max(0, start - 25) : end + 25]):
            return None
        if text == "best" and re.match(r" (?:in|on|at|for)\b", clause.masked[end:]):
            return None
        digits = re.sub(r"\D", "", text)
        number = int(digits) if digits else next(at for word, at in words.NTH.items() if re.fullmatch(word, text))
        goal = "max" if match["max"] else "min" if match["min"] else self.goal
        return Rank(match.group(), number, start, end, kind == "word", goal)

    def ranks_of_line(self, clause: Clause) -> Iterator[Rank]:
        """Return the place that a line of a table gives its name."""
        texts = words.SEPARATOR.split(clause.masked)
        for at, head in enumerate(clause.heads):
            if at < len(texts) and texts[at].strip().isdigit() and re.fullmatch(rf"#|pos\.?|{words.PLACE}", head, re.I):
                start = sum(map(len, texts[:at])) + at
                yield Rank(texts[at], int(texts[at]), start, start + len(texts[at]), False, self.goal)

    def is_linked(self, token: Rank, name: Mention, clause: Clause) -> bool:
        """Whether nothing but a few words stand between a rank and the name after it."""
        between = clause.masked[token.end : name.start]
        is_ahead = not token.is_verb and name.start >= token.end
        return is_ahead and re.fullmatch(r"[\s*:(–-]*(?:[^\W\d]+\s+){0,3}[*]*", between) is not None

    def owner(self, token: Rank, clause: Clause, is_after: bool) -> Mention:
        before = [name for name in clause.names if name.end <= token.start]
        after = [name for name in clause.names if name.start >= token.end]
        is_joint = after and re.fullmatch(r"[\s*:(–-]*", clause.masked[token.end : after[0].start])
        if is_joint and not token.is_verb and not (before and 0 <= token.start - before[-1].end < 4):
            return after[0]
        order = [*after, *reversed(before)] if is_after else [*reversed(before), *after]
        return order[0]

    def false_ranks(self, tokens: Sequence[Rank], names: Sequence[Mention]) -> Iterator[Objection]:
        for token, name in zip(tokens, names, strict=True):
            place = self.deciding
            row = self.row_of(name, place) if place else None
            ends = self.ranks(row, place) if row and place else None
            if not ends or not place or not row:
                continue
            allowed = {*ends[0 if token.goal == "max" else 1]} if token.goal else {*ends[0], *ends[1]}
            if token.number not in allowed:
                says = f"by {place[1]} it is number {min(allowed)} of the rows of {place[0]}."
                yield Objection("rank", f"You wrote {token.text.strip()} of {self.name(row)}; {says}")

    # Comparisons.

    def of_comparative(self, match: re.Match[str], clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        text, is_up = clause.masked, bool(match["up"])
        before, tail = text[: match.start()], text[match.end() :]
        if re.search(r"\b(?:no|not|never|rather|any|much|once|one|neither|nor|nothing|nobody)\s+$", before, re.I):
            return
        place = self.column_of(noun_phrase(tail), clause)
        if place is None or re.match(r"\s+or\b", tail):
            return
        amount = next(
            (
                figure
                for figure in reversed(clause.figures)
                if figure.end <= match.start() and re.fullmatch(r"[)*`\s]*", text[figure.end : match.start()])
            ),
            None,
        )
        subjects = self.subjects(match, clause, memory, place, amount)
        is_figure = any(name == figure.text for name, _ in subjects for figure in clause.figures)
        objects = self.objects(match, clause, memory, place, is_figure)
        pairs = [(own, rival) for own in subjects for rival in objects if own[1] != rival[1] and own[0] != rival[0]]
        if amount:
            near = [(own, rival) for own, rival in pairs if is_gap(amount, own[1], rival[1])]
            pairs = near if near or not any(rival[0] == MEAN_OF_ALL for _, rival in pairs) else pairs
        if pairs and not any((own[1] > rival[1]) == is_up for own, rival in pairs):
            (name, value), (other, against) = pairs[0]
            claim = f"You wrote that {name} is {match.group()} than {other}"
            yield Objection("direction", f"{claim}; {place[1]} says {value:,.10g} against {against:,.10g}.")

    def of_sign(self, figure: Quantity, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        """Yield objections to a difference with its sign: of the name before it to any other."""
        before, place = [name for name in clause.names if name.end <= figure.start], self.deciding
        if not figure.is_signed or not before or not place or self.ground.cells_with(figure):
            return
        own = self.values(before[-1:], place)
        known = self.values([*clause.names, *self.recent(memory)], place)
        gaps = [value - other for _, value in own for _, other in known if is_gap(figure, value, other)]
        if gaps and not any((gap > 0) == (figure.text[0] == "+") for gap in gaps):
            yield Objection("direction", f"You wrote {figure.text} for {before[-1].name}, which has {own[0][1]:,.10g}.")

    def subjects(
        self, match: re.Match[str], clause: Clause, memory: Sequence[Mention], place: Place, amount: Quantity | None
    ) -> list[tuple[str, float]]:
        """Return what is said to be more or less, with its number.

        The figure before, else names before, else those known.
        """
        text = clause.masked
        start = amount.start if amount else match.start()
        figure = next((one for one in reversed(clause.figures) if one.end <= start), None)
        copula = r"[)*`\s,]*(?:which |that |this )?(?:is|was|are|were)(?: (?:already|in turn|also|still|far|much))?\s*"
        if figure and re.fullmatch(copula, text[figure.end : start]):
            return [(figure.text, abs(figure.meanings[0].value))]
        said_for = re.match(r"\s+(?:for|für|para)\s+[*]*", text[match.end() :])
        after = [name for name in clause.names if said_for and name.start == match.end() + said_for.end()]
        if after or (before := said_before(start, clause)):
            return self.values(after or before, place)
        if re.search(r"\b(?:all|the|every)\s+(?:others?|rest|remaining)\b", text[:start], re.I):
            known = {row for name in [*clause.names, *self.recent(memory)] if (row := self.row_of(name, place))}
            rest = [value for row, value in self.ground.column(*place).items() if row not in known]
            return [("the rest", min(rest) if match["up"] else max(rest))] if rest else []
        is_back = amount or re.match(r"\W*(?:it|its|this|that)\b", text, re.I)
        return self.values(self.recent(memory), place) if is_back else []

    def objects(
        self, match: re.Match[str], clause: Clause, memory: Sequence[Mention], place: Place, is_figure: bool
    ) -> list[tuple[str, float]]:
        """Return what it may be more or less than, with its number."""
        numbers, tail = self.ground.column(*place), clause.masked[match.end() :]
        mean = (MEAN_OF_ALL, sum(numbers.values()) / len(numbers))
        if re.match(r"[\w ]{0,12}\b(?:the|overall)\s+(?:average|mean)\b", tail, re.I):
            return [mean]
        than = re.match(
            r"[\w\s-]{0,30}?\b(?:than|als|que)\s+(?:that of|those of|what|the|for|at|der von|die von)?\s*[*`$€£]*", tail
        )
        if not than and match.group().lower() in ("above", "below"):
            than = re.match(r"\s+(?=X)", tail)
        if than:
            start = match.end() + than.end()
            if re.match(r"(?:any|all|every|each)\b", clause.masked[start:]):
                own = {row for name in clause.names if (row := self.row_of(name, place))}
                rest = [value for row, value in numbers.items() if row not in own]
                return [("all others", max(rest) if match["up"] else min(rest))] if rest else []
            if figure := next((one for one in clause.figures if 0 <= one.start - start < 2), None):
                return [(figure.text, abs(figure.meanings[0].value))] if is_figure else []
            return self.values([name for name in clause.names if 0 <= name.start - start < 25][:1], place)
        known = self.values([*clause.names, *self.recent(memory)], place)
        if match.group().lower() in ("above", "below"):
            if not re.match(r"\s+(?:it|that|this)\b", tail):
                return []
            return [*known, *([mean] if words.MEAN.search(self.claims.because) else [])]
        return known

    def values(self, names: Iterable[Mention], place: Place) -> list[tuple[str, float]]:
        numbers = self.ground.column(*place)
        rows = [(name.name, row) for name in names if (row := self.row_of(name, place))]
        return [(name, numbers[row]) for name, row in rows if row in numbers]


def said_before(at: int, clause: Clause) -> list[Mention]:
    """Return the names before a word that it may be said of.

    The last, and the first where more than a verb stands between.
    """
    before = [name for name in clause.names if name.end <= at]
    if not before or re.match(r"\W*(?:although|while|whereas|though|compared)\b", clause.masked, re.I):
        return before[-1:]
    is_close = re.fullmatch(
        r"[*'s]*(?:\s+(?!(?:and|but|so|y|et|und)\b)[^\W\d]+){0,5}\s+\W?", clause.masked[before[-1].end : at]
    )
    return before[-1:] if is_close else [before[-1], before[0]]


def is_gap(figure: Quantity, own: float, rival: float) -> bool:
    """Whether the figure is how far two numbers are apart."""
    if figure.unit == "%":
        return any(base and fits(figure, 100 * (own - rival) / base) for base in (own, rival))
    return fits(figure, own - rival)
