"""What the package shows of itself."""

import dataclasses
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

import decisor
from decisor.errors import SetupError
from decisor.runtime.budget import Limits
from decisor.session.config import Config
from decisor.session.open_sources import sources_of_request
from decisor.session.request import (
    AskRequest,
    Attachments,
    DataOptions,
    Options,
    read_kept_request,
    write_kept_request,
)

NAMES = {
    "BudgetExceeded",
    "Data",
    "Decision",
    "Error",
    "Evidence",
    "LLMError",
    "LLMSpec",
    "Limits",
    "Observation",
    "Question",
    "Ranking",
    "Record",
    "Result",
    "Run",
    "ScriptedLLM",
    "SetupError",
    "ToolError",
    "ToolSpecs",
    "Usage",
    "ask",
}


def test_a_setting_that_is_named_by_no_text_is_refused_in_words() -> None:
    with pytest.raises(SetupError, match="named by texts, such as max_steps, not by 1"):
        decisor.ask("x", settings={1: 2})  # type: ignore[dict-item]


def test_the_names_are_few_listed_and_documented() -> None:
    assert set(decisor.__all__) == NAMES and sorted(decisor.__all__) == decisor.__all__
    for name in NAMES:
        assert getattr(decisor, name).__doc__, name
    assert set(dir(decisor)) == NAMES | {"__version__", "open"}
    code = "from decisor import *; import builtins; print(open is builtins.open, ask.__module__)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "True decisor.session.data\n"
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        getattr(decisor, "nosuch")  # noqa: B009


def test_the_signature_of_ask_names_every_option_with_its_type_and_so_does_its_docstring() -> None:
    parameters = dict(inspect.signature(decisor.ask).parameters)
    assert parameters.pop("question").annotation == "str | Question"
    assert parameters.pop("others").annotation == "Never"
    options = {**Options.__annotations__, **DataOptions.__annotations__}
    types = {name: one.__forward_arg__ for name, one in options.items()}
    assert {name: one.annotation.removesuffix(" | None") for name, one in parameters.items()} == {
        name: text.removesuffix(" | None") for name, text in types.items()
    }
    told = re.findall(r"^    (\w+): ", inspect.getdoc(decisor.ask) or "", re.MULTILINE)
    assert told == list(parameters) + ["SetupError", "LLMError"]


def test_every_keyword_of_python_is_a_field_of_a_request_or_an_object_beside_it() -> None:
    fields, objects = set(AskRequest.model_fields), {one.name for one in dataclasses.fields(Attachments)}
    assert set(get_type_hints(Options)) <= fields | objects
    assert set(DataOptions.__annotations__) - {"who"} <= fields


def test_every_field_of_a_request_tells_what_it_is() -> None:
    assert not [name for name, info in AskRequest.model_fields.items() if not info.description]


def test_a_request_is_the_same_after_it_was_kept_and_what_an_earlier_release_kept_is_read() -> None:
    request = AskRequest(
        db=("a.db",), limits=Limits(calls=3), settings={"max_steps": "2"}, folder=str(Path.cwd()), left_out=()
    )
    kept = write_kept_request(request, Attachments(), sources_of_request(request, Config()))
    assert read_kept_request(json.loads(json.dumps(kept))) == request
    old = {
        "db": ["a.db"],
        "model": "",
        "row_values": "",
        "rows": [],
        "limits": {"calls": 3, "seconds": None},
        "gone": 1,
    }
    assert read_kept_request({**old, "of_a_later_release": 1}) == AskRequest(db=("a.db",), limits=Limits(calls=3))


def test_a_kept_run_has_the_llm_that_a_variable_named(monkeypatch: pytest.MonkeyPatch) -> None:
    request, sources = AskRequest(db=("a.db",)), sources_of_request(AskRequest(db=("a.db",)), Config())
    monkeypatch.setenv("DECISOR_LLM", "qwen3:8b@http://localhost:11434/v1")
    kept = write_kept_request(request, Attachments(), sources)
    assert read_kept_request(kept).llm == "qwen3:8b@http://localhost:11434/v1"
    monkeypatch.setenv("DECISOR_LLM", "m@http://me:secret@localhost/v1")
    assert "secret" not in json.dumps(write_kept_request(request, Attachments(), sources))


def test_data_are_read_without_the_library_that_checks_requests() -> None:
    code = "import sys, decisor; decisor.Data; print('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_importing_the_package_imports_nothing_else_of_it_but_what_a_fork_needs() -> None:
    code = "import sys, decisor; print([name for name in sys.modules if name.startswith('decisor.')])"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert names == "['decisor.system', 'decisor.system.forks']\n"


def test_type_checkers_see_what_is_lazy() -> None:
    source = decisor.__file__
    assert source is not None
    with open(source, encoding="utf-8") as file:  # noqa: PTH123
        text = file.read()
    stubs = text.partition("if TYPE_CHECKING:")[2].partition("__version__")[0]
    assert not [name for name in decisor.__all__ if f" {name}" not in stubs]
