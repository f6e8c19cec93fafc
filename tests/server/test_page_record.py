"""The record of a decision on the page of a real server, in a real Chromium: read, approved, computed again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from decisor.server.settings import ServerSettings
from report.browser import FOUND
from server.axe import missing
from server.page import Page, window
from server.serving import planner, sources
from server.test_page_reach import axe, tab_to
from server.test_record_over_http import users_of
from servers.openai_server import serve_threaded

pytestmark = pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """On the record of a decision of two sites."""
    with serve_threaded(planner()) as url, window(ServerSettings(sources(tmp_path), {"m": f"m@{url}"})) as page:
        page.ask("Which site should we open?")
        page.answered()
        page.click("Review and approve")
        page.see("Nobody has approved this decision.")
        yield page


def approve(page: Page, name: str, note: str = "") -> None:
    page.write("by", name)
    page.write("approval-note", note)
    page.click("Approve")


@pytest.mark.slow
def test_a_person_approves_a_decision_and_takes_it_back(page: Page) -> None:
    page.picture("record")
    page.write("review", "2999-01-31")
    approve(page, "Bo Smith", "if the lease ends in May")
    page.see("To be looked at again on 2999-01-31.", ".approvals .holds")
    page.see("if the lease ends in May", ".approvals .holds")
    assert page.text("#say") == "Approved by Bo Smith."
    approve(page, "Bo Smith")
    page.see("Bo Smith has approved this already")
    page.picture("record-approved", at="[aria-label=Approvals]")
    page.run("document.querySelector('.approvals details').open = true")
    page.run("document.querySelector('.approvals details input').value = 'the rents were old'")
    page.run("document.querySelector('.approvals details button').click()")
    page.see("the rents were old", ".approvals .withdrawn")
    approve(page, "Cy Lee")
    page.see("Cy Lee", ".approvals .holds")
    page.open(str(page.run("return location.pathname")))
    assert [page.text(".approvals .withdrawn b"), page.text(".approvals .holds b")] == ["Bo Smith", "Cy Lee"]


@pytest.mark.slow
def test_a_decision_is_computed_again_and_says_what_changed(page: Page, tmp_path: Path) -> None:
    page.click("Compute again")
    page.see("Still holds.", ".verdict.holds")
    with closing(sqlite3.connect(tmp_path / "sites.db")) as database, database:
        database.execute("UPDATE site SET rent = 900 WHERE name = 'elm'")
    page.click("Compute again")
    page.see("It cannot be said", ".verdict.cannot-be-said")
    row = page.run(
        "return [...document.querySelectorAll('[aria-label=\"What changed\"] tbody td')].map((one) => one.innerText)"
    )
    assert row[:3] == ["o1.r1", "rent 400", "rent 900"]
    page.picture("record-verified", at=".verdict")
    page.picture("record-verified-phone", 390, 844, at=".verdict")


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "it is there")
def test_axe_has_nothing_to_say_of_the_record_and_of_its_page_to_print(page: Page) -> None:
    approve(page, "Bo Smith")
    page.see("Bo Smith", ".approvals .holds")
    page.click("Compute again")
    page.see("Still holds.")
    page.run("document.querySelectorAll('details').forEach((one) => one.open = true)")
    page.browser.size(390, 844)
    assert page.sideways() <= 0
    page.picture("record-phone", 390, 844)
    page.run("document.querySelectorAll('details').forEach((one) => one.open = true)")
    for scheme in ("light", "dark"):
        page.colours(scheme)
        assert axe(page) == [], scheme
    page.click("The whole record, to print")
    page.until("document.querySelector('main.decisor.record')")
    page.picture("record-print")
    page.picture("record-print-phone", 390, 844)
    for scheme in ("light", "dark"):
        page.colours(scheme)
        assert axe(page) == [], scheme


@pytest.mark.slow
def test_a_decision_is_approved_and_computed_again_by_keyboard_alone(page: Page) -> None:
    page.run("document.querySelector('main').focus()")
    tab_to(page, "document.activeElement.id === 'by'")
    page.press(*"Bo")
    tab_to(page, "document.activeElement.innerText === 'Approve'")
    page.press("Enter")
    page.see("Bo", ".approvals .holds")
    tab_to(page, "document.activeElement.innerText === 'Compute again'")
    page.press("Enter")
    page.see("Still holds.", ".verdict")


def sign_in(page: Page, name: str) -> None:
    page.browser.open(f"{page.url}/")
    page.until("document.querySelector('#token, .start #question')")
    if page.run("return document.querySelector('.start #question') !== null"):
        page.click("Sign out", "#side")
        page.until("document.querySelector('#token')")
    page.write("token", f"token of {name}")
    page.click("Sign in")
    page.see(name, "#version")


@pytest.mark.slow
def test_a_second_user_is_shown_a_decision_and_refuses_it_and_then_approves(tmp_path: Path) -> None:
    users = users_of(tmp_path, ann="", bob="", eve="connections = []")
    with (
        serve_threaded(planner()) as url,
        window(ServerSettings(sources(tmp_path), {"m": f"m@{url}"}, users=users)) as page,
    ):
        sign_in(page, "ann")
        page.ask("Which site should we open?")
        page.answered()
        page.click("More")
        page.click("Show it to another user")
        page.see("Only you may read it.", ".readers")
        assert page.run("return [...document.querySelectorAll('#reader option')].map((one) => one.value)") == ["bob"]
        page.picture("readers", at=".readers")
        page.click("Show it")
        page.see("bob", ".readers ul")
        sign_in(page, "bob")
        page.see("from ann", "#runs")
        page.picture("shown-list")
        page.run("document.querySelector('#runs a').click()")
        page.answered()
        page.see("asked by ann", ".asked")
        assert page.run("return document.querySelectorAll('.change, .mark, .next textarea').length") == 0
        page.picture("shown-run")
        page.click("Review and approve")
        page.see("You answer for it as bob.")
        page.click("Refuse")
        page.see("Why do you refuse it? Say it in the note.", "[role=alert]")
        page.write("approval-note", "the lease ends in May")
        page.click("Refuse")
        page.see("the lease ends in May", ".approvals .refused")
        assert axe(page) == []
        page.picture("refused")
        address = page.run("return location.pathname")
        sign_in(page, "ann")
        page.open(str(address))
        page.see("the lease ends in May", ".approvals .refused")
        assert "Withdraw" not in page.text(".approvals")
        sign_in(page, "bob")
        page.open(str(address))
        page.run("document.querySelector('.approvals details').open = true")
        page.run("document.querySelector('.approvals details button').click()")
        page.see("withdrawn", ".approvals .withdrawn")
        page.click("Approve")
        page.see("bob", ".approvals .holds")
        sign_in(page, "ann")
        page.open(str(address))
        assert page.text(".approvals .holds b") == "bob"
        page.click("Show it to bob no more")
        page.see("Only you may read it.", ".readers")
        sign_in(page, "bob")
        page.browser.open(page.url + str(address))
        page.see("This cannot be shown")
