"""README.md as a package index shows it, where no file of this repository lies beside it.

With an address of the source, links and pictures lead there. Without one a link is its words, and a picture is left
out: nothing leads nowhere.
"""

from __future__ import annotations

import re

PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)\s]+)\)\n*")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


def for_index(text: str, source: str = "") -> str:
    """``source``: where the files are, such as https://HOST/OWNER/NAME/blob/main.

    >>> for_index("![a run](run.svg)\\n\\nRead [it](docs/x.md#y), or [that](https://example.org).")
    'Read it, or [that](https://example.org).'
    >>> for_index("Read [it](docs/x.md#y).", "https://example.org/blob/main/")
    'Read [it](https://example.org/blob/main/docs/x.md#y).'
    """
    if not source:
        return LINK.sub(r"\1", PICTURE.sub("", text))
    base = source.rstrip("/")
    raw = base.replace("/blob/", "/raw/")
    text = PICTURE.sub(lambda match: match[0].replace(f"({match[2]})", f"({raw}/{match[2]})"), text)
    return LINK.sub(lambda match: f"[{match[1]}]({base}/{match[2]})", text)
