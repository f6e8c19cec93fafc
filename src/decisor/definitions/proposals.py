"""Corrections that are kept by consent: proposed in a file beside the definitions, which nothing reads before a person
approves them; approved ones can be removed. Every change is read again before it is written."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from decisor.definitions.format import KIND, Definition, Definitions, Example, Origin, Reading, title
from decisor.definitions.naming import name_of
from decisor.definitions.parse import DefinitionsFault, parse, text_of
from decisor.definitions.write import section
from decisor.errors import SetupError
from decisor.outside import one_line
from decisor.private_file import changing, write_private

D = TypeVar("D", Reading, Example)
LONGEST_NAME = 40


def proposals_of(file: Path) -> Path:
    """
    >>> str(proposals_of(Path("data/definitions.toml")))
    'data/definitions.proposed.toml'
    """
    return file.with_suffix(f".proposed{file.suffix}")


def propose(file: Path, one: D, by: str) -> D:
    """Adds it to the proposals, dated, under a name that is free; what is returned has both. The same one is not
    proposed twice.

    Raises:
        SetupError: the proposals cannot be read or written, or it does not fit.
    """
    with changing(file):
        place: Path = proposals_of(file)
        text: str = text_of(place) if place.exists() else ""
        known: list[Definition] = [*read_text(place, text), *(read_text(file, text_of(file)) if file.exists() else ())]
        for other in known:
            if isinstance(other, type(one)) and content(other) == content(one):
                return other
        names = {other.name for other in known if type(other) is type(one)}
        origin = replace(one.origin, by=one_line(by, 80), on=datetime.now(UTC).date().isoformat())
        whole = replace(one, name=free(one.name, names), origin=origin)
        save(place, text, appended(text, section(whole)))
        return whole


def content(one: Definition) -> str:
    """What it says, whoever wrote it."""
    return section(replace(one, name="", origin=Origin()))


def free(name: str, names: set[str]) -> str:
    name = name_of(name.lower())[:LONGEST_NAME].strip("_") or "one"
    number, whole = 2, name
    while whole in names:
        whole, number = f"{name}_{number}", number + 1
    return whole


def approve(file: Path, name: str, by: str) -> Definition:
    """Moves a proposal into the definitions, with who approved it and today's day.

    Raises:
        SetupError: there is no such proposal, or it does not go with what is defined.
    """
    with changing(file):
        place = proposals_of(file)
        text = text_of(place) if place.exists() else ""
        proposals = read_text(place, text)
        one = there(name, proposals, place)
        own = text_of(file) if file.exists() else ""
        if (other := read_text(file, own).find(title(one))) is not None:
            raise SetupError(f"{file} has {title(other)} already: remove that first, or propose it under another name.")
        today = datetime.now(UTC).date().isoformat()
        author = one.origin.by if by == one.origin.by or not one.origin.by else f"{one.origin.by}, approved by {by}"
        whole = replace(one, origin=replace(one.origin, by=author or by, on=today))
        save(file, own, appended(own, section(whole)))
        save(place, text, without(text, one, proposals, place))
        return whole


def remove(file: Path, name: str) -> tuple[Definition, Path]:
    """Takes a definition, or else a proposal, out of its file; which one, and from where.

    Raises:
        SetupError: there is none of that name.
    """
    with changing(file):
        for place in (file, proposals_of(file)):
            text = text_of(place) if place.exists() else ""
            definitions = read_text(place, text)
            if (one := definitions.find(name)) is not None:
                save(place, text, without(text, one, definitions, place))
                return one, place
        raise SetupError(f"There is no {name} in {file} or among its proposals.")


def there(name: str, definitions: Definitions, place: Path) -> Definition:
    one = definitions.find(name)
    if one is None:
        if not place.exists():
            raise SetupError(f"There is no file {place}: nothing is proposed. See: decisor definitions propose --help")
        names = ", ".join(title(other) for other in definitions)
        raise SetupError(f"There is no {name} in {place}; there is {names or 'nothing'}.")
    return one


def read_text(place: Path, text: str) -> Definitions:
    """Proposals may name the metrics of the file that they are for."""
    try:
        return parse(text, metrics_beside(place))
    except DefinitionsFault as error:
        raise SetupError(f"{place}: {error}") from error


def metrics_beside(place: Path) -> list[str]:
    file = place.with_name(place.name.replace(".proposed.", "."))
    if file == place or not file.exists():
        return []
    return [one.name for one in parse(text_of(file)).metrics]


def appended(text: str, more: str) -> str:
    return f"{text.rstrip()}\n\n{more}" if text.strip() else more


def without(text: str, one: Definition, definitions: Definitions, place: Path) -> str:
    """The text without its section. Comments above the next one stay.

    Raises:
        SetupError: it is not written as a section of its own.
    """
    lines = text.splitlines(keepends=True)
    start = definitions.lines.get((KIND[type(one)], one.name), 0)
    heads = sorted(line for path, line in definitions.lines.items() if len(path) <= 2 and line > start)
    end = heads[0] if heads else len(lines) + 1
    while end - 2 > start - 1 and heads and not lines[end - 2].strip().partition("#")[0]:
        end -= 1
    rest = "".join(lines[: start - 1] + lines[end - 1 :])
    left = {title(other) for other in read_text(place, rest)} if start else set()
    if not start or left != {title(other) for other in definitions} - {title(one)}:
        raise SetupError(f"{title(one)} is not a section of its own in its file: take it out by hand.")
    return rest


def save(place: Path, before: str, text: str) -> None:
    """In place of what was there, at once; what does not read is not written."""
    read_text(place, text)
    if text == before:
        return
    try:
        write_private(place, text)
    except OSError as error:
        raise SetupError(f"Cannot write {place}: {error.strerror}.") from error
