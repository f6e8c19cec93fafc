"""Texts that a query compares with, and nobody spoke of, spelt so or stored.

    question: How many members major in Business?
    SELECT COUNT(*) FROM members WHERE major = 'Mathematics'

Neither the question nor its rules have a word of the text (unfounded_value). Short texts and yes or no stand for other
words and are let pass.

    question: ... of the card "Molimo, Maro-Sorcerer"
    ... WHERE name = 'Molimo , Maro-Sorcerer'

The question has the same letters with other signs or blanks between them (misspelt_value).

    SELECT COUNT(*) FROM orders WHERE status <> 'canceled'

counts all orders if the stored word is cancelled (unstored_value). Whether a value is stored is looked up, as the
engine compares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import Expr, exp

from decisor.databases.hints import MAX_VALUES, ComparedLiteral, letters_only, suggest_stored_values
from decisor.databases.pitfalls.blocks import SelectBlock, conjuncts_of_clause
from decisor.databases.pitfalls.question import CALENDAR
from decisor.databases.pitfalls.rule import LIKES, RuleInput
from decisor.databases.schema_search import stemmed_words
from decisor.types import Pitfall

MAX_LITERALS = 8
FLAGS = frozenset({"yes", "no", "true", "false", "none", "null", "unknown", "other"})
PEOPLE = re.compile(r"(?<=\w )[A-Z][a-z]+(?:ish|ch|sh|ese|an|ans|i|ic)\b")
MISSPELT = re.compile(r"\s[,.;:!?]|[^\x00-\x7f]")


async def misspelt_value(rule_input: RuleInput) -> list[Pitfall]:
    asked, pitfalls = rule_input.asked, []
    for _, literal, node in rule_input.comparisons if asked else ():
        value = literal.name.strip("%").lower()
        is_same = len(letters_only(value)) >= 3 and letters_only(value) in asked.letters
        is_pattern = isinstance(node, exp.Like | exp.ILike) and re.search("[%_]", value)
        is_spelt = is_pattern or " ".join(value.split()) in asked.spelling
        if is_same and not is_spelt and (MISSPELT.search(value) or letters_only(value) in asked.values):
            text = "{} is spelt in another way than in the question. Copy the text as the question has it."
            pitfalls.append(rule_input.pitfall("misspelt_value", node, text))
    return pitfalls


async def unfounded_value(rule_input: RuleInput) -> list[Pitfall]:
    asked, pitfalls = rule_input.asked, []
    for column, literal, node in rule_input.comparisons if asked else ():
        if not isinstance(column, exp.Column):
            continue
        value = literal.name.strip("%")
        letters = letters_only(value)
        # A code stands for a word.
        is_code = len(letters) <= 4 or value.lower() in FLAGS
        is_date = letters.isdigit() or re.search(r"\d{4}", value)
        if is_code or is_date or letters in asked.letters:
            continue
        words = set(stemmed_words(value))
        unknown = words - asked.all_stems
        # French players are of France; days and months are counted from those that are named.
        people = {name[:2].lower() for name in PEOPLE.findall(asked.text)}
        is_people = len(unknown) == 1 and any(word[:2] in people for word in unknown)
        if is_people or (unknown <= CALENDAR and asked.stems & CALENDAR):
            continue
        is_part = isinstance(node, exp.Like | exp.ILike) and unknown != words
        if unknown and not is_part:
            text = "{}: neither the question nor its rules speak of this value. Is it meant?"
            pitfalls.append(rule_input.pitfall("unfounded_value", node, text, "ask"))
    return pitfalls


async def unstored_value(rule_input: RuleInput) -> list[Pitfall]:
    texts = [
        await check_stored_literal(block, *compared, rule_input)
        for block in rule_input.blocks
        for compared in list(compare_with_literals(block, conditions_met_by_result(block, rule_input)))[:MAX_LITERALS]
    ]
    pitfalls = [Pitfall("unstored_value", text) for text in texts if text]
    # Only if two or more values are all stored can it be their combination that no row has.
    if not pitfalls and texts.count("") > 1 and rule_input.result is not None and not rule_input.result.rows:
        text = "Each value in the query is stored, but no row meets all of its conditions together."
        pitfalls.append(Pitfall("unstored_value", text, strength="ask"))
    return pitfalls


def conditions_met_by_result(block: SelectBlock, rule_input: RuleInput) -> list[Expr]:
    """Return the conditions that all rows of the result fulfil. The values that they compare with are stored."""
    has_rows = rule_input.result is not None and rule_input.result.rows
    if not has_rows or block.select is not rule_input.tree or block.has_aggregates():
        return []
    conditions = (
        part.this if isinstance(part, exp.Escape) else part for part in conjuncts_of_clause(block.select, "where")
    )
    return [part for part in conditions if isinstance(part, exp.EQ | LIKES) and not part.args.get("negate")]


def compare_with_literals(block: SelectBlock, met: list[Expr]) -> Iterator[tuple[Expr, Expr, Expr | None]]:
    """Yield each value with the literal that it is compared with, and the LIKE or ILIKE if it is one.

    The conditions ``met`` are left out.
    """
    for node in block.nodes.find(exp.EQ, exp.NEQ, exp.In, exp.Like, exp.ILike):
        if any(node is condition for condition in met):
            continue
        for side in node.expressions if isinstance(node, exp.In) else [node.expression]:
            if isinstance(side, exp.Literal):
                yield node.this, side, node if isinstance(node, LIKES) else None
            elif isinstance(node.this, exp.Literal) and not isinstance(node, exp.In | LIKES):
                yield side, node.this, None
    for case in block.nodes.find(exp.Case):
        if case.this is not None:
            values = (branch.this for branch in case.args["ifs"])
            yield from ((case.this, value, None) for value in values if isinstance(value, exp.Literal))


async def check_stored_literal(
    block: SelectBlock, value: Expr, literal: Expr, pattern: Expr | None, rule_input: RuleInput
) -> str | None:
    """Describe a literal that no row stores; '' if one does, None if it was not looked up."""
    stored, dialect = rule_input.stored, rule_input.dialect
    column = value.this if isinstance(value, exp.Lower | exp.Upper | exp.Trim) else value
    origin = block.source_column(column)
    table = origin.source.table if origin else None
    if origin is None or table is None or table.view or not origin.source.text:
        return None
    written = stored.column_name(origin.source, origin.column)
    operand: Expr = exp.column(written, quoted=True)
    operand = operand if value is column else type(value)(this=operand)
    condition: Expr = (exp.EQ if pattern is None else type(pattern))(this=operand, expression=literal.copy())
    if pattern is not None and isinstance(pattern.parent, exp.Escape):
        condition = exp.Escape(this=condition, expression=pattern.parent.expression.copy())
    query = f"SELECT 1 FROM {origin.source.text} WHERE {block.statement.write(condition)} LIMIT 1"
    matching = await stored.rows(query)
    # An empty literal tests for emptiness, and % matches any text.
    if matching is None or matching.rows or literal.name in ("", "%"):
        return ""
    name = dialect.quoted(written)
    source = f"{name} FROM {origin.source.text} WHERE {name} IS NOT NULL"
    number = None if literal.is_string else float(literal.name)
    query = f"SELECT DISTINCT {source} LIMIT {MAX_VALUES}"
    if number is not None:
        query = f"SELECT {source} ORDER BY abs({name} - {number!r}) LIMIT 3"
    values = await stored.rows(query, MAX_VALUES)
    compared = ComparedLiteral(
        literal.name.strip("%") if number is None else number,
        f"{table.name}.{written}",
        query,
        part=pattern is not None,
        any_case=isinstance(value, exp.Lower | exp.Upper) or isinstance(pattern, exp.ILike),
    )
    is_simple = pattern is None or is_substring_pattern(pattern)
    text = suggest_stored_values(compared, [row[0] for row in values.rows]) if values and is_simple else ""
    return text or f"{compared.place} has no {rule_input.shorten(literal)}."


def is_substring_pattern(pattern: Expr) -> bool:
    """Return whether a LIKE searches for a part of a text, with ``%`` at the ends alone."""
    inner = pattern.expression.name.strip("%")
    # The marks _ and [ are wildcards as well (the bracket in T-SQL): no text can be cut out of such a pattern.
    return not isinstance(pattern.parent, exp.Escape) and not any(mark in inner for mark in "%_\\[")
