"""decisor.toml and variables: what holds, from where, and what a file from someone else may not say."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import decisor as library
from decisor.cli import run_command_line
from decisor.errors import SetupError
from decisor.history.store import History
from decisor.runtime.budget import Limits
from decisor.session.config import (
    SETTINGS,
    Connection,
    fill_in_secrets,
    resolve_config,
    trust_config_file,
    user_config_file,
)
from decisor.session.open_sources import complete_request, sources_of_request
from decisor.session.request import AskRequest, find_flag, spell_option
from decisor.session.sources import build_sources
from local_llm import Decisor, LocalLLM

SALES = '[connections.sales]\nurl = "postgresql://ann:${SALES_PASSWORD}@db.example.com/sales"\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_user(text: str) -> None:
    user_config_file().parent.mkdir(parents=True)
    user_config_file().write_text(text)


def write_folder(text: str) -> None:
    Path("decisor.toml").write_text(text)


def origin(name: str) -> str:
    return resolve_config().settings[name].origin


def test_an_option_goes_before_the_environment_that_before_the_folder_that_before_the_person(
    monkeypatch: pytest.MonkeyPatch, decisor: Decisor
) -> None:
    assert resolve_config().limits(Limits()) == Limits()
    write_user('llm = "mine"\n[limits]\ncalls = 9\ntokens = 900\nseconds = 1.5\n')
    assert resolve_config().limits(Limits()) == Limits(calls=9, tokens=900, seconds=1.5)
    write_folder('llm = "folders"\n[limits]\ncalls = 8\n')
    decisor("config", "trust")
    assert (resolve_config().llm(None), origin("llm"), origin("limits.calls")) == ("folders", "folder", "folder")
    monkeypatch.setenv("DECISOR_CALLS", "7")
    monkeypatch.setenv("DECISOR_LLM", "environments")
    assert resolve_config().llm(None) is None  # the environment's, which is read where an LLM is opened
    assert resolve_config().limits(Limits(tokens=5)) == Limits(calls=7, tokens=5, seconds=1.5)
    assert resolve_config().llm("options") == "options"


def test_a_price_of_a_file_is_that_of_the_llm_that_is_asked_where_nothing_else_says_one() -> None:
    write_user('llm = "m@http://localhost:1/v1 timeout=9"\n[prices]\nm = "0.4, 1.6"\n')
    assert resolve_config().llm(None) == "m@http://localhost:1/v1 timeout=9 price=0.4,1.6"
    assert resolve_config().llm("m price=1,2") == "m price=1,2"
    assert resolve_config().llm("other") == "other"


def test_a_connection_is_asked_by_its_name_from_any_folder_and_says_what_may_be_read(
    decisor: Decisor, local_llm: LocalLLM, sites: Path
) -> None:
    write_user(f'[connections.sites]\nurl = "{sites}"\ntables = ["site"]\n')
    local_llm.replies = ["Plan: [Step 1: look]\nThought: a\nAction: sites\nAction input: SELECT name, rent FROM site"]
    done = decisor("ask", "Which site?", "--db", "sites", "--llm", local_llm.name)
    assert "Decision: elm" in done.stdout
    assert "### Tool: sites" in local_llm.prompts[0]
    assert History().read().inputs["db"] == ["sites"]
    assert "Decision" not in done.stderr and "decisor: " not in done.stderr
    refused = decisor("ask", "Which?", "--db", "sites", "--tables", "salary", "--llm", local_llm.name, code=2)
    assert "salary may not be read" in refused.stderr


def test_tables_of_a_connection_are_its_own_and_denied_ones_stay_denied() -> None:
    shop = Connection("shop", "sqlite:///shop.db", tables=("Orders", "people"), deny_tables=("pay",))
    sources = build_sources(db=[shop, "other=sqlite:///x.db"], tables=["shop.orders"])
    assert (sources.tables, sources.deny_tables) == (("shop.orders",), ("shop.pay",))
    assert build_sources(db=shop).tables == ("shop.Orders", "shop.people")
    with pytest.raises(SetupError, match="pay may not be read"):
        build_sources(db=shop, tables="pay")


def test_what_a_config_file_masks_is_masked_for_whoever_asks(sites: Path) -> None:
    masking = Connection("sites", str(sites), mask={"site.rent": "token"})
    look = "Thought: look\nAction: sites\nAction input: SELECT rent FROM site"
    end = "Thought: enough\nFinal answer: the first\nBecause: it is there [o1.r1]"
    llm = library.ScriptedLLM(lambda messages: end if "masked_" in str(messages[1:]) else look)
    library.ask("Which?", db=masking, llm=llm, technique="iter_rag", settings={"calling": "text"})
    assert "masked_" in llm.seen[-1] and len(llm.seen) < 5


def test_a_secret_is_named_never_written(monkeypatch: pytest.MonkeyPatch, decisor: Decisor) -> None:
    write_user(SALES)
    with pytest.raises(SetupError, match="SALES_PASSWORD is not set"):
        build_sources(db=resolve_config().connection("sales"))
    monkeypatch.setenv("SALES_PASSWORD", "p@ss/hunter22")
    source = build_sources(db=resolve_config().connection("sales")).places[0]
    assert source.place == "postgresql://ann:p%40ss%2Fhunter22@db.example.com/sales"
    for words in ((), ("--json",)):
        done = decisor("config", *words)
        assert "${SALES_PASSWORD}" in done.stdout and "hunter22" not in done.stdout + done.stderr
    monkeypatch.setenv("WHOLE", "sqlite:///a b.db")
    assert fill_in_secrets("${WHOLE}") == "sqlite:///a b.db"


@pytest.mark.parametrize(
    "text",
    [
        '[connections.shop]\nurl = "postgresql://ann:hunter22@host/shop"\n',
        '[connections]\nshop = "mysql://a:hunter22@h/s"\n',
        '[connections.shop]\nurl = "postgresql://host/shop?password=hunter22"\n',
        'llm = "m@https://u:hunter22@host/v1"\n',
        'db = "postgresql://ann:hunter22@host/shop"\n',
    ],
)
def test_a_password_in_a_file_is_refused_with_what_to_do(text: str, decisor: Decisor) -> None:
    write_user(text)
    done = decisor("config", code=2)
    assert "holds a password" in done.stderr and "environment variable" in done.stderr
    assert "hunter22" not in done.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("calls = 3", "no setting calls"),
        ("[limits]\ncall = 3", "no setting limits.call. Did you mean limits.calls?"),
        ("reading = 'off'", "no setting reading. Did you mean readings?"),
        ("[tools]\nrow_value = 'ask'", "no setting tools.row_value. Did you mean tools.row_values?"),
        ("[tools]\nrow_values = 'yes'", "takes one of ask, allow, refuse, not 'yes'"),
        ("[tools]\nauth = 3", "takes a text, or several"),
        ("tools = 3", "a table"),
        ("[limits]\ncalls = 0", "above 0"),
        ("[limits]\ncalls = 1.5", "whole number"),
        ("[connections.shop]\ntables = []", "needs a url"),
        ('[connections.shop]\nurl = "a.db"\ntables = "x"', "a list"),
        (
            '[connections.shop]\nurl = "a.db"\nmasks = 1',
            r"connections.shop.masks is not known here; .* \(did you mean mask\?\)",
        ),
        ('[connections.shop]\nurl = "a.db"\nseconds = 0', "connections.shop.seconds is to be above 0, not 0"),
        ('[connections.shop]\nurl = "a.db"\nmax_scan = "x"', "such as 5M or 2GB"),
        ('[connections."a b"]\nurl = "a.db"', "letters, digits"),
        ("llm = 3", "takes a text"),
        ("llm = ", "Invalid value"),
        ("prices = 3", "a table"),
        ("[prices]\nm = 3", "as text"),
        ("history = 3", "true or false"),
    ],
)
def test_what_a_file_cannot_say_is_one_line_with_its_name(text: str, complaint: str) -> None:
    write_user(text)
    with pytest.raises(SetupError, match=complaint) as error:
        resolve_config()
    assert str(user_config_file()) in str(error.value)


def test_a_rare_option_is_a_key_of_the_file_and_not_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    keys = {name: flag.key for name, info in AskRequest.model_fields.items() if (flag := find_flag(info)) and flag.key}
    assert set(keys.values()) == SETTINGS.keys() - {"llm", "technique", "db", "history"}
    assert run_command_line(["ask", "--help"]) == 0
    listed, _, rare = capsys.readouterr().out.partition("Rarely needed")
    for name in keys:
        assert f"  {spell_option(name)} " not in listed and spell_option(name) in rare
    docs = (Path(__file__).parents[2] / "docs" / "start.md").read_text("utf-8")
    assert not [key for key in keys.values() if f"`{key.rpartition('.')[2]}`" not in docs]


def test_the_options_of_tools_come_from_the_file_and_an_option_goes_before() -> None:
    write_folder(
        'readings = "off"\n[tools]\nmethods = "post, put"\nauth = ["KEY", "mcp=OTHER"]\n'
        'base_url = "https://api.example"\nrow_values = "allow"\n'
    )
    assert complete_request(AskRequest(tools=("api.json",)), resolve_config()).readings == "auto"  # not trusted
    trust_config_file(Path("decisor.toml"), Path("decisor.toml").read_bytes())
    config = resolve_config()
    request = complete_request(AskRequest(tools=("api.json",), row_values="ask"), config)
    assert (request.readings, request.row_values, request.methods) == ("off", "ask", ("post", "put"))
    specs = sources_of_request(AskRequest(tools=("api.json",)), config).tools
    assert (specs.base_url, specs.auth, specs.row_values) == ("https://api.example", ("KEY", "mcp=OTHER"), "allow")
    # Without tools nothing is said of them, and that is no fault.
    assert not sources_of_request(AskRequest(), config).tools.auth


def test_a_file_of_a_folder_sets_no_llm_no_server_no_secret_and_no_code_until_it_is_trusted(
    decisor: Decisor, sites: Path, tmp_path: Path
) -> None:
    write_user(f'[connections]\nmine = "{sites}"\n[limits]\ndollars = 0.5\n')
    write_folder(
        'llm = "m@http://evil.example/v1"\ntechnique = "evil:Code"\nhistory = false\ndb = "mine"\n[limits]\n'
        'dollars = 99\ncalls = 3\n[prices]\nm = "0,0"\n[connections]\nmine = "sites.db"\nown = "sites.db"\n'
        'secret = "${HOME}.db"\n'
        'server = "postgresql://evil.example/x"\nabove = "../x.db"\nlink = "link.db"\n'
        '[connections.words]\nurl = "sites.db"\ndefinitions = "../../x.toml"\n'
    )
    Path("link.db").symlink_to("/etc/passwd")
    config = resolve_config()
    assert {name: one.origin for name, one in config.settings.items()} == {
        "history": "default",
        "limits.dollars": "user",
        "limits.calls": "folder",
        "db": "folder",
    }
    assert config.limits(Limits()) == Limits(calls=3, dollars=0.5)
    assert set(config.connections) == {"mine", "own"}
    assert config.connection("mine").url == str(sites)
    assert not config.prices and config.keeps_history and config.llm(None) is None
    shown = decisor("config").stderr
    for name in ("llm", "technique", "prices", "connections.server", "connections.secret", "connections.link"):
        assert name in shown
    decisor("config", "trust")
    assert resolve_config().llm(None) == "m@http://evil.example/v1 price=0,0"
    assert "server" in resolve_config().connections
    with Path("decisor.toml").open("a") as file:
        file.write("\n")
    assert resolve_config().llm(None) is None
    decisor("config", "trust")
    decisor("config", "trust", "--off")
    assert resolve_config().llm(None) is None


def test_a_folder_with_a_link_that_leads_out_of_it_is_not_read_for_a_file_that_is_not_trusted() -> None:
    write_folder('[connections]\nall = "rows"\nsome = "rows/*.csv"\nup = "rows/*/../../../x.csv"\n')
    Path("rows/more").mkdir(parents=True)
    Path("rows/a.csv").write_text("name\nelm\n")
    Path("rows/more/b.csv").symlink_to(Path("rows/a.csv").resolve())
    assert set(resolve_config().connections) == {"all", "some"}
    Path("rows/c.csv").symlink_to("/etc/passwd")
    assert not resolve_config().connections


@pytest.mark.slow
def test_a_command_says_that_it_uses_a_file_of_the_folder(decisor: Decisor, local_llm: LocalLLM, sites: Path) -> None:
    write_folder('db = "sites.db"\nlm = "m@http://127.0.0.1:9/v1"\n')
    assert resolve_config().default_places == ()  # only names of its own connections
    write_folder('db = "sites"\nlm = "m@http://127.0.0.1:9/v1"\n[connections]\nsites = "sites.db"\n')
    local_llm.replies = ["Plan: [Step 1: look]\nThought: a\nAction: sites\nAction input: SELECT name, rent FROM site"]
    done = decisor("ask", "Which site?", "--llm", local_llm.name, "--json")
    assert json.loads(done.stdout)["answer"] == "elm"
    assert "decisor.toml of this folder is used for db, connections.sites; it is not trusted" in done.stderr


def test_a_secret_may_come_from_a_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = pytest.importorskip("keyring")
    backend = pytest.importorskip("keyring.backend")

    class OneSecret(backend.KeyringBackend):  # type: ignore[misc, name-defined]
        priority = 1

        def get_password(self, service: str, user: str) -> str | None:
            return "hunter22" if (service, user) == ("sales", "ann") else None

        def set_password(self, service: str, user: str, password: str) -> None:
            raise NotImplementedError

    before = keyring.get_keyring()
    keyring.set_keyring(OneSecret())
    try:
        assert fill_in_secrets("postgresql://ann:${keyring:sales/ann}@h/s") == "postgresql://ann:hunter22@h/s"
        with pytest.raises(SetupError, match="keyring set sales bob"):
            fill_in_secrets("${keyring:sales/bob}")
    finally:
        keyring.set_keyring(before)


def test_words_are_completed_by_the_shell(tmp_path: Path) -> None:
    words = {"_DECISOR_COMPLETE": "complete_bash", "COMP_WORDS": "decisor ask --no", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-m", "decisor"],
        env=os.environ | words,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "--no-history" in done.stdout.split()
    words |= {"COMP_WORDS": "decisor hi", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "decisor"],
        env=os.environ | words,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["history"]


def test_several_data_stand_in_a_variable_and_one_with_a_space_in_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECISOR_DB", '"my data.csv" sales="other data.csv"  sites.db')
    assert resolve_config().default_places == ("my data.csv", "sales=other data.csv", "sites.db")
