"""Decisor answers decision questions from data, and shows its evidence.

    import decisor

    result = decisor.ask("Which site should we open?", db="sqlite:///sites.db", llm="gpt-4.1-mini")
    print(result)

Every name below is imported when it is first used.
"""

from decisor.system.forks import register_finishing

TYPE_CHECKING = False  # type checkers take it for True; importing typing would take longer than all of this
if TYPE_CHECKING:
    from decisor.errors import BudgetExceeded, Error, LLMError, SetupError, ToolError
    from decisor.llms.providers import LLMSpec
    from decisor.llms.scripted import ScriptedLLM
    from decisor.runtime.budget import Limits
    from decisor.runtime.run import Run
    from decisor.session.data import Data, ask
    from decisor.session.data import open as open
    from decisor.session.result import Result
    from decisor.session.user_tools import ToolSpecs
    from decisor.types import Decision, Evidence, Observation, Question, Ranking, Record, Usage
    from decisor.version import __version__ as __version__

__all__ = [
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
]
"""Without ``open``, which would hide Python's own after ``from decisor import *``."""
_HOMES = {
    "errors": ("BudgetExceeded", "Error", "LLMError", "SetupError", "ToolError"),
    "llms.scripted": ("ScriptedLLM",),
    "llms.providers": ("LLMSpec",),
    "runtime.budget": ("Limits",),
    "runtime.run": ("Run",),
    "session.data": ("Data", "ask", "open"),
    "session.result": ("Result",),
    "session.user_tools": ("ToolSpecs",),
    "version": ("__version__",),
    "types": ("Decision", "Evidence", "Observation", "Question", "Ranking", "Record", "Usage"),
}
"""Module -> what it brings."""


register_finishing()

if not TYPE_CHECKING:  # a checker knows the names above, and complains of others

    def __getattr__(name: str) -> object:
        from importlib import import_module

        # Their names until 0.2; to be dropped in the version after next.
        name = {"LMError": "LLMError", "LMSpec": "LLMSpec", "ScriptedLM": "ScriptedLLM"}.get(name, name)
        for module, names in _HOMES.items():
            if name in names:
                value: object = getattr(import_module(f"decisor.{module}"), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module 'decisor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__", "open"]
