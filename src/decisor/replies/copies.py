"""Values that a model copied from the form that it was to fill in, or from an example of it."""

from __future__ import annotations

import re

from decisor.errors import ParseError

FORM_TEXTS = (
    "the name of one tool",
    "what you give it",
    "what is to be found out first",
    "the name or id of the",
    "the name of the candidate",
    "the candidate, and nothing else",
    "as few words as possible",
    "as short as the question allows",
    "the answer and nothing else",
    "the query and nothing else",
    "the next sentence alone",
    "what to look for, one fact",
    "the input that its description asks for",
    "names and words that the passage",
    "the number of the one document",
    "the numbers of all documents",
    "the question alone",
    "a few words",
    "what it shows, with the id of the whole",
)
"""How the values in our forms begin. A test plays the forms of all techniques back."""
EXAMPLE_ANSWER = "Harbour Mill"
EXAMPLE_PLAN = ("read the price of each product", "compare them")
EXAMPLE_INPUTS = {
    "sql": "SELECT name, price FROM product ORDER BY price LIMIT 10",
    "cypher": "MATCH (p:Product) RETURN p.name, p.price ORDER BY p.price LIMIT 10",
    "passages": "price of each product of Harbour Mill",
    "search": "who owns Harbour Mill",
    "calculator": "12.5 * 3",
    "whatif": "rank",
}
EXAMPLES = frozenset(
    text.casefold() for text in (EXAMPLE_ANSWER, EXAMPLE_PLAN[0], *EXAMPLE_INPUTS.values()) if " " in text
)
BLANK = re.compile(r"[\W_]*|<[\w .,-]*>|\.\.\.|(?:n/a|none|null|todo|your query(?: here)?|query|input)\.?", re.I)


def is_copy(value: str) -> bool:
    """
    >>> is_copy("what you give it (for a database, one query and nothing else)"), is_copy("elm")
    (True, False)
    """
    plain = " ".join(value.split()).strip("\"'`*[]<>() ").casefold()
    return plain.startswith(FORM_TEXTS) or plain in EXAMPLES


def refuse_copies(name: str, value: str) -> None:
    """
    Raises:
        ParseError: the value is the form's own (copied).
    """
    if is_copy(value):
        raise ParseError(f"Your {name} is the text of the form. Write your own in its place.", "copied")
