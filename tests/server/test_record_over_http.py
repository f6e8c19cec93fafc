"""The record of a decision over HTTP: approved by whoever asks as themselves, withdrawn, computed again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from decisor.server.serving import Serving
from decisor.server.users import Users, digest_of, read_users
from server.serving import Served, served, sources


def decided(site: Served) -> str:
    id = site.ask()["id"]
    assert site.ended(id)["answer"] == "elm"
    return f"/api/runs/{id}/record"


def test_an_approval_is_of_the_record_stands_in_it_and_may_be_withdrawn(site: Served) -> None:
    record = decided(site)
    unnamed = site.until(lambda: site.client.post(f"{record}/approvals", json={}).json()["error"],
                         lambda error: "when it is over" not in error)  # fmt: skip
    assert unnamed == "Who approves? Name a person."
    unread = site.client.post(f"{record}/approvals", json={"by": "Bo", "digest": "0" * 64})
    assert unread.status_code == 400 and "not the one that was read" in unread.json()["error"]
    whole = site.client.get(record).json()
    body = {"by": "Bo", "note": "in May", "digest": whole["digest"]}
    reply = site.client.post(f"{record}/approvals", json=body).json()
    whole = site.client.get(record).json()
    (one,) = reply["approvals"]
    assert reply["digest"] == whole["digest"] == whole["approvals"][0]["content"]
    assert (one["by"], one["note"], one["standing"]) == ("Bo", "in May", "holds")
    assert site.client.get(f"{record}/approvals").json() == reply
    again = site.client.post(f"{record}/approvals", json={"by": "Bo"})
    assert again.status_code == 400 and again.json()["error"] == "Bo has approved this already, and may withdraw that."
    reply = site.client.post(f"{record}/approvals", json={"by": "Bo", "note": "too old", "withdraw": True}).json()
    assert [(one["standing"], one["why"]) for one in reply["approvals"]] == [("withdrawn", "too old")]
    assert "<b>Bo</b>" in site.client.get(f"{record}-page").text


def test_a_run_that_is_not_there_or_came_to_nothing_is_not_approved(site: Served) -> None:
    assert site.client.post("/api/runs/77/record/approvals", json={"by": "Bo"}).status_code == 404
    id = site.ask(limits={"calls": 1})["id"]
    site.ended(id)
    reply = site.until(
        lambda: site.client.post(f"/api/runs/{id}/record/approvals", json={"by": "Bo"}).json(),
        lambda reply: "when it is over" not in reply["error"],
    )
    assert reply["error"] == f"Run {id} has no answer that could be approved."
    assert "nothing to verify" in site.client.post(f"/api/runs/{id}/record/verification", json={}).json()["error"]


def test_a_decision_is_computed_again_on_the_data_of_today(site: Served, tmp_path: Path) -> None:
    record = decided(site)
    assert site.client.post(f"{record}/verification", json={}).json()["state"] == "holds"
    with closing(sqlite3.connect(tmp_path / "sites.db")) as database, database:
        database.execute("UPDATE site SET rent = 900 WHERE name = 'elm'")
    verdict = site.client.post(f"{record}/verification", json={}).json()
    assert verdict["state"] == "cannot be said" and verdict["records"] == 2
    assert verdict["changes"] == [{"id": "o1.r1", "before": "rent 400.0", "after": "rent 900.0"}]


def test_a_user_approves_as_themselves_and_reaches_no_record_of_another(tmp_path: Path, url: str) -> None:
    file = tmp_path / "users.toml"
    file.write_text("\n".join(f'[{name}]\ntoken = "{digest_of(f"token of {name}")}"' for name in ("ann", "bob")))
    users: Users = read_users(file, ["sql"])
    with served(Serving(sources(tmp_path), {"m": f"m@{url}"}, users=users)) as site:
        site.client.headers["authorization"] = "Bearer token of ann"
        record = decided(site)
        other = site.client.post(f"{record}/approvals", json={"by": "bob"}).json()
        assert other["error"] == "You approve as ann, and for nobody else."
        reply = site.until(lambda: site.client.post(f"{record}/approvals", json={"note": "mine"}).json(),
                           lambda reply: "when it is over" not in reply.get("error", ""))  # fmt: skip
        (one,) = reply["approvals"]
        assert one["by"] == "ann"
        site.client.headers["authorization"] = "Bearer token of bob"
        for way in ("approvals", "verification"):
            assert site.client.post(f"{record}/{way}", json={}).status_code == 404
        assert site.client.get(f"{record}/approvals").status_code == 404
