"""Reading what experts write: a few labels, each expert its own."""

from __future__ import annotations

import re

from decisor.errors import ParseError
from decisor.replies.cleaning import NO_HELP, clean
from decisor.replies.copies import refuse_copies

MOST_WORDS = 15
TRIES = 5
"""How often an expert is asked without whom a node, and all that need it, would fail."""


def labels(reply: str, *names: str) -> dict[str, str]:
    """``Name: value`` by name, whatever the case and the markdown around it; a value may go on over lines.

    >>> labels("**Answer:** Lyon\\nquote: in\\nLyon", "answer", "quote")
    {'answer': 'Lyon', 'quote': 'in\\nLyon'}
    """
    shape = re.compile(rf"^[ \t]*(?:[*_#>-]+[ \t]*)?({'|'.join(map(re.escape, names))})[*_]*[ \t]*:[*_]*", re.M | re.I)
    text = clean(reply)
    matches = list(shape.finditer(text))
    ends = [label.start() for label in matches[1:]] + [len(text)]
    return {label[1].lower(): text[label.end() : end].strip() for label, end in zip(matches, ends, strict=False)}


def value_of(reply: str, name: str, most_words: int = MOST_WORDS) -> str:
    """What stands after a label, or the whole of a reply that came without it and is short: prose about how one would
    go on is no value.

    >>> value_of("Search: Arrival film", "search"), value_of("Arrival film", "search")
    ('Arrival film', 'Arrival film')

    Raises:
        ParseError: it is no value (missing_field), or the form's own text (copied).
    """
    text = labels(reply, name).get(name)
    if text is None:
        text = " ".join(clean(reply).split())
        if NO_HELP.search(text):
            raise ParseError("That is a refusal. Write a reply in the form asked for.", "model_refusal")
        cut_off = f"{name}:".startswith(text.casefold())
        if cut_off or len(text.split()) > most_words or re.search(r"[.!:]\s+\S|^[{\[(]?[\"{]", text):
            raise ParseError(f"Write it as {name.capitalize()}: and nothing else.", "missing_field")
    refuse_copies(name, text)
    return text
