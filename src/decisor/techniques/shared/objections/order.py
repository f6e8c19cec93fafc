"""Claims of order: the highest, the second, more than another, above the mean, rose.

A claim has subjects, a column and, if it compares, objects. It is read in every way that its clause leaves open, and
objected to if all of them are false. If its words name a column that was not shown, nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from decisor.parsing.figures import ORDINALS, Quantity, iterate_periods, split_name
from decisor.techniques.shared.objections.reading import (
    MAX,
    MIN,
    SEPARATOR,
    SUPERLATIVE,
    AnswerReading,
    Clause,
    Mention,
    NumberColumn,
    fits,
    stem,
    table_of,
)
from decisor.types import Objection

BACK = re.compile(r"\W*(?:its?|this|that|they|their|he|she)\b", re.I)
"""A sentence that goes on about the name before it."""
NO_OTHER = re.compile(
    r"\b(?:no (?P<noun>\w+)|nobody|none|kein\w*)\b"
    r"(?:(?! (?:in|with|within|of|under|over|that|which|who|whose)\b)[^,;]){0,40}$",
    re.I,
)
MEAN_OF_ALL = "the mean"
MEAN = re.compile(r"\b(?:averaged?|mean|typical)\b", re.I)
FOREIGN = (
    "erste[nrs]? zweite[nrs]? dritte[nrs]? vierte[nrs]? fünfte[nrs]? sechste[nrs]? siebte[nrs]? achte[nrs]?",
    "premi[eè]re? deuxième troisième quatrième cinquième sixième septième huitième neuvième",
    "primera? segund[ao] tercera? cuart[ao] quint[ao] sext[ao] séptim[ao] octav[ao] noven[ao]",
)
NTH = {"best": 1} | {word: at for words in (" ".join(ORDINALS), *FOREIGN) for at, word in enumerate(words.split(), 1)}
ORDINAL = rf"(?:{'|'.join(NTH)}|\d{{1,3}}(?:st|nd|rd|th))"
PLACE = r"(?:position|place|rank|platz|rang|stelle|lugar|puesto|posto|posición)"
RANK_HEAD = rf"#|pos\.?|{PLACE}"
"""The head of a column of places."""
RANK = re.compile(
    rf"(?P<sign>#\d{{1,3}}|\bN[ro]\. ?\d{{1,3}})\b"
    rf"|(?:\b{PLACE}[*\"'`]*(?:\s*[:=][*\"'`\s]*| )|(?:\b(?:is|only|as) |^|[,(] ?)number )(?:no\. ?|#)?"
    rf"(?P<after>\d{{1,3}}\b(?![.,]\d)|{ORDINAL}\b)"
    r"|\b(?P<bare>\d{1,3}(?:[ºª]|(?:st|nd|rd|th)(?=[\s*:]+(?-i:X))))"
    rf"|\b(?P<before>{ORDINAL}|\d{{1,3}}\.)[ -](?:{PLACE}|placed|ranked|best|(?P<max>{MAX})|(?P<min>{MIN}))\b"
    rf"|\b(?:ranks?|ranked|comes?(?: in)?|came(?: in)?|is|was|are|placed?|finish(?:es|ed)|stands|stood|sits|only|and|as"
    rf"|(?-i:X+),?|\d+(?: ?[a-z]+| ?%)?,)\s+(?:the |only |in )?(?P<word>{ORDINAL})"
    r"(?=\s+(?:with|of|by|at|in|on|among|and|comes?|choice|option)\b"
    r"|\s*[,;:.(\[]|\s*$)",
    re.I,
)
LINE_NUMBER = re.compile(r"\W*(?:line |no\\.? ?|number )?(\d{1,3})\b(?![.,]\d)[^\w]", re.I)
MAY_RANK = re.compile(rf"\b{ORDINAL}\b|#\d|\bnumber \d|\bN[ro]\.|\b{PLACE}\b|[ºª]", re.I)
"""Cheap to look for. Without it RANK finds nothing."""
LIMITED = re.compile(
    r"\b(?:not|never|no(?!\.)|one of|those|who|eligible|allowed|other|others|besides|except|exclud\w+|without|within|if"
    r"|would|could|after|unlike|almost|nearly|open|closed|nothing|nobody|none|nor|neither|them|these|rest|remaining)\b"
    r"|n't\b",
    re.I,
)
LINKS = set(
    re.findall(
        r"\w+",
        "is was are were be been has had have having whose with at of a an the its this which that s by in turn much"
        " far still even also already clearly slightly well itself stands comes and figure value second about",
    )
)
"""Words that link a name to what is said of it. Behind others somebody else may be meant."""
SUPPOSED = re.compile(r"\b(?:if|unless|would|could|should|were it|drop(?:s|ped)? out|leaving|without|except)\b", re.I)
"""Words of a clause about other candidates or figures than those of the rows."""
COMPARATIVE = re.compile(
    r"\b(?:(?P<up>higher|more|greater|larger|bigger|longer|above|mehr|höher|más|mais|exceeds?|tops?|surpass(?:es)?)"
    r"|(?P<down>lower|less|fewer|smaller|shorter|cheaper|below|weniger|niedriger|menos|undercuts?)"
    r"|(?P<better>beats?|leads|ahead(?= of\b))|(?P<worse>behind|trails?))\b",
    re.I,
)
RIVAL = re.compile(r"\b(?:versus|vs\.?|against|compared (?:to|with)|than|over)\s+[*]*$", re.I)
"""What stands before a name that something else is compared with."""
DIRECT = re.compile(r"exceed|top|surpass|undercut|beat|leads|ahead|behind|trail", re.I)
"""Comparatives before the very thing that is compared with, without than."""
SAID = {"ahead": "is ahead of", "behind": "is behind", "above": "is above", "below": "is below"}
TREND = re.compile(
    r"\b(?:(?P<up>rose|risen|rises|grew|grows|grown|increase[ds]|climbed|gained|up(?= (?:to|by)\b))"
    r"|(?P<down>fell|falls|fallen|drops|dropped|decrease[ds]|declined|shrank|sank|down(?= (?:to|by)\b)))\b",
    re.I,
)
OF_MEAN = re.compile(
    r"[\w ]{0,12}\b(?:the|overall)\s+(?:average|mean)\b.{0,20}"
    r"|\s+what the (?:others?|rest|remaining)\b.{0,30}\bon average",
    re.I,
)
ITEMS = set(
    re.findall(
        r"\w+",
        "row record entr candidate alternative option value ligne zeile fila registro candidato kandidaten candidat"
        " einträge",
    )
)
GENERIC = {
    stem(word)
    for word in re.findall(
        r"\w+",
        "value figure number amount total overall sum result level one score entry column average mean other rest"
        " remaining wert valor valeur",
    )
}
"""Words for the figure of any column."""
FILLER = re.compile(r"of|what|the|its|to|by|far|a|an")
END = re.compile(
    r"all|any|at|with|and|is|was|are|were|among|which|that|for|has|have|had|than|from|but|so|followed|ahead|here|there"
    r"|in|als|que|der|von|while|respectively|it|two|both|second|third|next|does|did|entre|unter|für|para|pour|des|sur|still"
)
"""Words that end the noun phrase after a superlative."""


@dataclass(frozen=True, slots=True)
class Rank:
    """A place in an order as it is written."""

    text: str
    number: int
    start: int
    end: int
    is_verb: bool
    """True for "ranks second", False for "the second"."""
    goal: str
    """max, min, or empty: from either end."""


@lru_cache(maxsize=64)
def find_candidate_nouns(question: str) -> frozenset[str]:
    """Return the stems of words for a candidate: which supplier is asked for, or any row."""
    match = re.match(r"\s*(?:which|what|who)\s+(\w+)", question, re.I)
    return frozenset({*ITEMS, *([stem(match[1].lower())] if match else [])})


def noun_phrase(text: str) -> list[str]:
    """Return the words after a superlative, as stems.

    >>> noun_phrase(" number of orders of all shops"), noun_phrase(", 23 EUR")
    (['number', 'order'], [])
    """
    stems = []
    for match in re.finditer(r"([^\w]*)(\w+)", text):
        word = match[2].lower()
        is_end = END.fullmatch(word) or not word.isalpha() or match[2].startswith(("XX", "YY"))
        if is_end or re.search(r"[^\s-]", match[1]):
            break
        stems += [] if FILLER.fullmatch(word) else [stem(word)]
    return stems


@dataclass(frozen=True)
class OrderCheck(AnswerReading):
    """Claims of order in one answer."""

    def check_order_words(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        text = clause.masked
        trend = list(TREND.finditer(text)) if len(clause.figures) > 1 else []
        pair = [
            figure
            for word in ("from", "to")
            for figure in (clause.figures if trend else ())
            if re.search(rf"\b{word}\s+[*]*$", text[: figure.start], re.I)
        ]
        order = [(period.year, period.months, period.day) for period in clause.periods]
        if not pair and trend and len(order) == 2 and order[0] < order[1]:
            # "1,944 in Q3 1996 and 26,489 in Q4 1996, so it went up"
            before = [figure for figure in clause.figures if figure.end <= trend[0].start()]
            pair = before if [figure.unit for figure in before[:1]] == [figure.unit for figure in before[1:]] else []
        if len(pair) == 2 and len(trend) == 1 and not LIMITED.search(text[: trend[0].start()][-15:]):
            change = pair[1].meanings[0].value - pair[0].meanings[0].value
            if change and (change > 0) != bool(trend[0]["up"]):
                yield Objection("direction", f"You wrote {trend[0].group()}, from {pair[0].text} to {pair[1].text}.")
        # Ranks and comparisons need a column of numbers that the answer is about.
        if self.has_texts or not self.deciding or SUPPOSED.search(text):
            return
        yield from self.check_superlatives(clause, memory)
        yield from self.check_ranks(clause, memory, self.deciding)
        for match in COMPARATIVE.finditer(text):
            yield from self.check_comparative(match, clause, memory)

    def column_of(self, phrase: Sequence[str]) -> NumberColumn | None:
        """Return the column that a claim is about. None if its words are of no column and not of the question."""
        question_words = {stem(word) for word in re.findall(r"\w+", self.question.lower())}
        stems_of = {column: {*map(stem, split_name(column.name))} for column in self.ground.ranked_columns}
        named = [column for column, own in stems_of.items() if own & {*phrase} - GENERIC]
        if not {*phrase} <= question_words.union(GENERIC, *stems_of.values()):
            return None
        if self.deciding in named or not named:
            return self.deciding if named or not phrase or {*phrase} & (question_words | GENERIC) else None
        return named[0] if len(named) == 1 else None

    # Superlatives.

    def check_superlatives(self, clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        text = clause.masked
        for match in SUPERLATIVE.finditer(text):
            before, after = text[: match.start()], text[match.end() :]
            is_limited = LIMITED.search(f"{before[-45:]}{match.group()}{after[:45]}")
            # "The largest of those allowed" and "its highest" are about other rows than all that were shown.
            if is_limited or re.search(
                rf"(?:\b(?:{ORDINAL}|next)[ -]|\b(?:its|their|his|her|at|than)\s+)$", before, re.I
            ):
                continue
            near = [period for period in clause.periods if -1 < period.start - match.end() < 15]
            if any(not any(asked.holds(period) for asked in iterate_periods(self.question)) for period in near):
                continue
            column = self.column_of(noun_phrase(after))
            names = self.beside(match, clause)
            if not names or (BACK.match(text) and names[0].start >= match.end()):
                names += self.recent(memory)
            rows = [column.row_of(name) for name in names] if column else []
            at = 0 if match["max"] else 1
            ranks = [(row, ends[at][0]) for row in rows if column and row and (ends := column.ranks(row))]
            if column and ranks and all(number > 1 for _, number in ranks):
                row, number = ranks[0]
                claim = f"You wrote that {self.name(row)} has the {match.group()} {column.name}"
                yield Objection("rank", f"{claim}; among the rows of {column.table} it is number {number}.")

    def beside(self, match: re.Match[str], clause: Clause) -> list[Mention]:
        """Return the names that a word may be said of: the one before it, the row cited before it, the one after it."""
        if re.search(r"\b(?:former|latter|two|both|ones)\b", clause.masked, re.I):
            return list(clause.names)
        cited = [ids[0] for _, end, ids in clause.cited if len(ids) == 1 and 0 < match.start() - end < 8]
        mentions = [Mention(self.name(id), 0, 0, frozenset([id])) for id in cited]
        after = [name for name in clause.names if name.start >= match.end()]
        # "Its 41 are the highest of all, with Oak next"
        if after and re.search(r",\s+(?:with|then|before|followed)\b", clause.masked[match.end() : after[0].start]):
            after = []
        return [*(mentions or said_before(match.start(), clause)), *after[:1]]

    # Places.

    def check_ranks(self, clause: Clause, memory: Sequence[Mention], column: NumberColumn) -> Iterator[Objection]:
        matches = RANK.finditer(clause.masked) if MAY_RANK.search(clause.masked) else ()
        ranks = (self.rank_of(match, clause, column) for match in matches)
        tokens = [*filter(None, ranks), *self.ranks_of_line(clause)]
        if not tokens:
            return
        if not clause.names:
            readings = [[name for _ in tokens] for name in self.recent(memory)]
            distinct = list({name.name: name for name in memory}.values())[-len(tokens) :]
            readings += [distinct] if len(distinct) == len(tokens) else []
        else:
            first = [find_owner(token, clause, is_after=False) for token in tokens]
            second = [find_owner(token, clause, is_after=True) for token in tokens]
            is_clear = len({name.start for name in first}) == len(tokens) and all(
                token.is_verb or (is_next_to(name, token, clause) and not is_linked(token, after, clause))
                for token, name, after in zip(tokens, first, second, strict=True)
            )
            readings = [first] if is_clear else [first, second]
            if BACK.match(clause.masked):
                # "Its 444 units are the best, ahead of Elm, the second"
                ahead = sum(token.end <= clause.names[0].start for token in tokens)
                readings += [[*[name] * ahead, *first[ahead:]] for name in self.recent(memory)]
            if len(tokens) == 1 and first[0].end <= tokens[0].start:
                readings += [[name] for name in said_before(tokens[0].start, clause)]
            readings += [list(clause.names)] if not is_clear and len(clause.names) == len(tokens) else []
        apart = [names for names in readings if len({name.start for name in names}) == len(tokens)]
        tried = [list(self.false_ranks(tokens, names, column)) for names in apart or readings]
        # The most favourable reading: a false objection costs a call and trust.
        yield from min(tried, key=len, default=[])

    def rank_of(self, match: re.Match[str], clause: Clause, column: NumberColumn) -> Rank | None:
        kind = next(kind for kind in ("sign", "after", "bare", "before", "word") if match[kind])
        text = match[kind].lower()
        start, end = match.start(kind), match.end()
        if LIMITED.search(clause.masked[max(0, start - 25) : end + 25]):
            return None
        # "#3 in orders" and "41 orders (2nd)" are places by another column.
        by = re.match(r"\s+(?:in|by|on)\s+", clause.masked[end:])
        if by and self.column_of(noun_phrase(clause.masked[end + by.end() :])) is not column:
            return None
        before = [figure for figure in clause.figures if figure.end <= match.start()]
        near = [figure for figure in before if re.fullmatch(r"\W*", clause.masked[figure.end : match.start()])]
        if any(column.name not in {cell.column for cell in self.cells(figure, clause)} for figure in near):
            return None
        # "First, Elm has 5, and second, Oak has 4" numbers reasons.
        if re.match(r"and|\d", match.group()) and clause.masked[end : end + 1] == ",":
            return None
        if text == "best" and re.match(r" (?:in|on|at|for)\b", clause.masked[end:]):
            return None
        digits = re.sub(r"\D", "", text)
        number = int(digits) if digits else next(at for word, at in NTH.items() if re.fullmatch(word, text))
        goal = "max" if match["max"] else "min" if match["min"] else self.goal
        return Rank(match["word"] or match.group(), number, start, end, kind == "word", goal)

    def ranks_of_line(self, clause: Clause) -> Iterator[Rank]:
        """Yield the place that a line of a table gives its name."""
        texts = SEPARATOR.split(clause.masked)
        for at, head in enumerate(clause.heads[: len(texts)]):
            if texts[at].strip().isdigit() and re.fullmatch(RANK_HEAD, head, re.I):
                start = sum(map(len, texts[:at])) + at
                yield Rank(texts[at], int(texts[at]), start, start + len(texts[at]), False, self.goal)

    def check_numbers_of_lines(self) -> Iterator[Objection]:
        """Yield the one number of a numbered list that is not the place of its name, if it is no plain 1, 2, 3."""
        column = self.deciding
        lines = [(LINE_NUMBER.match(clause.masked), clause) for clause in self.reasons if len(clause.names) == 1]
        places = [
            (int(match[1]), clause.names[0], ends[0 if self.goal == "max" else 1])
            for match, clause in lines
            if match and column and (ends := column.ranks(column.row_of(clause.names[0])))
        ]
        numbers = [number for number, _, _ in places]
        wrong = [(number, name, allowed) for number, name, allowed in places if number not in allowed]
        if column and self.goal and len(places) > 2 and len(wrong) == 1 and numbers != list(range(1, len(numbers) + 1)):
            ((number, name, allowed),) = wrong
            yield Objection(
                "rank", f"You wrote {number} for {name.name}; by {column.name} it is number {min(allowed)}."
            )

    def false_ranks(
        self, tokens: Sequence[Rank], names: Sequence[Mention], column: NumberColumn
    ) -> Iterator[Objection]:
        for token, name in zip(tokens, names, strict=True):
            row = column.row_of(name)
            if not row or not (ends := column.ranks(row)):
                continue
            # Without a goal a place may be counted from either end.
            allowed = {*ends[0 if token.goal == "max" else 1]} if token.goal else {*ends[0], *ends[1]}
            if token.number not in allowed:
                says = f"by {column.name} it is number {min(allowed)} of the rows of {column.table}."
                yield Objection("rank", f"You wrote {token.text.strip()} of {self.name(row)}; {says}")

    # Comparisons.

    def check_comparative(self, match: re.Match[str], clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        text, is_up = clause.masked, self.is_up(match)
        if (match["better"] or match["worse"]) and not self.goal:
            return
        before, tail = text[: match.start()], text[match.end() :]
        # "No higher than" and the like say the opposite, or nothing of an order.
        other = NO_OTHER.search(before)
        if other and (
            not other["noun"]
            or stem(other["noun"].lower()) in find_candidate_nouns(self.question) | {"other", "one", "row"}
        ):
            yield from self.check_no_other(match, clause, memory)
            return
        if re.search(
            r"\b(?:rather|any|much|once|one)\s+$|\b(?:no|not|never|neither|nor|none|nothing|nobody)\b", before, re.I
        ):
            return
        column = self.column_of(noun_phrase(tail))
        # "80 lie below Elm" counts others.
        if (
            column is None
            or re.match(r"\s+(?:or|by)\b", tail)
            # "Behind Elm comes Oak"
            or (DIRECT.match(match.group()) and re.search(r"(?:^|[,;:(]|\b(?:and|but))\W*$", before))
            or re.search(r"\b\d+ (?:are|come|lie|rank|sit|stand)\s$", before)
        ):
            return
        amounts = [figure for figure in clause.figures if figure.end <= match.start()]
        amounts = [figure for figure in amounts if re.fullmatch(r"[)*`\s]*", before[figure.end :])]
        amount = amounts[-1] if amounts and not DIRECT.match(match.group()) else None
        subjects = self.subjects(match, clause, memory, column, amount)
        is_figure = any(name == figure.text for name, _ in subjects for figure in clause.figures)
        objects = self.objects(match, clause, memory, column, is_figure)
        if amount and amount.digits > 2 and not objects and len({name for name, _ in subjects}) == 1:
            # "52.0 % above the second": how far it is apart says from which row.
            rows = [(self.name(id), value) for id, value in column.by_id.items()]
            objects = [row for row in rows if is_gap(amount, subjects[0][1], row[1])]
        pairs = [(own, rival) for own in subjects for rival in objects if own[1] != rival[1] and own[0] != rival[0]]
        if amount:
            near = [(own, rival) for own, rival in pairs if is_gap(amount, own[1], rival[1])]
            pairs = near if near or not any(rival[0] == MEAN_OF_ALL for _, rival in pairs) else pairs
        if pairs and not any((own[1] > rival[1]) == is_up for own, rival in pairs):
            (name, value), (rival_name, against) = pairs[0]
            word = match.group().lower()
            said = SAID.get(word) or (word if DIRECT.match(word) else f"is {word} than")
            claim = f"You wrote that {name} {said} {rival_name}"
            yield Objection("direction", f"{claim}; {column.name} says {value:,.10g} against {against:,.10g}.")

    def is_up(self, match: re.Match[str]) -> bool:
        """Return whether a comparative says that the number is the larger one; what is better depends on the goal."""
        return bool(match["up"] or match["better" if self.goal == "max" else "worse"])

    def check_no_other(self, match: re.Match[str], clause: Clause, memory: Sequence[Mention]) -> Iterator[Objection]:
        """Yield the objection to "no other has more than Elm", if another one has."""
        tail = clause.masked[match.end() :]
        column, than = self.column_of(noun_phrase(tail)), re.match(r"(?:[\w\s-]{0,40}?\bthan)?[\s*]*", tail, re.I)
        start = match.end() + (than.end() if than else 0)
        names = [name for name in clause.names if 0 <= name.start - start < 3]
        if re.match(r"\s*(?:it\b)?\W*$", tail):
            names = said_before(match.start(), clause) or self.recent(memory)
        at = 0 if self.is_up(match) else 1
        rows = [column.row_of(name) for name in names] if column else []
        places = [(ends[at][0], row) for row in rows if column and row and (ends := column.ranks(row))]
        # The most favourable name: of which one it is said may be open.
        number, row = min(places, default=(1, ""))
        if column and number > 1:
            claim = f"You wrote that none is {match.group()} than {self.name(row)}"
            yield Objection("direction", f"{claim}; by {column.name} it is number {number} from that end.")

    def subjects(
        self,
        match: re.Match[str],
        clause: Clause,
        memory: Sequence[Mention],
        column: NumberColumn,
        amount: Quantity | None,
    ) -> list[tuple[str, float]]:
        """Return the thing said to be more or less, with its number.

        The figure before the word, else the names before it, else those known.
        """
        text = clause.masked
        start = amount.start if amount else match.start()
        figure = next((figure for figure in reversed(clause.figures) if figure.end <= start), None)
        copula = r"[)*`\s,]*(?:which |that |this )?(?:is|was|are|were)(?: (?:already|in turn|also|still|far|much))?\s*"
        is_direct = DIRECT.match(match.group()) and not text[figure.end : start].strip(" *`)") if figure else None
        if figure and (is_direct or re.fullmatch(copula, text[figure.end : start])):
            # "Around 30 hours" may stand for 1.25 days.
            cells = self.ground.cells_with(figure)
            own = [cell.value for cell in cells if (table_of(cell.id), cell.column) == (column.table, column.name)]
            # A short number may count rows: "9 are above the mean".
            return [(figure.text, own[0])] if own and (figure.digits > 2 or figure.unit) else []
        ahead = list({name.name: name for name in clause.names if name.end <= start}.values())
        if (word := re.search(r"\bthe (former|latter)(?:'s| is| has)?(?: the)?\s+$", text[:start])) and len(ahead) == 2:
            return column.values([ahead[word[1] == "latter"]])
        said_for = re.match(r"\s+(?:for|für|para)\s+[*]*", text[match.end() :])
        after = [name for name in clause.names if said_for and name.start == match.end() + said_for.end()]
        if after or (before := said_before(start, clause)):
            # "Between Oak and Elm the former is higher": of whom it is said is open, so every name counts, and
            # nothing is sure.
            is_open = not after and not is_said_of(before[0], start, clause)
            return column.values([*clause.names, *self.recent(memory)] if is_open else after or before)
        if re.search(r"\b(?:all|the|every)\s+(?:others?|rest|remaining)\b", text[:start], re.I):
            known = {column.row_of(name) for name in [*clause.names, *self.recent(memory)]}
            rest = [value for row, value in column.by_id.items() if row not in known]
            return [("the rest", min(rest) if self.is_up(match) else max(rest))] if rest else []
        is_back = amount or re.match(r"\W*(?:it|its|this|that)\b", text, re.I)
        return column.values(self.recent(memory)) if is_back else []

    def objects(
        self, match: re.Match[str], clause: Clause, memory: Sequence[Mention], column: NumberColumn, is_figure: bool
    ) -> list[tuple[str, float]]:
        """Return the thing compared with, with its number."""
        tail = clause.masked[match.end() :]
        mean = (MEAN_OF_ALL, sum(column.numbers) / len(column.numbers))
        if of_mean := OF_MEAN.match(tail):
            own = column.values([*clause.names, *self.recent(memory)])
            rest = [(MEAN_OF_ALL, (column.total - value) / (len(column.numbers) - 1)) for _, value in own]
            return rest if re.search(r"\b(?:others?|rest|remaining)\b", of_mean.group(), re.I) else [mean]
        than = re.match(
            r"[\w\s-]{0,30}?\b(?:than|als|que)\s+(?:that of|those of|what|the|for|at|der von|die von)?\s*[*`$€£]*", tail
        )
        is_side, is_direct = match.group().lower() in ("above", "below"), DIRECT.match(match.group())
        if is_side and not than:
            than = re.match(r"\s+(?=X)", tail)
        if is_direct:
            than = re.match(r"(?: of)?\s+(?:that of |those of |what |the )?[*`$€£]*", tail)
        if than:
            start = match.end() + than.end()
            if re.match(r"(?:any|all|every|each)\b", clause.masked[start:]):
                named = {column.row_of(name) for name in clause.names}
                others = [value for row, value in column.by_id.items() if row not in named]
                return [("all others", max(others) if self.is_up(match) else min(others))] if others else []
            if figure := next((figure for figure in clause.figures if 0 <= figure.start - start < 2), None):
                # "41 beats 19 of them" counts.
                after = clause.masked[figure.end :]
                is_count = figure.digits < 3 or re.match(r"\s+(?:other|of (?:them|the|all))\b", after)
                is_amount = (figure.unit or not is_count) if is_direct else is_figure
                return [(figure.text, abs(figure.meanings[0].value))] if is_amount else []
            return column.values([name for name in clause.names if 0 <= name.start - start < 25][:1])
        known = column.values([*clause.names, *self.recent(memory)])
        if not is_side:
            return [] if is_direct else known
        if not re.match(r"\s+(?:it|that|this)\b", tail):
            return []
        return [*known, *([mean] if MEAN.search(self.claims.because) else [])]


def find_owner(token: Rank, clause: Clause, is_after: bool) -> Mention:
    before = [name for name in clause.names if name.end <= token.start]
    after = [name for name in clause.names if name.start >= token.end]
    is_joint = after and re.fullmatch(r"[\s*:(–-]*", clause.masked[token.end : after[0].start])
    if is_joint and not token.is_verb and not (before and 0 <= token.start - before[-1].end < 4):
        return after[0]
    return [*after, *reversed(before)][0] if is_after else [*reversed(before), *after][0]


def is_next_to(name: Mention, token: Rank, clause: Clause) -> bool:
    """Return whether nothing but a few words and figures stand between a name and the rank after it."""
    between = clause.masked[name.end : token.start]
    return name.end <= token.start and len(between) < 45 and not re.search(r"[,;:–]\s|\s{6}", between)


def is_linked(token: Rank, name: Mention, clause: Clause) -> bool:
    """Return whether nothing but a few words stand between a rank and the name after it."""
    between = clause.masked[token.end : name.start]
    is_ahead = not token.is_verb and name.start >= token.end
    return is_ahead and re.fullmatch(r"[\s*:(–-]*(?:[^\W\d]+\s+){0,3}[*]*", between) is not None


def said_before(at: int, clause: Clause) -> list[Mention]:
    """Return the names before a word that it may be said of: the last, and the first if more than a verb is between."""
    before = [name for name in clause.names if name.end <= at]
    before = [name for name in before if not RIVAL.search(clause.masked[: name.start])] or before
    if not before or re.match(r"\W*(?:although|while|whereas|though|compared)\b", clause.masked, re.I):
        return before[-1:]
    is_close = re.fullmatch(
        r"[*'s]*(?:\s+(?!(?:and|but|so|y|et|und)\b)[^\W\d]+){0,5}\s+\W?", clause.masked[before[-1].end : at]
    )
    return before[-1:] if is_close else [before[-1], before[0]]


def is_said_of(name: Mention, at: int, clause: Clause) -> bool:
    """Return whether only words that link a name to what is said of it, and figures, stand between the two."""
    between = clause.masked[name.end : at]
    for figure in clause.figures:
        if name.end <= figure.start and figure.end <= at:
            low, high = figure.start - name.end, figure.end - name.end
            between = between[:low] + " " * (high - low) + between[high:]
    return LINKS.issuperset(re.findall(r"\w+", between.lower()))


def is_gap(figure: Quantity, own: float, rival: float) -> bool:
    """Return whether the figure is how far two numbers are apart."""
    if figure.unit == "%" and not fits(figure, own - rival):
        return any(base and fits(figure, 100 * (own - rival) / base) for base in (own, rival))
    return fits(figure, own - rival)
