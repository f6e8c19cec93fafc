"""The rows and columns that a reader may see, and the keys of tokens for masked values.

A key is HMAC-SHA256 of a seed, by a secret that stays on this machine. The seed is drawn for each session and stands
in the trace, so that ``decisor history verify`` makes the same tokens again on this machine, and nobody can elsewhere.
In a result tokens become values again only for a reader who may see them; the trace and messages to an LLM keep the
tokens.
"""

from __future__ import annotations

import dataclasses
import getpass
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from decisor.errors import SetupError
from decisor.sandbox.engine import NOT_ON_GRAPHS, TOKEN, Policy, name_parts
from decisor.sandbox.process import Audit
from decisor.session.sources import Source, Sources, split_names, tables_of_source
from decisor.system.storage import data_folder, lock_folder, make_private_folder, write_private
from decisor.trace.events import TraceEntry
from decisor.trace.file import format_trace_array
from decisor.types import Tool

if TYPE_CHECKING:
    from decisor.session.result import Result


FILE = "tokens.key"


def key_of_seed(seed: str) -> str:
    """Return the key that this machine makes of a seed, '' if the seed is of another secret."""
    if not seed or not (secret := read_machine_secret()) or seed.partition(".")[0] != name_of_secret(secret):
        return ""
    return hmac.new(secret.encode(), seed.encode(), "sha256").hexdigest()[:32]


def apply_seed(sources: Sources, seed: str) -> Sources:
    """Return the sources with the tokens of an earlier session.

    They are unchanged if this machine cannot make those tokens.
    """
    if not (key := key_of_seed(seed)):
        return sources
    places = tuple(
        replace(one, policy=replace(one.policy, key=key, seed=seed)) if one.policy.mask else one
        for one in sources.places
    )
    return replace(sources, places=places)


def read_machine_secret() -> str:
    """Read this machine's secret, '' if it can be neither read nor written.

    It is made at first use and only its owner can read it.
    """
    path = data_folder() / FILE
    try:
        make_private_folder(path.parent)
        # Two first sessions at once would otherwise draw two secrets, and the tokens of one of them would be lost.
        with lock_folder(path):
            if not path.exists():
                write_private(path, secrets.token_hex(32))
            return path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def name_of_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()[:8]


T = TypeVar("T")
DOCUMENTS = "documents"
HOW = "rows are of a table or of NAME.documents, and masks of a column"


@dataclass(frozen=True)
class Reader:
    """A person with limited rights to the data."""

    name: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    """Table and condition that readable rows fulfil."""
    mask: tuple[str, ...] = ()
    """Masked columns, as table.column."""
    reveal: bool = False
    """Whether the result has values in place of tokens."""
    groups: tuple[str, ...] = ()
    """Groups that the person is in."""

    def role(self, role: str) -> str:
        """Return the role of a connection for this person; it stays as it is where the person does not say it.

        >>> Reader("ann", groups=("sales",)).role("app_{user}"), Reader("ann", groups=("hr", "it")).role("{group}")
        ('app_ann', '{group}')
        """
        own = {"{user}": self.name, "{group}": self.groups[0] if len(self.groups) == 1 else ""}
        return re.sub(r"\{user\}|\{group\}", lambda match: own[match[0]] or match[0], role)


ANYBODY = Reader()


def restrict_sources_to_reader(reader: Reader, sources: Sources) -> Sources:
    """Return the sources as a reader may see them. Raises SetupError as ``restrict_sources``."""
    audit = next((source.audit.path for source in sources.places if source.audit), None)
    has_limits = reader.rows or reader.mask or reader.reveal or audit or any(one.role for one in sources.places)
    return restrict_sources(sources, reader, audit) if has_limits else sources


def restrict_sources(sources: Sources, reader: Reader = ANYBODY, audit: str | PathLike[str] | None = None) -> Sources:
    """Apply rows, masks and an audit file to the sources, for one reader.

    The config file's rules for a connection hold too.

    Raises:
        SetupError: a name is of none of them.
    """
    conditions, columns = split_row_conditions(reader.rows), list(split_names(reader.mask))
    log = Audit(Path(audit), reader.name or system_user_name()) if audit is not None else None
    if not (conditions or columns or reader.reveal or log or any(one.connection or one.role for one in sources.places)):
        return sources
    # A name that matches no source would keep nothing back, in silence.
    for name in [*(name for name, _ in conditions), *columns]:
        if not any(names_of_source([name], one, sources) for one in sources.places):
            raise SetupError(f"There is nothing of which {name} could be kept back: {HOW}.")
    is_masked = columns or any(one.connection and one.connection.mask for one in sources.places)
    secret = read_machine_secret() if is_masked else ""
    # The name of the secret goes first, so that another machine can tell that it cannot make these tokens.
    seed = f"{name_of_secret(secret)}.{secrets.token_hex(8)}" if secret else ""
    # Without a secret the key is drawn for this session alone: masks hold, and verify cannot make the tokens again.
    policy = Policy(key=key_of_seed(seed) or secrets.token_hex(16), reveal=reader.reveal, seed=seed)
    places = tuple(restrict_source(one, sources, conditions, columns, policy, log) for one in sources.places)
    if reader.reveal and not any(place.policy.mask for place in places):
        raise SetupError(
            "No column is masked, so there is nothing to reveal. Name columns with --mask TABLE.COLUMN, "
            "or leave out --reveal (reveal=True)."
        )
    return replace(sources, places=tuple(replace(one, role=reader.role(one.role)) for one in places))


def split_row_conditions(rows: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return pairs of table and condition; a comma joins several tables."""
    return [(name, condition) for names, condition in rows for name in split_names([names])]


def names_of_source(names: Sequence[str], source: Source, sources: Sources) -> list[str]:
    """Return the names that are of a source.

    Documents are named NAME.documents with the name of the source, for a database may have a table called documents.
    """
    if source.form != "passages":
        # NAME.documents is of a source of documents, and must not be taken for a table of a database.
        others = {one.name for one in sources.documents}
        return tables_of_source([name for name in names if name.partition(".")[0] not in others], source, sources)
    heads = (name.partition(".") for name in names)
    return [rest for head, _, rest in heads if head == source.name and rest]


def restrict_source(
    source: Source,
    sources: Sources,
    rows: Sequence[tuple[str, str]],
    mask: Sequence[str],
    policy: Policy,
    audit: Audit | None,
) -> Source:
    """Return a source with its part of the policy. Raises SetupError as ``check_source_policy``."""
    # Conditions add up: those of an earlier restriction, of the person and of the config file all hold.
    own = list(source.policy.rows)
    own += [(name, condition) for one, condition in rows for name in names_of_source([one], source, sources)]
    columns = [*source.policy.mask, *names_of_source(mask, source, sources)]
    if source.connection is not None:
        own += split_row_conditions(source.connection.rows.items())
        columns += split_names(tuple(source.connection.mask))
    policy = replace(policy, rows=tuple(dict.fromkeys(own)), mask=tuple(dict.fromkeys(columns)))
    check_source_policy(source, policy)
    # Without rules it stays the same source, which all readers share; another key would make it another one.
    return replace(source, policy=policy or source.policy, audit=audit)


def check_source_policy(source: Source, policy: Policy) -> None:
    """Raise SetupError if a policy has a name that such a source cannot have."""
    # Conditions would have to be written into Cypher, for which there is no parser here.
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


def parse_row_conditions(texts: Sequence[str]) -> dict[str, str]:
    """Parse texts TABLE=CONDITION to conditions by table.

    >>> parse_row_conditions(["orders=region = 'EU'"])
    {'orders': "region = 'EU'"}

    Raises:
        SetupError: one is not TABLE=CONDITION.
    """
    pairs = [text.partition("=") for text in texts]
    if wrong := [text for text, (name, _, condition) in zip(texts, pairs, strict=True) if not (name and condition)]:
        raise SetupError(f"--rows is TABLE=CONDITION, such as orders=\"region = 'EU'\", not {wrong[0]!r}.")
    names = [name.strip() for name, _, _ in pairs]
    # In the mapping the second condition would take the place of the first, and open rows that the first closes.
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise SetupError(f"--rows names {twice[0]} twice: write one condition with AND or OR.")
    return {name.strip(): condition.strip() for name, _, condition in pairs}


def check_masks(entries: Sequence[TraceEntry], sources: Sources) -> None:
    """Raise SetupError if a recorded run shows tokens of masked columns and no source has masks."""
    if any(place.policy.mask for place in sources.places):
        return
    if token := TOKEN.search(format_trace_array(entries)):
        raise SetupError(f"Columns were masked in this run ({token[0]}): name them again with --mask TABLE.COLUMN.")


def system_user_name() -> str:
    try:
        # A user without an entry, as in a container: KeyError before Python 3.13, OSError since.
        return getpass.getuser()
    except (OSError, KeyError):
        return "somebody"


async def reveal_result(result: Result, tools: Sequence[Tool]) -> Result:
    """Replace tokens by values in a decision and its records, if the reader may see them.

    Messages to an LLM and the trace keep the tokens.
    """
    from decisor.databases.sql import SqlTool

    owners = [tool for tool in tools if isinstance(tool, SqlTool) and tool.worker.caps.policy.reveal]
    if not owners:
        return result
    tokens = " ".join(sorted(set(TOKEN.findall(repr((result.decision, result.records))))))
    values: dict[str, str] = {}
    # Only the worker that reads a database knows the values of its tokens.
    for tool in owners if tokens else ():
        values |= {str(token): str(value) for token, value in (await tool.worker.reveal(tokens)).rows}
    if not values:
        return result
    return replace(
        result, decision=replace_tokens(result.decision, values), records=replace_tokens(result.records, values)
    )


def replace_tokens(thing: T, values: Mapping[str, str]) -> T:
    """Return a copy with each token in its texts replaced by its value.

    >>> from decisor.types import Decision
    >>> replace_tokens(Decision("masked_0123456789abcdef, 3"), {"masked_0123456789abcdef": "Ann"}).answer
    'Ann, 3'
    """
    new: object = thing
    if isinstance(thing, str):
        new = TOKEN.sub(lambda match: values.get(match[0], match[0]), thing)
    elif isinstance(thing, tuple | list):
        new = type(thing)(replace_tokens(one, values) for one in thing)
    elif isinstance(thing, Mapping):
        new = {replace_tokens(key, values): replace_tokens(one, values) for key, one in thing.items()}
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        fields = {one.name: replace_tokens(getattr(thing, one.name), values) for one in dataclasses.fields(thing)}
        new = replace(thing, **fields)
    return new  # type: ignore[return-value]  # the same kind of thing
