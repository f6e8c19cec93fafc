"""Who may use the server: tokens, of which only hashes are kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from decisor.errors import SetupError
from decisor.session.readers import ANYBODY as SEES_ALL
from decisor.session.readers import Reader

NAME = re.compile(r"[A-Za-z0-9][\w.@-]{0,63}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
MOST_SESSIONS = 10_000


@dataclass(frozen=True)
class User:
    """``name`` is "" of the only one. ``connections``: those that are theirs; None for all. ``reader``: the rows and
    columns that are not for them."""

    name: str = ""
    connections: tuple[str, ...] | None = None
    reader: Reader = SEES_ALL

    def may_use(self, connection: str) -> bool:
        return self.connections is None or connection in self.connections

    @property
    def sees_all(self) -> bool:
        """Whether no connection, row or column is kept from them."""
        return self.connections is None and not (self.reader.rows or self.reader.mask)


ANYBODY = User()


@dataclass(eq=False)
class Users:
    """``by_digest``: hash of a token -> user. Without any, everybody is the same user and no token is needed.
    ``sessions``: what a cookie holds -> user."""

    by_digest: Mapping[str, User] = field(default_factory=dict)
    sessions: dict[str, User] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return not self.by_digest

    @property
    def by_name(self) -> Mapping[str, User]:
        """Those that have one."""
        return {user.name: user for user in self.by_digest.values() if user.name}

    def of_token(self, token: str) -> User | None:
        """Every hash is compared, so that time tells nothing."""
        digest, match = digest_of(token), None
        for other, user in self.by_digest.items():
            if hmac.compare_digest(digest, other):
                match = user
        return match

    def of(self, authorization: str, cookie: str) -> User | None:
        """Whose request it is; None where it has no right to anything."""
        if self.is_open:
            return ANYBODY
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer":
            return self.of_token(token.strip())
        return self.sessions.get(digest_of(cookie)) if cookie else None

    def begin(self, user: User) -> str:
        """What the cookie of a new session holds."""
        while len(self.sessions) >= MOST_SESSIONS:
            self.sessions.pop(next(iter(self.sessions)))
        cookie = new_token()
        self.sessions[digest_of(cookie)] = user
        return cookie

    def end(self, cookie: str) -> None:
        self.sessions.pop(digest_of(cookie), None)


def new_token() -> str:
    """256 random bits, fit for a URL and a header."""
    return secrets.token_urlsafe(32)


def digest_of(token: str) -> str:
    """
    >>> digest_of("a")[:16]
    'sha256:ca978112c'
    """
    return f"sha256:{hashlib.sha256(token.encode('utf-8', 'replace')).hexdigest()}"


def one_user(token: str) -> Users:
    return Users({digest_of(token): ANYBODY})


def read_users(path: Path, connections: Sequence[str]) -> Users:
    """From a TOML file: a table for each user, with ``token`` (``sha256:...``) and ``connections`` (all without it).

    Raises:
        SetupError: it cannot be read, or a user in it cannot be used.
    """
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SetupError(f"Cannot read the users in {path}: {error}") from error
    users: dict[str, User] = {}
    for name, table in tables.items():
        digest, user = user_of(path, name, table, connections)
        if digest in users:
            raise SetupError(f"{path}: {name} and {users[digest].name} have one token.")
        users[digest] = user
    if not users:
        raise SetupError(f"{path} names no user. Make one with: decisor serve --new-user NAME")
    return Users(users)


def user_of(path: Path, name: str, table: object, connections: Sequence[str]) -> tuple[str, User]:
    """The hash of a user's token, and the user. Raises SetupError where the table does not say them."""
    if not NAME.fullmatch(name) or not isinstance(table, dict):
        raise SetupError(f"{path}: {name!r:.80} is no user: write [NAME] with token and connections below it.")
    digest, names = table.get("token"), table.get("connections")
    if not isinstance(digest, str) or not DIGEST.fullmatch(digest):
        raise SetupError(f"{path}: the token of {name} is sha256:..., as decisor serve --new-user {name} prints it.")
    if more := sorted(table.keys() - {"token", "connections", "rows", "mask", "reveal"}):
        raise SetupError(f"{path}: {name} has token, connections, rows, mask and reveal, and no {more[0]}.")
    reader = reader_of(path, name, table)
    if names is None:
        return digest, User(name, None, reader)
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise SetupError(f"{path}: the connections of {name} are a list of names.")
    if unknown := [one for one in names if one not in connections]:
        raise SetupError(f"{path}: {name} has {unknown[0]!r}, and there is {', '.join(connections) or 'none'}.")
    return digest, User(name, tuple(names), reader)


def reader_of(path: Path, name: str, table: Mapping[str, object]) -> Reader:
    """What is not for this user. Raises SetupError where it cannot be read."""
    rows, mask, reveal = table.get("rows", {}), table.get("mask", []), table.get("reveal", False)
    if not isinstance(rows, dict) or not all(isinstance(one, str) for one in rows.values()):
        raise SetupError(f"{path}: rows of {name} are conditions by table: rows = {{ orders = \"region = 'EU'\" }}")
    if not isinstance(mask, list) or not all(isinstance(one, str) for one in mask):
        raise SetupError(f'{path}: mask of {name} is a list of columns: mask = ["customers.email"]')
    if not isinstance(reveal, bool):
        raise SetupError(f"{path}: reveal of {name} is true or false.")
    return Reader(name, tuple(rows.items()), tuple(mask), reveal)
