"""The people of an identity provider: sign-in by OpenID Connect, and what a proxy before the server says of them.

    [login]   authorization code flow with PKCE, state and nonce (OpenID Connect Core 1.0, section 3.1; RFC 7636)
    [jwt]     a proxy sends a token of each person in a header; its signature is checked (RFC 7519, RFC 8725)
    [proxy]   a proxy names the person in a header, which is believed from listed addresses alone

What belongs to one sign-in (state, nonce, verifier) lies in a cookie of the browser that began it: no other browser can
finish it, and the server holds nothing of sign-ins that nobody finishes. Authlib makes and exchanges the codes, joserfc
checks signatures and claims; both are imported when somebody comes.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote, unquote, urlencode, urlsplit

from annotated_types import Gt

from decisor.session.config import fill_in_secrets
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


PERSON = re.compile(r"[!-z|~]{1,128}")
"""Printable letters of ASCII without braces: no two of such names look the same, and none is a {user} itself."""
MOST_TOKEN = 16_384
LEEWAY = 60
"""Seconds that two clocks may differ."""
KEEP_SECONDS, SOON_SECONDS = 600.0, 30.0
"""That keys are kept, so that a withdrawn one ends; and between two looks for a key that is unknown."""
FETCH_SECONDS = 10.0
# With a shared secret, or with none, whoever reads the public key could sign: only algorithms with a key pair.
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"]
USUAL: tuple[Algorithm, ...] = ("RS256", "PS256", "ES256", "Ed25519")
HTTPS = r"^(https://[^/\s@]+|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?)(/|$)"
Address = Annotated[str, TextRule(HTTPS, "https://HOST")]
"""An https address, or an http one of this machine."""


def identity_of(name: object, groups: object) -> Identity:
    """Return a person; raise Refusal if the name or the groups cannot be."""
    if not isinstance(name, str) or not PERSON.fullmatch(name):
        raise Refusal(403, f"{name!r:.80} is no name of a person: it has up to 128 letters of ASCII and no space.")
    names = [groups] if isinstance(groups, str) else groups
    if not isinstance(names, list) or not all(isinstance(group, str) for group in names):
        raise Refusal(403, "The groups of the token are no list of names.")
    return Identity(name, tuple(names))


def identity_of_claims(claims: Mapping[str, Any], name: str, groups: str) -> Identity:
    # Whoever may write any address into a profile could be anybody (OpenID Connect Core 1.0, section 5.7).
    if name == "email" and claims.get("email_verified", True) is not True:
        raise Refusal(403, "The identity provider has not verified your email address. Verify it there first.")
    return identity_of(claims.get(name), claims.get(groups, []))


async def fetch_json(address: str) -> dict[str, Any]:
    """Fetch a JSON object; raise Refusal if it does not come. Redirects are not followed."""
    import httpx2

    try:
        async with httpx2.AsyncClient(timeout=FETCH_SECONDS) as client:
            return dict((await client.get(address)).raise_for_status().json())
    except (httpx2.HTTPError, ValueError, TypeError) as error:
        logger.warning("the identity provider: %s: %s", address, error)
        raise Refusal(502, "The identity provider does not answer as it should. Try again later.") from error


@dataclass(eq=False)
class SigningKeys:
    """The public keys of an issuer, fetched when one is needed."""

    address: str
    keys: KeySet | None = None
    at: float = 0.0
    """When they were fetched, in seconds of the monotonic clock."""

    async def fetch(self, seconds: float) -> KeySet:
        """Return the keys, not older than ``seconds``."""
        from joserfc.jwk import KeySet

        if self.keys is None or time.monotonic() - self.at > seconds:
            # Set before the answer: if the provider is gone, other requests go on with the keys of before.
            self.at = time.monotonic()
            keys: Any = await fetch_json(self.address)
            self.keys = KeySet.import_key_set(keys)
        return self.keys

    async def read(self, token: str, algorithms: tuple[Algorithm, ...], **expected: str) -> dict[str, Any]:
        """Return the claims of a token; raise Refusal unless it is signed, of its time, and has the expected values."""
        from joserfc import jwt
        from joserfc.errors import InvalidKeyIdError, JoseError

        if len(token) > MOST_TOKEN:
            raise Refusal(401, f"The token is refused: it has more than {MOST_TOKEN:,} letters.")
        rules: Any = {claim: {"essential": True, "value": value} for claim, value in expected.items()}
        try:
            try:
                signed = jwt.decode(token, await self.fetch(KEEP_SECONDS), algorithms)
            except InvalidKeyIdError:  # keys are rotated: look again, though not for each forged name of a key
                signed = jwt.decode(token, await self.fetch(SOON_SECONDS), algorithms)
            jwt.JWTClaimsRegistry(None, LEEWAY, exp={"essential": True}, **rules).validate(signed.claims)
        except JoseError as error:
            words = error.description or error.error.replace("_", " ")
            raise Refusal(401, f"The token is refused: {words.rstrip('.'):.200}.") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Refusal(401, "The token is refused: it, or the provider's list of keys, cannot be read.") from error
        return signed.claims


@cache
def keys_of(address: str) -> SigningKeys:
    return SigningKeys(address)


@dataclass(frozen=True)
class TrustedHeader:
    """The headers of a proxy that are believed: the table [proxy]."""

    addresses: tuple[IPv4Network | IPv6Network, ...]
    """Addresses or networks of the proxy."""
    header: str = "X-Forwarded-User"
    groups: str = "X-Forwarded-Groups"
    """Header with the names of the groups, joined by commas."""
    contact: str = ""

    async def identify(self, heads: Headers, address: str) -> Identity | None:
        """Return the person whom the proxy names, None if it names nobody. address: the other end of the connection."""
        if not (names := heads.getlist(self.header)):
            return None
        # A dual-stack socket writes an address of IPv4 as ::ffff:10.0.0.5.
        place = ip_address(address.removeprefix("::ffff:"))
        if not any(place in network for network in self.addresses):
            raise Refusal(403, f"{self.header} is taken from the proxy alone, and this request comes from {address}.")
        # Two headers: the client sent one, and the proxy added its own.
        if len(names) != 1:
            raise Refusal(400, f"There are {len(names)} headers {self.header}: the proxy must replace the client's.")
        return identity_of(names[0], [group.strip() for group in ",".join(heads.getlist(self.groups)).split(",")])


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

    async def identify(self, heads: Headers, address: str) -> Identity | None:
        """Return the person of the token, None if there is no token."""
        if len(tokens := heads.getlist(self.header)) > 1:
            raise Refusal(400, f"There are {len(tokens)} headers {self.header}: the proxy must replace the client's.")
        if not tokens:
            return None
        claims = await keys_of(self.keys).read(tokens[0], self.algorithms, iss=self.issuer, aud=self.audience)
        return identity_of_claims(claims, self.name, self.groups)


LOGIN, CALLBACK = "/login", "/login/callback"
NEEDED = {"authorization_endpoint", "token_endpoint", "jwks_uri"}
LOGIN_SECONDS = 600
"""Time to sign in at the provider."""
NEXT = re.compile(r"/(?![/\\])[\w/.~%?=&,+-]*", re.ASCII)
"""An address of the page itself: no host, no scheme, and no backslash, which browsers read as a slash."""


@dataclass(frozen=True)
class Login:
    """Sign-in at an identity provider: the table [login]."""

    issuer: Address
    client_id: str
    address: Annotated[str, TextRule(r"^https?://[^/\s@]+$", "https://HOST")]
    """Address of this server, as browsers have it."""
    client_secret: (
        Annotated[str, TextRule(r"^\$\{[^{}]+\}$", "${NAME}, of the environment or ${keyring:...}")] | None
    ) = None
    """Name of the secret; None for a client that has none."""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    name: str = "sub"
    """Claim that names the person, and is nobody else's."""
    groups: str = "groups"
    """Claim with the names of the groups."""
    contact: str = ""
    """Whom to ask for rights."""
    hours: Annotated[float, Gt(0)] = 12.0
    """Time after which a person signs in again."""
    algorithms: tuple[Algorithm, ...] = USUAL

    async def identify(self, heads: Headers, address: str) -> Identity | None:
        """Return None: who signed in has a cookie."""
        return None

    async def discover(self) -> Mapping[str, str]:
        """Read what the provider says of itself (OpenID Connect Discovery 1.0, section 4)."""
        content = await fetch_json(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
        if content.get("issuer") != self.issuer or not content.keys() >= NEEDED:
            raise Refusal(502, f"The provider at {self.issuer} calls itself {content.get('issuer')!r:.200}.")
        own = {key: value for key, value in content.items() if key.endswith(("_endpoint", "_uri"))}
        # Only a provider on this machine may do without encryption.
        if wrong := [
            place for place in own.values() if urlsplit(place).scheme not in ("https", urlsplit(self.issuer).scheme)
        ]:
            raise Refusal(502, f"The provider names an address that is not https: {wrong[0]!r:.200}.")
        return own

    async def begin(self, after: str) -> tuple[str, str]:
        """Return the provider's address, and the cookie of this sign-in. after: where the person goes after it."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        place, back = (await self.discover())["authorization_endpoint"], self.address + CALLBACK
        challenge = {"code_challenge": create_s256_code_challenge(verifier), "code_challenge_method": "S256"}
        scopes = " ".join(self.scopes)
        address = prepare_grant_uri(place, self.client_id, "code", back, scopes, state, nonce=nonce, **challenge)
        return str(address), ".".join((state, nonce, verifier, quote(after, safe="")))

    async def finish(self, query: Mapping[str, str], cookie: str) -> tuple[Identity, str, str]:
        """Return the person who comes back from the provider, the ID token, and where they go."""
        from authlib.integrations.base_client import OAuthError
        from authlib.integrations.httpx_client import AsyncOAuth2Client
        from httpx2 import HTTPError

        state, nonce, verifier, after = (*cookie.split(".", 3), "", "", "", "")[:4]
        if not (state and hmac.compare_digest(state.encode(), query.get("state", "").encode("utf-8", "replace"))):
            raise Refusal(400, "This sign-in was not begun in this browser, or is over.")
        if query.get("iss", self.issuer) != self.issuer:  # RFC 9207
            raise Refusal(400, "The answer comes from another identity provider.")
        if "code" not in query:
            why = re.sub(r"\W+", " ", query.get("error", "no code"), flags=re.ASCII)
            raise Refusal(403, f"The identity provider did not sign you in: {why:.80}.")
        provider, secret = await self.discover(), self.client_secret and fill_in_secrets(self.client_secret)
        own = {"client_id": self.client_id, "client_secret": secret, "redirect_uri": self.address + CALLBACK}
        own |= {"token_endpoint_auth_method": "client_secret_basic" if secret else "none"}
        try:
            async with AsyncOAuth2Client(**own, timeout=FETCH_SECONDS) as client:
                code = {"grant_type": "authorization_code", "code": query["code"], "code_verifier": verifier}
                token = str((await client.fetch_token(provider["token_endpoint"], **code)).get("id_token", ""))
        except (OAuthError, HTTPError, ValueError) as error:
            logger.warning("the identity provider refused a code: %s", error)
            raise Refusal(400, "The identity provider refused the code of this sign-in.") from error
        expected = {"iss": self.issuer, "aud": self.client_id, "nonce": nonce}
        claims = await keys_of(provider["jwks_uri"]).read(token, self.algorithms, **expected)
        # A token for several is for the one that azp names (OpenID Connect Core 1.0, section 3.1.3.7).
        if (
            claims.get("azp", "" if isinstance(claims["aud"], list) and claims["aud"][1:] else self.client_id)
            != self.client_id
        ):
            raise Refusal(401, "The token is refused: it was made for another client.")
        place = unquote(after)
        return identity_of_claims(claims, self.name, self.groups), token, place if NEXT.fullmatch(place) else "/"

    async def end_address(self, id_token: str) -> str:
        """Return the address that ends a session at the provider too, '' if there is none."""
        if not id_token or not (place := (await self.discover()).get("end_session_endpoint")):
            return ""
        own = {"id_token_hint": id_token, "client_id": self.client_id, "post_logout_redirect_uri": f"{self.address}/"}
        return f"{place}{'&' if '?' in place else '?'}{urlencode(own)}"
