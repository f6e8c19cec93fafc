"""Deployments on Azure OpenAI: the chat completions API at addresses, and with a header for the key, of its own."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlunsplit

from decisor.lms.endpoint import parse_address
from decisor.lms.openai_compatible import OpenAICompatible
from decisor.lms.prices import Price

API_VERSION = "2024-10-21"


def access(environ: Mapping[str, str]) -> tuple[str, str]:
    """Address and key: AZURE_OPENAI_ENDPOINT (or AZURE_OPENAI_BASE_URL), with AZURE_OPENAI_API_VERSION or
    OPENAI_API_VERSION; AZURE_OPENAI_API_KEY."""
    url = environ.get("AZURE_OPENAI_BASE_URL") or environ.get("AZURE_OPENAI_ENDPOINT") or ""
    version = environ.get("AZURE_OPENAI_API_VERSION") or environ.get("OPENAI_API_VERSION")
    if url and version and "?" not in url:
        url = f"{url.rstrip('/')}?api-version={quote(version)}"
    return url, environ.get("AZURE_OPENAI_API_KEY", "") if url else ""


def azure(model: str, *, base_url: str, key: str | None, price: Price | None) -> OpenAICompatible:
    """``model``: the name of a deployment."""
    return OpenAICompatible(model, deployment_url(model, base_url), key, price=price, key_header="api-key")


def deployment_url(model: str, base_url: str) -> str:
    """A whole path is taken as it is, such as that of the v1 API, which has no versions.

    >>> deployment_url("my-gpt", "https://me.openai.azure.com/")
    'https://me.openai.azure.com/openai/deployments/my-gpt?api-version=2024-10-21'
    >>> deployment_url("my-gpt", "https://me.openai.azure.com/openai/v1")
    'https://me.openai.azure.com/openai/v1'
    """
    scheme, host, path, query, _ = parse_address(base_url.strip())
    path = path.rstrip("/")
    if path in ("", "/openai"):
        path, query = f"/openai/deployments/{quote(model, safe='')}", query or f"api-version={API_VERSION}"
    return urlunsplit((scheme, host, path, query, ""))
