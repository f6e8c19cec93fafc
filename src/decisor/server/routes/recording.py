"""The record of a decision: read, approved, computed again."""

from __future__ import annotations

from fastapi import APIRouter, Response

from decisor.decision_record.approving import standing
from decisor.decision_record.format import DecisionRecord
from decisor.decision_record.of_run import record_of_run
from decisor.decision_record.page import page_of
from decisor.decision_record.read import text_of
from decisor.encoding import finite, json_value
from decisor.server import showing
from decisor.server.here import Here, HereNow, Who
from decisor.server.requests import ReaderBody, RecordApprovalBody
from decisor.server.responses import ApprovalList, ReaderList, VerifyReply
from decisor.server.routes.reading import PAGE_POLICY, named
from decisor.server.showing import read
from decisor.server.users import User

router = APIRouter(prefix="/api/runs", tags=["record"])


@router.get("/{id}/record")
async def record(id: str, here: HereNow, who: Who, download: bool = False) -> Response:
    """The record of the decision, as ``decisor show --record`` writes it."""
    text = text_of(await recorded(here, who, id))
    return Response(text, media_type="application/json", headers=named(id, "record.json", download))


@router.get("/{id}/record-page")
async def record_page(id: str, here: HereNow, who: Who, download: bool = False) -> Response:
    """The record of the decision as one page."""
    headers = {"content-security-policy": PAGE_POLICY, **named(id, "record.html", download)}
    text = page_of(await recorded(here, who, id))
    return Response(text, media_type="text/html; charset=utf-8", headers=headers)


async def recorded(here: Here, who: User, id: str) -> DecisionRecord:
    live = await read(here.runs, who, id)
    return record_of_run(live.past, live.entries)


@router.get("/{id}/record/approvals")
async def approvals(id: str, here: HereNow, who: Who) -> ApprovalList:
    """Who stands behind the decision, and whether each approval is of the record as it is."""
    return approvals_of(await recorded(here, who, id))


@router.post("/{id}/record/approvals")
async def approve(id: str, body: RecordApprovalBody, here: HereNow, who: Who) -> ApprovalList:
    """Approve the record of the decision, refuse it, or take that back."""
    return approvals_of(await showing.approve(here.runs, who, id, body))


def approvals_of(record: DecisionRecord) -> ApprovalList:
    lines = [json_value(one) | {"standing": standing(one, record.digest)} for one in record.approvals]
    return ApprovalList.model_validate({"digest": record.digest, "approvals": lines})


@router.post("/{id}/record/verification")
async def verify(id: str, here: HereNow, who: Who) -> VerifyReply:
    """Compute the decision again, without an LM: which cited rows changed, whether it holds, what wins now."""
    return VerifyReply.model_validate(finite(await showing.verified(here.runs, who, id)))


@router.get("/{id}/readers")
async def readers(id: str, here: HereNow, who: Who) -> ReaderList:
    """Which users of the server a run of yours is shown to, and which it could be shown to."""
    return await showing.readers(here.runs, who, id)


@router.post("/{id}/readers")
async def show(id: str, body: ReaderBody, here: HereNow, who: Who) -> ReaderList:
    """Show a run of yours to another user, who may see all that it saw: they read it, and approve or refuse it."""
    return await showing.show(here.runs, who, id, body)
