"""``/docs``: the routes and their shapes as one page without scripts, as ``/openapi.json`` describes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from decisor.render.markup import Html, colours, hashed, join, tag

router = APIRouter(include_in_schema=False)
STYLE = """
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
code, dt { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
section { border-top: 1px solid var(--line); padding: .5rem 0; }
dl { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .1rem 1rem; margin: .3rem 0; }
dd { margin: 0; } h2 { margin-top: 2.5rem; } h3 { font-size: 1rem; margin: .5rem 0; }
"""
Json = Mapping[str, Any]


@router.get("/docs", response_class=HTMLResponse)
async def docs(request: Request) -> HTMLResponse:
    """The description of every route."""
    description: Json = request.app.openapi()
    style = colours() + STYLE
    head = join(
        tag("meta", charset="utf-8"), tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", "The API of Decisor"), tag("style", Html(style)),
    )  # fmt: skip
    body = join(
        tag("h1", f"{description['info']['title']} {description['info']['version']}"),
        tag("p", description["info"]["description"]),
        tag("p", "For programs: ", tag("a", "openapi.json", href="/openapi.json"), ". Bodies are JSON; an error is ",
            tag("code", '{"error": "..."}'), "."),
        tag("h2", "Routes"), *routes_html(description), tag("h2", "Shapes"), *shapes_html(description),
    )  # fmt: skip
    page = f"<!doctype html>\n{tag('html', tag('head', head), tag('body', tag('main', body)), lang='en')}\n"
    policy = (
        f"default-src 'none'; style-src '{hashed(style)}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return HTMLResponse(page, headers={"content-security-policy": policy})


def routes_html(description: Json) -> Iterator[Html]:
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            fields = [field(one["name"], one["schema"], one["in"]) for one in route.get("parameters", ())]
            body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            replies = [one for status, one in route["responses"].items() if status.startswith("2")]
            kinds: list[Json] = [kind for one in replies for kind in one.get("content", {}).values()]
            shape: Json = kinds[0].get("schema", {}) if kinds else {}
            yield tag(
                "section",
                tag("h3", tag("code", f"{method.upper()} {path}")),
                tag("p", route.get("description", "")),
                tag("dl", *fields) if fields else None,
                tag("p", "Takes ", type_html(body)) if body else None,
                tag("p", "Gives ", type_html(shape)) if shape else None,
            )


def shapes_html(description: Json) -> Iterator[Html]:
    for name, shape in description["components"]["schemas"].items():
        needed = shape.get("required", ())
        fields = [
            field(key, one, "needed" if key in needed else "") for key, one in shape.get("properties", {}).items()
        ]
        words = tag("p", shape["description"]) if "description" in shape else None
        yield tag("section", tag("h3", tag("code", name)), words, tag("dl", *fields), id=name)


def field(name: str, shape: Json, note: str) -> Html:
    return join(tag("dt", name), tag("dd", type_html(shape), f" ({note})" if note else ""))


def type_html(shape: Json) -> Html:
    """A type in words, with a link where it is one of the shapes."""
    if "$ref" in shape:
        name = shape["$ref"].rpartition("/")[2]
        return tag("a", name, href=f"#{name}")
    if "anyOf" in shape:
        first, *rest = (type_html(one) for one in shape["anyOf"])
        return join(first, *(join(" or ", one) for one in rest))
    if "enum" in shape:
        return join(" or ".join(f'"{one}"' for one in shape["enum"]))
    if shape.get("type") == "array":
        return join("list of ", type_html(shape.get("items", {})))
    return join(str(shape.get("type", "anything")))
