"""Secrets in a config file are named, never written: ``${NAME}`` of the environment, ``${keyring:SERVICE/USER}``."""

from __future__ import annotations

import os
import re
from importlib import import_module
from urllib.parse import quote

from decisor.errors import SetupError
from decisor.secrets import without_password

NAME = re.compile(r"\$\{([^{}]*)\}")
WITH_COLON = re.compile(r":?\$\{[^{}]*\}")


def named_secrets(text: str) -> list[str]:
    """
    >>> named_secrets("postgresql://me:${SALES_PASSWORD}@host/sales")
    ['SALES_PASSWORD']
    """
    return NAME.findall(text)


def with_secrets(text: str) -> str:
    """With what is named put in: percent-encoded where it is a part of an address.

    Raises:
        SetupError: a name is not set.
    """
    if NAME.fullmatch(text):
        return secret(text[2:-1])
    return NAME.sub(lambda match: quote(secret(match[1]), safe=""), text)


def secret(name: str) -> str:
    """Raises SetupError where it is not set."""
    if name.startswith("keyring:"):
        return from_keyring(name.removeprefix("keyring:"))
    if not (value := os.environ.get(name)):
        raise SetupError(f"decisor.toml names ${{{name}}}, and the environment variable {name} is not set.")
    return value


def from_keyring(name: str) -> str:
    service, slash, user = name.partition("/")
    if not (service and slash and user):
        raise SetupError(f"A secret of the keyring is named ${{keyring:SERVICE/USER}}, not ${{keyring:{name}}}.")
    try:
        keyring = import_module("keyring")
    except ImportError as error:
        raise SetupError("Secrets of a keyring need another package: pip install 'decisor[keyring]'") from error
    try:
        value = keyring.get_password(service, user)
    except keyring.errors.KeyringError as error:
        raise SetupError(f"The keyring cannot be read: {error}") from error
    if not value:
        raise SetupError(f"The keyring has no secret for {service}/{user}: keyring set {service} {user}")
    return str(value)


def refuse_password(where: str, text: str) -> None:
    """Raises SetupError where a password or a key is written out.

    >>> refuse_password("lm", "m@https://${KEY}@host/v1")
    >>> refuse_password("connections.shop.url", "postgresql://me:${PW}@host/shop?sslmode=require")
    >>> refuse_password("connections.shop.url", "postgresql://me:secret@host/shop")
    Traceback (most recent call last):
    decisor.errors.SetupError: connections.shop.url holds a password. Put it into an environment variable, and write \
its name in its place: ${SHOP_PASSWORD}
    """
    plain = WITH_COLON.sub("", text)
    if without_password(plain) != plain:
        parts = where.split(".")
        name = f"{parts[1].upper()}_PASSWORD" if len(parts) > 1 else "MY_PASSWORD"
        raise SetupError(f"{where} holds a password. Put it into an environment variable, and write its name in its "
                         f"place: ${{{name}}}")  # fmt: skip
