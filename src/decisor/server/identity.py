"""The people of an identity provider: sign-in by OpenID Connect, and what a proxy before the server says of them.

    [login]   authorization code flow with PKCE, state and nonce (OpenID Connect Core 1.0, section 3.1; RFC 7636)
    [jwt]     a proxy signed the person in and sends a token in a header; its signature is checked (RFC 7519, RFC 8725)
    [proxy]   a proxy names the person in a header, which is believed from listed addresses alone

A token counts only with a signature of a listed algorithm by a key of the issuer, for this audience and this time. What
belongs to one sign-in (state, nonce, verifier) lies in a cookie of the browser that began it: nobody can finish it in
another browser, and the server holds nothing for sign-ins that are never finished. Authlib makes and exchanges the
codes, joserfc checks signatures and claims; both are imported when somebody signs in.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote, unquote, urlencode, urlsplit

from annotated_types import Gt

from decisor.system.extras import logger
from decisor.system.serialization import TextRule

if TYPE_CHECKING:
    from joserfc.jwk import KeySet
    from starlette.datastructures import Headers


class Refusal(Exception):
    """A refusal of a request, with its status and one line for the client.

    login: path at which a person signs in, '' if that does not help.
    """

    def __init__(self, status: int, text: str, login: str = "") -> None:
        super().__init__(text)
        self.status, self.login = status, login


@dataclass(frozen=True)
class Identity:
    """A person as an identity provider or a proxy names them."""

    name: str
    groups: tuple[str, ...] = ()
    id_token: str = ""
    """The provider's token, with which the person is signed out there; '' from a proxy."""


Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Algorithms with a key pair: with a shared secret, or with none, whoever reads the public key could sign."""
USUAL: tuple[Algorithm, ...] = ("RS256", "PS256", "ES256", "EdDSA")
Address = Annotated[
    str, TextRule(r"^(https://[^/\s@]+|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?)(/|$)", "https://HOST")
]
"""An https address, or an http one of this machine."""


@dataclass(frozen=True)
class Login:
    """How people sign in: the table [login]."""

    issuer: Address
    client_id: str
    client_secret: str = ""
    """Named as ``${NAME}``; '' for a client that has none."""
    address: Annotated[str, TextRule(r"^https?://[^/\s@]+$", "https://HOST")] = "http://127.0.0.1:8765"
    """Address of this server, as browsers have it."""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    name: str = "sub"
    """Claim that names the person, and is nobody else's."""
    groups: str = "groups"
    """Claim with the names of the groups."""
    contact: str = ""
    hours: Annotated[float, Gt(0)] = 12.0
    """Time after which a person signs in again."""
    algorithms: tuple[Algorithm, ...] = USUAL


@dataclass(frozen=True)
class SignedHeader:
    """The header with a proxy's token: the table [jwt]."""

    header: Annotated[str, TextRule(r"^(?!(?i:authorization|cookie)$)[\w-]+$", "the name of a header of its own")]
    issuer: str
    audience: str
    keys: Address
    """Address of the issuer's public keys (JWKS)."""
    name: str = "sub"
    groups: str = "groups"
    contact: str = ""
    algorithms: tuple[Algorithm, ...] = USUAL


@dataclass(frozen=True)
class TrustedHeader:
    """The headers of a proxy that are believed: the table [proxy]."""

    addresses: tuple[str, ...]
    """Addresses or networks of the proxy."""
    header: str = "X-Forwarded-User"
    groups: str = "X-Forwarded-Groups"
    """Header with the names of the groups, joined by commas."""
    contact: str = ""

    async def identify(self, heads: Headers, address: str) -> Identity | None:
        """Return the person whom the proxy names, None if it names nobody."""
        if not (names := heads.getlist(self.header)):
            return None
        # A dual-stack socket writes an address of IPv4 as ::ffff:10.0.0.5.
        place = ipaddress.ip_address(address.removeprefix("::ffff:"))
        if not any(place in ipaddress.ip_network(network) for network in self.addresses):
            raise Refusal(403, f"{self.header} is taken from the proxy alone, and this request comes from {address}.")
        # Two headers: the client sent one, and the proxy added its own.
        if len(names) != 1:
            raise Refusal(400, f"There are {len(names)} headers {self.header}: the proxy must replace the client's.")
        groups = ",".join(heads.getlist(self.groups)).split(",")
        return Identity(check_identity_name(names[0]), tuple(group.strip() for group in groups if group.strip()))


PERSON = re.compile(r"[!-z|~]{1,128}")
"""Printable letters of ASCII without braces: no two of such names look the same, and none is a {user} itself."""
MOST_TOKEN = 16_384
LEEWAY = 60
"""Seconds that two clocks may differ."""
KEEP_SECONDS, SOON_SECONDS = 600.0, 30.0
"""That keys are kept, so that a withdrawn one ends; and between two looks for a key that is unknown."""
FETCH_SECONDS = 10.0


def check_identity_name(name: object) -> str:
    if not isinstance(name, str) or not PERSON.fullmatch(name):
        raise Refusal(403, f"{name!r:.80} is no name of a person: it has up to 128 letters of ASCII and no space.")
    return name


def identity_of_claims(claims: Mapping[str, Any], name: str, groups: str) -> Identity:
    """Return the person of a token. name, groups: the claims with the name and the groups."""
    # Whoever may write any address into a profile could be anybody (OpenID Connect Core 1.0, section 5.7).
    if name == "email" and claims.get("email_verified", True) is not True:
        raise Refusal(403, "The identity provider has not verified your email address. Verify it there first.")
    names = claims.get(groups, [])
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or not all(isinstance(group, str) for group in names):
        raise Refusal(403, f"The claim {groups} of the token is no list of names.")
    return Identity(check_identity_name(claims.get(name)), tuple(names))


async def fetch_json(address: str) -> dict[str, Any]:
    """Fetch a JSON object; raise Refusal if it does not come. Redirects are not followed."""
    import httpx2

    try:
        async with httpx2.AsyncClient(timeout=FETCH_SECONDS) as client:
            content = (await client.get(address)).raise_for_status().json()
    except (httpx2.HTTPError, ValueError) as error:
        logger.warning("the identity provider: %s: %s", address, error)
        raise Refusal(502, "The identity provider does not answer as it should. Try again later.") from error
    if not isinstance(content, dict):
        raise Refusal(502, f"{address} holds no JSON object.")
    return content


@dataclass(eq=False)
class SigningKeys:
    """The public keys of an issuer, fetched when one is needed."""

    address: str
    algorithms: Sequence[str]
    keys: KeySet | None = None
    at: float = float("-inf")
    """When they were fetched, in seconds of the monotonic clock."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def fetch(self, seconds: float) -> KeySet:
        """Return the keys, not older than ``seconds``."""
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        async with self.turn:
            if self.keys is None or time.monotonic() - self.at > seconds:
                # Set before the answer: where the provider is gone, not every request waits for it.
                self.at = time.monotonic()
                try:
                    self.keys = KeySet.import_key_set(await fetch_json(self.address))  # type: ignore[arg-type]
                except (JoseError, ValueError, KeyError, TypeError) as error:
                    raise Refusal(502, "The keys of the identity provider cannot be read.") from error
                except Refusal:
                    if self.keys is None:
                        raise
            return self.keys

    async def read(self, token: str, **expected: str) -> dict[str, Any]:
        """Return the claims of a token; raise Refusal unless it is signed, of its time, and has the expected values."""
        from joserfc import jwt
        from joserfc.errors import InvalidKeyIdError, JoseError

        if len(token) > MOST_TOKEN:
            raise Refusal(401, f"The token is refused: it has more than {MOST_TOKEN:,} letters.")
        rules = {claim: {"essential": True, "value": value} for claim, value in expected.items()}
        registry = jwt.JWTClaimsRegistry(None, LEEWAY, **rules, exp={"essential": True})  # type: ignore[arg-type]
        try:
            try:
                signed = jwt.decode(token, await self.fetch(KEEP_SECONDS), self.algorithms)
            except InvalidKeyIdError:  # keys are rotated: look again, though not for each forged name of a key
                signed = jwt.decode(token, await self.fetch(SOON_SECONDS), self.algorithms)
            registry.validate(signed.claims)
        except (JoseError, ValueError, RecursionError) as error:
            words = "it cannot be read"
            if isinstance(error, JoseError):
                words = error.description or error.error.replace("_", " ")
            raise Refusal(401, f"The token is refused: {words.rstrip('.'):.200}.") from error
        return signed.claims


@dataclass(eq=False)
class SignedDoor:
    """The door of people whom a proxy signed in."""

    table: SignedHeader
    keys: SigningKeys = field(init=False)

    def __post_init__(self) -> None:
        self.keys = SigningKeys(self.table.keys, self.table.algorithms)

    async def identify(self, heads: Headers, address: str) -> Identity | None:
        """Return the person of the token, None if there is no token."""
        table = self.table
        if not (tokens := heads.getlist(table.header)):
            return None
        if len(tokens) != 1:
            raise Refusal(400, f"There are {len(tokens)} headers {table.header}.")
        claims = await self.keys.read(tokens[0], iss=table.issuer, aud=table.audience)
        return identity_of_claims(claims, table.name, table.groups)


LOGIN, CALLBACK = "/login", "/login/callback"
LOGIN_SECONDS = 600
"""Time to sign in at the provider."""
NEXT = re.compile(r"/(?![/\\])[\w/.~%?=&,+-]*", re.ASCII)
"""An address of the page itself: no host, no scheme, and no backslash, which browsers read as a slash."""
TRY_AGAIN = "This sign-in was not begun in this browser, or is over. Sign in again."


@dataclass(eq=False)
class LoginFlow:
    """Sign-in at an identity provider, by the authorization code flow."""

    table: Login
    secret: str = field(default="", repr=False)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    keys: SigningKeys | None = None

    @property
    def redirect(self) -> str:
        return f"{self.table.address}{CALLBACK}"

    async def discover(self) -> SigningKeys:
        """Read what the provider says of itself, once (OpenID Connect Discovery 1.0, section 4)."""
        if self.keys is None:
            issuer = self.table.issuer
            metadata = await fetch_json(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            if metadata.get("issuer") != issuer:
                raise Refusal(502, f"The provider at {issuer} calls itself {metadata.get('issuer')!r:.200}.")
            ends = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            places = [metadata.get(name) for name in (*ends, "end_session_endpoint") if name in (*ends, *metadata)]
            if wrong := [one for one in places if urlsplit(str(one)).scheme not in ("https", urlsplit(issuer).scheme)]:
                raise Refusal(502, f"The provider names an address that is not https: {wrong[0]!r:.200}.")
            self.metadata, self.keys = metadata, SigningKeys(metadata["jwks_uri"], self.table.algorithms)
        return self.keys

    async def begin(self, after: str) -> tuple[str, str]:
        """Return the provider's address, and the cookie of this sign-in. after: where the person goes after it."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        await self.discover()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        address: str = prepare_grant_uri(
            self.metadata["authorization_endpoint"],
            self.table.client_id,
            "code",
            self.redirect,
            " ".join(self.table.scopes),
            state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
        return address, ".".join((state, nonce, verifier, quote(after, safe="")))

    async def exchange(self, code: str, verifier: str) -> str:
        """Return the ID token for a code; raise Refusal if the provider does not give it."""
        from authlib.integrations.base_client import OAuthError
        from authlib.integrations.httpx_client import AsyncOAuth2Client
        from httpx2 import HTTPError

        methods = self.metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        method = "client_secret_basic" if "client_secret_basic" in methods else "client_secret_post"
        own = (self.table.client_id, self.secret, method) if self.secret else (self.table.client_id, None, "none")
        try:
            async with AsyncOAuth2Client(*own, redirect_uri=self.redirect, timeout=FETCH_SECONDS) as client:
                reply = await client.fetch_token(
                    self.metadata["token_endpoint"], grant_type="authorization_code", code=code, code_verifier=verifier
                )
        except (OAuthError, HTTPError, ValueError) as error:
            logger.warning("the identity provider refused a code: %s", error)
            raise Refusal(400, "The identity provider refused the code of this sign-in. Sign in again.") from error
        return str(reply.get("id_token", ""))

    async def finish(self, query: Mapping[str, str], cookie: str) -> tuple[Identity, str]:
        """Return the person who comes back from the provider, and where they go."""
        state, nonce, verifier, after = (*cookie.split("."), "", "", "", "")[:4]
        if not (state and hmac.compare_digest(state.encode(), query.get("state", "").encode("utf-8", "replace"))):
            raise Refusal(400, TRY_AGAIN)
        if query.get("iss", self.table.issuer) != self.table.issuer:  # RFC 9207
            raise Refusal(400, "The answer comes from another identity provider. Sign in again.")
        if "code" not in query:
            why = re.sub(r"\W+", " ", query.get("error", "no code"), flags=re.ASCII)
            raise Refusal(403, f"The identity provider did not sign you in: {why:.80}.")
        keys, own = await self.discover(), self.table.client_id
        token = await self.exchange(query["code"], verifier)
        claims = await keys.read(token, iss=self.table.issuer, aud=own, nonce=nonce)
        # A token for several is for the one that azp names (OpenID Connect Core 1.0, section 3.1.3.7).
        if claims.get("azp", own if claims["aud"] in (own, [own]) else "") != own:
            raise Refusal(401, "The token is refused: it was made for another client.")
        person = replace(identity_of_claims(claims, self.table.name, self.table.groups), id_token=token)
        return person, after if NEXT.fullmatch(after := unquote(after)) else "/"

    async def end_address(self, id_token: str) -> str:
        """Return the address that ends a session at the provider too, '' if there is none."""
        if not id_token:
            return ""
        await self.discover()
        if not (place := self.metadata.get("end_session_endpoint")):
            return ""
        own = {"id_token_hint": id_token, "client_id": self.table.client_id}
        query = urlencode(own | {"post_logout_redirect_uri": f"{self.table.address}/"})
        return f"{place}{'&' if '?' in place else '?'}{query}"
