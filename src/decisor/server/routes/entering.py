"""A token for a cookie."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from decisor.server.guard import Refusal, cookie_of
from decisor.server.here import HereNow
from decisor.server.requests import TokenBody
from decisor.server.responses import SessionReply
from decisor.server.users import ANYBODY

router = APIRouter(prefix="/api", tags=["session"])
SECONDS = 30 * 24 * 3600


@router.post("/session")
async def begin(body: TokenBody, here: HereNow, response: Response) -> SessionReply:
    """A cookie that stands for the token, for a page; it is not readable by scripts."""
    users = here.serving.users
    user = ANYBODY if users.is_open else users.of_token(body.token)
    if user is None:
        raise Refusal(401, "There is no such token.")
    if not users.is_open:
        response.set_cookie(here.cookie, users.begin(user), max_age=SECONDS, httponly=True, samesite="strict", path="/")
    return SessionReply(user=user.name)


@router.delete("/session", status_code=204)
async def end(request: Request, here: HereNow, response: Response) -> None:
    """The cookie is worth nothing after it."""
    here.serving.users.end(cookie_of(request.headers.get("cookie", ""), here.cookie))
    response.delete_cookie(here.cookie, path="/")
