"""Attempts of people at what is another person's, over HTTP: every route that names something, in many forms.

Ann has runs, a file, a budget and a session. Whoever else asks reads none of it and changes none of it. The attempts
are derived from the description of the API, so that a new route is among them.
"""

from __future__ import annotations

import base64
import http.client
import json
import socket
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from decisor.history.place import Place
from decisor.history.postgres import PostgresPlace
from decisor.history.store import History
from decisor.lab.evaluation.store import open_store
from decisor.server.settings import ServerSettings
from decisor.server.users import digest_of_token, read_users
from decisor.session.sources import build_sources
from server.serving import PLAN, Served, served, sites
from servers.openai_server import serve_threaded
from servers.sql_databases import postgres_database

SECRET = "zqsecret"
"""In every text, cell and name that only ann may see; no attempt sends it."""
TOKENS = 771_234_567
"""The budget of ann; nobody else has one of this size."""
PROXY = "127.0.0.2"
USERS = f"""
[proxy]
addresses = ["{PROXY}"]

[group.analysts]
connections = ["sites"]
budget = {{ day = {{ tokens = 1_000_000 }} }}

[ann]
token = "{digest_of_token("token-of-ann")}"
budget = {{ day = {{ tokens = {TOKENS} }} }}

[bob]
token = "{digest_of_token("token-of-bob")}"
connections = ["sites"]

[cat]
token = "{digest_of_token("token-of-cat")}"
connections = ["sites"]

[nightly]
token = "{digest_of_token("token-of-nightly")}"
groups = ["analysts"]
"""
BODIES: Mapping[str, Mapping[str, object]] = {
    "/api/runs/{id}/changes": {"at": "1", "action": "SELECT 1"},
    "/api/runs/{id}/resume": {},
    "/api/runs/{id}/stop": {},
    "/api/runs/{id}/approvals/{number}": {"allow": True},
    "/api/runs/{id}/readings/{number}": {"answer": "1"},
    "/api/runs/{id}/mark": {"mark": "wrong", "note": "forged"},
    "/api/runs/{id}/record/approvals": {"note": "forged"},
    "/api/runs/{id}/record/verification": {},
    "/api/runs/{id}/readers": {"name": "bob"},
    "/api/models/{name}/whatif": {"input": "rank"},
    "/api/files/{name}": {"decimal": "comma"},
}
"""A body for each route that takes one, with which its owner would be answered."""
FOR_READERS = ("/api/runs/{id}/record/approvals", "/api/runs/{id}/record/verification")
"""What changes a run, or computes it again, and is open to whom it is shown."""


@dataclass(frozen=True)
class Attempt:
    """One request."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    address: str = "127.0.0.1"

    def send(self, site: Served) -> tuple[int, bytes]:
        place = urlsplit(site.url)
        own = {"content-type": "application/json", "content-length": str(len(self.body))} if self.body else {}
        connection = http.client.HTTPConnection(
            place.hostname or "", place.port, timeout=20, source_address=(self.address, 0)
        )
        with closing(connection):
            connection.putrequest(self.method, self.target)
            for name, value in (own | dict(self.headers)).items():
                connection.putheader(name, value)
            connection.endheaders(self.body or None)
            response = connection.getresponse()
            return response.status, response.read(200_000)

    def named(self, form: Callable[[str], str], id: str) -> Attempt:
        """Name the id in another form."""
        return replace(self, target=form(id).join(self.target.rsplit(id, 1)))

    def headed(self, **heads: str) -> Attempt:
        return replace(self, headers={**self.headers, **{key.replace("_", "-"): value for key, value in heads.items()}})


def percent(text: str) -> str:
    return "".join(f"%{ord(letter):02X}" for letter in text)


def forms(one: Attempt, id: str, cookie: str) -> Iterator[Attempt]:
    """Yield an attempt at the thing of a name in other forms. cookie: name of the session cookie."""
    for name in (
        percent,
        lambda id: quote(percent(id)),
        lambda id: f"0{id}",
        lambda id: f"+{id}",
        lambda id: f"%20{id}%20",
        lambda id: f"{id}%00",
        lambda id: f"{id}.0",
        lambda id: quote("".join(chr(ord(letter) + 0xFEE0) for letter in id)),  # full width
        lambda id: f"x/../{id}",
        lambda id: f"x%2F..%2F{id}",
        lambda id: f"{id};owner=ann",
        lambda id: id.upper(),
        lambda id: f"{id}/",
    ):
        yield one.named(name, id)
    mark = "&" if "?" in one.target else "?"
    yield replace(one, target=f"{one.target}{mark}owner=ann&user=ann&name=ann&token=ann&id={quote(id)}")
    yield replace(one, target=one.target.replace("/api/", "/API/", 1))
    yield replace(one, target=one.target.replace("/api/", "//api/", 1))
    yield replace(one, target=one.target.replace("/api/", "/%61pi/", 1))
    yield replace(one, target=one.target.replace("/api/", "/docs/../api/", 1))
    yield replace(one, target=f"http://localhost{one.target}")
    yield replace(one, method="HEAD" if one.method == "GET" else "PATCH")
    yield replace(one, method="POST", body=b"{}").headed(x_http_method_override=one.method)
    yield replace(one, target="/healthz").headed(x_original_url=one.target, x_rewrite_url=one.target)
    for head in ("X-User", "X-Remote-User", "Remote-User", "X-Forwarded-User", "X-Forwarded-Email", "From"):
        yield one.headed(**{head: "ann"})
    yield one.headed(X_Forwarded_User="ann", X_Forwarded_For=PROXY, X_Forwarded_Groups="analysts")
    yield one.headed(Cookie=f"{cookie}=ann")
    yield one.headed(Cookie=f"{cookie}={digest_of_token('token-of-ann')}")
    yield one.headed(Authorization=f"Bearer {digest_of_token('token-of-ann')}")
    yield one.headed(Authorization=f"Basic {base64.b64encode(b'ann:').decode()}")


def reply(body: dict[str, Any]) -> str:
    text = str(body["messages"])
    if "o1.r1" in text:
        return f"Final answer: elm {SECRET if 'ledger' in text else ''}\nBecause: it costs 400 [o1.r1]"
    tool, table = ("ledger", "ledger") if "ledger" in text else ("sites", "site")
    query = f"SELECT name, rent FROM {table} ORDER BY rent"
    return PLAN.replace("Action: sql", f"Action: {tool}").format(query=query)


@dataclass(eq=False)
class Victim:
    """What ann has on a server."""

    site: Served
    place: Place
    runs: dict[str, str]
    """Ids of her runs, by what is special about each."""
    file: str
    """Name of the connection of her file."""
    cookie: str
    """Of her session."""

    def get(self, path: str) -> Any:
        reply = self.site.client.get(path)
        assert reply.status_code == 200, reply.text
        # Seconds are the only fractions: those of a run that waits grow.
        return json.loads(reply.text, parse_float=lambda _: 0.0)

    def state(self) -> list[object]:
        """Return all that is ann's."""
        pages = ["/api/choices", f"/api/connections/{self.file}", "/api/connections/ledger", "/api/runs"]
        for id in self.runs.values():
            pages += [f"/api/runs/{id}{part}" for part in ("", "/record/approvals", "/readers", "/story")]
        # First of all the choices, for which the server stores what was spent.
        shown = [self.get(page) for page in pages]
        with self.place.transaction() as tables:
            rows = [
                tables.execute("SELECT number, owner, words, marked, run FROM run WHERE owner = 'ann' ORDER BY 1"),
                tables.execute("SELECT name, number FROM reader ORDER BY 1, 2"),
                tables.execute("SELECT payer, day, tokens FROM spent WHERE payer = 'ann' ORDER BY 2"),
            ]
            stored = [tuple(row) for part in rows for row in part.fetchall()]
        return [*stored, *shown]


@contextmanager
def victim(folder: Path, place: Place, url: str) -> Iterator[Victim]:
    with closing(sqlite3.connect(folder / "ledger.db")) as db, db:
        db.execute("CREATE TABLE ledger (name TEXT, rent REAL)")
        db.execute("INSERT INTO ledger VALUES (?, 400.0)", (SECRET,))
    open_store(str(folder / "exam.sqlite")).close()
    data = build_sources(db=[f"ledger=sqlite:///{folder}/ledger.db", f"sites=sqlite:///{sites(folder)}"])
    (folder / "users.toml").write_text(USERS, "utf-8")
    users = read_users(folder / "users.toml", ["ledger", "sites"])
    serving = ServerSettings(
        data, {"m": f"m@{url}"}, users=users, evaluations={"exam": str(folder / "exam.sqlite")}, takes_files=True
    )
    with served(serving, History(place)) as site:
        site.client.get("/nothing")  # the routes are built at the first request
        site.client.headers["authorization"] = "Bearer token-of-ann"
        file = site.client.put(
            "/api/files/plan.csv",
            content=f"shop,sales\n{SECRET},7\n",
            headers={"content-type": "application/octet-stream"},
        )
        assert file.status_code == 201, file.text
        runs = {"finished": site.ask(f"Which {SECRET}?", connections=["ledger"])["id"]}
        shared = {"question": "Which site?", "connections": ["sites"], "technique": "plan_rag"}
        body = {**shared, "settings": {"calling": "text"}}
        runs["shared"] = site.client.post("/api/ask", json=body, headers={"idempotency-key": "k1"}).json()["id"]
        for kind in ("waiting", "stopped"):
            runs[kind] = site.ask(f"Which {SECRET}?", connections=["ledger"], approve=True)["id"]
            site.until(lambda: site.run(runs[kind]), lambda run: bool(run["approvals"]))  # noqa: B023
        site.client.post(f"/api/runs/{runs['stopped']}/stop", json={})
        for kind, end in (("finished", "finished"), ("shared", "finished"), ("stopped", "stopped")):
            run = site.ended(runs[kind])
            assert (run["state"], run["error"]) == (end, ""), run
            # A run can be marked once its end is stored.
            site.until(lambda: mark(site, runs[kind], mark=""), lambda status: status == 200)  # noqa: B023
        id = runs["finished"]
        assert SECRET in site.client.get(f"/api/runs/{id}/rows/o1.csv").text
        assert mark(site, id, mark="right", note=SECRET) == 200
        reply = site.client.post(f"/api/runs/{id}/record/approvals", json={"note": SECRET})
        assert reply.status_code == 200, reply.text
        assert site.client.post(f"/api/runs/{runs['shared']}/readers", json={"name": "cat"}).status_code == 200
        yield Victim(site, place, runs, file.json()["name"], begin_session(site, "token-of-ann"))


def mark(site: Served, id: str, **words: str) -> int:
    return site.client.post(f"/api/runs/{id}/mark", json=words).status_code


def begin_session(site: Served, token: str) -> str:
    """Return the cookie of a new session."""
    reply = site.client.post("/api/session", json={"token": token})
    site.client.cookies.clear()
    return reply.headers["set-cookie"].partition(";")[0]


Person = tuple[Mapping[str, str], str]
"""Headers and address of whoever asks."""


def people(site: Served) -> dict[str, Person]:
    def bearer(name: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer token-of-{name}"}

    cookie = begin_session(site, "token-of-bob")
    analysts = {"X-Forwarded-Groups": "analysts"}
    return {
        "an ordinary person": (bearer("bob"), "127.0.0.1"),
        "a person by a cookie": ({"Cookie": cookie}, "127.0.0.1"),
        "a reader of one run": (bearer("cat"), "127.0.0.1"),
        "a service account": (bearer("nightly"), "127.0.0.1"),
        "a person of a proxy": ({"X-Forwarded-User": "dan", **analysts}, PROXY),
        "a person who is called nearly ann": ({"X-Forwarded-User": "Ann", **analysts}, PROXY),
        "a person who is called ann": ({"X-Forwarded-User": "ann", **analysts}, PROXY),
        "nobody": ({}, "127.0.0.1"),
    }


def targets(mine: Victim) -> Iterator[tuple[str, str, Attempt]]:
    """Yield each route that names something, its name, and the request, for all that is ann's."""
    things = [mine.file, "plan.csv", "ledger", "exam"]
    for path, methods in mine.get("/openapi.json")["paths"].items():
        for id in [*mine.runs.values(), "t1"] if "{id}" in path else things if "{name}" in path else ():
            filled = path.replace("{id}", id).replace("{number}", "1").replace("{kind}", "csv")
            filled = filled.replace("{name}", "o1" if "{id}" in path else id)
            for method in methods:
                body = json.dumps(BODIES[path]).encode() if method == "post" else b""
                kind = {}
                if method == "put":
                    body, kind = b"shop,sales\nforged,1\n", {"content-type": "application/octet-stream"}
                yield path, id, Attempt(method.upper(), filled, kind, body)
    for id in mine.runs.values():
        yield "/api/compare", id, Attempt("GET", f"/api/compare?before={id}&after={id}")
        yield "/api/runs", id, Attempt("GET", f"/api/runs?before={int(id) + 1}&search=which")
        follow = {"question": "And?", "follows": id, "connections": ["sites"]}
        yield "/api/ask", id, Attempt("POST", "/api/ask", body=json.dumps(follow).encode())
    for name in things:
        wish = {"question": "Which?", "connections": [name]}
        yield "/api/ask", name, Attempt("POST", "/api/ask", body=json.dumps(wish).encode())
        yield "/api/runs", name, Attempt("GET", f"/api/runs?search={name}")
    for token in ("", "ann", digest_of_token("token-of-ann"), "token-of-ann\0"):
        yield "/api/session", "session", Attempt("POST", "/api/session", body=json.dumps({"token": token}).encode())
    for path in ("/api/choices", "/api/runs?most=500", "/runs/1", "/docs"):
        yield path, path, Attempt("GET", path)
    # Last, for it ends the session of whoever asks.
    yield "/api/session", "session", Attempt("DELETE", "/api/session")


def attempts(mine: Victim) -> Iterator[tuple[str, Attempt]]:
    """Yield all attempts: each target by each person, and in each form by one of them in turn."""
    cookie = f"decisor-{urlsplit(mine.site.url).port}"
    everybody = people(mine.site)
    turn = cycle(everybody)
    for path, id, target in targets(mine):
        is_shared = id == mine.runs["shared"]
        for who, form in [(who, target) for who in everybody] + [
            (next(turn), one) for one in forms(target, id, cookie)
        ]:
            if who == "a reader of one run" and is_shared and path in FOR_READERS:
                continue
            heads, address = everybody[who]
            own = replace(form, headers={**form.headers, **{k: v for k, v in heads.items() if k not in form.headers}})
            yield who, replace(own, address=address)


@pytest.mark.slow
@pytest.mark.parametrize(("store", "each"), [("sqlite", 3), ("postgresql", 6)])
def test_nobody_reads_or_changes_what_is_anothers(tmp_path: Path, store: str, each: int) -> None:
    """Each: only each third attempt is made, say, for all of them take a minute."""
    with ExitStack() as stack:
        place: Place = History(tmp_path / "history").place
        if store == "postgresql":
            pytest.importorskip("psycopg_pool")
            place = PostgresPlace(stack.enter_context(postgres_database(())))
        url = stack.enter_context(serve_threaded(reply))
        mine = stack.enter_context(victim(tmp_path, place, url))
        before, answers, read = mine.state(), Counter[int](), []
        for who, attempt in islice(attempts(mine), 0, None, each):
            status, answer = attempt.send(mine.site)
            answers[status] += 1
            if is_secret(answer):
                read.append((who, attempt, status))
            assert status < 500, (who, attempt, answer)
        assert not read
        changes = [(old, new) for old, new in zip(before, mine.state(), strict=True) if old != new]
        assert not changes
        assert answers.total() >= 500, answers
        # The secrets are there to be read, and the run still waits for its owner's word.
        token = {"Authorization": "Bearer token-of-ann"}
        gets = [one for _, _, one in targets(mine) if one.method == "GET" and "/events" not in one.target]
        assert sum(is_secret(one.headed(**token).send(mine.site)[1]) for one in gets) > 40
        assert Attempt("GET", "/api/runs", {"Cookie": mine.cookie}).send(mine.site)[0] == 200
        streams = [
            stack.enter_context(listen(mine.site, heads)) for heads, at in people(mine.site).values() if at != PROXY
        ]
        waiting = mine.runs["waiting"]
        assert mine.site.client.post(f"/api/runs/{waiting}/approvals/1", json={"allow": True}).status_code == 200
        assert SECRET in str(mine.site.ended(waiting)["result"])
        heard = [hear(stream) for stream in streams]
        assert sum(part.startswith(b"HTTP/1.1 200") for part in heard) == 4
        assert not [part for part in heard if is_secret(part) or b'"ann"' in part]


def listen(site: Served, heads: Mapping[str, str]) -> socket.socket:
    """Ask for the stream of all runs, and leave it open."""
    place = urlsplit(site.url)
    lines = [f"GET /api/events HTTP/1.1\r\nHost: {place.netloc}", *(f"{key}: {value}" for key, value in heads.items())]
    stream = socket.create_connection((place.hostname or "", place.port or 0), timeout=20)
    stream.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    return stream


def hear(stream: socket.socket) -> bytes:
    """Return what came, until nothing comes for a while."""
    content = stream.recv(65_536)
    stream.settimeout(0.5)
    with suppress(TimeoutError):
        while part := stream.recv(65_536):
            content += part
    return content


def is_secret(answer: bytes) -> bool:
    return SECRET.encode() in answer or str(TOKENS).encode() in answer
