"""Outputs other than those asked for: no order for a superlative, no average.

    question: Which three suppliers are the cheapest?
    SELECT name FROM suppliers

has no order and no limit; ORDER BY price DESC would be the wrong way round (lost_order). A question for an average or a
percentage wants AVG or a division (lost_measure), and one for a ratio no * 100.

    question: Who has the highest score?
    SELECT player_id FROM results ORDER BY score DESC LIMIT 1

shows a key in place of the name, and a count alone does not list what is counted (lost_output).
"""

from __future__ import annotations

import re

from sqlglot import Expr, exp

from decisor.databases.pitfalls.blocks import SelectBlock, find_column
from decisor.databases.pitfalls.conditions import BIRTH
from decisor.databases.pitfalls.joins import is_whole_key, kind_of_type
from decisor.databases.pitfalls.rule import RuleInput
from decisor.databases.schema_search import name_words
from decisor.types import Pitfall

AT_LEAST = re.compile(r"\bat (?:most|least)\b|\bmost recent\b|\b(?:maxi|mini)mum\b", re.I)
MOST = r"highest|most|largest|biggest|greatest|longest|tallest|heaviest"
LEAST = r"lowest|least|smallest|fewest|shortest|cheapest"
EITHER = r"latest|newest|youngest|earliest|oldest|best|worst|peak"
SUPERLATIVE = re.compile(rf"\b(?:(?P<most>{MOST})|(?P<least>{LEAST})|{EITHER})\b", re.I)
SORTED = re.compile(
    r"\b(?P<down>descending|decreasing|revers\w+ (?:alpha|lexicogra)\w+|(?:largest|highest) to (?:small|low)est)\b"
    r"|\b(?P<up>ascending|increasing|alphabetical|lexicographical|(?:small|low)est to (?:largest|highest))\b",
    re.I,
)
AGE = re.compile(r"\b(?:(?P<most>young(?:est|er))|(?P<least>old(?:est|er)|eldest))\b(?! than)", re.I)
"""By a date of birth: the youngest has the last one."""
RANKED = r"\b(?:max|min|rank\w*|order|high\w*|low\w*|most|least|old\w*|young\w*|larg\w*)\b"
"""In a definition by what comes first."""
RANK_NAME = re.compile(r"rank|position|place|level|grade", re.I)
NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
COUNTED = rf"(?P<count>{'|'.join(NUMBER_WORDS[2:])}|\d\d?)"
TOP = re.compile(
    rf"\b(?:top|first|{MOST}|{LEAST}|{EITHER})\s+{COUNTED}\b(?!\s+(?:second|minute|hour|day|week|month|quarter|year))",
    re.I,
)
NUMBERED = re.compile(r"\b(?:ids?|numbers?|codes?|keys?|identif\w+|counts?|how many|links?|no\.)", re.I)
"""Words for keys."""
NAME = re.compile(r"name|title", re.I)
ID = re.compile(r"id$|^id_|_key$", re.I)
COUNT_AND_LIST = re.compile(
    r"^how many\b.*[?.,;]\s*(?:and |please |also )*(?:list|name|state|give|show|provide)\s+(?:out )?"
    r"(?:them\b|their\b|(?:the )?(?:\w+ ){0,2}(?:ids?|names?|titles?)\b)",
    re.I | re.S,
)
STORED_MEASURE = re.compile(r"perc|pct|\bratio|ratio\b|rate\b|share\b|av(?:g|er)")
"""In the name of a column that holds what would else be computed."""
DISTINCT = re.compile(r"\b(?:how many|number of|count)\b.*?\b(?:different|distinct|unique)\b", re.I)
DISTINCT_RULE = re.compile(r"\bdistinct\b|\bwithout repet|\b(?:number of|count) \w* ?(?:different|unique)\b", re.I)
DIFFERENCE = re.compile(
    r"\b(?<!\ba )(?<!\bany )difference\b|\bhow (?:much|many) (?:more|less|fewer|higher|lower)\b", re.I
)
RATIO = re.compile(r"\bratio\b", re.I)
PERCENTAGE = re.compile(r"percent|%|\b100\b", re.I)
AVERAGE = re.compile(r"\baverage\b", re.I)
OF_AVERAGE = re.compile(r"\b(?:average|mean|per|total number)\b", re.I)
STORED_EXTREME = re.compile(r"(?:\b|_)(?:high|lowest|low_|max|min_|best|peak)")
RANKING = (exp.Order, exp.Max, exp.Min, exp.Window, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.All, exp.ArgMax, exp.ArgMin)


async def lost_order(rule_input: RuleInput) -> list[Pitfall]:
    asked = rule_input.asked
    if not asked or not rule_input.is_answer:
        return []
    wish = AT_LEAST.sub(" ", asked.text)
    names = " ".join(rule_input.used_columns)
    words = [] if STORED_EXTREME.search(names) else list(SUPERLATIVE.finditer(wish))
    # "The most serious refers to level = 1" is a condition.
    words = [word for word in words if not asked.defines(word[0], RANKED)]
    if words and not rule_input.is_in_any(*RANKING):
        text = f"The question asks for the {words[0][0].lower()}, and the query neither sorts nor compares."
        return [Pitfall("lost_order", text, strength="ask")]
    if (count := TOP.search(wish)) is not None and not rule_input.is_in_any(exp.Window, exp.Fetch):
        number = NUMBER_WORDS.index(count["count"].lower()) if not count["count"].isdigit() else int(count["count"])
        trees = (rule_input.tree, *rule_input.earlier)
        limits = {node.expression.name for tree in trees for node in tree.find_all(exp.Limit)}
        if str(number) not in limits:
            return [Pitfall("lost_order", f"The question asks for {number}, and no LIMIT says so.", strength="ask")]
    return find_wrong_direction(rule_input, words) or find_unsorted(rule_input)


def find_wrong_direction(rule_input: RuleInput, words: list[re.Match[str]]) -> list[Pitfall]:
    """Find the one order of a query that takes the first rows, or its MIN or MAX, if it takes the other end than asked.

    What is asked for is what all superlatives of the question say.
    """
    ends: list[tuple[Expr, bool]] = [
        (term, bool(term.args.get("desc")))
        for order in rule_input.find(exp.Order)
        if isinstance(order.parent, exp.Select) and order.parent.args.get("limit")
        for term in order.expressions[:1]
    ]
    extremes: list[tuple[Expr, bool]] = [
        (call, isinstance(call, exp.Max)) for call in rule_input.find(exp.Max, exp.Min)
    ]
    if extremes and not rule_input.is_in_any(exp.Order, exp.Window):
        ends, extremes = extremes, []
    # The rules may say that the most is a minimum, as of what remains.
    is_ruled_otherwise = re.search(r"\b(?:MIN|MAX)\b", rule_input.asked.rules, re.I)
    if extremes or len({takes_most for _, takes_most in ends}) != 1 or is_ruled_otherwise:
        return []
    node, takes_most = ends[0]
    name = column.name if (column := node.find(exp.Column)) else ""
    if BIRTH.search(name) and node.find(exp.Sub) is None:
        words = list(AGE.finditer(rule_input.asked.text))
    directions = {bool(word["most"]) if word.lastgroup else None for word in words}
    # The highest rank is the first.
    if len(directions) != 1 or directions & {None, takes_most} or RANK_NAME.search(name):
        return []
    text = f"The question asks for {words[0][0].lower()}, and {{}} takes the other end. Is that meant?"
    return [rule_input.pitfall("lost_order", node, text, "ask")]


def find_unsorted(rule_input: RuleInput) -> list[Pitfall]:
    """Find a list that is asked for in ascending or descending order and is sorted the other way, or not at all."""
    ways = {match.lastgroup == "down" for match in SORTED.finditer(rule_input.asked.text)}
    if not ways:
        return []
    if not rule_input.is_in_any(exp.Order):
        text = "The question asks for an order, and no query sorts."
        return [Pitfall("lost_order", text, strength="ask")]
    terms = [term for order in rule_input.find(exp.Order) for term in order.expressions]
    if len(ways) == 1 and terms and ways.isdisjoint({bool(term.args.get("desc")) for term in terms}):
        return [rule_input.pitfall("lost_order", terms[0], "The question asks for the other order than {}.", "ask")]
    return []


async def lost_measure(rule_input: RuleInput) -> list[Pitfall]:
    asked, text = rule_input.asked, ""
    if not asked or not rule_input.is_answer:
        return []
    names = " ".join(rule_input.used_columns)
    if STORED_MEASURE.search(names):
        return []
    is_average = AVERAGE.search(asked.text) and not asked.defines("average", r"\b(?:avg|average|divide|sum|count)\b|/")
    if is_average and not rule_input.is_in_any(exp.Avg, exp.Div):
        text = "The question asks for an average, and no query computes one."
    elif re.search(r"\bpercent(?:age)?\b", asked.text, re.I) and not rule_input.is_in_any(exp.Div):
        text = "The question asks for a percentage, and no query divides."
    elif DIFFERENCE.search(asked.text) and not rule_input.is_in_any(exp.Sub, exp.Neg):
        text = "The question asks for a difference, and no query subtracts."
    elif RATIO.search(asked.text) and not PERCENTAGE.search(f"{asked.text} {asked.rules}") and rule_input.has(exp.Div):
        factors = [side for product in rule_input.find(exp.Mul) for side in (product.this, product.expression)]
        if any(side.name in ("100", "100.0") for side in factors):
            text = "The question asks for a ratio, and the query computes a percentage."
    is_counted = not text and rule_input.has(exp.Count)
    if is_counted and (DISTINCT.search(asked.text) or DISTINCT_RULE.search(asked.rules)):
        columns = [count for count in rule_input.find(exp.Count) if isinstance(count.this, exp.Column)]
        if columns and not rule_input.is_in_any(exp.Distinct, exp.Group, exp.Union):
            text = f"The question asks for different ones, and {rule_input.shorten(columns[0])} counts each row."
    is_total = re.search(r"\btotal\b", asked.text, re.I) and not OF_AVERAGE.search(asked.text)
    if not text and is_total and rule_input.has(exp.Avg) and not rule_input.is_in_any(exp.Sum, exp.Count):
        text = "The question asks for a total, and the query computes an average."
    return [Pitfall("lost_measure", text, strength="ask")] if text else []


async def lost_output(rule_input: RuleInput) -> list[Pitfall]:
    select, asked = rule_input.tree, rule_input.asked
    block = rule_input.statement.blocks.get(id(select))
    if not asked or block is None or not rule_input.is_answer:
        return []
    values = [item.unalias() for item in block.select.expressions]
    if len(values) == 1 and isinstance(values[0], exp.Count) and not block.groups and COUNT_AND_LIST.search(asked.text):
        text = "The question asks how many and which, and the query only counts."
        return [rule_input.pitfall("lost_output", values[0], text, "ask")]
    if NUMBERED.search(asked.text) or not all(is_key_of_name(value, block, rule_input) for value in values):
        return []
    text = "The question asks for what is named, and {} is only its key."
    return [rule_input.pitfall("lost_output", values[0], text, "ask")]


def is_key_of_name(value: Expr, block: SelectBlock, rule_input: RuleInput) -> bool:
    """Return whether an output is a key that neither question nor rules name, of a table that has names."""
    origin = block.source_column(value)
    table = origin.source.table if origin else None
    column = find_column(origin) if origin else None
    is_named = column is not None and name_words(column.name) <= rule_input.asked.all_stems
    # A code of letters may be read as a name.
    is_id = column is not None and (ID.search(column.name) or kind_of_type(column) == "number")
    if origin is None or table is None or is_named or not is_id:
        return False
    links, place = rule_input.catalog.links, (table.name.lower(), origin.column)
    home = next(
        (known for known in rule_input.catalog.tables.values() if known.name.lower() == links.root(place)[0]), table
    )
    is_key = is_whole_key(column, table) or place in {*links.target_of, *links.target_of.values()}
    return is_key and any(NAME.search(column.name) for column in home.columns)
