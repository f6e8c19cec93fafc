"""What the package shows of itself."""

import subprocess
import sys
from typing import get_type_hints

import pytest

import decisor
from decisor.session.request import Options

NAMES = {
    "BudgetExceeded",
    "Data",
    "Decision",
    "Error",
    "Evidence",
    "LMError",
    "LMSpec",
    "Limits",
    "Observation",
    "Question",
    "Ranking",
    "Record",
    "Result",
    "Run",
    "ScriptedLM",
    "SetupError",
    "ToolError",
    "ToolSpecs",
    "Usage",
    "ask",
    "open",
}


def test_the_names_are_few_listed_and_documented() -> None:
    assert set(decisor.__all__) == NAMES and sorted(decisor.__all__) == decisor.__all__
    for name in NAMES:
        assert getattr(decisor, name).__doc__, name
    assert set(dir(decisor)) == NAMES | {"__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        getattr(decisor, "nosuch")  # noqa: B009


def test_every_option_of_ask_is_told_in_its_docstring() -> None:
    text = (decisor.ask.__doc__ or "") + (Options.__doc__ or "")
    assert not [name for name in get_type_hints(Options) if name not in text]


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
