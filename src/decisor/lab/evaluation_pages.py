"""Evaluations on a server: the report of each as a page, of all cases that are finished when it is asked for.

Run stores are read, never written, also while an evaluation fills them. A user from whom any row, column or connection
is kept sees none, as an evaluation holds rows of all its data.
"""

from __future__ import annotations

import asyncio
import io
from contextlib import closing

from fastapi import APIRouter, Response

from decisor.lab.evaluation.store import open_store
from decisor.lab.report.document import make_report
from decisor.lab.report.page import write_page
from decisor.server.routes import AppState, CurrentState, CurrentUser, describe_answer
from decisor.server.runs import NotThere
from decisor.server.users import User

router = APIRouter(prefix="/api/evaluations", tags=["evaluations"])
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; sandbox allow-scripts"
)


def find_evaluation(name: str, state: AppState, user: User) -> str:
    """Return the place of an evaluation; raise NotThere if the server shows this user none."""
    if not user.sees_all or name not in state.serving.evaluations:
        raise NotThere(f"There is no evaluation {name[:80]!r}: start the server with --evaluation RUN.")
    return state.serving.evaluations[name]


@router.get("/{name}/page", **describe_answer("html"))
async def show_evaluation_page(name: str, state: CurrentState, user: CurrentUser) -> Response:
    """Show the report of all finished cases as one page.

    Its own policy lets only the script run that it names; the sandbox keeps it apart.
    """
    place, out = find_evaluation(name, state, user), io.StringIO()

    def write() -> None:
        # A store belongs to one thread.
        with closing(open_store(place, create=False)) as store:
            write_page(make_report(store.outcomes(), store.about()), lambda one: store.trace(one.key), out)

    await asyncio.to_thread(write)
    return Response(out.getvalue(), media_type="text/html; charset=utf-8", headers={"content-security-policy": POLICY})
