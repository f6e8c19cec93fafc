"""The users of a server: people and service accounts, their rights, and the sessions of their browsers.

A right names what may be used, and keeps rows and columns back. Who is in several groups may use what any of them may
use, and sees no row and no column that one of them keeps back. Who is in no known group may use nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from annotated_types import Gt

from decisor.errors import SetupError
from decisor.server.identity import Identity, Login, LoginFlow, Refusal, SignedDoor, SignedHeader, TrustedHeader
from decisor.session.access import ANYBODY as SEES_ALL
from decisor.session.access import Reader
from decisor.session.config import fill_in_secrets
from decisor.system.extras import logger, require_package
from decisor.system.serialization import DecodeError, DocumentFormat, TextRule
from decisor.system.structured_files import FileFault, TomlFile, read_text_file
from decisor.techniques import TECHNIQUES

if TYPE_CHECKING:
    from starlette.datastructures import Headers


MOST_SESSIONS = 10_000
TOKEN_SECONDS = 30 * 24 * 3600.0
"""That a session lasts which began with a token."""


@dataclass(frozen=True)
class SpendingLimits:
    """What may be spent in a day or a month. None means no limit."""

    dollars: Annotated[float, Gt(0)] | None = None
    tokens: Annotated[int, Gt(0)] | None = None
    bytes: Annotated[int, Gt(0)] | None = None
    """Bytes that queries scan, by the engine's estimate."""


@dataclass(frozen=True)
class GroupBudget:
    """The budget of a group, or of a service account."""

    day: SpendingLimits = field(default_factory=SpendingLimits)
    month: SpendingLimits = field(default_factory=SpendingLimits)
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
    budget: GroupBudget | None = None


@dataclass(frozen=True)
class Account(Rights):
    """A user with a token: a service account, or a person where nobody signs in."""

    token: Annotated[str, TextRule(r"^sha256:[0-9a-f]{64}$", "sha256:..., of decisor serve --new-user")] = field(
        kw_only=True
    )
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


ANYBODY = User()


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
    """The sessions of all browsers, in the memory of this process."""

    by_digest: dict[str, Session] = field(default_factory=dict)
    """By the hash of the cookie."""

    def begin(self, session: Session) -> str:
        """Begin a session and return its cookie."""
        # The oldest session ends, so that sessions without number fill no memory.
        while len(self.by_digest) >= MOST_SESSIONS:
            self.by_digest.pop(next(iter(self.by_digest)))
        cookie = new_token()
        self.by_digest[digest_of_token(cookie)] = session
        return cookie

    def of(self, cookie: str) -> Session | None:
        """Return the session of a cookie, None if it has ended."""
        session = self.by_digest.get(digest_of_token(cookie))
        return session if session is not None and session.ends > time.time() else None

    def end(self, cookie: str) -> Session | None:
        """End a session and return it, None if there is none."""
        return self.by_digest.pop(digest_of_token(cookie), None)


@dataclass(eq=False)
class Users:
    """The users of a server and their sessions."""

    by_digest: Mapping[str, User] = field(default_factory=dict)
    """Service account of each hash of a token."""
    groups: Mapping[str, Rights] = field(default_factory=dict)
    """Rights of each group of an identity provider."""
    sessions: Sessions = field(default_factory=Sessions)
    login: LoginFlow | None = None
    """Sign-in at an identity provider, None if nobody signs in there."""
    door: SignedDoor | TrustedHeader | None = None
    """What a proxy says of people, None if it says nothing."""
    contact: str = ""
    """Whom to ask for rights."""

    @property
    def is_open(self) -> bool:
        """Whether everybody is the same user, and no token is needed."""
        return not (self.by_digest or self.door or self.login)

    @property
    def by_name(self) -> Mapping[str, User]:
        """Users that have a name, by that name: service accounts, and people who are signed in."""
        people = [one for one in self.sessions.by_digest.values() if one.groups is not None]
        named = {user.name: user for user in self.by_digest.values() if user.name}
        return {one.name: user_of_rights(one.name, self.rights_of(one.groups or ())) for one in people} | named

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
        session = self.sessions.of(cookie) if cookie else None
        if session is None:
            return None
        if session.groups is not None:
            return self.person(Identity(session.name, session.groups))
        return next((user for user in self.by_digest.values() if user.name == session.name), None)

    def rights_of(self, groups: Sequence[str]) -> Mapping[str, Rights]:
        return {name: self.groups[name] for name in dict.fromkeys(groups) if name in self.groups}

    def person(self, identity: Identity) -> User:
        """Return the user that a person is. Raise Refusal if they have no rights here."""
        whom = f"Ask {self.contact}." if self.contact else "Ask whoever runs this server."
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
LOGIN, JWT = DocumentFormat(Login, is_closed=True), DocumentFormat(SignedHeader, is_closed=True)
PROXY = DocumentFormat(TrustedHeader, is_closed=True)
DOORS = ("login", "jwt", "proxy")
T = TypeVar("T")


def read_users(path: Path, connections: Sequence[str], llms: Sequence[str] = ()) -> Users:
    """Read users from a TOML file: [login], [jwt] or [proxy], [group.NAME], and [NAME] for each service account.

    Raises:
        SetupError: it cannot be read, or names what is not known; the message has the line.
    """
    try:
        file = TomlFile(read_text_file(path, "a file of users"))
        if not isinstance(named := file.content.get("group", {}), dict):
            raise FileFault([file.locate(("group",), "is to be a table: [group.NAME]")])
        groups = {name: decode_table(file, GROUP, "group", name) for name in named}
        accounts = {name: decode_table(file, ACCOUNT, name) for name in file.content if name not in ("group", *DOORS)}
        for keys, rights in ((("group", name), group) for name, group in groups.items()):
            check_rights(file, keys, rights, connections, llms)
        for name, account in accounts.items():
            check_rights(file, (name,), account, connections, llms)
        users = open_door(file, Users(build_accounts(file, accounts, groups), groups))
    except FileFault as error:
        raise SetupError(f"{path}: {error}") from error
    if users.is_open:
        raise SetupError(f"{path} names no user. Make one with: decisor serve --new-user NAME")
    return users


def decode_table(file: TomlFile, layout: DocumentFormat[T], *keys: str) -> T:
    """Decode one table of a file; raise FileFault with the lines of its faults."""
    content: Any = file.content
    for key in keys:
        content = content[key]
    try:
        return layout.decode_value(content)
    except DecodeError as error:
        raise FileFault(sorted(file.locate((*keys, *path), words) for path, words in error.faults)) from error


def check_rights(
    file: TomlFile, keys: tuple[str, ...], rights: Rights, connections: Sequence[str], llms: Sequence[str]
) -> None:
    """Raise FileFault if a connection, a technique or an LLM is unknown: a name that fits nothing would be a hole."""
    for kind, names, known in (
        ("connections", rights.connections, connections),
        ("techniques", rights.techniques, list(TECHNIQUES)),
        ("llms", rights.llms, llms),
    ):
        if unknown := [name for name in names or () if name not in known]:
            words = f"has {unknown[0]!r}, and there is {', '.join(known) or 'none'}"
            raise FileFault([file.locate((*keys, kind), words)])


def build_accounts(file: TomlFile, accounts: Mapping[str, Account], groups: Mapping[str, Rights]) -> dict[str, User]:
    """Return the user of each token; raise FileFault if two have one token, or a name or group cannot be."""
    users: dict[str, User] = {}
    for name, account in accounts.items():
        if not NAME.fullmatch(name):
            raise FileFault([file.locate((name,), "is no name of a user: letters, digits and . _ @ -")])
        if unknown := [group for group in account.groups or () if group not in groups]:
            words = f"has {unknown[0]!r}, and there is {', '.join(groups) or 'none'}"
            raise FileFault([file.locate((name, "groups"), words)])
        if account.groups is not None and replace(account, groups=None) != Account(token=account.token):
            raise FileFault([file.locate((name, "groups"), "gives all rights: leave the others of this user out")])
        if account.token in users:
            raise FileFault([file.locate((name, "token"), f"is the token of {users[account.token].name} too")])
        rights = {name: account} if account.groups is None else {group: groups[group] for group in account.groups}
        users[account.token] = user_of_rights(name, rights, account.groups or ())
    return users


def open_door(file: TomlFile, users: Users) -> Users:
    """Return the users with the way by which people come in, if the file has one."""
    doors = [key for key in DOORS if key in file.content]
    if not doors:
        return users
    if len(doors) > 1:
        raise FileFault([file.locate((doors[1],), f"stands beside [{doors[0]}]: people come in by one of them")])
    if not users.groups:
        raise FileFault([file.locate((doors[0],), "lets nobody in without a [group.NAME]")])
    if doors == ["proxy"]:
        proxy = decode_table(file, PROXY, "proxy")
        try:
            [*map(ipaddress.ip_network, proxy.addresses)]
        except ValueError as error:
            raise FileFault([file.locate(("proxy", "addresses"), str(error))]) from error
        return replace(users, door=proxy, contact=proxy.contact)
    with require_package("Authlib and httpx2", "identity"):
        import_module("authlib.integrations.httpx_client")
    if doors == ["jwt"]:
        jwt = decode_table(file, JWT, "jwt")
        return replace(users, door=SignedDoor(jwt), contact=jwt.contact)
    login = decode_table(file, LOGIN, "login")
    secret = login.client_secret
    if secret.startswith("${"):
        secret = fill_in_secrets(secret)
    elif secret:
        logger.warning("The file of users holds the client_secret: put it into a variable, and write ${NAME} here.")
    return replace(users, login=LoginFlow(login, secret), contact=login.contact)
