"""Requests signed as AWS wants them (Signature Version 4), without its SDK."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class AwsKey:
    """Of a person or a role; ``token`` where it is good for a while only."""

    id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)


def signed(
    method: str, url: str, payload: bytes, key: AwsKey, region: str, service: str, now: datetime | None = None,
    headers: Mapping[str, str] | None = None,
) -> dict[str, str]:  # fmt: skip
    """What to send beside ``headers``, which are signed too. ``url``: its path as it is sent, encoded once."""
    parts = urlsplit(url)
    stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    own = {"X-Amz-Date": stamp, **({"X-Amz-Security-Token": key.token} if key.token else {})}
    every = {name.lower(): " ".join(value.split()) for name, value in {**(headers or {}), **own}.items()}
    every["host"] = parts.netloc
    names = ";".join(sorted(every))
    lines = "".join(f"{name}:{every[name]}\n" for name in sorted(every))
    query = "&".join(sorted(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
                            for name, value in parse_qsl(parts.query, keep_blank_values=True)))  # fmt: skip
    request = "\n".join(
        [method, quote(parts.path or "/", safe="/-_.~"), query, lines, names, hashlib.sha256(payload).hexdigest()]
    )
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    text = "\n".join([ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()])
    secret = f"AWS4{key.secret}".encode()
    for part in scope.split("/"):
        secret = hmac.digest(secret, part.encode(), "sha256")
    signature = hmac.digest(secret, text.encode(), "sha256").hex()
    own["Authorization"] = f"{ALGORITHM} Credential={key.id}/{scope}, SignedHeaders={names}, Signature={signature}"
    return own
