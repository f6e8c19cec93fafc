"""Models on Google's Vertex AI, by its OpenAI-compatible endpoint, with an access token or a service account."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from decisor.lms.google_token import service_account
from decisor.lms.openai_compatible import OpenAICompatible
from decisor.lms.prices import Price


def access(environ: Mapping[str, str]) -> tuple[str, str]:
    """Address and key: GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, or VERTEX_BASE_URL; VERTEX_API_KEY, an access
    token, or GOOGLE_APPLICATION_CREDENTIALS, the JSON file of a service account."""
    project = environ.get("GOOGLE_CLOUD_PROJECT", "")
    place = environ.get("GOOGLE_CLOUD_LOCATION") or "global"
    host = "aiplatform.googleapis.com" if place == "global" else f"{place}-aiplatform.googleapis.com"
    there = f"https://{host}/v1/projects/{project}/locations/{place}/endpoints/openapi" if project else ""
    url = environ.get("VERTEX_BASE_URL") or there
    key = environ.get("VERTEX_API_KEY") or environ.get("GOOGLE_APPLICATION_CREDENTIALS") or ""
    return url, key if url else ""


def vertex(model: str, *, base_url: str, key: str | None, price: Price | None) -> OpenAICompatible:
    """``model``: PUBLISHER/NAME, of Google where no publisher is named. Raises SetupError where the file is none."""
    name = model if "/" in model else f"google/{model}"
    if not (key or "").endswith(".json"):
        return OpenAICompatible(name, base_url, key, price=price)
    account = service_account(Path(key or ""))
    lm = OpenAICompatible(name, base_url, price=price)

    async def authorize(url: str, payload: bytes) -> Mapping[str, str]:
        token = await account.token()
        if all(token.reveal() != secret.reveal() for secret in lm.endpoint.secrets):
            lm.endpoint.secrets.append(token)
        return {"Authorization": f"Bearer {token.reveal()}"}

    lm.endpoint.authorize = authorize
    return lm
