"""Somebody else's technique is named by import path; what is wrong with it is one line."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from decisor.errors import SetupError
from decisor.llms.scripted import ScriptedLLM
from decisor.runtime.run import Run
from decisor.system.settings import label_with_settings
from decisor.techniques import asks_llm, build_technique
from decisor.tools.toolbox import Toolbox
from decisor.types import Question

MODULE = '''
from dataclasses import dataclass
from typing import ClassVar

from decisor.types import Decision


@dataclass(frozen=True)
class Coin:
    """Says one side."""

    asks_llm: ClassVar[bool] = False
    side: str = "heads"

    async def __call__(self, question, run):
        return Decision(self.side)


class Plain:
    async def __call__(self, question, run):
        return Decision("plain")


class Synchronous:
    def __call__(self, question, run):
        return Decision("too soon")


class Greedy:
    async def __call__(self, question, run, reward):
        return Decision("gold")


class Assembled:
    def __init__(self, parts):
        self.parts = parts

    async def __call__(self, question, run):
        return Decision("parts")


SIDES = 2
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "my_coin.py").write_text(MODULE)
    (tmp_path / "my_broken.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("my_coin", None)


@pytest.mark.usefixtures("folder")
def test_a_class_of_the_current_folder_is_a_technique_with_its_settings() -> None:
    coin = build_technique("my_coin:Coin", side="tails")
    decision = asyncio.run(coin(Question("Which side?"), Run(ScriptedLLM([]), Toolbox([]))))
    assert decision.answer == "tails"
    assert not asks_llm(coin)
    assert label_with_settings("my_coin:Coin", coin, {"side": "tails"}) == "my_coin:Coin side=tails"


@pytest.mark.usefixtures("folder")
def test_a_plain_class_is_a_technique_without_settings() -> None:
    plain = build_technique("my_coin:Plain")
    assert asks_llm(plain)
    assert label_with_settings("my_coin:Plain", plain, {}) == "my_coin:Plain"
    with pytest.raises(SetupError, match="my_coin:Plain has no side; it has no settings"):
        build_technique("my_coin:Plain", side="tails")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("my_coin:", "'my_coin:' is no import path: write module:Class."),
        ("no_such_room:Coin", "no_such_room:Coin: there is no module no_such_room here or among what is installed."),
        ("my_broken:Coin", "my_broken:Coin: my_broken cannot be imported: ZeroDivisionError: division by zero"),
        (
            "my_coin:Dice",
            "my_coin:Dice: there is no class Dice; my_coin has Coin, Plain, Synchronous, Greedy, Assembled.",
        ),
        ("my_coin:SIDES", "my_coin:SIDES: there is no class SIDES; my_coin has Coin, Plain,"),
        (
            "my_coin:Synchronous",
            "my_coin:Synchronous is no technique: it lacks `async def __call__(self, question, run)`.",
        ),
        ("my_coin:Greedy", "my_coin:Greedy is no technique: its __call__ takes (question, run): missing a required"),
        ("my_coin:Assembled", "my_coin:Assembled is no dataclass: its fields would be its settings."),
    ],
)
def test_what_is_no_technique_is_said_in_one_line(path: str, complaint: str) -> None:
    with pytest.raises(SetupError) as error:
        build_technique(path)
    assert str(error.value).startswith(complaint)
    assert "\n" not in str(error.value)


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    with pytest.raises(SetupError, match=r"There is no technique 'plan-rag'\. Did you mean plan_rag\?"):
        build_technique("plan-rag")
