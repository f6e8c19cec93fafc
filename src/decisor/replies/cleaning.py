"""What every reply goes through first: size caps, invisible characters, reasoning blocks, fences."""

from __future__ import annotations

import re

from decisor.errors import ParseError

MAX_CHARS = 200_000
MAX_DEPTH = 64
INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad"))
EDGES = "".join(map(chr, INVISIBLE)) + " \t\r\n"
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
SURROGATE = re.compile(r"[\ud800-\udfff]")
THINK = re.compile(r"\s*(?:<think(?:ing)?>)?((?:(?!</?think(?:ing)?>).)*)</think(?:ing)?>", re.S | re.I)
OPEN_THINK = re.compile(r"\s*<think(?:ing)?>", re.I)
END = re.compile(
    r"(?:<\|(?:im_end|im_start|endoftext|eot_id|eom_id|end|end_of_text|end_of_turn|eos|return|call)\|>"
    r"|</s>|<eos>|<end_of_turn>|\[/INST\])(?P<after>.*)\Z",
    re.S,
)
TURN = re.compile(r"\A\s*<\|(?:im_start|start_header_id)\|>\s*assistant\s*(?:<\|end_header_id\|>)?", re.I)
FENCE = re.compile(r"^[ \t]*(```+|~~~+)[\w+-]*[ \t]*\r?$", re.M)
NO_HELP = re.compile(
    r"(?:sorry|apologi[sz]e)\b.{0,80}\b(?:can(?:'|\u2019)?t|cannot|unable)"
    r"|\b(?:can(?:'|\u2019)?t|cannot|unable to|not able to|won(?:'|\u2019)?t) (?:help|assist|comply|do that)\b",
    re.I | re.S,
)


def clean(text: str, repairs: list[str] | None = None) -> str:
    """The reply without what only surrounds it. Half characters become U+FFFD, so that it can be written as UTF-8.

    >>> clean("<think>Hmm.</think> Thought: x")
    'Thought: x'
    >>> clean("Final answer: elm<|im_end|>")
    'Final answer: elm'

    Raises:
        ParseError: it is too long (limits), holds nothing (empty), or ends within its own reasoning (truncated).
    """
    if len(text) > MAX_CHARS:
        raise ParseError(f"Your reply is longer than {MAX_CHARS:,} characters.", "limits")
    repairs = [] if repairs is None else repairs
    while "</think" in text.casefold() and (block := THINK.match(text)):
        repairs.append("strip_think")
        text = text[block.end() :]
    if OPEN_THINK.match(text):
        raise ParseError(
            "Your reply ends before your reasoning does. Write </think> and then your answer.", "truncated"
        )
    if (bare := TURN.sub("", text)) != text or END.search(text):
        repairs.append("control_tokens")
        text = END.sub("", bare)
    bare = text.strip()
    trimmed = bare.strip(EDGES)
    if trimmed != bare:
        repairs.append("invisible")
    if not trimmed:
        raise ParseError("Your reply is empty.", "empty")
    return trimmed


def replace_surrogates(text: str) -> str:
    """Lone surrogates become U+FFFD: for text that is only kept, never run."""
    return SURROGATE.sub("\ufffd", text)


def check_query(text: str) -> str:
    """A query that may be passed on: no NUL, no ESC, no direction marks, no half characters. A wide semicolon at its
    end is left out.

    >>> check_query("SELECT 1\\x00")
    Traceback (most recent call last):
    decisor.errors.ParseError: Your action input holds a control character (U+0000).
    """
    if bad := CONTROL.search(text):
        raise ParseError(f"Your action input holds a control character (U+{ord(bad.group()):04X}).", "control")
    return text.removesuffix("\uff1b")


PAIRS = (("**", "**"), ("__", "__"), ('"', '"'), ("'", "'"), ("`", "`"), ("\u201c", "\u201d"), ("\u2018", "\u2019"))

OPENINGS = tuple(opening for opening, _ in PAIRS)


def strip_quotes(text: str) -> str:
    """A text without the quotes or marks around the whole of it.

    >>> strip_quotes('**"elm"**'), strip_quotes('"elm" or "oak"')
    ('elm', '"elm" or "oak"')
    """
    for opening, closing in PAIRS * 2 if text.startswith(OPENINGS) else ():
        inside = text[len(opening) : len(text) - len(closing)]
        if text.startswith(opening) and text.endswith(closing) and len(text) > len(opening + closing):
            text = text if opening in inside or closing in inside else inside.strip()
    return text


def strip_fence(text: str) -> str:
    """The inside of the one fence around a query, or the text as it is. What follows a closed fence is no query.

    >>> strip_fence("```sql\\nSELECT 1\\n```"), strip_fence("```sql\\nSELECT 1\\n```\\nThis counts.")
    ('SELECT 1', 'SELECT 1')
    """
    bare = text.strip()
    if bare.count("```") == 1:
        bare = bare.removesuffix("```").strip()
    elif bare.startswith("```") and bare.count("```") == 2:
        bare = bare[: bare.rindex("```") + 3]
    if bare[:3] in ("```", "~~~") and bare.endswith(bare[:3]) and len(bare) > 6:
        head, _, rest = bare.strip("`~").partition("\n")
        inside = rest if re.fullmatch(r"[\w+-]*\s*", head) else f"{head}\n{rest}"
        if "```" not in inside and "~~~" not in inside:
            return inside.strip()
    if bare.startswith("`") and bare.endswith("`") and bare.count("`") == 2:
        return bare[1:-1].strip()
    return bare
