"""A technique in a person's own words and at their temperature: settings that every technique has."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from decisor.cli import run_command_line as command
from decisor.errors import SetupError
from decisor.llms.openai_compatible import build_chat_request
from decisor.llms.shared import list_sampling_values
from decisor.parsing.prompting import Asking
from decisor.runtime.budget import Budget
from decisor.runtime.run import Run
from decisor.session.run_setup import decide_by_technique
from decisor.techniques import TECHNIQUES, build_technique, find_technique_class
from decisor.techniques.shared.prompts_file import (
    format_prompts_file,
    list_prompts,
    read_prompts,
    split_asking_settings,
)
from decisor.tools.toolbox import Toolbox
from decisor.types import Completion, Message, Question, Sampling, Usage
from techniques.table import TableTool

LONGEST = Question("Which river is the longest?")
REPLIES = ("Action: sql\nAction input: select name, km from river", "Final answer: bel\nBecause: 340 km [o1.r2]")


@dataclass
class Hearing:
    """Answers in turn, and keeps what it was asked and how."""

    prompts: list[str] = field(default_factory=list)
    samplings: list[Sampling] = field(default_factory=list)
    name: str = "hearing"

    async def complete(self, messages: Sequence[Message], sampling: Sampling = Sampling()) -> Completion:
        await asyncio.sleep(0)
        self.prompts.append("\n".join(message.content for message in messages))
        self.samplings.append(sampling)
        return Completion((REPLIES[(len(self.prompts) - 1) % 2],), Usage(1))


async def asked(asking: Asking) -> Hearing:
    llm = Hearing()
    await decide_by_technique(
        build_technique("single_rag"), LONGEST, Run(llm, Toolbox([TableTool()]), Budget(), asking=asking)
    )
    return llm


@pytest.mark.parametrize("name", [name for name in TECHNIQUES if name not in ("exact", "heuristic", "auto")])
def test_the_prompts_of_every_technique_come_back_from_their_file(name: str, tmp_path: Path) -> None:
    prompts = list_prompts(find_technique_class(name))
    assert prompts
    file = tmp_path / "mine.toml"
    file.write_text(format_prompts_file(prompts), "utf-8")
    assert read_prompts(file, find_technique_class(name), name) == {}


async def test_a_changed_prompt_is_sent_and_the_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        '"single_rag.QUERY" = "Tools: $tools\\nWrite like this: $form"\n'
        '"single_rag.ACTION" = "Action: a tool\\nAction input: a query, says the paper"\n',
        "utf-8",
    )
    asking, rest = split_asking_settings(
        find_technique_class("single_rag"), "single_rag", {"prompts": str(file), "again": "no"}
    )
    assert rest == {"again": "no"}
    mine, usual = await asyncio.gather(asked(asking), asked(Asking()))
    assert mine.prompts[0].startswith("Tools: ### Tool: sql") and "a query, says the paper" in mine.prompts[0]
    assert mine.prompts[1] == usual.prompts[1] and "says the paper" not in "".join(usual.prompts)


async def test_a_temperature_and_top_p_of_ones_own_are_those_of_every_call() -> None:
    asking, _ = split_asking_settings(
        find_technique_class("single_rag"), "single_rag", {"temperature": "0.7", "top_p": "0.9"}
    )
    llm = await asked(asking)
    assert {(one.temperature, one.top_p) for one in llm.samplings} == {(0.7, 0.9)}
    body = build_chat_request("m", [Message("user", "x")], llm.samplings[0], set())
    assert (body["temperature"], body["top_p"]) == (0.7, 0.9)
    assert "top_p" not in build_chat_request("m", [Message("user", "x")], Sampling(), set())
    assert list_sampling_values(llm.samplings[0]) != list_sampling_values(
        Sampling(stop=llm.samplings[0].stop, temperature=0.7)
    )


def test_a_technique_that_has_a_temperature_of_its_own_keeps_it() -> None:
    asking, rest = split_asking_settings(
        find_technique_class("furepa"), "furepa", {"temperature": "sampled", "top_p": "0.5"}
    )
    assert (asking.temperature, asking.top_p, rest) == (None, 0.5, {"temperature": "sampled"})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('"single_rag.QUERY" = "Write $form"', r"single_rag.QUERY lacks \$tools"),
        ('"single_rag.QUERY" = "$tools $form $gold"', r"has \$gold, which nothing fills in"),
        ('"single_rag.MINE" = "x"', "has no prompt single_rag.MINE"),
        ("x", "Cannot read the prompts"),
    ],
)
def test_a_file_that_does_not_fit_is_told_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(SetupError, match=complaint):
        split_asking_settings(find_technique_class("single_rag"), "single_rag", {"prompts": str(file)})


def test_a_temperature_out_of_range_is_told() -> None:
    with pytest.raises(SetupError, match="temperature is a number from 0 to 2, not '3'"):
        split_asking_settings(find_technique_class("plan_rag"), "plan_rag", {"temperature": "3"})


def test_the_command_prints_what_can_be_read_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["prompts", "plan_rag"]) == 0
    assert '"plan_rag.SYSTEM" = ' in capsys.readouterr().out
