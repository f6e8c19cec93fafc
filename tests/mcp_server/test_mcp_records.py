"""The record of a decision through a client of MCP: approved by the person there alone, computed again by anybody."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from mcp import Client
from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from decision_record.record_shops import from_rows
from decisor.errors import SetupError
from decisor.history.store import Approval, History
from decisor.mcp.server import ApprovalQuestion
from mcp_server.clients import Transport, client, text
from server.serving import sites

QUESTION = {"question": "Which site should we open?"}
WAYS = [("stdio", "auto"), ("stdio", "legacy"), ("http", "auto"), ("http", "legacy")]


def words(folder: Path, llm: str) -> tuple[str, ...]:
    return ("--db", f"sqlite:///{sites(folder)}", "--llm", llm, "-o", "calling=text")


def approvals(folder: Path) -> tuple[Approval, ...]:
    return History(folder / "xdg_data_home" / "decisor").read(1).approvals


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "mode"), WAYS)
async def test_the_person_at_the_client_approves_what_they_are_shown(
    tmp_path: Path, llm: str, transport: Transport, mode: str
) -> None:
    shown: list[str] = []
    answers = [
        ElicitResult(action="decline"),
        ElicitResult(action="accept", content={"approve": False, "name": "Bo"}),
        ElicitResult(action="accept", content={"approve": True, "name": ""}),
        ElicitResult(action="accept", content={"approve": True, "name": "Bo", "note": "in May"}),
    ]

    async def person(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        shown.append(params.message)
        return answers[len(shown) - 1]

    async with client(tmp_path, transport, *words(tmp_path, llm), mode=mode, elicitation_callback=person) as one:
        await one.call_tool("decide", QUESTION)
        for _ in range(2):
            assert text(await one.call_tool("approve_run")) == "The person did not approve run 1."
        nobody = await one.call_tool("approve_run", {"number": 1})
        assert nobody.is_error and "No approver given" in text(nobody) and not approvals(tmp_path)
        assert text(await one.call_tool("approve_run", {"number": 1})).endswith(" is approved by Bo.")
    assert shown[0].startswith(
        "Do you approve this decision of run 1?\nQuestion: Which site should we open?\nDecision: elm\nRecord: "
    )
    (approval,) = approvals(tmp_path)
    assert (approval.by, approval.note) == ("Bo", "in May") and approval.content[:12] in shown[0]


@pytest.mark.slow
async def test_no_client_without_a_person_approves_and_no_argument_does(tmp_path: Path, llm: str) -> None:
    async with client(tmp_path, "stdio", *words(tmp_path, llm)) as one:
        await one.call_tool("decide", QUESTION)
        for more in ({}, {"approve": True, "name": "Bo", "by": "Bo"}):
            reply = await one.call_tool("approve_run", {"number": 1, **more})
            assert reply.is_error and "decisor history approve 1 --by NAME" in text(reply)
    assert not approvals(tmp_path)


@pytest.mark.slow
async def test_a_decision_is_computed_again_through_a_client(tmp_path: Path, llm: str) -> None:
    async def again(one: Client) -> list[str]:
        return text(await one.call_tool("verify_run")).splitlines()

    async with client(tmp_path, "stdio", *words(tmp_path, llm)) as one:
        await one.call_tool("decide", QUESTION)
        assert (await again(one))[1] == "elm: holds. Every record that it cites is as it was."
        with closing(sqlite3.connect(tmp_path / "sites.db")) as database, database:
            database.execute("UPDATE site SET rent = 900 WHERE name = 'elm'")
        assert (await again(one))[-1] == "  [o1.r1] rent 400 -> rent 900"


SAYS_SO: dict[str, str | int | float | bool | list[str] | None] = {"approve": True, "name": "Bo"}


@pytest.mark.parametrize(
    "reply",
    [
        ElicitResult(action="decline", content=SAYS_SO),
        ElicitResult(action="cancel", content=SAYS_SO),
        ElicitResult(action="accept", content={**SAYS_SO, "approve": "false"}),
        ElicitResult(action="accept", content={**SAYS_SO, "approve": 1}),
        ElicitResult(action="accept"),
        SAYS_SO,
        None,
    ],
)
def test_nothing_but_a_persons_yes_approves(tmp_path: Path, reply: object) -> None:
    question = asked_of(tmp_path)
    assert question.settle(reply) == "The person did not approve run 1."
    assert not History().read(1).approvals


def test_a_user_of_the_server_approves_as_nobody_else_and_only_what_was_shown(tmp_path: Path) -> None:
    question = asked_of(tmp_path, name="ann")
    with pytest.raises(SetupError, match="read it again"):
        replace(question, digest="0" * 64).settle(ElicitResult(action="accept", content=SAYS_SO))
    assert question.settle(ElicitResult(action="accept", content=SAYS_SO)).endswith(" is approved by ann.")


def asked_of(folder: Path, name: str = "") -> ApprovalQuestion:
    """Of a decision in the history."""
    _, result = from_rows(folder, history=True)
    return ApprovalQuestion(History(), History().read(1), result.record().digest, name)
