"""Tools on the record of a decision: computed again by anybody, approved by a person alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from pydantic import Field

from decisor.decision_record.approving import change_of
from decisor.decision_record.of_run import change_approvals, record_of_run
from decisor.errors import SetupError
from decisor.history.past_run import PastRun
from decisor.history.store import History
from decisor.mcp.answering import Client, as_asked, has_person, reply_of, telling
from decisor.mcp.serving import Serving
from decisor.mcp.texts import short
from decisor.mcp.waiting import Waiting
from decisor.render.text import one_line
from decisor.session.verify import verify
from decisor.session.verify_words import verification_lines

KEY, LINE = "approval", 2_000
NOBODY = "A person approves a decision, and this client has no way to ask one. They can: decisor approve {} --by NAME"
Number = Annotated[int, Field(description="The number of the run; 0 for the last one.")]


@dataclass(frozen=True, eq=False)
class ApprovalQuestion:
    """Whether a person approves the record with this ``digest``. ``name``: who they are, '' where they say it."""

    history: History
    run: PastRun
    digest: str
    name: str

    def request(self) -> ElicitRequest:
        return ElicitRequest(params=ElicitRequestFormParams(message=self.message(), requested_schema=self.schema()))

    def message(self) -> str:
        question, answer = (one_line(text, LINE) for text in (self.run.question.text, self.run.answer))
        number = self.run.number
        record = f"Record: {self.digest[:12]}… (to read it: decisor show {number} --record decision.html)"
        return f"Do you approve this decision of run {number}?\nQuestion: {question}\nDecision: {answer}\n{record}"

    def schema(self) -> dict[str, object]:
        fields: dict[str, object] = {
            "approve": {"type": "boolean", "title": "I approve this decision", "default": False}
        }
        if not self.name:
            fields["name"] = {"type": "string", "title": "Your name"}
        fields["note"] = {"type": "string", "title": "Note, such as a condition"}
        return {"type": "object", "properties": fields, "required": ["approve", *([] if self.name else ["name"])]}

    def settle(self, reply: object) -> str:
        """What came of it. Raises SetupError where who approves is not said, or they did already."""
        content: Mapping[str, object] = (reply.content or {}) if isinstance(reply, ElicitResult) else {}
        if not isinstance(reply, ElicitResult) or reply.action != "accept" or content.get("approve") is not True:
            return f"The person did not approve run {self.run.number}."
        name = self.name or str(content.get("name") or "")
        change = change_of(name, str(content.get("note") or ""), read=self.digest)
        record = change_approvals(self.history, self.run.number, self.run.owner, change)
        return f"Run {self.run.number} (record {record.digest[:12]}…) is approved by {record.approvals[-1].by}."

    async def stop(self) -> None:
        """Nothing runs while it waits."""


@dataclass(eq=False)
class Records:
    """Its methods are tools."""

    serving: Serving
    waiting: Waiting[ApprovalQuestion] = field(default_factory=Waiting)

    async def verify_run(self, context: Client, number: Number = 0) -> CallToolResult:
        """Compute a decision again on the data of today, without an LM: whether it still holds, which cited records
        changed, what wins now."""
        with telling():
            serving = as_asked(self.serving, context)
            run = await self.run_of(serving, number)
            names = [name for name in serving.members if name in run.tools]
            serving.places.check()
            async with serving.places:
                entries = await asyncio.to_thread(serving.history.entries, run.number, run.owner)
                verdict = await verify(entries, await serving.data(names))
            return reply_of(short("\n".join([f"Run {run.number}", *verification_lines(verdict)])))

    async def approve_run(self, context: Client, number: Number = 0) -> CallToolResult | InputRequiredResult:
        """Ask the person at the client whether they approve a decision; nobody else can. Call it only at their wish."""
        with telling():
            serving = as_asked(self.serving, context)
            if context.request_state:
                question = self.waiting.take(context.request_state, serving.user.name)
                reply: object = (context.input_responses or {}).get(KEY)
            else:
                question = await self.question_of(serving, number)
                if not has_person(context):
                    raise SetupError(NOBODY.format(question.run.number))
                request = question.request()
                if not context.session.can_send_request:
                    key = self.waiting.put(question, serving.user.name)
                    return InputRequiredResult(input_requests={KEY: request}, request_state=key)
                params: Any = request.params
                reply = await context.session.elicit_form(params.message, params.requested_schema, context.request_id)
            return reply_of(await asyncio.to_thread(question.settle, reply))

    async def question_of(self, serving: Serving, number: int) -> ApprovalQuestion:
        run = await self.run_of(serving, number)
        entries = await asyncio.to_thread(serving.history.entries, run.number, run.owner)
        record = await asyncio.to_thread(record_of_run, run, entries)
        return ApprovalQuestion(serving.history, run, record.digest, serving.user.name)

    async def run_of(self, serving: Serving, number: int) -> PastRun:
        """Raises SetupError where there is none that may be read here."""
        result = await serving.past(number)
        return await asyncio.to_thread(serving.history.read, result.number, serving.user.name)
