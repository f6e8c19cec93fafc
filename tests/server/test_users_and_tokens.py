"""Who may do what: tokens, cookies, several users, and names that the server goes by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from decisor.errors import SetupError
from decisor.server.security import hosts_of
from decisor.server.settings import ServerSettings
from decisor.server.users import digest_of_token, read_users, users_of_token
from decisor.session.sources import build_sources
from server.serving import Served, served, sites

ANN, BOB = "token-of-ann", "token-of-bob"


def users_file(folder: Path) -> Path:
    path = folder / "users.toml"
    path.write_text(
        f'[ann]\ntoken = "{digest_of_token(ANN)}"\n[bob]\ntoken = "{digest_of_token(BOB)}"\nconnections = ["notes"]\n',
        "utf-8",
    )
    return path


@pytest.fixture
def shared(tmp_path: Path, url: str) -> Iterator[Served]:
    """Two users, two connections: Bob has one of them."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("Oak is loud.", "utf-8")
    data = build_sources(db=f"sites=sqlite:///{sites(tmp_path)}", docs=f"notes={tmp_path / 'notes'}")
    users = read_users(users_file(tmp_path), ["sites", "notes"])
    with served(ServerSettings(data, {"m": f"m@{url}"}, users=users)) as place:
        yield place


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_nothing_is_read_without_a_token_but_the_page(shared: Served) -> None:
    for path in ("/api/runs", "/api/choices", "/api/events", "/api/evaluations/run/page", "/api/connections/sites"):
        reply = shared.client.get(path)
        assert (reply.status_code, "token" in reply.json()["error"]) == (401, True), path
        assert shared.client.get(path, headers=bearer("wrong")).status_code == 401
    assert shared.client.post("/api/ask", json={"question": "a"}).status_code == 401
    assert shared.client.get("/").status_code == 200


def test_each_user_sees_their_own_connections_and_runs_alone(shared: Served) -> None:
    def connections(token: str) -> list[str]:
        choices = shared.client.get("/api/choices", headers=bearer(token)).json()
        return [one["name"] for one in choices["connections"]]

    assert (connections(ANN), connections(BOB)) == (["sites", "notes"], ["notes"])
    body = {"question": "Which?", "connections": ["sites"], "technique": "plan_rag", "settings": {"calling": "text"}}
    run = shared.client.post("/api/ask", json=body, headers=bearer(ANN)).json()
    refused = shared.client.post("/api/ask", json=body, headers=bearer(BOB))
    assert (refused.status_code, "sites" in refused.json()["error"]) == (400, True)
    assert shared.client.get("/api/connections/sites", headers=bearer(BOB)).status_code == 404
    id = run["id"]
    for method, path in (
        ("GET", ""),
        ("GET", "/events"),
        ("GET", "/page"),
        ("GET", "/trace"),
        ("DELETE", ""),
        ("GET", "/entries/1"),
        ("GET", "/json"),
        ("GET", "/markdown"),
        ("GET", "/story"),
        ("GET", "/record"),
        ("GET", "/record-page"),
    ):
        reply = shared.client.request(method, f"/api/runs/{id}{path}", headers=bearer(BOB))
        assert reply.status_code == 404, path
    for path in ("stop", "approvals/1", "changes"):
        bodies = {"stop": {}, "approvals/1": {"allow": True}, "changes": {"at": "1"}}
        reply = shared.client.post(f"/api/runs/{id}/{path}", json=bodies[path], headers=bearer(BOB))
        assert reply.status_code == 404, path
    both = {"before": id, "after": id}
    assert shared.client.get("/api/compare", params=both, headers=bearer(BOB)).status_code == 404
    assert shared.client.get("/api/runs", headers=bearer(BOB)).json() == {"runs": []}
    assert shared.client.get(f"/api/runs/{id}", headers=bearer(ANN)).status_code == 200
    follow = {"question": "And?", "follows": id, "connections": ["notes"]}
    assert shared.client.post("/api/ask", json=follow, headers=bearer(BOB)).status_code == 404


def test_no_search_of_runs_tells_where_the_data_lie(shared: Served, tmp_path: Path) -> None:
    def runs(words: str) -> int:
        return len(shared.client.get("/api/runs", params={"search": words}, headers=bearer(ANN)).json()["runs"])

    body = {"question": "Which?", "technique": "plan_rag", "settings": {"calling": "text"}}
    assert shared.client.post("/api/ask", json=body, headers=bearer(ANN)).status_code == 201
    assert shared.until(lambda: runs("sites"), bool) == runs("which") == 1
    assert [words for words in ("sqlite:///", tmp_path.name, "sites.db", "notes=") if runs(words)] == []


def test_a_cookie_stands_for_a_token_until_it_is_ended(shared: Served) -> None:
    wrong = shared.client.post("/api/session", json={"token": "wrong"})
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    reply = shared.client.post("/api/session", json={"token": BOB})
    assert reply.json() == {"user": "bob"}
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert BOB not in cookie
    assert shared.client.get("/api/runs").status_code == 200
    kept = dict(shared.client.cookies)
    assert shared.client.delete("/api/session").json() == {"address": ""}
    with httpx.Client(base_url=shared.url, cookies=kept, trust_env=False, timeout=60) as other:
        assert other.get("/api/runs").status_code == 401


def test_one_token_is_enough_beyond_this_machine(tmp_path: Path) -> None:
    with served(ServerSettings(build_sources(db=f"sqlite:///{sites(tmp_path)}"), users=users_of_token(ANN))) as place:
        assert place.client.get("/api/choices").status_code == 401
        assert place.client.get("/api/choices", headers=bearer(ANN)).json()["user"] == ""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "names no user"),
        ("ann", "line 1: this is not TOML"),
        ('[ann]\ntoken = "plain"', "sha256:"),
        (f'[ann]\ntoken = "{digest_of_token("a")}"\nconnections = ["other"]', "has 'other', and there is sites"),
        (f'[ann]\ntoken = "{digest_of_token("a")}"\nadmin = true', "line 3: ann.admin is not known here"),
        (
            f'[ann]\ntoken = "{digest_of_token("a")}"\n[bob]\ntoken = "{digest_of_token("a")}"',
            "line 4: bob.token is the token of ann too",
        ),
        (f'["a b"]\ntoken = "{digest_of_token("a")}"', "line 1: a b is no name of a user"),
    ],
)
def test_a_file_of_users_says_what_is_wrong_with_it(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "users.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(SetupError, match=complaint):
        read_users(path, ["sites"])


def test_groups_add_up_what_may_be_used_and_what_is_kept_back(tmp_path: Path) -> None:
    path = tmp_path / "users.toml"
    path.write_text(
        f"""
[group.eu]
connections = ["sites"]
llms = []
rows = {{ site = "rent < 500", town = "eu" }}
mask = ["site.name"]
reveal = true
budget = {{ day = {{ dollars = 5 }}, at_once = 2 }}
[group.us]
connections = ["notes"]
techniques = ["exact", "agent"]
rows = {{ site = "rent > 100" }}
[robot]
token = "{digest_of_token("r")}"
groups = ["eu", "us"]
[nobody]
token = "{digest_of_token("n")}"
groups = []
[all]
token = "{digest_of_token("a")}"
""",
        "utf-8",
    )
    users = read_users(path, ["sites", "notes"], ["m"])
    robot, nobody, everything = map(users.of_token, "rna")
    assert robot is not None and nobody is not None and everything is not None
    assert robot.connections == ("sites", "notes")
    assert (robot.techniques, robot.llms) == (None, None)  # a group without the line may use all
    assert robot.reader.rows == (("site", "rent < 500"), ("town", "eu"), ("site", "rent > 100"))
    assert (robot.reader.mask, robot.reader.reveal, robot.reader.groups) == (("site.name",), False, ("eu", "us"))
    assert [(name, budget.day.dollars, budget.at_once) for name, budget in robot.budgets] == [("eu", 5.0, 2)]
    assert (nobody.connections, nobody.techniques, nobody.llms) == ((), (), ())
    assert (everything.connections, everything.sees_all) == (None, True)


def test_a_name_that_leads_here_is_no_name_of_ours() -> None:
    local, world = hosts_of("127.0.0.1", 8765), hosts_of("0.0.0.0", 8765, ["decide.example"])
    for ours in ("127.0.0.1:8765", "localhost:8765", "LOCALHOST:8765", "[::1]:8765"):
        assert local.is_ours(ours)
        assert world.is_ours(ours)
    for other in ("evil.example:8765", "192.168.0.9:8765", "127.0.0.1", "127.0.0.1:80", "", "decide.example"):
        assert not local.is_ours(other)
    assert world.is_ours("192.168.0.9:8765")
    assert world.is_ours("decide.example")
    assert world.is_ours("decide.example:443")
    assert not world.is_ours("decide.example.evil.example")
    assert world.is_same("https://decide.example", "decide.example")
    assert not world.is_same("https://192.168.0.9:8765", "192.168.0.9:8765")
    assert not world.is_same("null", "decide.example")
    assert local.is_same("http://localhost:8765", "localhost:8765")
    assert not local.is_same("http://localhost:8765/", "127.0.0.1:8765")
