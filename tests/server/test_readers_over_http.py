"""Two users of one connection: what is not for one of them reaches no LLM, page or trace of theirs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decisor.errors import SetupError
from decisor.server.settings import ServerSettings
from decisor.server.users import digest_of_token, read_users
from decisor.session.access import restrict_sources
from decisor.session.sources import build_sources
from server.serving import QUERY, Served, served, sites
from servers.openai_server import serve_threaded

ANN, BOB = "token-of-ann", "token-of-bob"


@pytest.fixture
def bodies() -> list[str]:
    return []


@pytest.fixture
def shared(tmp_path: Path, bodies: list[str]) -> Iterator[Served]:
    """Ann sees everything; Bob sees elm alone, and tokens of names."""
    path = tmp_path / "users.toml"
    path.write_text(
        f'[ann]\ntoken = "{digest_of_token(ANN)}"\n[bob]\ntoken = "{digest_of_token(BOB)}"\nmask = ["site.name"]\n'
        'rows = { site = "rent < 500" }\n',
        "utf-8",
    )

    def reply(body: dict[str, Any]) -> str:
        bodies.append(json.dumps(body))
        text = str(body["messages"])
        if "o1.r1" in text:
            return "Final answer: the cheapest\nBecause: it costs 400 [o1.r1]"
        return f"Plan: [Step 1: look]\nThought: look\nAction: sql\nAction input: {QUERY}"

    with serve_threaded(reply) as url:
        data = restrict_sources(build_sources(db=f"sqlite:///{sites(tmp_path)}"), audit=tmp_path / "audit.jsonl")
        serving = ServerSettings(data, {"m": f"m@{url}"}, users=read_users(path, ["sql"]))
        with served(serving) as place:
            yield place


def as_user(place: Served, token: str) -> Served:
    place.client.headers["authorization"] = f"Bearer {token}"
    return place


def test_of_what_is_not_for_a_user_nothing_reaches_the_llm_or_the_page(
    shared: Served, bodies: list[str], tmp_path: Path
) -> None:
    bob = as_user(shared, BOB)
    run = bob.ended(bob.ask()["id"])
    texts = [*bodies, json.dumps(run), bob.client.get("/api/connections/sql").text]
    texts += [bob.client.get(f"/api/runs/{run['id']}{part}").text for part in ("/trace", "/json", "/story", "/page")]
    texts.append(bob.client.post(f"/api/runs/{run['id']}/record/verification", json={}).text)
    assert bodies and "masked_" in bodies[-1] and run["state"] == "finished", run
    assert not [text for text in texts if re.search(r"\b(oak|elm|700\.0)\b", text)]
    bodies.clear()
    ann = as_user(shared, ANN)
    ann.ended(ann.ask()["id"])
    assert "oak" in bodies[-1] and "700" in bodies[-1]
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text("utf-8").splitlines()]
    rows = {line["reader"]: line["rows"] for line in lines if line["statement"] == QUERY}
    assert rows == {"bob": 1, "ann": 2}


@pytest.mark.parametrize("line", ['rows = "all"', 'mask = "site.name"', 'reveal = "yes"', "sees = 1"])
def test_a_user_whose_rows_and_masks_cannot_be_read_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "users.toml"
    path.write_text(f'[bob]\ntoken = "{digest_of_token(BOB)}"\n{line}\n', "utf-8")
    with pytest.raises(SetupError, match="bob"):
        read_users(path, ["sql"])
