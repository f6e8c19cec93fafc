"""The record of a decision over HTTP: approved by whoever asks as themselves, withdrawn, computed again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from decisor.history.store import History, Sight
from decisor.server.live import join_sights
from decisor.server.settings import ServerSettings
from decisor.server.users import Users, digest_of_token, read_users
from decisor.session.sources import build_sources
from server.serving import Served, served, sources


def decided(site: Served) -> str:
    id = site.ask()["id"]
    assert site.ended(id)["answer"] == "elm"
    return f"/api/runs/{id}/record"


def test_an_approval_is_of_the_record_stands_in_it_and_may_be_withdrawn(site: Served) -> None:
    record = decided(site)
    unnamed = site.until(
        lambda: site.client.post(f"{record}/approvals", json={}).json()["error"],
        lambda error: "when it is over" not in error,
    )
    assert unnamed == "No approver given. Name a person."
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
    assert verdict["changes"] == [{"id": "o1.r1", "before": "rent 400", "after": "rent 900"}]


def users_of(folder: Path, **more: str) -> Users:
    """By name, with what is not for them."""
    file = folder / "users.toml"
    file.write_text(
        "\n".join(f'[{name}]\ntoken = "{digest_of_token(f"token of {name}")}"\n{line}' for name, line in more.items())
    )
    return read_users(file, ["sql"])


def test_a_user_approves_as_themselves_and_reaches_no_record_of_another(tmp_path: Path, url: str) -> None:
    users = users_of(tmp_path, ann="", bob="")
    with served(ServerSettings(sources(tmp_path), {"m": f"m@{url}"}, users=users)) as site:
        site.client.headers["authorization"] = "Bearer token of ann"
        record = decided(site)
        other = site.client.post(f"{record}/approvals", json={"by": "bob"}).json()
        assert other["error"] == "You approve as ann, and for nobody else."
        reply = site.until(
            lambda: site.client.post(f"{record}/approvals", json={"note": "mine"}).json(),
            lambda reply: "when it is over" not in reply.get("error", ""),
        )
        (one,) = reply["approvals"]
        assert one["by"] == "ann"
        site.client.headers["authorization"] = "Bearer token of bob"
        for way in ("approvals", "verification"):
            assert site.client.post(f"{record}/{way}", json={}).status_code == 404
        assert site.client.get(f"{record}/approvals").status_code == 404


def sign_in(site: Served, name: str) -> None:
    site.client.headers["authorization"] = f"Bearer token of {name}"


def shown(site: Served, run: str, name: str) -> dict[str, Any]:
    """What comes of showing it, when the run is in the history."""
    reply: dict[str, Any] = site.until(
        lambda: site.client.post(f"{run}/readers", json={"name": name}).json(),
        lambda reply: "when it is over" not in reply.get("error", ""),
    )
    return reply


def test_another_user_is_shown_a_run_reads_all_of_it_and_refuses_it_with_a_reason(tmp_path: Path, url: str) -> None:
    with served(
        ServerSettings(sources(tmp_path), {"m": f"m@{url}"}, users=users_of(tmp_path, ann="", bob="", cy=""))
    ) as site:
        sign_in(site, "ann")
        record = decided(site)
        run = record.removesuffix("/record")
        assert shown(site, run, "bob") == {"readers": ["bob"], "others": ["cy"]}
        sign_in(site, "bob")
        (line,) = site.client.get("/api/runs").json()["runs"]
        assert (line["owner"], line["answer"]) == ("ann", "elm")
        for way in (
            "",
            "/page",
            "/markdown",
            "/json",
            "/trace",
            "/story",
            "/picture",
            "/entries/1",
            "/events",
            "/record",
        ):
            assert site.client.get(run + way).status_code == 200, way
        for way, body in {
            "mark": {"mark": "right"},
            "changes": {"at": "1"},
            "resume": {},
            "stop": {},
            "readers": {"name": "cy"},
        }.items():
            assert site.client.post(f"{run}/{way}", json=body).status_code == 404, way
        assert site.client.delete(run).status_code == site.client.get(f"{run}/readers").status_code == 404
        unsaid = site.client.post(f"{record}/approvals", json={"refuse": True})
        assert unsaid.json()["error"] == "Why do you refuse it? Say it in the note."
        refusal = {"refuse": True, "note": "the lease ends in May"}
        (one,) = site.client.post(f"{record}/approvals", json=refusal).json()["approvals"]
        assert (one["by"], one["standing"], one["note"]) == ("bob", "refused", "the lease ends in May")
        again = site.client.post(f"{record}/approvals", json={})
        assert again.json()["error"] == "bob has refused this already, and may withdraw that."
        sign_in(site, "ann")
        whole = site.client.get(record).json()
        assert [(one["by"], one["refuses"]) for one in whole["approvals"]] == [("bob", True)]
        assert whole["content"]["request"]["by"] == "ann"
        assert site.client.post(f"{run}/readers", json={"name": "bob", "end": True}).json()["readers"] == []
        for name in ("bob", "cy"):
            sign_in(site, name)
            assert site.client.get(run).status_code == site.client.get(record).status_code == 404
            assert site.client.get("/api/runs").json()["runs"] == []


def test_a_run_is_shown_to_nobody_who_may_see_less_than_it_saw(tmp_path: Path, url: str) -> None:
    folder, sights = (
        tmp_path,
        {
            "ann": "",
            "few": "connections = []",
            "rows": 'rows = {site = "rent < 500"}',
            "mask": 'mask = ["site.name"]',
            "same": "",
        },
    )
    with served(ServerSettings(sources(folder), {"m": f"m@{url}"}, users=users_of(folder, **sights))) as site:
        sign_in(site, "ann")
        run = decided(site).removesuffix("/record")
        assert shown(site, run, "few")["error"] == "few may not see all that this run rests on."
        assert shown(site, run, "nobody")["error"] == "There is no other user 'nobody'."
        for name in ("rows", "mask"):
            assert shown(site, run, name)["error"] == f"{name} may not see all that this run rests on."
        assert site.client.get(f"{run}/readers").json() == {"readers": [], "others": ["same"]}
        further = site.ask("And without oak?", follows=run.rpartition("/")[2])["id"]
        site.ended(further)
        assert shown(site, f"/api/runs/{further}", "same")["readers"] == ["same"]


def test_a_run_that_was_shown_is_hidden_from_a_user_who_may_see_less_since(tmp_path: Path, url: str) -> None:
    history = History(tmp_path / "history")
    with served(
        ServerSettings(sources(tmp_path), {"m": f"m@{url}"}, users=users_of(tmp_path, ann="", bob="")), history
    ) as site:
        sign_in(site, "ann")
        run = decided(site).removesuffix("/record")
        assert shown(site, run, "bob")["readers"] == ["bob"]
    data = build_sources(db=f"sqlite:///{tmp_path / 'sites.db'}")
    users = users_of(tmp_path, ann="", bob='mask = ["site.name"]')
    with served(ServerSettings(data, {"m": f"m@{url}"}, users=users), history) as site:
        sign_in(site, "bob")
        assert site.client.get("/api/runs").json()["runs"] == []
        reply = site.client.get(f"{run}/record")
        assert reply.status_code == 404 and "you may not see all that it rests on" in reply.json()["error"]


def test_a_run_that_goes_on_from_another_one_is_shown_to_nobody_who_may_not_see_that_one(
    tmp_path: Path, url: str
) -> None:
    history, mask = History(tmp_path / "history"), 'mask = ["site.name"]'
    with served(
        ServerSettings(sources(tmp_path), {"m": f"m@{url}"}, users=users_of(tmp_path, ann="")), history
    ) as site:
        sign_in(site, "ann")
        before = decided(site).removesuffix("/record").rpartition("/")[2]
        site.until(lambda: history.read(int(before), "ann"), lambda run: run.state != "running")
    data = build_sources(db=f"sqlite:///{tmp_path / 'sites.db'}")
    users = users_of(tmp_path, ann=mask, bob=mask)
    with served(ServerSettings(data, {"m": f"m@{url}"}, users=users), history) as site:
        sign_in(site, "ann")
        for follows, comes in (("", ["bob"]), (before, None)):
            run = site.ask("Which one?", follows=follows)["id"]
            site.ended(run)
            assert shown(site, f"/api/runs/{run}", "bob").get("readers") == comes


def test_what_goes_on_from_a_run_saw_what_that_one_saw() -> None:
    one, before = Sight(("a",), ("a.t masked", "without u")), Sight(("b",), ("without u",))
    assert join_sights(one, before) == Sight(("a", "b"), ("without u",))
    assert join_sights(one, None) == join_sights(one, Sight()) == Sight()
