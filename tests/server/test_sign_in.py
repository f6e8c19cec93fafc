"""Sign-in at a real identity provider: who comes in, what they may do, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from decisor.server.settings import ServerSettings
from decisor.server.users import digest_of_token, read_users
from decisor.session.sources import build_sources
from report.browser import FOUND, browser
from server.page import PICTURES, Page
from server.serving import Served, served, sites
from servers.identity_provider import free_port, identity_provider, new_key, sign_in, to_the_end

ISSUER_KEY = new_key()
USERS = """
[login]
issuer = "{issuer}"
client_id = "decisor"
client_secret = "${{DECISOR_TEST_SECRET}}"
address = "{address}"
contact = "data@shop.example"

[group.sales]
connections = ["sql"]
techniques = ["plan_rag", "iter_rag"]
llms = ["m"]
rows = {{ "sql.site" = "rent < 500" }}

[group.it]
connections = ["notes"]
techniques = ["agent"]
llms = ["n"]

[robot]
token = "{token}"
groups = ["it"]
"""
ROBOT = "token-of-robot"


@dataclass(frozen=True)
class Place:
    """A server whose people sign in at ``issuer``."""

    server: Served
    issuer: str

    def browser(self) -> httpx.Client:
        return httpx.Client(base_url=self.server.url, trust_env=False, timeout=30)


@pytest.fixture
def place(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    pytest.importorskip("authlib")
    monkeypatch.setenv("DECISOR_TEST_SECRET", "secret-of-decisor")
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("Oak is loud.", "utf-8")
    data = build_sources(db=f"sql=sqlite:///{sites(tmp_path)}", docs=f"notes={tmp_path / 'notes'}")
    with identity_provider(tmp_path, address, ISSUER_KEY) as issuer:
        file = tmp_path / "users.toml"
        file.write_text(USERS.format(issuer=issuer, address=address, token=digest_of_token(ROBOT)), "utf-8")
        users = read_users(file, ["sql", "notes"], ["m", "n"])
        llms = {"m": f"m@{url}", "n": f"n@{url}"}
        with served(ServerSettings(data, llms, users=users), port=port) as server:
            yield Place(server, issuer)


def own_cookies(client: httpx.Client) -> dict[str, str]:
    return {cookie.name: str(cookie.value) for cookie in client.cookies.jar if "decisor" in cookie.name}


def test_a_person_signs_in_uses_what_their_groups_may_and_signs_out(place: Place) -> None:
    with place.browser() as ann:
        refused = ann.get("/api/choices")
        assert (refused.status_code, refused.json()["login"]) == (401, "/login")
        page = sign_in(ann, "ann", "/compare?before=1.5&after=a.b")
        assert (page.status_code, str(page.url)) == (200, f"{place.server.url}/compare?before=1.5&after=a.b")
        choices = ann.get("/api/choices").json()
        assert choices["user"] == "ann"
        assert [one["name"] for one in choices["connections"]] == ["sql"]
        assert [one["name"] for one in choices["techniques"]] == ["plan_rag", "iter_rag"]
        assert choices["llms"] == ["m", "none"]
        stolen = own_cookies(ann)
        assert list(stolen) == [f"decisor-{httpx.URL(place.server.url).port}"]
        # The end of the session is one at the provider too.
        address = ann.delete("/api/session").json()["address"]
        assert address.startswith(f"{place.issuer}/session/end?id_token_hint=")
        assert str(to_the_end(ann, ann.get(address), "ann").url) == f"{place.server.url}/"
        assert ann.get("/api/choices").status_code == 401
    with httpx.Client(base_url=place.server.url, cookies=stolen, trust_env=False) as thief:
        assert thief.get("/api/choices").status_code == 401


def test_who_is_signed_out_is_asked_for_a_name_again(place: Place) -> None:
    with place.browser() as browser:
        sign_in(browser, "ann")
        again = browser.get("/login")
        # Signed in at the provider: no form, the next thing is our address with a code.
        assert "/login/callback?code=" in to_the_end(browser, again, "bob", "/login/callback").headers["location"]
        to_the_end(browser, browser.get(browser.delete("/api/session").json()["address"]), "ann")
        assert sign_in(browser, "bob").status_code == 200
        assert browser.get("/api/choices").json()["user"] == "bob"


def test_two_groups_are_all_that_one_of_them_may_use_less_what_one_keeps_back(place: Place) -> None:
    with place.browser() as bob:
        sign_in(bob, "bob")
        choices = bob.get("/api/choices").json()
        assert [one["name"] for one in choices["connections"]] == ["sql", "notes"]
        assert {one["name"] for one in choices["techniques"]} == {"plan_rag", "iter_rag", "agent"}
        assert choices["llms"] == ["m", "n", "none"]
        body = {"question": "Which?", "connections": ["sql"], "technique": "plan_rag", "settings": {"calling": "text"}}
        run = bob.post("/api/ask", json=body, params={"wait": 30}).json()
        rows = bob.get(f"/api/runs/{run['id']}/rows/o1.csv").text
        assert ("elm" in rows, "oak" in rows) == (True, False)


def test_a_person_shows_a_run_to_another_who_is_signed_in(place: Place) -> None:
    with place.browser() as ann, place.browser() as bob:
        sign_in(ann, "ann")
        sign_in(bob, "bob")
        body = {"question": "Which?", "connections": ["sql"], "technique": "plan_rag", "settings": {"calling": "text"}}
        id = ann.post("/api/ask", json=body, params={"wait": 30}).json()["id"]
        place.server.until(
            lambda: ann.get(f"/api/runs/{id}/readers").json()["others"], lambda others: others == ["bob"]
        )
        assert bob.get(f"/api/runs/{id}").status_code == 404
        assert ann.post(f"/api/runs/{id}/readers", json={"name": "bob"}).json()["readers"] == ["bob"]
        assert bob.get(f"/api/runs/{id}").json()["owner"] == "ann"
        assert bob.post(f"/api/runs/{id}/changes", json={"at": "1", "thought": "x"}).status_code == 404


def test_a_technique_or_an_llm_of_another_group_is_refused_wherever_a_question_comes_in(place: Place) -> None:
    with place.browser() as ann:
        sign_in(ann, "ann")
        known = {"question": "Which?", "technique": "plan_rag", "settings": {"calling": "text"}}
        for change, words in (
            ({"technique": "agent", "settings": {}}, "plan_rag, iter_rag"),
            ({"llm": "n"}, "there is m, none"),
            ({"technique": "radagent", "settings": {"judge_llm": "n"}}, "may not use"),
            ({"connections": ["notes"]}, "sql"),
        ):
            refused = ann.post("/api/ask", json=known | change)
            assert (refused.status_code, words in refused.json()["error"]) == (400, True), refused.text
        # What is not named is what they may use.
        usual = ann.post("/api/ask", json={"question": "Which?"}, params={"wait": 30}).json()
        assert (usual["technique"], usual["llm"]) == ("plan_rag", "m")
        changed = ann.post(f"/api/runs/{usual['id']}/changes", json={"at": "1", "thought": "Look.", "llm": "n"})
        assert (changed.status_code, "there is m, none" in changed.json()["error"]) == (400, True)


def test_who_is_in_no_known_group_is_told_whom_to_ask_and_gets_nothing(place: Place) -> None:
    with place.browser() as eve:
        page = sign_in(eve, "eve")
        assert page.status_code == 403
        assert "You are eve, and in no group that may use this server. Ask data@shop.example." in page.text
        assert not own_cookies(eve)
        assert eve.get("/api/choices").status_code == 401


def test_a_service_account_comes_by_token_and_nobody_signs_in_as_one(place: Place) -> None:
    with place.browser() as browser:
        page = sign_in(browser, "robot")
        assert (page.status_code, "robot is the name of a service account" in page.text) == (403, True)
        assert browser.get("/api/runs").status_code == 401
        choices = browser.get("/api/choices", headers={"authorization": f"Bearer {ROBOT}"}).json()
        assert (choices["user"], choices["llms"]) == ("robot", ["n", "none"])


def test_a_code_a_state_and_a_cookie_are_good_once_and_in_one_browser(place: Place) -> None:
    with place.browser() as ann, place.browser() as mallory:
        stopped = to_the_end(ann, ann.get("/login"), "ann", "/login/callback")
        address = stopped.headers["location"]
        # Another browser, with no sign-in or with one of its own: login CSRF, and a stolen code.
        for client in (mallory, mallory):
            refused = client.get(address)
            assert (refused.status_code, "not begun in this browser" in refused.text) == (400, True)
            client.get("/login")
        state = httpx.URL(mallory.get("/login").headers["location"]).params["state"]
        code = httpx.URL(address).params["code"]
        refused = mallory.get("/login/callback", params={"state": state, "code": code})
        assert (refused.status_code, "refused the code" in refused.text) == (400, True)  # its verifier is another one
        # The provider ends a code that was tried with a wrong verifier, so Ann begins again.
        fixed = mallory.get("/api/runs").status_code
        stopped = to_the_end(ann, ann.get("/login"), "ann", "/login/callback")
        kept = own_cookies(ann)
        assert ann.get(stopped.headers["location"]).status_code == 303
        assert ann.get("/api/choices").json()["user"] == "ann"
        # The same address again: its cookie is gone. With the cookie kept, its code is spent.
        assert ann.get(stopped.headers["location"]).status_code == 400
        with httpx.Client(base_url=place.server.url, cookies=kept, trust_env=False) as again:
            replayed = again.get(stopped.headers["location"])
            assert (replayed.status_code, "refused the code" in replayed.text) == (400, True)
        assert fixed == 401


def test_a_cookie_that_was_there_before_is_not_that_of_the_session(place: Place) -> None:
    name = f"decisor-{httpx.URL(place.server.url).port}"
    with httpx.Client(base_url=place.server.url, cookies={name: "fixed-by-mallory"}, trust_env=False) as ann:
        sign_in(ann, "ann")
        assert ann.get("/api/choices").json()["user"] == "ann"
    with httpx.Client(base_url=place.server.url, cookies={name: "fixed-by-mallory"}, trust_env=False) as mallory:
        assert mallory.get("/api/choices").status_code == 401


@pytest.mark.parametrize(
    "after",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\tx",
        "javascript:alert(1)",
        "",
    ],
)
def test_nobody_is_sent_to_another_site(place: Place, after: str) -> None:
    with place.browser() as ann:
        assert str(sign_in(ann, "ann", after).url) == f"{place.server.url}/"


@pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")
def test_in_a_browser_a_person_signs_in_sees_their_name_and_signs_out(place: Place) -> None:
    with browser() as driver:
        driver.size(1200, 800)
        page = Page(driver, place.server.url)

        def fill(name: str) -> None:
            page.until("document.querySelector('[name=login]')")
            page.run(f"""document.querySelector("[name=login]").value = "{name}";
                document.querySelector("[name=password]").value = "any"; document.forms[0].submit()""")
            page.until("document.querySelector('[value=consent]')")
            page.run("document.forms[0].submit()")

        page.open("/?question=Which")
        PICTURES.mkdir(parents=True, exist_ok=True)
        driver.screenshot(PICTURES / "sign_in.png")
        page.click("Sign in")
        fill("ann")
        # The page that the provider sends to has the cookie, though a strict one came from another site.
        page.see("· ann", "#version")
        assert page.run("return location.pathname + location.search") == "/?question=Which"
        driver.screenshot(PICTURES / "signed_in.png")
        page.click("Sign out", "#version")
        page.until("document.querySelector('[name=logout]')")
        page.run("document.querySelector('[name=logout]').click()")
        page.see("Sign in")
        driver.open(place.server.url + "/login")
        fill("eve")
        page.see("You are eve, and in no group that may use this server. Ask data@shop.example.", "body")
        driver.screenshot(PICTURES / "no_rights.png")
