"""Parts that other packages add by entry points: the package of ``examples/plugin``, as pip installs it."""

import configparser
import shutil
import sqlite3
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from aiohttp import web

import decisor
from decisor.cli import run_command_line
from decisor.documents.tool import open_custom_retriever
from decisor.errors import SetupError
from decisor.lab.benchmark import find_bench_class
from decisor.llms import choose
from decisor.llms.prices import Price
from decisor.sandbox.engines import engine_of, load_engine
from decisor.system.extras import find_plugins
from decisor.techniques import find_technique_class
from decisor.testing import PLANTS, check_engine, check_llm, check_retriever
from servers.openai_server import serve_app
from session.conftest import planner

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "plugin"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the example as pip leaves it there: its module, and the metadata that its project file says."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    target = tmp_path / "site-packages"
    about = target / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir(parents=True)
    about.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = configparser.ConfigParser()
    points.read_dict(project["entry-points"])
    with about.joinpath("entry_points.txt").open("w") as file:
        points.write(file)
    shutil.copy(EXAMPLE / "decisor_example.py", target)
    return target


@pytest.fixture(autouse=True)
def package(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(installed))
    find_plugins.cache_clear()
    yield
    find_plugins.cache_clear()
    load_engine.cache_clear()
    sys.modules.pop("decisor_example", None)


def test_a_technique_of_a_package_decides_by_its_name(sites: Path) -> None:
    result = decisor.ask("Which site?", db=sites, technique="cheapest", settings={"table": "site"}, llm=planner())
    assert (result.answer, result.evidence.ids) == ("elm", ("o1.r1",))


def test_a_retriever_of_a_package_finds_passages(sites: Path) -> None:
    llm = decisor.ScriptedLLM(["Final answer: oak\nBecause: its lease ends in May [o1.r1]"])
    result = decisor.ask("Which lease ends?", docs="notes", technique="rag", llm=llm)
    assert [record.text for record in result.records] == ["The lease of oak ends in May."]


async def test_the_parts_of_the_example_hold_what_they_have_to(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "plants.toy")) as db, db:
        for statement in PLANTS:
            db.execute(statement)
    assert engine_of("toy:///plants.toy").title == "Toybase"
    await check_engine(f"toy:///{tmp_path}/plants.toy")
    await check_retriever(open_custom_retriever(find_plugins("retrievers")["notes"].value), "the lease of oak")
    assert find_bench_class("sums").__module__ == "decisor_example"
    with pytest.raises(SetupError, match="no engine for toys://"):
        engine_of("toys:///plants.toy")


async def test_an_llm_of_a_package_is_asked_and_its_key_goes_to_its_own_host_alone() -> None:
    keys: list[str] = []

    async def say(request: web.Request) -> web.Response:
        keys.append(request.headers["X-Key"])
        return web.json_response({"said": (await request.json())["text"].upper()})

    app = web.Application()
    app.router.add_post("/say", say)
    async with serve_app(app) as origin:
        theirs = {"SAY_API_KEY": "theirs", "SAY_BASE_URL": origin, "DECISOR_PRICE": "1,2"}
        elsewhere = {"SAY_API_KEY": "theirs", "DECISOR_LLM_KEY": "other", "OPENAI_API_KEY": "sk-ours"}
        for spec, environ in (("say/large", theirs), (f"say/large@{origin}", elsewhere)):
            llm = choose.choose_llm(spec, environ)
            assert llm is not None and (llm.name, type(llm).__name__) == ("large", "SayLLM")
            await check_llm(llm)
            await llm.close()
            assert set(keys) == {"theirs" if environ is theirs else "other"}
            keys.clear()
        priced = choose.choose_llm("say/large", theirs)
        assert priced is not None and priced.price == Price(1.0, 2.0)
    with pytest.raises(SetupError, match="needs a key: set SAY_API_KEY"):
        choose.choose_llm("say/large", {})


def test_the_command_lists_the_parts_with_their_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["plugins"]) == 0
    out = capsys.readouterr().out
    assert "techniques   cheapest         decisor_example:Cheapest (decisor-example)" in out
    assert "llms         say              decisor_example:PROVIDER" in out and "sums" in out


def test_nothing_of_ours_is_replaced_by_a_package_and_a_wrong_part_is_told(installed: Path) -> None:
    (points,) = installed.glob("*/entry_points.txt")
    points.write_text("[decisor.techniques]\nexact = decisor_example:Cheapest\nbroken = decisor_example:Notes\n")
    assert find_technique_class("exact").__module__ == "decisor.techniques.exact"
    with pytest.raises(SetupError, match="decisor_example:Notes is no technique"):
        find_technique_class("broken")
