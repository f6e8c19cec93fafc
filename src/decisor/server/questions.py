"""Questions that a database can answer, by rules from its tables, keys and kinds of columns. No LLM is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from decisor.server.responses import ColumnReply, SuggestedQuestion, TableReply
from decisor.system.wording import plural

MOST = 6
NUMBER = re.compile(r"int|real|double|float|numeric|decimal|money|number", re.I)
NAME = re.compile(r"^(?:name|title|label|\w*_name|\w*name)$", re.I)
COST = re.compile(r"cost|price|rent|fee|expense|wage|salary", re.I)
GAIN = re.compile(r"revenue|sales|profit|income|margin|turnover|amount|total|quantity", re.I)
LOSS = re.compile(r"return|refund|complaint|defect|fault|delay|claim|incident|recall", re.I)
PLACE = re.compile(r"^(?:city|town|region|country|state|district)$", re.I)


def suggest_questions(tables: Sequence[TableReply]) -> list[SuggestedQuestion]:
    """Return questions that the tables can answer: the first of each thing, then the next of each; at most ``MOST``.

    Things that fewer rows name come first: a supplier is chosen, a customer seldom.
    """
    by_thing = [list(questions_of_table(table, tables)) for table in sorted(tables, key=lambda table: table.rows or 0)]
    found = [question for turn in zip_longest(*by_thing) for question in turn if question is not None]
    return list({question.question: question for question in found}.values())[:MOST]


def questions_of_table(table: TableReply, tables: Sequence[TableReply]) -> Iterator[SuggestedQuestion]:
    """Yield the questions about the things that a table names: which to drop, which is best, which place."""
    named = next((column for column in table.columns if NAME.match(column.name)), table.columns[0])
    if not NAME.match(named.name) and (NUMBER.search(named.type) or named.references):
        return
    # The names of a list are of the things in one of its columns, or of its rows.
    of_column = (
        re.sub(r"_?name$", "", named.name, flags=re.I) if not re.fullmatch("title|label", named.name, re.I) else ""
    )
    thing = of_column.replace("_", " ").lower() or noun_of_table(
        table.name.rpartition(".")[2].replace("_", " ").lower()
    )
    near = [other for other in tables if other is not table and refers_to(other, table)]
    # Purchases and their returns: what refers to what refers to the thing.
    far = [other for other in tables if other not in (table, *near) and any(refers_to(other, one) for one in near)]
    about = [table, *near, *far]
    uses = tuple(one.name for one in about[:4])
    words = " ".join([*(one.name for one in about), *(column.name for one in about for column in one.columns)])
    if near and COST.search(words):
        yield SuggestedQuestion(question=f"Which {thing} should we drop?", uses=uses)
    if near and LOSS.search(words):
        yield SuggestedQuestion(question=f"Which {thing} costs us the most in {loss_of(words)}?", uses=uses)
    numbers = [column.name for column in table.columns if is_measure(column)]
    for name in numbers[:2]:
        measure = name.replace("_", " ").lower()
        end = "lowest" if COST.search(name) else "highest"
        yield SuggestedQuestion(question=f"Which {thing} has the {end} {measure}?", uses=(table.name,))
    place = next((column.name for column in table.columns if PLACE.match(column.name)), "")
    if place and near and GAIN.search(words):
        yield SuggestedQuestion(question=f"Which {place.lower()} matters most among our {plural(2, thing)}?", uses=uses)


def noun_of_table(noun: str) -> str:
    """Return the singular of a noun, as tables are often called in the plural.

    >>> noun_of_table("offers"), noun_of_table("companies"), noun_of_table("status"), noun_of_table("address")
    ('offer', 'company', 'status', 'address')
    """
    return re.sub(r"(?<![sui])s$", "", re.sub(r"ies$", "y", noun))


def refers_to(table: TableReply, other: TableReply) -> bool:
    return any((column.references or column.joins).rpartition(".")[0] == other.name for column in table.columns)


def is_measure(column: ColumnReply) -> bool:
    is_key = bool(column.references or column.joins) or column.name.lower() in ("id", "since", "year")
    return (
        NUMBER.search(column.type) is not None
        and not is_key
        and not re.search(r"(?:_|^)(?:id|key|code)$|Id$", column.name)
    )


def loss_of(words: str) -> str:
    """Return the word for what is lost, in the plural.

    >>> loss_of("purchase product_return refund")
    'returns'
    """
    match = LOSS.search(words)
    return f"{match[0].lower()}s" if match else "losses"
