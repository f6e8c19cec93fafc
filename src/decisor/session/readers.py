"""Which rows and columns of the data are for whom that asks, and what tokens stand for, where they may see it."""

from __future__ import annotations

import dataclasses
import getpass
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from decisor.errors import SetupError
from decisor.session.sources import Source, Sources, split_names, tables_of
from decisor.session.token_keys import draw_seed, key_of
from decisor.tools.databases.sandbox.audit import Audit
from decisor.tools.databases.sandbox.policy import NOT_ON_GRAPHS, TOKEN, Policy, name_parts
from decisor.trace.events import Entry
from decisor.trace.file import array_text
from decisor.types import Tool

if TYPE_CHECKING:
    from decisor.session.result import Result
    from decisor.session.sources import Names

T = TypeVar("T")
DOCUMENTS = "documents"
HOW = "rows are of a table or of NAME.documents, and masks of a column"


@dataclass(frozen=True)
class Reader:
    """Who asks, and what of the data is not for them. ``rows``: table and condition; ``mask``: table.column."""

    name: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    mask: tuple[str, ...] = ()
    reveal: bool = False


ANYBODY = Reader()


def as_seen_by(reader: Reader, sources: Sources) -> Sources:
    """The sources as this reader may see them. Raises SetupError as ``for_reader``."""
    audit = next((one.audit.path for one in sources.places if one.audit), None)
    if not (reader.rows or reader.mask or reader.reveal or audit):
        return sources
    return for_reader(sources, dict(reader.rows), reader.mask, reader.reveal, audit, reader.name)


def for_reader(
    sources: Sources, rows: Mapping[str, str] | None = None, mask: Names = (), reveal: bool = False,
    audit: str | PathLike[str] | None = None, reader: str = "",
) -> Sources:  # fmt: skip
    """The sources as one reader may see them: with what a person named, and what the config file says of a connection.

    Raises:
        SetupError: a name is of none of them.
    """
    conditions, columns = split_rows(rows or {}), list(split_names(mask))
    log = Audit(Path(audit), reader or user_name()) if audit is not None else None
    if not (conditions or columns or reveal or log or any(one.connection for one in sources.places)):
        return sources
    for name in [*(name for name, _ in conditions), *columns]:
        if not any(own_names([name], one, sources) for one in sources.places):
            raise SetupError(f"There is nothing of which {name} could be kept back: {HOW}.")
    is_masked = columns or any(one.connection and one.connection.mask for one in sources.places)
    seed = draw_seed() if is_masked else ""
    policy = Policy(key=key_of(seed) or secrets.token_hex(16), reveal=reveal, seed=seed)
    places = tuple(of_place(one, sources, conditions, columns, policy, log) for one in sources.places)
    if reveal and not any(place.policy.mask for place in places):
        raise SetupError("No column is masked, so there is nothing to reveal. Name columns with --mask TABLE.COLUMN, "
                         "or leave out --reveal (reveal=True).")  # fmt: skip
    return replace(sources, places=places)


def split_rows(rows: Mapping[str, str]) -> list[tuple[str, str]]:
    """Read conditions by table, of which a comma joins several."""
    return [(name, condition) for names, condition in rows.items() for name in split_names([names])]


def own_names(names: Sequence[str], source: Source, sources: Sources) -> list[str]:
    """Those of a source. Documents are named with its name, as NAME.documents: a database may have such a table."""
    if source.form != "passages":
        others = {one.name for one in sources.documents}
        return tables_of([name for name in names if name.partition(".")[0] not in others], source, sources)
    heads = (name.partition(".") for name in names)
    return [rest for head, _, rest in heads if head == source.name and rest]


def of_place(
    source: Source, sources: Sources, rows: Sequence[tuple[str, str]], mask: Sequence[str], policy: Policy,
    audit: Audit | None,
) -> Source:  # fmt: skip
    """With the policy that is its own. Raises SetupError as ``check_policy``."""
    own = list(source.policy.rows)
    own += [(name, condition) for one, condition in rows for name in own_names([one], source, sources)]
    columns = [*source.policy.mask, *own_names(mask, source, sources)]
    if source.connection is not None:
        own += split_rows(source.connection.rows)
        columns += split_names(tuple(source.connection.mask))
    policy = replace(policy, rows=tuple(dict.fromkeys(own)), mask=tuple(dict.fromkeys(columns)))
    check_policy(source, policy)
    return replace(source, policy=policy, audit=audit)


def check_policy(source: Source, policy: Policy) -> None:
    """Raises SetupError where a name cannot be of such a source."""
    if source.form == "cypher" and policy:
        raise SetupError(NOT_ON_GRAPHS)
    if source.form != "passages":
        if wrong := [name for name in policy.mask if len(name_parts(name)) < 2]:
            raise SetupError(f"Which column of {wrong[0]} is to be masked? Write TABLE.COLUMN, or SOURCE.TABLE.COLUMN.")
        return
    if policy.mask:
        raise SetupError(f"{source.name} is documents, which have no columns to mask: leave {policy.mask[0]} out.")
    if wrong := [name for name, _ in policy.rows if name != DOCUMENTS]:
        raise SetupError(f"{source.name} is documents, which have no {wrong[0]}: {HOW}.")


def conditions(texts: Sequence[str]) -> dict[str, str]:
    """
    >>> conditions(["orders=region = 'EU'"])
    {'orders': "region = 'EU'"}

    Raises:
        SetupError: one is not TABLE=CONDITION.
    """
    pairs = [text.partition("=") for text in texts]
    if wrong := [text for text, (name, _, condition) in zip(texts, pairs, strict=True) if not (name and condition)]:
        raise SetupError(f"--rows is TABLE=CONDITION, such as orders=\"region = 'EU'\", not {wrong[0]!r}.")
    names = [name.strip() for name, _, _ in pairs]
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise SetupError(f"--rows names {twice[0]} twice: write one condition with AND or OR.")
    return {name.strip(): condition.strip() for name, _, condition in pairs}


def check_masks(entries: Sequence[Entry], sources: Sources) -> None:
    """Raises SetupError where a recorded run showed an LM tokens of masked columns and these sources mask none."""
    if any(place.policy.mask for place in sources.places):
        return
    if token := TOKEN.search(array_text(entries)):
        raise SetupError(f"Columns were masked in this run ({token[0]}): name them again with --mask TABLE.COLUMN.")


def user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "somebody"


async def revealed(result: Result, tools: Sequence[Tool]) -> Result:
    """With values in place of tokens in the decision and its records, where the reader may see them. What was sent to
    an LM, and the trace, keep the tokens."""
    from decisor.tools.databases.sql import SqlTool

    owners = [tool for tool in tools if isinstance(tool, SqlTool) and tool.worker.caps.policy.reveal]
    if not owners:
        return result
    tokens = " ".join(sorted(set(TOKEN.findall(repr((result.decision, result.records))))))
    values: dict[str, str] = {}
    for tool in owners if tokens else ():
        values |= {str(token): str(value) for token, value in (await tool.worker.reveal(tokens)).rows}
    if not values:
        return result
    return replace(result, decision=with_values(result.decision, values), records=with_values(result.records, values))


def with_values(thing: T, values: Mapping[str, str]) -> T:
    """The same with each token in its texts replaced.

    >>> from decisor.types import Decision
    >>> with_values(Decision("masked_0123456789abcdef, 3"), {"masked_0123456789abcdef": "Ann"}).answer
    'Ann, 3'
    """
    new: object = thing
    if isinstance(thing, str):
        new = TOKEN.sub(lambda match: values.get(match[0], match[0]), thing)
    elif isinstance(thing, tuple | list):
        new = type(thing)(with_values(one, values) for one in thing)
    elif isinstance(thing, Mapping):
        new = {with_values(key, values): with_values(one, values) for key, one in thing.items()}
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        fields = {one.name: with_values(getattr(thing, one.name), values) for one in dataclasses.fields(thing)}
        new = replace(thing, **fields)
    return new  # type: ignore[return-value]  # the same kind of thing
