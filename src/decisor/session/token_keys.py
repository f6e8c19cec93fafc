"""Keys of the tokens that stand for masked values.

A key is HMAC-SHA256 of a seed, by a secret that stays on this machine. The seed is drawn for each session and stands in
the trace, so that ``decisor verify`` makes the same tokens again on this machine, and nobody elsewhere.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import replace

from decisor.private_file import changing, data_folder, make_folder, write_private
from decisor.session.sources import Sources

FILE = "tokens.key"


def draw_seed() -> str:
    """Return a new seed, which begins with the name of this machine's secret; '' where none can be kept."""
    secret = machine_secret()
    return f"{name_of(secret)}.{secrets.token_hex(8)}" if secret else ""


def key_of(seed: str) -> str:
    """Return the key that this machine makes of a seed, '' where another secret belongs to it."""
    if not seed or not (secret := machine_secret()) or seed.partition(".")[0] != name_of(secret):
        return ""
    return hmac.new(secret.encode(), seed.encode(), "sha256").hexdigest()[:32]


def with_seed(sources: Sources, seed: str) -> Sources:
    """Return the sources with the tokens of an earlier session, as they are where this machine cannot make those."""
    if not (key := key_of(seed)):
        return sources
    places = tuple(
        replace(one, policy=replace(one.policy, key=key, seed=seed)) if one.policy.mask else one
        for one in sources.places
    )
    return replace(sources, places=places)


def machine_secret() -> str:
    """Read the secret, made at first use and its owner's alone; '' where it can be neither read nor written."""
    path = data_folder() / FILE
    try:
        make_folder(path.parent)
        with changing(path):
            if not path.exists():
                write_private(path, secrets.token_hex(32))
            return path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def name_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()[:8]
