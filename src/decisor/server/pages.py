"""The files of the page: read once when the server starts; a client names none of them by a path."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from decisor.render.markup import chart_style, colours
from decisor.server.runs import NotThere

FOREVER = "public, max-age=31536000, immutable"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html",
         ".json": "application/json", ".woff2": "font/woff2", ".webmanifest": "application/manifest+json"}  # fmt: skip
NO_PAGE = "<!doctype html><html lang=en><title>Decisor</title><p>The API is described at <a href=/docs>/docs</a>.</p>"


@dataclass(frozen=True)
class Page:
    """``contents``: name -> bytes. ``version``: a hash of all of them, which stands in their addresses, so that a
    browser may keep them for ever."""

    contents: Mapping[str, bytes]
    version: str

    @property
    def html(self) -> str:
        """With the addresses of this version."""
        text = self.contents.get("index.html", NO_PAGE.encode()).decode()
        return text.replace("/static/", f"/static/{self.version}/")


def read_page() -> Page:
    contents = {"colours.css": colours().encode(), "chart.css": chart_style().encode()}
    contents |= sorted(files_in(files("decisor.server").joinpath("static")))
    digest = hashlib.sha256(b"".join(name.encode() + content for name, content in contents.items()))
    return Page(contents, digest.hexdigest()[:16])


def files_in(folder: Traversable, before: str = "") -> list[tuple[str, bytes]]:
    if not folder.is_dir():
        return []
    contents: list[tuple[str, bytes]] = []
    for one in folder.iterdir():
        name = f"{before}{one.name}"
        contents += files_in(one, f"{name}/") if one.is_dir() else [(name, one.read_bytes())]
    return contents


def type_of(name: str) -> str:
    suffix = name[name.rfind(".") :]
    kind = TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith(("text/", "application/json")) else kind


router = APIRouter(include_in_schema=False)


@router.get("/", response_class=HTMLResponse)
@router.get("/runs/{id}", response_class=HTMLResponse)
@router.get("/runs/{id}/record", response_class=HTMLResponse)
@router.get("/history", response_class=HTMLResponse)
@router.get("/compare", response_class=HTMLResponse)
@router.get("/models/{name}", response_class=HTMLResponse)
@router.get("/evaluations/{name}", response_class=HTMLResponse)
async def page(request: Request) -> HTMLResponse:
    """The one page; its script reads the address."""
    return HTMLResponse(request.app.state.page.html, headers={"cache-control": "no-cache"})


@router.get("/static/{version}/{name:path}")
async def file(version: str, name: str, request: Request) -> Response:
    own: Page = request.app.state.page
    if name not in own.contents:
        raise NotThere(f"There is no file {name[:80]!r}.")
    keeping = FOREVER if version == own.version else "no-cache"
    return Response(own.contents[name], headers={"content-type": type_of(name), "cache-control": keeping})


@router.get("/favicon.ico")
async def icon(request: Request) -> Response:
    own: Page = request.app.state.page
    icon = own.contents.get("favicon.svg")
    return Response(icon, media_type="image/svg+xml") if icon else Response(status_code=204)
