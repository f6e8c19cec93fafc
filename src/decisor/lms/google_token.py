"""Access tokens for a service account of Google's: asked for with a signed statement, kept for as long as they hold."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from pathlib import Path

from decisor.errors import LMError, SetupError
from decisor.extras import lacks
from decisor.lms.endpoint import parse_address
from decisor.lms.retry import Again
from decisor.secrets import Secret

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SECONDS, EARLY = 3600, 60.0
"""How long a token is asked for, and how long before its end another is got."""
PATIENCE = 30.0
UNREACHABLE = "No access token: Google's server for them cannot be reached."


@dataclass(eq=False)
class ServiceAccount:
    """``email``, ``key_id`` and ``private_key`` (PEM) as its file has them; ``url``: where tokens are made."""

    email: str
    key_id: str
    private_key: Secret
    url: str
    current: Secret = field(default_factory=lambda: Secret(""))
    ends: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def token(self) -> Secret:
        """Raises LMError where there is none to be had."""
        async with self.lock:
            if time.monotonic() >= self.ends - EARLY:
                await self._renew()
            return self.current

    async def _renew(self) -> None:
        import aiohttp

        body = {"grant_type": GRANT, "assertion": self.statement(int(time.time()))}
        try:
            async with (
                aiohttp.ClientSession(trust_env=True, timeout=aiohttp.ClientTimeout(PATIENCE)) as session,
                session.post(self.url, data=body, allow_redirects=False) as response,
            ):
                status, text = response.status, await response.text()
        except (aiohttp.ClientError, OSError, TimeoutError):
            problem: LMError | None = Again(UNREACHABLE, "connection")
        else:
            problem = self._take(status, text)
        if problem is not None:
            raise problem

    def _take(self, status: int, text: str) -> LMError | None:
        try:
            reply = json.loads(text)
            seconds, token = float(reply["expires_in"]), str(reply["access_token"])
        except (ValueError, LookupError, TypeError):
            if status >= 500 or status == 429:
                return Again(f"No access token: Google's server for them answered {status}.", "server")
            what = f"No access token for {self.email}: Google answered {status}. Is the key in its file still good?"
            return LMError(what, "auth", True)
        self.current, self.ends = Secret(token), time.monotonic() + seconds
        return None

    def statement(self, now: int) -> str:
        """A JSON web token, signed by RS256. ``now``: seconds since 1970."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        head = {"alg": "RS256", "typ": "JWT", "kid": self.key_id}
        claims = {"iss": self.email, "scope": SCOPE, "aud": self.url, "iat": now, "exp": now + SECONDS}
        text = ".".join(encoded(json.dumps(part).encode()) for part in (head, claims))
        key = load_pem_private_key(self.private_key.reveal().encode(), None)
        if not isinstance(key, RSAPrivateKey):
            raise LMError(f"The key of {self.email} is no RSA key.", "auth", True)
        return f"{text}.{encoded(key.sign(text.encode(), PKCS1v15(), hashes.SHA256()))}"


def encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def service_account(path: Path) -> ServiceAccount:
    """From its JSON file.

    Raises:
        SetupError: it is none, or what is needed to sign with it is not installed.
    """
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        what = "Without VERTEX_API_KEY (an access token), Google's service accounts need cryptography"
        raise lacks(what, "vertex") from error
    try:
        row = json.loads(path.read_text("utf-8"))
        url = parse_address(str(row.get("token_uri") or "https://oauth2.googleapis.com/token")).geturl()
        return ServiceAccount(row["client_email"], row["private_key_id"], Secret(row["private_key"]), url)
    except OSError as error:
        raise SetupError(f"Cannot read the service account in {path}: {error.strerror}.") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise SetupError(
            f"{path} is no file of a service account: GOOGLE_APPLICATION_CREDENTIALS names one."
        ) from error
