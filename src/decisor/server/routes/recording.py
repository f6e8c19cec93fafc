"""The record of a decision: read, approved, computed again."""

from __future__ import annotations

from fastapi import APIRouter, Response

from decisor.decision_record.approving import standing
from decisor.decision_record.build import record_of
from decisor.decision_record.format import DecisionRecord
from decisor.decision_record.page import page_of
from decisor.decision_record.read import text_of
from decisor.encoding import finite, json_value
from decisor.server.here import HereNow, Who
from decisor.server.live import LiveRun
from decisor.server.requests import RecordApprovalBody
from decisor.server.responses import ApprovalList, VerifyReply
from decisor.server.routes.reading import PAGE_POLICY, named

router = APIRouter(prefix="/api/runs", tags=["record"])


@router.get("/{id}/record")
async def record(id: str, here: HereNow, who: Who, download: bool = False) -> Response:
    """The record of the decision, as ``decisor show --record`` writes it."""
    text = text_of(recorded(await here.runs.find(who, id)))
    return Response(text, media_type="application/json", headers=named(id, "record.json", download))


@router.get("/{id}/record-page")
async def record_page(id: str, here: HereNow, who: Who, download: bool = False) -> Response:
    """The record of the decision as one page."""
    headers = {"content-security-policy": PAGE_POLICY, **named(id, "record.html", download)}
    text = page_of(recorded(await here.runs.find(who, id)))
    return Response(text, media_type="text/html; charset=utf-8", headers=headers)


def recorded(live: LiveRun) -> DecisionRecord:
    past = live.past
    return record_of(live.entries, past.number, past.approvals, past.owner)


@router.get("/{id}/record/approvals")
async def approvals(id: str, here: HereNow, who: Who) -> ApprovalList:
    """Who stands behind the decision, and whether each approval is of the record as it is."""
    return approvals_of(recorded(await here.runs.find(who, id)))


@router.post("/{id}/record/approvals")
async def approve(id: str, body: RecordApprovalBody, here: HereNow, who: Who) -> ApprovalList:
    """Approve the record of the decision, or take that back."""
    return approvals_of(await here.runs.approve(who, id, body))


def approvals_of(record: DecisionRecord) -> ApprovalList:
    lines = [json_value(one) | {"standing": standing(one, record.digest)} for one in record.approvals]
    return ApprovalList.model_validate({"digest": record.digest, "approvals": lines})


@router.post("/{id}/record/verification")
async def verify(id: str, here: HereNow, who: Who) -> VerifyReply:
    """Compute the decision again, without an LM: which cited rows changed, whether it holds, what wins now."""
    return VerifyReply.model_validate(finite(await here.runs.verify(who, id)))
