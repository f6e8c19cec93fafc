"""The users of a server: people and service accounts, their rights, and the sessions of their browsers.

A right names what may be used, and keeps rows and columns back. Who is in several groups may use what any of them may
use, and sees no row and no column that one of them keeps back. Who is in no known group may use nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Gt

from decisor.errors import SetupError
from decisor.history.postgres import PostgresPlace
from decisor.server.identity import Identity, Login, Refusal, SignedHeader, TrustedHeader
from decisor.session.access import ANYBODY as SEES_ALL
from decisor.session.access import Reader
from decisor.session.config import fill_in_secrets
from decisor.system.extras import require_package
from decisor.system.serialization import DocumentFormat, DocumentPath, TextRule, json_text
from decisor.system.structured_files import FileFault, TomlFile, read_text_file
from decisor.techniques import TECHNIQUES

if TYPE_CHECKING:
    from starlette.datastructures import Headers


TOKEN = "^sha256:[0-9a-f]{64}$"
MOST_SESSIONS = 10_000
TOKEN_SECONDS = 30 * 24 * 3600.0
"""That a session lasts which began with a token."""


@dataclass(frozen=True)
class SpendingLimits:
    """What may be spent in a day or a month. None means no limit."""

    dollars: Annotated[float, Gt(0)] | None = None
    tokens: Annotated[int, Gt(0)] | None = None


@dataclass(frozen=True)
class GroupBudget:
    """The budget of a group or of a service account, in UTC days and months."""

    day: SpendingLimits = field(default_factory=SpendingLimits)
    month: SpendingLimits = field(default_factory=SpendingLimits)
    each_day: SpendingLimits = field(default_factory=SpendingLimits)
    """What each person of a group may spend."""
    each_month: SpendingLimits = field(default_factory=SpendingLimits)
    at_once: Annotated[int, Gt(0)] | None = None
    """Number of runs at a time."""


@dataclass(frozen=True)
class Rights:
    """What a group or a service account may use. None means all."""

    connections: tuple[str, ...] | None = None
    techniques: tuple[str, ...] | None = None
    llms: tuple[str, ...] | None = None
    rows: Mapping[str, str] = field(default_factory=dict)
    """By table, the condition in SQL that readable rows fulfil."""
    mask: tuple[str, ...] = ()
    """Masked columns, as table.column."""
    reveal: bool = False
    """Whether a result has values in place of tokens."""
    metrics: bool = False
    """Whether the figures of the server (``/metrics``) may be read."""
    budget: GroupBudget | None = None


@dataclass(frozen=True)
class Account(Rights):
    """A user with a token: a service account, or a person where nobody signs in."""

    token: Annotated[str, TextRule(TOKEN, "sha256:..., of decisor serve --new-user")] = field(kw_only=True)
    groups: tuple[str, ...] | None = None
    """Groups whose rights the account has in place of its own."""


@dataclass(frozen=True)
class User:
    """A user of the server."""

    name: str = ""
    """Name; '' if there is only one user."""
    connections: tuple[str, ...] | None = None
    """Names of connections that the user may use, None for all."""
    reader: Reader = SEES_ALL
    """Limits on rows and columns."""
    techniques: tuple[str, ...] | None = None
    """Techniques that the user may use, None for all; the first is the usual one."""
    llms: tuple[str, ...] | None = None
    """Names of LLMs that the user may use, None for all."""
    budgets: tuple[tuple[str, GroupBudget], ...] = ()
    """Budgets of the user, each with the name of its group or service account."""
    metrics: bool = False
    """Whether the user may read the figures of the server."""

    def may_use(self, connection: str) -> bool:
        return self.connections is None or connection in self.connections

    @property
    def sees_all(self) -> bool:
        """Whether no connection, row or column is kept from the user."""
        return self.connections is None and not (self.reader.rows or self.reader.mask)

    def technique(self, name: str) -> str:
        """Return the technique of a name, '' for the usual one. Raise SetupError if the user may not use it."""
        if self.techniques is None or name in self.techniques:
            return name
        if name or not self.techniques:
            there = ", ".join(self.techniques) or "none"
            raise SetupError(f"You may not use the technique {name!r:.200}; you may use {there}.")
        return self.techniques[0]


ANYBODY = User(metrics=True)


def user_of_rights(name: str, rights: Mapping[str, Rights], groups: Sequence[str] = ()) -> User:
    """Join the rights of a user, each with the name of its group or service account.

    What one of them keeps back is kept back, and a value is revealed only if each of them reveals.
    """
    tables = list(rights.values())
    reader = Reader(
        name,
        # Two conditions on one table both hold.
        tuple(dict.fromkeys(pair for table in tables for pair in table.rows.items())),
        tuple(dict.fromkeys(column for table in tables for column in table.mask)),
        bool(tables) and all(table.reveal for table in tables),
        tuple(groups),
    )
    return User(
        name,
        join_names(table.connections for table in tables),
        reader,
        join_names(table.techniques for table in tables),
        join_names(table.llms for table in tables),
        tuple((key, table.budget) for key, table in rights.items() if table.budget),
        any(table.metrics for table in tables),
    )


def join_names(parts: Iterable[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    """Join lists of names; None is all names.

    >>> join_names([("a", "b"), ("b", "c")]), join_names([("a",), None]), join_names([])
    (('a', 'b', 'c'), None, ())
    """
    names: dict[str, None] = {}
    for part in parts:
        if part is None:
            return None
        names |= dict.fromkeys(part)
    return tuple(names)


@dataclass(frozen=True)
class Session:
    """What the cookie of a browser stands for."""

    name: str
    groups: tuple[str, ...] | None = None
    """Groups that the identity provider named; None for the session of a token."""
    ends: float = 0.0
    """Seconds since 1970."""
    id_token: str = ""
    """The provider's token, with which the person is signed out there; '' for the session of a token."""


@dataclass(eq=False)
class Sessions:
    """The sessions of all browsers: in the memory of this process, and in the store that several have."""

    by_digest: dict[str, Session] = field(default_factory=dict)
    """By the hash of the cookie; of a store, those that were asked for."""
    place: PostgresPlace | None = None

    async def begin(self, session: Session) -> str:
        """Begin a session and return its cookie."""
        cookie = new_token()
        digest = digest_of_token(cookie)
        self.keep(digest, session)
        if self.place is not None:
            await asyncio.to_thread(self.place.keep_session, digest, json_text(session), session.ends)
        return cookie

    def keep(self, digest: str, session: Session) -> None:
        # The oldest session ends, so that sessions without number fill no memory.
        while len(self.by_digest) >= MOST_SESSIONS:
            self.by_digest.pop(next(iter(self.by_digest)))
        self.by_digest[digest] = session

    async def of(self, cookie: str) -> Session | None:
        """Return the session of a cookie, None if it has ended."""
        digest = digest_of_token(cookie)
        session = self.by_digest.get(digest)
        if session is None and self.place and (text := await asyncio.to_thread(self.place.session, digest)):
            self.keep(digest, session := SESSION.decode(text))
        return session if session is not None and session.ends > time.time() else None

    async def end(self, cookie: str) -> Session | None:
        """End a session and return it, None if there is none."""
        session, digest = await self.of(cookie), digest_of_token(cookie)
        self.by_digest.pop(digest, None)
        if self.place is not None:
            # Every process forgets it.
            await asyncio.to_thread(self.place.end_session, digest)
        return session

    async def all(self) -> Sequence[Session]:
        if self.place is None:
            return list(self.by_digest.values())
        return [SESSION.decode(text) for text in await asyncio.to_thread(self.place.sessions)]


SESSION = DocumentFormat(Session)


@dataclass(eq=False)
class Users:
    """The users of a server and their sessions."""

    by_digest: Mapping[str, User] = field(default_factory=dict)
    """Service account of each hash of a token."""
    groups: Mapping[str, Rights] = field(default_factory=dict)
    """Rights of each group of an identity provider."""
    sessions: Sessions = field(default_factory=Sessions)
    door: Login | SignedHeader | TrustedHeader | None = None
    """How people are known, None if there are service accounts alone."""

    @property
    def is_open(self) -> bool:
        """Whether everybody is the same user, and no token is needed."""
        return not (self.by_digest or self.door)

    @property
    def login(self) -> Login | None:
        """Sign-in at an identity provider, None if nobody signs in there."""
        return self.door if isinstance(self.door, Login) else None

    async def by_name(self) -> Mapping[str, User]:
        """Return the users that have a name, by that name: service accounts, and people who are signed in."""
        people = [one for one in await self.sessions.all() if one.groups is not None]
        named = {user.name: user for user in self.by_digest.values() if user.name}
        return {one.name: user_of_rights(one.name, self.rights_of(one.groups or ())) for one in people} | named

    def named(self, name: str, groups: Sequence[str]) -> User | None:
        """Return a user whose run another process began; groups: those that they were in. None if there is none."""
        # A process without a file of users must not give all rights to a person of one with such a file.
        if self.is_open:
            return None if name else ANYBODY
        account = next((user for user in self.by_digest.values() if user.name == name), None)
        rights = self.rights_of(groups)
        return account or (user_of_rights(name, rights, list(rights)) if self.door and rights else None)

    def of_token(self, token: str) -> User | None:
        """Return the user of a token, or None. Every hash is compared, so that the time says nothing about it."""
        digest, match = digest_of_token(token), None
        for other, user in self.by_digest.items():
            if hmac.compare_digest(digest, other):
                match = user
        return match

    async def of(self, heads: Headers, cookie: str, address: str) -> User | None:
        """Return the user of a request; None if it has no right to anything.

        Raise Refusal if the request says something wrong, or the person has no rights.
        """
        if self.is_open:
            return ANYBODY
        scheme, _, token = heads.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.of_token(token.strip())
        if self.door and (identity := await self.door.identify(heads, address)):
            return self.person(identity)
        session = await self.sessions.of(cookie) if cookie else None
        if session is None:
            return None
        if session.groups is not None:
            return self.person(Identity(session.name, session.groups))
        return next((user for user in self.by_digest.values() if user.name == session.name), None)

    def rights_of(self, groups: Sequence[str]) -> Mapping[str, Rights]:
        return {name: self.groups[name] for name in dict.fromkeys(groups) if name in self.groups}

    def person(self, identity: Identity) -> User:
        """Return the user that a person is. Raise Refusal if they have no rights here."""
        whom = f"Ask {(self.door and self.door.contact) or 'whoever runs this server'}."
        # The name of a provider may be chosen by the person: it must not be the name of a service account.
        if any(user.name == identity.name for user in self.by_digest.values()):
            raise Refusal(403, f"{identity.name} is the name of a service account here. {whom}")
        if not (rights := self.rights_of(identity.groups)):
            raise Refusal(403, f"You are {identity.name}, and in no group that may use this server. {whom}")
        return user_of_rights(identity.name, rights, list(rights))


def new_token() -> str:
    """Return 256 random bits as text that fits a URL and a header."""
    return secrets.token_urlsafe(32)


def digest_of_token(token: str) -> str:
    """Return the hash of a token.

    >>> digest_of_token("a")[:16]
    'sha256:ca978112c'
    """
    return f"sha256:{hashlib.sha256(token.encode('utf-8', 'replace')).hexdigest()}"


def users_of_token(token: str) -> Users:
    return Users({digest_of_token(token): ANYBODY})


NAME = re.compile(r"[A-Za-z0-9][\w.@-]{0,63}")
ACCOUNT, GROUP = DocumentFormat(Account, is_closed=True), DocumentFormat(Rights, is_closed=True)
DOORS: Mapping[str, DocumentFormat[Any]] = {
    "login": DocumentFormat(Login, is_closed=True),
    "jwt": DocumentFormat(SignedHeader, is_closed=True),
    "proxy": DocumentFormat(TrustedHeader, is_closed=True),
}


def read_users(path: Path, connections: Sequence[str], llms: Sequence[str] = ()) -> Users:
    """Read users from a TOML file: [login], [jwt] or [proxy], [group.NAME], and [NAME] for each service account.

    Raises:
        SetupError: it cannot be read, or names what is not known; the message has the line.
    """
    try:
        file = TomlFile(read_text_file(path, "a file of users"))
        if not isinstance(named := file.content.get("group", {}), dict):
            raise FileFault([file.locate(("group",), "is to be a table: [group.NAME]")])
        groups = {name: file.decode(GROUP, table=("group", name)) for name in named}
        accounts = {name: file.decode(ACCOUNT, table=(name,)) for name in file.content if name not in ("group", *DOORS)}
        doors = {key: file.decode(layout, table=(key,)) for key, layout in DOORS.items() if key in file.content}
        faults = [*find_unknown_names(groups, accounts, connections, llms), *find_account_faults(accounts)]
        if len(doors) > 1:
            faults.append(((min(doors),), f"stands beside {max(doors)}: people are known in one way"))
        if doors and not groups:
            faults.append(((*doors,), "lets nobody in without a [group.NAME]"))
        if faults:
            raise FileFault(sorted(file.locate(keys, words) for keys, words in faults))
    except FileFault as error:
        raise SetupError(f"{path}: {error}") from error
    if not accounts and not doors:
        raise SetupError(f"{path} names no user. Make one with: decisor serve --new-user NAME")
    users = {
        account.token: user_of_rights(name, {name: account})
        if account.groups is None
        else user_of_rights(name, {group: groups[group] for group in account.groups}, account.groups)
        for name, account in accounts.items()
    }
    door = next(iter(doors.values()), None)
    if isinstance(door, Login | SignedHeader):
        with require_package("Authlib and httpx2", "identity"):
            import_module("authlib.integrations.httpx_client")
    if isinstance(door, Login) and door.client_secret:
        fill_in_secrets(door.client_secret)  # that it is not set is told at the start
    return Users(users, groups, door=door)


def find_unknown_names(
    groups: Mapping[str, Rights], accounts: Mapping[str, Account], connections: Sequence[str], llms: Sequence[str]
) -> Iterator[tuple[DocumentPath, str]]:
    """Yield the keys with an unknown name, which would be a hole or a wall that nobody meant."""
    tables = {("group", name): group for name, group in groups.items()} | {
        (name,): one for name, one in accounts.items()
    }
    known = {"connections": connections, "techniques": tuple(TECHNIQUES), "llms": llms, "groups": tuple(groups)}
    for keys, table in tables.items():
        for key, choices in known.items():
            for name in vars(table).get(key) or ():
                if name not in choices:
                    yield (*keys, key), f"has {name!r}, and there is {', '.join(choices) or 'none'}"


def find_account_faults(accounts: Mapping[str, Account]) -> Iterator[tuple[DocumentPath, str]]:
    owners: dict[str, str] = {}
    for name, account in accounts.items():
        if not NAME.fullmatch(name):
            yield (name,), "is no name of a user: letters, digits and . _ @ -"
        if account.groups is not None and replace(account, groups=None) != Account(token=account.token):
            yield (name, "groups"), "gives all rights: leave the others of this user out"
        if (owner := owners.setdefault(account.token, name)) != name:
            yield (name, "token"), f"is the token of {owner} too"
