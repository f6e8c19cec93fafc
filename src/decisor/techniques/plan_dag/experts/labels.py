"""Reading what experts write: a few labels, each expert its own."""

from __future__ import annotations

import re

from decisor.replies.cleaning import clean


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
