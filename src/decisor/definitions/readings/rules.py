"""What a look at the question and the schema makes suspect, without an LM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from decisor.definitions.format import Calendar, Definition, Metric, Reading
from decisor.definitions.readings.amounts import gross_or_net, pieces_or_money
from decisor.definitions.readings.kinds import best_by_what, in_which_state, whose_place
from decisor.definitions.readings.open import OpenReading, Subject
from decisor.definitions.readings.times import from_when, which_date, which_year
from decisor.definitions.relations import Relation
from decisor.definitions.relevant import words_of
from decisor.definitions.show import line
from decisor.types import Question

RULES: Sequence[Callable[[Subject], Iterator[OpenReading]]] = (
    gross_or_net, pieces_or_money, best_by_what, which_year, which_date, from_when, in_which_state, whose_place,
)  # fmt: skip


def suspicions(question: Question, tables: Sequence[Relation], needs: Sequence[Definition] = ()) -> list[OpenReading]:
    """Without those that ``needs``, the definitions that the question is shown, settle. Where rules or a goal are
    given, they say by what is decided."""
    subject = Subject(question.text.lower(), tables, decides=not (question.rules or question.goal))
    suspects = [one for rule in RULES for one in rule(subject)]
    return [one for one in suspects if not settled(one, needs)]


def settled(one: OpenReading, needs: Sequence[Definition]) -> bool:
    """Whether a definition speaks of the same words, or of what they could mean."""
    own = set(words_of(one.words))
    for definition in needs:
        match definition:
            case Reading():
                if any(own & set(words_of(text)) for text in definition.words):
                    return True
            case Metric():
                if own & {word for name in (definition.name, *definition.synonyms) for word in words_of(name)}:
                    return True
                if definition.date and any(key in definition.date for key in one.keys):
                    return True
            case Calendar():
                if "year starts on" in one.keys:
                    return True
        if isinstance(definition, Reading) and any(key.lower() in line(definition).lower() for key in one.keys):
            return True
    return False
