"""The documentation as a site: every page is there, every link leads somewhere, nothing is fetched, search works."""

import re
import runpy
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import decisor
from decisor.cli import COMMANDS, MORE
from decisor.techniques import TECHNIQUES
from report.browser import FOUND, browser
from traces.every_event import CLASSES

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "docs" / "pages" / "make.py"


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.parts: list[tuple[str, str]] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        for name in {"script": ["src"], "link": ["href"], "img": ["src"]}.get(tag, []):
            if name in values:
                self.parts.append((tag, values[name]))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    make: Callable[[Path], Path] = runpy.run_path(str(SCRIPT))["make"]
    return make(tmp_path_factory.mktemp("docs"))


def test_every_technique_and_every_public_name_has_a_page(source: Path) -> None:
    pages = source.parent / "pages"
    assert {path.stem for path in (pages / "techniques").glob("*.md")} == set(TECHNIQUES)
    assert {path.stem for path in (pages / "api").glob("*.md")} == set(decisor.__all__)
    assert {path.stem for path in (pages / "commands").glob("*.md")} == set(COMMANDS | MORE)
    for path in (pages / "commands").glob("*.md"):
        assert "| option | means |" in path.read_text("utf-8"), path.stem
    events = (pages / "events.md").read_text("utf-8")
    named = {kind.__name__ for kind in CLASSES} | {one.name for kind in CLASSES for one in fields(kind)}
    assert not [name for name in named if f"`{name}`" not in events and f"## {name}" not in events]
    for path in (pages / "techniques").glob("*.md"):
        text = path.read_text("utf-8")
        assert "## Algorithm" in text and "**Cost:** " in text, path.stem


def test_llms_txt_names_every_page_of_the_users_with_what_it_is(source: Path) -> None:
    pages = source.parent / "pages"
    index, whole = ((pages / name).read_text("utf-8") for name in ("llms.txt", "llms-full.txt"))
    assert index.startswith("# Decisor\n\n> ")
    names = re.findall(r"^- \[[^\]]+\]\((.+)\.html\)", index, re.M)
    assert len(names) == 19 and all((pages / f"{name}.md").exists() for name in names)
    assert all(
        re.search(r": [^|]{20,}\.$", line) for line in index.splitlines() if line.startswith("- ") and "/" not in line
    )
    assert all(title in whole for title in ("# Decision models", "# FAQ", "# Access"))


def test_every_page_is_in_the_menu(source: Path) -> None:
    menu, pages = source.read_text("utf-8"), source.parent / "pages"
    names = {str(path.relative_to(pages)) for path in pages.rglob("*.md")} - {"decisions/index.md"}
    assert not [name for name in names if f'"{name}"' not in menu]


@pytest.fixture(scope="module")
def site(source: Path) -> Path:
    if find_spec("zensical") is None:
        pytest.skip("the site needs zensical: pip install --group docs")
    command = [sys.executable, "-m", "zensical", "build", "-f", str(source)]
    built = subprocess.run(command, capture_output=True, text=True, cwd=source.parent, timeout=300, check=False)
    assert built.returncode == 0, built.stderr
    return source.parent / "site"


@pytest.mark.slow
def test_the_site_is_whole_and_fetches_nothing(site: Path) -> None:
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 80
    wrong = []
    for path, page in pages.items():
        wrong += [f"{path.name}: {tag} {value}" for tag, value in page.parts if urlsplit(value).netloc]
        for link in page.links if path.name != "404.html" else []:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            place = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = place / "index.html" if place.is_dir() else place
            if not place.exists():
                wrong.append(f"{path.name}: {link}")
            elif parts.fragment and place in pages and unquote(parts.fragment) not in pages[place].anchors:
                wrong.append(f"{path.name}: {link}, no such anchor")
    assert not wrong, wrong[:20]
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?https?:", style.read_text("utf-8")), style.name


@pytest.mark.slow
@pytest.mark.skipif(not FOUND, reason="needs chromium and chromedriver")
def test_search_works_from_the_folder(site: Path) -> None:
    dialog = "[...document.querySelectorAll('*')].find(e => e.shadowRoot?.querySelector('dialog')).shadowRoot"
    typed = "box.value = 'turning points'; box.dispatchEvent(new Event('input', {bubbles: true}))"
    with browser() as chromium:
        chromium.open((site / "decisions" / "sql.html").as_uri())
        chromium.run("document.querySelector('.md-search__button').click()")
        chromium.run(f"const box = {dialog}.querySelector('input'); {typed}")
        deadline = time.monotonic() + 60
        found: list[str] = []
        while not found and time.monotonic() < deadline:
            found = chromium.run(f"return [...{dialog}.querySelectorAll('[role=listbox] a')].map(a => a.href)")
        assert any(link.endswith("/decision-models.html?h=turning+points#what-if") for link in found), found


@pytest.mark.parametrize("source", ["", "https://example.org/decisor/blob/main"])
def test_the_readme_of_the_package_has_no_link_that_leads_nowhere(source: str) -> None:
    for_index: Callable[[str, str], str] = runpy.run_path(str(SCRIPT.with_name("package_readme.py")))["for_index"]
    text = for_index((ROOT / "README.md").read_text("utf-8"), source)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert links and all(link.startswith("https://") for link in links)
    assert ("docs/pictures/demo.svg" in text) == bool(source)
    for link in links:
        if source and link.startswith("https://example.org/"):
            assert (
                ROOT / link.removeprefix("https://example.org/decisor/").partition("/main/")[2].partition("#")[0]
            ).exists()
