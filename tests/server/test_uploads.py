"""Files that people bring to a server: read as an outside reader reads them, each person's own, capped, and removed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import duckdb
import httpx
import pytest

import decisor.server.uploads as uploads
from decisor.history.store import History
from decisor.server.settings import ServerSettings
from decisor.server.users import User, Users, digest_of_token
from decisor.session.sources import Sources
from server.serving import Served, planner, served, sources
from servers.openai_server import serve_threaded

SALES = "shop,sales\nelm,1200\noak,900\n"
BYTES = {"content-type": "application/octet-stream"}


def bring(client: httpx.Client, name: str, content: bytes, **heads: str) -> httpx.Response:
    return client.put(f"/api/files/{name}", content=content, headers={**BYTES, **heads})


def connections(client: httpx.Client, **heads: str) -> dict[str, bool]:
    there = client.get("/api/choices", headers=heads).json()["connections"]
    return {one["name"]: one["mine"] for one in there}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Served]:
    """A server that ann and bob use, on sites."""
    users = Users({digest_of_token(name): User(name) for name in ("ann", "bob")})
    with served(ServerSettings(sources(tmp_path), users=users), History(tmp_path / "history")) as site:
        yield site


ANN, BOB = {"authorization": "Bearer ann"}, {"authorization": "Bearer bob"}


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx"])
def test_a_file_is_a_connection_that_has_the_rows_of_the_file(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"Sales 2026.{kind}"
    if kind == "csv":
        file.write_text(SALES)
    elif kind == "parquet":
        duckdb.execute(f"COPY (SELECT 'elm' AS shop, 1200 AS sales UNION ALL SELECT 'oak', 900) TO '{file}'")
    else:
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        for row in (("shop", "sales"), ("elm", 1200), ("oak", 900)):
            book.active.append(row)
        book.save(file)
    with served(ServerSettings()) as site:
        kept = bring(site.client, file.name, file.read_bytes())
        assert kept.status_code == 201, kept.text
        assert kept.json()["mine"]
        [table] = site.client.get(f"/api/connections/{kept.json()['name']}").json()["tables"]
        assert table["rows"] == 2
        assert {one["name"]: sorted(one["examples"]) for one in table["columns"]} == {
            "shop": ['"elm"', '"oak"'],
            "sales": ["1200", "900"],
        }


def test_a_question_is_asked_of_a_file_beside_the_data_of_the_server(tmp_path: Path) -> None:
    query = "SELECT shop AS name, sales AS rent FROM sales ORDER BY sales"
    plan = planner(query)
    with (
        serve_threaded(lambda body: plan(body).replace("Action: sql", "Action: sales")) as url,
        served(ServerSettings(sources(tmp_path), {"m": f"m@{url}"})) as site,
    ):
        assert bring(site.client, "sales.csv", SALES.encode()).status_code == 201
        run = site.ended(site.ask(connections=["sales"])["id"])
    assert run["state"] == "finished", run
    assert run["connections"] == ["sales"]


def test_nobody_else_sees_asks_or_removes_a_file(two: Served) -> None:
    name = bring(two.client, "sales.csv", SALES.encode(), **ANN).json()["name"]
    assert connections(two.client, **ANN) == {"sql": False, name: True}
    assert connections(two.client, **BOB) == {"sql": False}
    assert two.client.get(f"/api/connections/{name}", headers=BOB).status_code == 404
    asked = two.client.post("/api/ask", json={"question": "Which?", "connections": [name]}, headers=BOB)
    assert asked.status_code == 400
    assert two.client.delete(f"/api/files/{name}", headers=BOB).status_code == 400
    # bob's file of the same name has nothing to do with it, and its name does not tell that there is another.
    own = bring(two.client, "sales.csv", b"shop,sales\nash,1\n", **BOB).json()["name"]
    assert own != name
    assert connections(two.client, **ANN) == {"sql": False, name: True}


def test_files_are_there_after_a_restart_and_gone_when_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    history = History(tmp_path / "history")
    with served(ServerSettings(), history) as site:
        bring(site.client, "sales.csv", SALES.encode())
    with served(ServerSettings(), history) as site:
        assert connections(site.client) == {"sales": True}
        assert site.client.get("/api/connections/sales").json()["tables"][0]["rows"] == 2
        assert site.client.delete("/api/files/sales").status_code == 204
        assert connections(site.client) == {}
    left = [path for path in tmp_path.rglob("*") if path.is_file() and b"elm" in path.read_bytes()]
    assert left == []


def test_a_file_of_the_same_name_takes_the_place_of_the_one_before() -> None:
    with served(ServerSettings()) as site:
        bring(site.client, "sales.csv", SALES.encode())
        bring(site.client, "sales.csv", b"shop,sales\nash,1\nfir,2\nyew,3\n")
        assert connections(site.client) == {"sales": True}
        assert site.client.get("/api/connections/sales").json()["tables"][0]["rows"] == 3


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("notes.txt", b"x", "not a file of CSV"),
        ("shop.db", b"SQLite format 3\0", "not a file of CSV"),
        ("sales.csv.gz", b"\x1f\x8b", "not a file of CSV"),
        ("sales.parquet", b"PAR1 this is none", "sales.parquet"),
        ("..%2F..%2Fsales.exe", b"x", ""),
    ],
)
def test_what_is_no_table_is_refused_and_not_kept(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    with served(ServerSettings(), History(tmp_path / "history")) as site:
        refused = bring(site.client, name, content)
        assert refused.status_code in (400, 404)
        assert why in refused.text
        assert str(tmp_path) not in refused.text
        assert connections(site.client) == {}
    assert [path for path in (tmp_path / "history" / "uploads").rglob("*") if path.is_file()] == []


def test_a_name_leads_nowhere_else(tmp_path: Path) -> None:
    with served(ServerSettings(), History(tmp_path / "history")) as site:
        assert bring(site.client, "..%5C..%5Cevil#decimal=comma.csv", SALES.encode()).status_code in (201, 400, 404)
        bring(site.client, "%2E%2E.csv", SALES.encode())
        bring(site.client, "*.csv", SALES.encode())
        files = list(tmp_path.rglob("*.csv"))
    assert all(path.parent.parent == tmp_path / "history" / "uploads" for path in files)
    assert all(path.stem.isidentifier() for path in files)


def test_caps_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MOST_OF_OWNER", 2**20 + len(SALES))
    monkeypatch.setattr(uploads, "MOST_FILES", 2)
    with served(ServerSettings(), History(tmp_path / "history")) as site:
        assert bring(site.client, "a.csv", SALES.encode()).status_code == 201
        # Without a length in its head, the bytes themselves are counted.
        parts = iter([b"shop,sales\n", *[b"elm,1\n" * 2**14] * 11])
        assert site.client.put("/api/files/b.csv", content=parts, headers=BYTES).status_code == 413
        assert bring(site.client, "b.csv", SALES.encode()).status_code == 201
        assert bring(site.client, "c.csv", SALES.encode()).status_code == 413
        assert connections(site.client) == {"a": True, "b": True}


def test_only_bytes_from_the_own_page_and_only_where_the_server_takes_them(tmp_path: Path) -> None:
    with served(ServerSettings()) as site:
        assert site.client.put("/api/files/a.csv", json={}).status_code == 415
        assert bring(site.client, "a.csv", SALES.encode(), origin="https://evil.example").status_code == 403
    with served(ServerSettings(sources(tmp_path), takes_files=False)) as site:
        assert site.client.get("/api/choices").json()["takes_files"] is False
        assert bring(site.client, "a.csv", SALES.encode()).status_code in (403, 415)


def test_a_user_from_whom_rows_are_kept_asks_a_file_whole(tmp_path: Path) -> None:
    from decisor.session.access import Reader

    users = Users({digest_of_token("ann"): User("ann", None, Reader("ann", (("site", "rent > 500"),)))})
    with served(ServerSettings(sources(tmp_path), users=users), History(tmp_path / "history")) as site:
        name = bring(site.client, "sales.csv", SALES.encode(), **ANN).json()["name"]
        assert site.client.get(f"/api/connections/{name}", headers=ANN).json()["tables"][0]["rows"] == 2


def test_a_server_without_data_of_its_own_takes_the_first_file() -> None:
    with served(ServerSettings(Sources())) as site:
        asked = site.client.post("/api/ask", json={"question": "Which?"})
        assert asked.status_code == 400
        assert "Drop a file" in asked.json()["error"]


def test_a_file_is_read_again_as_its_owner_says_and_stays_so(tmp_path: Path) -> None:
    """Each of these amounts can be read in two ways."""
    content = 'shop,amount\nelm,"1,234"\noak,"5,678"\n'
    history = History(tmp_path / "history")

    def amounts(site: Served) -> list[float]:
        schema = site.client.get("/api/connections/pay").json()
        assert [one["name"] for one in schema["tables"]] == ["pay"], "its table keeps its name"
        (column,) = [one for one in schema["tables"][0]["columns"] if one["name"] == "amount"]
        return sorted(map(float, column["examples"]))

    with served(ServerSettings(), history) as site:
        assert bring(site.client, "pay.csv", content.encode()).status_code == 201
        for habit, expected in (("comma", [1.234, 5.678]), ("point", [1234.0, 5678.0])):
            assert site.client.post("/api/files/pay", json={"decimal": habit}).status_code == 204
            assert amounts(site) == expected
        assert site.client.post("/api/files/pay", json={"decimal": "../x"}).status_code == 422
        assert site.client.post("/api/files/other", json={"decimal": "comma"}).status_code == 400
        assert site.client.post("/api/files/pay", json={"dates": "day"}).status_code == 204
        [file] = tmp_path.rglob("pay.csv")
        facts = file.stat()
        file.write_bytes(b"\0")
        # As where a disk fails: a file that was changed is opened anew.
        os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        failed = site.client.post("/api/files/pay", json={"decimal": "comma"})
        assert failed.status_code == 400 and "stays as it was" in failed.json()["error"]
        assert str(tmp_path) not in failed.text
        assert amounts(site) == [1234.0, 5678.0], "the table that was read stays where a new reading fails"
        assert list(tmp_path.rglob("pay.csv")) == [file]
        file.write_text(content)
    with served(ServerSettings(), history) as site:
        assert amounts(site) == [1234.0, 5678.0], "after a start of the server too"
        assert site.client.delete("/api/files/pay").status_code == 204
    assert not list((tmp_path).rglob("pay.csv"))


def test_whose_name_has_the_hash_of_anothers_takes_no_file_from_them(tmp_path: Path) -> None:
    first: dict[str, str] = {}
    for number in count():
        name = f"p{number}"
        if (other := first.setdefault(uploads.owner_key(User(name))[:6], name)) != name:
            break
    users = Users({digest_of_token(one): User(one) for one in (name, other)})
    history = History(tmp_path / "history")
    ours, theirs = ({"authorization": f"Bearer {one}"} for one in (name, other))
    with served(ServerSettings(sources(tmp_path), users=users), history) as site:
        kept = bring(site.client, "sales.csv", SALES.encode(), **ours).json()["name"]
        assert bring(site.client, "sales.csv", b"shop,secret\nash,1\n", **theirs).json()["name"] != kept
        columns = [one["name"] for one in site.client.get(f"/api/connections/{kept}", headers=ours).json()["tables"]]
        assert columns and kept in connections(site.client, **ours) and kept not in connections(site.client, **theirs)
        assert site.client.get(f"/api/connections/{kept}", headers=theirs).status_code == 404
        assert "secret" not in site.client.get(f"/api/connections/{kept}", headers=ours).text
