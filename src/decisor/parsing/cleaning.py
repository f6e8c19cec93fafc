"""The first step for every reply: size limits, invisible characters, reasoning blocks, fences and copies of the form.

``clean_reply`` runs before any other parser. ``check_query_characters`` guards a query that is passed on to a tool.
``refuse_copies`` refuses a value that the LLM copied from the form or from an example of it. The texts of all forms
are known here by their beginnings; a test plays the forms of all techniques back.
"""

from __future__ import annotations

import re

from decisor.errors import ParseError

MAX_CHARS = 200_000
MAX_DEPTH = 64
INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad"))
EDGES = "".join(map(chr, INVISIBLE)) + " \t\r\n"
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
SURROGATE = re.compile(r"[\ud800-\udfff]")
# The opening tag is optional: some chat templates put it into the prompt, so a reply has the closing one alone.
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


def clean_reply(text: str) -> str:
    """Remove wrappers from a reply: reasoning blocks, control tokens and invisible characters at its ends.

    >>> clean_reply("<think>Hmm.</think> Thought: x")
    'Thought: x'
    >>> clean_reply("Final answer: elm<|im_end|>")
    'Final answer: elm'

    Raises:
        ParseError: it is too long (limits), holds nothing (empty), or ends within its own reasoning (truncated).
    """
    # Before any pattern runs, so that a reply without end cannot hold the process.
    if len(text) > MAX_CHARS:
        raise ParseError(f"Your reply is longer than {MAX_CHARS:,} characters.", "limits")
    # Searched for first: without a closing tag the pattern would try the whole reply in vain.
    while "</think" in text.casefold() and (block := THINK.match(text)):
        text = text[block.end() :]
    if OPEN_THINK.match(text):
        raise ParseError(
            "Your reply ends before your reasoning does. Write </think> and then your answer.", "truncated"
        )
    trimmed = END.sub("", TURN.sub("", text)).strip().strip(EDGES)
    if not trimmed:
        raise ParseError("Your reply is empty.", "empty")
    return trimmed


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD. For text that is only stored, never run."""
    return SURROGATE.sub("\ufffd", text)


def check_query_characters(text: str) -> str:
    """Raise ParseError if a query has NUL, ESC, direction marks or lone surrogates.

    Return it without a wide semicolon at its end.

    >>> check_query_characters("SELECT 1\\x00")
    Traceback (most recent call last):
    decisor.errors.ParseError: Your action input holds a control character (U+0000).
    """
    if bad := CONTROL.search(text):
        raise ParseError(f"Your action input holds a control character (U+{ord(bad.group()):04X}).", "control")
    return text.removesuffix("\uff1b")


PAIRS = (("**", "**"), ("__", "__"), ('"', '"'), ("'", "'"), ("`", "`"), ("\u201c", "\u201d"), ("\u2018", "\u2019"))

OPENINGS = tuple(opening for opening, _ in PAIRS)


def strip_quotes(text: str) -> str:
    """Remove quotes or marks that enclose a whole text.

    >>> strip_quotes('**"elm"**'), strip_quotes('"elm" or "oak"')
    ('elm', '"elm" or "oak"')
    """
    # Twice, for marks around quotes and quotes around marks.
    for opening, closing in PAIRS * 2 if text.startswith(OPENINGS) else ():
        inside = text[len(opening) : len(text) - len(closing)]
        if text.startswith(opening) and text.endswith(closing) and len(text) > len(opening + closing):
            text = text if opening in inside or closing in inside else inside.strip()
    return text


def strip_fence(text: str) -> str:
    """Return the text inside the one fence around a query; any other text is only stripped.

    Text after a closed fence is dropped.

    >>> strip_fence("```sql\\nSELECT 1\\n```"), strip_fence("```sql\\nSELECT 1\\n```\\nThis counts.")
    ('SELECT 1', 'SELECT 1')
    """
    bare = text.strip()
    # A stop word or a length limit may have cut off one of the two fences.
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


FORM_TEXTS = (
    "the name of one tool",
    "what you give it",
    "what is to be found out first",
    "the name or id of the",
    "the name of the candidate",
    "the candidate, and nothing else",
    "the answer alone, in the",
    "the answer alone: a name, a date",
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
    """Return whether a value is a placeholder of a form or one of its examples.

    >>> is_copy("what you give it (for a database, one query and nothing else)"), is_copy("elm")
    (True, False)
    """
    plain = " ".join(value.split()).strip("\"'`*[]<>() ").casefold()
    return plain.startswith(FORM_TEXTS) or plain in EXAMPLES


def refuse_copies(name: str, value: str) -> None:
    """Raise ParseError (copied) if a value is the text of the form."""
    if is_copy(value):
        raise ParseError(f"Your {name} is the text of the form. Write your own in its place.", "copied")
