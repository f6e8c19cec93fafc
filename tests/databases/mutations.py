"""Endless variations of a statement. What hides it from a reader of text must not hide it from the sandbox."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from databases.mutation_words import CALLS, COMMENTS, CYPHER_NESTS, ENDS, MARKS, NAMES, SQL_NESTS

PIECE = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\$(\w*)\$.*?\$\1\$|\s+|\w+|.", re.S
)
EVERY = [chr(code) for code in range(sys.maxunicode + 1)]
HIDDEN = [mark for mark in EVERY if unicodedata.category(mark) == "Cf"]
HIDDEN += list("\u200b\u2060\ufeff\u200d") * (len(HIDDEN) // 4)  # engines take some of these as white space
BLANK = [mark for mark in EVERY if mark.isspace() or unicodedata.category(mark) in ("Zs", "Zl", "Zp")]
BLANK += list("\x00\x08\x1a\u180e\u2800\u3164\uffa0\u115f\ufe0f\u034f")
ALIKE = dict(zip("aceopxysikbhmt", "асеорхуſıKЬНМТ", strict=True))
"""Letters of other alphabets, and those that fold to ASCII."""


@dataclass(frozen=True, slots=True)
class Seed:
    """``bound``: it may run, within the limits."""

    id: str
    text: str
    bound: bool = False


@dataclass(frozen=True, slots=True)
class Mutant:
    seed: Seed
    text: str
    steps: tuple[str, ...]


Step = Callable[[Random, str], str]


def pieces(text: str) -> list[str]:
    """
    >>> pieces("SELECT 'a b' FROM t")
    ['SELECT', ' ', "'a b'", ' ', 'FROM', ' ', 't']
    """
    return [match.group() for match in PIECE.finditer(text)]


def is_word(piece: str) -> bool:
    return piece[0].isalpha() or piece[0] == "_"


def some(random: Random, text: str, fits: Callable[[str], bool], change: Callable[[str], str]) -> str:
    """``change`` of one, some or all of the pieces that fit."""
    share = random.choice((0.0, 0.0, 0.3, 1.0))
    parts = pieces(text)
    fitting = [at for at, part in enumerate(parts) if fits(part)]
    chosen = set(random.sample(fitting, min(1, len(fitting))))
    return "".join(
        change(part) if at in chosen or (fits(part) and random.random() < share) else part
        for at, part in enumerate(parts)
    )


def cases(random: Random, text: str) -> str:
    kinds: Sequence[Callable[[str], str]] = (str.upper, str.lower, str.swapcase, str.title)
    return some(random, text, is_word, random.choice(kinds))


def comments(random: Random, text: str) -> str:
    return some(random, text, str.isspace, lambda _: random.choice(COMMENTS))


def executable_comments(random: Random, text: str) -> str:
    mark = random.choice(("!", "!50000 ", "M! ", "M!100000 ", "+ ", "! "))
    return some(random, text, is_word, lambda word: f"/*{mark}{word}*/")


def blanks(random: Random, text: str) -> str:
    return some(random, text, str.isspace, lambda _: "".join(random.choices(BLANK, k=random.choice((1, 1, 2)))))


def blanks_around(random: Random, text: str) -> str:
    return some(
        random, text, lambda part: not is_word(part), lambda part: random.choice(BLANK) + part + random.choice(BLANK)
    )


def hidden_marks(random: Random, text: str) -> str:
    """Instead of white space, at the ends of words and within them."""
    if random.random() < 0.5:
        return some(random, text, str.isspace, lambda _: random.choice(HIDDEN))

    def within(word: str) -> str:
        at = random.randrange(len(word) + 1)
        return word[:at] + random.choice(HIDDEN) + word[at:]

    return some(random, text, is_word, within)


def full_width(random: Random, text: str) -> str:
    def widen(part: str) -> str:
        return "".join(chr(ord(mark) + 0xFEE0) if "!" <= mark <= "~" else mark for mark in part)

    return some(random, text, lambda part: not part.isspace(), widen)


def lookalikes(random: Random, text: str) -> str:
    return some(random, text, is_word, lambda word: "".join(ALIKE.get(mark.lower(), mark) for mark in word))


def quoted_names(random: Random, text: str) -> str:
    forms = ('"~"', "`~`", "[~]", "'~'", 'U&"~"', "$$~$$", '"~"."~"', "main.~", "public.~", '~ AS "~"', "~ customers")
    form = random.choice(forms)
    return some(random, text, is_word, lambda word: form.replace("~", word))


def escaped_names(random: Random, text: str) -> str:
    forms = (('U&"', "\\{:04x}", '"'), ('U&"', "\\+{:06x}", '"'), ("", "\\u{:04x}", ""), ("`", "\\u{:04x}", "`"))
    opening, each, closing = random.choice(forms)
    return some(random, text, is_word, lambda word: opening + "".join(each.format(ord(m)) for m in word) + closing)


def quoted_strings(random: Random, text: str) -> str:
    def change(part: str) -> str:
        inner = part[1:-1]
        half = len(inner) // 2
        left, right, code = inner[:half], inner[half:], inner.encode("utf-8", "replace").hex()
        forms = (
            f"E'{inner}'",
            f"$${inner}$$",
            f"$q${inner}$q$",
            f"N'{inner}'",
            f"'{left}'\n'{right}'",
            f'"{inner}"',
            f"x'{code}'",
            f"('{left}'||'{right}')",
            f"concat('{left}','{right}')",
            f"'{inner}\\'",
            f"'{inner}''",
            f"_utf8'{inner}'",
            f"U&'{inner}'",
            f"0x{code}",
        )
        return random.choice(forms)

    return some(random, text, lambda part: part[0] == "'" and len(part) > 1, change)


def ends(random: Random, text: str) -> str:
    return random.choice((text + random.choice(ENDS), random.choice(ENDS) + text, f"{text};{text}", f"{text} {text}"))


def noise(random: Random, text: str) -> str:
    """One mark more or less, anywhere."""
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice((*MARKS, *HIDDEN[:3], "")) + text[at + random.choice((0, 0, 1)) :]


def nests(templates: Sequence[str]) -> Step:
    def nested(random: Random, text: str) -> str:
        return random.choice(templates).replace("~", text)

    return nested


SHARED = (
    cases,
    comments,
    blanks,
    blanks_around,
    hidden_marks,
    full_width,
    lookalikes,
    quoted_names,
    escaped_names,
    quoted_strings,
    ends,
    noise,
)
SQL_STEPS: tuple[Step, ...] = (*SHARED, executable_comments, *[nests(SQL_NESTS)] * 3)
CYPHER_STEPS: tuple[Step, ...] = (*SHARED, *[nests(CYPHER_NESTS)] * 3)


def graft(random: Random, harmless: str) -> str:
    """A harmless SQL statement with a name or a call in it that is none."""
    if random.random() < 0.3:
        return random.choice((f"SELECT * FROM {random.choice(NAMES)}", f"SELECT {random.choice(CALLS)}"))
    if random.random() < 0.5:
        names = re.findall(r"\b(?:from|join)\s+(\w+)", harmless, re.I) or ["customers"]
        return re.sub(
            rf"\b{random.choice(names)}\b", lambda _: random.choice(NAMES), harmless, count=random.choice((0, 1))
        )
    spots = [match.span() for match in re.finditer(r"\b[a-z]\.\w+\b|\b\d+\b|\b(?:id|name|region|total)\b", harmless)]
    at, end = random.choice(spots or [(len(harmless), len(harmless))])
    return harmless[:at] + random.choice(CALLS) + harmless[end:]


def mutants(hostile: Sequence[Seed], harmless: Sequence[str], cypher: bool, random: Random) -> Iterator[Mutant]:
    """Without end. Statements that may run within the limits come seldom: they take all the time that they may."""
    steps = CYPHER_STEPS if cypher else SQL_STEPS
    while True:
        seed = random.choice(hostile)
        if seed.bound and random.random() < 0.9:
            continue
        if not cypher and random.random() < 0.2:
            seed = Seed("graft", graft(random, random.choice(harmless)))
        text, names = seed.text, []
        for step in random.choices(
            steps, k=random.choice((0, 1, 1, 2, 2, 3) if seed.id == "graft" else (1, 1, 2, 2, 3))
        ):
            text = step(random, text)
            names.append(step.__name__)
        yield Mutant(seed, text, tuple(names))


LEGAL_BLANK = (" ", "\t", "\n", "\r\n", "  \n ", " ")
LEGAL_COMMENTS = ("/* a ' comment; */", "/**/", "-- a comment; '\n")


def harmless_mutant(random: Random, text: str, cypher: bool, comments: bool) -> str:
    """Other letters, odd white space and, where wanted, comments: it means what it meant, where the engine's names have
    no case."""
    blank: tuple[str, ...] = LEGAL_BLANK
    if comments:
        blank += tuple(comment.replace("--", "//") if cypher else comment for comment in LEGAL_COMMENTS)
    case = random.choice((str, str.upper, str.lower, str.swapcase))
    mixed = (
        f" {random.choice(blank)} " if part.isspace() else case(part) if is_word(part) else part
        for part in pieces(text)
    )
    return random.choice(("", *blank)) + "".join(mixed) + random.choice(("", ";", " ;\n", *blank))
