"""An OpenAPI document by its address, as a person named it: one GET without keys, within caps, that no redirect leads
to another host."""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from decisor.errors import SetupError
from decisor.secrets import without_password
from decisor.tools.functions.openapi_file import MAX_BYTES, read_text
from decisor.types import Value

SECONDS = 15.0
INSTEAD = "Download it, and give the file"


class SameHost(HTTPRedirectHandler):
    """Follows a redirect on the same host only."""

    def redirect_request(self, req: Request, fp: object, code: int, msg: str, headers: object, newurl: str) -> Request:
        if urlsplit(newurl).netloc != urlsplit(req.full_url).netloc or urlsplit(newurl).scheme != req.type:
            raise URLError(f"it redirects to {without_password(newurl)[:100]}")
        return Request(newurl, headers=dict(req.header_items()))


def fetch(url: str) -> Mapping[str, Value]:
    """JSON or YAML, at most 20 MB, in UTF-8.

    Raises:
        SetupError: it cannot be fetched, is too large, or is no document.
    """
    place = without_password(url)
    request = Request(url, headers={"User-Agent": "decisor", "Accept": "application/json, application/yaml, */*;q=0.5"})
    try:
        with build_opener(SameHost).open(request, timeout=SECONDS) as reply:
            data = reply.read(MAX_BYTES + 1)
    except HTTPError as error:
        raise SetupError(f"{place} answered with status {error.code}. {INSTEAD}.") from error
    except (OSError, HTTPException, ValueError) as error:
        why = getattr(error, "reason", "") or error
        raise SetupError(f"{place} cannot be fetched: {getattr(why, 'strerror', '') or why}. {INSTEAD}.") from error
    if len(data) > MAX_BYTES:
        raise SetupError(f"{place} is over {MAX_BYTES >> 20} MB: name a smaller part of the API.")
    try:
        return read_text(data.decode("utf-8"), Path(urlsplit(place).path or "document"))
    except UnicodeDecodeError as error:
        raise SetupError(f"{place} is no text. {INSTEAD}.") from error
