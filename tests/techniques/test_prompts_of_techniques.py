"""What a model is shown: how prompts grow, what stands beside what, and what of a final answer is kept."""

from __future__ import annotations

import itertools
import json
import sqlite3

import pytest

import decisor
from decisor.errors import ParseError
from decisor.llms.scripted import ScriptedLLM
from decisor.parsing.labelled import refuse_form_text
from decisor.runtime.run import Run, Technique
from decisor.techniques.ircot import SENTENCE
from decisor.techniques.iter_rag import IterRAG
from decisor.techniques.plan_rag import PlanRAG
from decisor.techniques.shared.observations import LATER_ROWS, Rendering
from decisor.tools.toolbox import Toolbox
from decisor.types import Observation, Question, Record
from techniques.table import TableTool

LONGEST = Question("Which river is longest?", "Length counts in km.", "Name one.")
LOOK = "Thought: look\nAction: sql\nAction input: select name, km from river order by km desc"
NOTES = LOOK.replace("name, km", "name, note")
PLAN = f"Plan: [Step 1: look, Step 2: compare]\nCurrent step: 1\n{LOOK}"
THINK = "Thought: hm\nAction: think\nAction input: 340 > 120"
FULL = (
    "Final answer: bel\nBecause: it has 340.25 km, 219.75 more than aune [o1.r1]\n"
    "Runner-up: aune, 120.5 km [o1.r2]\nAssumptions: km is the length; none is missing"
)


async def ask(technique: Technique, replies: list[str]) -> tuple[decisor.Decision, list[str], Run]:
    llm = ScriptedLLM(replies)
    run = Run(llm, Toolbox([TableTool()]))
    decision = await technique(LONGEST, run)
    return decision, llm.seen, run


@pytest.mark.parametrize(
    ("technique", "replies"),
    [(PlanRAG(), [PLAN, f"Re-plan: N\n{NOTES}", FULL]), (IterRAG(), [LOOK, NOTES, FULL])],
)
async def test_a_prompt_is_the_one_before_it_to_its_last_lines_and_more(
    technique: Technique, replies: list[str]
) -> None:
    _, seen, _ = await ask(technique, replies)
    for before, after in itertools.pairwise(seen[1:]):
        head = before[: before.rindex("\n\n") + 1]
        assert after.startswith(head) and len(before) - len(head) < 100


async def test_rules_question_and_goal_stand_under_headings_of_their_own() -> None:
    _, seen, _ = await ask(IterRAG(), [LOOK, FULL])
    asked = "# Rules\nLength counts in km.\n\n# Question\nWhich river is longest?\n\n# Goal\nName one.\n\n# So far\n"
    assert all(asked in prompt for prompt in seen)


async def test_the_plan_that_holds_stands_beside_the_question_whether_to_replan() -> None:
    change = f"Re-plan: Y, no lengths\nPlan: [Step 1: ask anew]\n{LOOK}"
    _, seen, _ = await ask(PlanRAG(), [PLAN, change, FULL])
    last = seen[2].splitlines()
    at = next(number for number, line in enumerate(last) if line.startswith("Say whether to re-plan"))
    assert last[at - 1] == "The plan at present: [Step 1: ask anew]"
    assert "The plan at present" not in seen[1]


async def test_thinking_costs_no_action_and_cannot_go_on_for_ever() -> None:
    decision, seen, run = await ask(IterRAG(max_steps=2), [THINK, THINK, LOOK, FULL])
    assert decision.answer == "bel" and run.budget.spent.actions == 1
    assert "2 actions left" in seen[2] and "1 action" in seen[3]
    thoughts = [THINK.replace("120", str(number)) for number in range(3)]
    decision, seen, _ = await ask(IterRAG(max_steps=2), [LOOK, *thoughts, FULL])
    assert decision.stopped == "steps" and len(seen) == 5


async def test_the_runner_up_and_the_assumptions_stay_with_the_decision() -> None:
    decision, _, _ = await ask(IterRAG(), [LOOK, FULL])
    assert decision.runner_up == "aune, 120.5 km [o1.r2]"
    assert decision.assumptions == ("km is the length", "none is missing")
    figures = {figure.text: figure.support for figure in decision.evidence.figures}
    assert figures == {
        "340.25": "o1.r1",
        "219.75": "computed: 340.25 [o1.r1] - 120.5 [o1.r2]",
        "120.5": "o1.r2",
    }


def test_later_prompts_show_the_first_rows_and_say_that_the_rest_is_left_out() -> None:
    rows = tuple(Record(f"o1.r{at}", {"km": at + 0.123456789}) for at in range(1, 81))
    shown = Rendering(Observation(rows))
    assert "[o1.r80] | 80.12346" in shown.text and len(shown.records) == 80
    head, _, tail = shown.later_text.partition(f"[o1.r{LATER_ROWS}] | 50.12346\n")
    assert shown.text.startswith(head) and tail == "(Rows 51 to 80 were shown before and are left out.)"


def test_a_column_called_id_is_not_the_id_of_the_record() -> None:
    assert Rendering(Observation((Record("o1.r1", {"id": 7}),))).text == "record | id\n[o1.r1] | 7"


def test_ask_has_a_calculator_at_hand_beside_a_database(tmp_path: object) -> None:
    path = f"{tmp_path}/rivers.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE river (name TEXT, km REAL)")
        db.execute("INSERT INTO river VALUES ('bel', 340.25), ('aune', 120.5)")
    db.close()
    sums = "Re-plan: N\nThought: add\nAction: calculator\nAction input: 340.25 + 120.5"
    llm = ScriptedLLM([PLAN, sums, "Re-plan: N\nFinal answer: bel\nBecause: of 460.75 km [o2.r1]\nRunner-up: aune"])
    result = decisor.ask("Which is longest?", db=f"sqlite:///{path}", llm=llm)
    assert result.evidence.ids == ("o2.r1",) and result.evidence.objections == ()
    assert json.loads(json.dumps(result.to_dict(), default=str))["runner_up"] == "aune"
    assert "Runner-up: aune" in str(result)


def test_an_answer_of_a_number_in_the_words_of_the_form_is_no_copy() -> None:
    refuse_form_text(decisor.Decision("So the answer is: 1946."), SENTENCE)
    with pytest.raises(ParseError, match="copied"):
        refuse_form_text(decisor.Decision("So the answer is: ..."), SENTENCE)


def test_a_passage_that_stands_in_an_earlier_one_is_shown_once() -> None:
    texts = ["Sales were 12.5 in 2021. Costs fell.", "sales were **12.5** in 2021", "Sales were 13.5 in 2021."]
    lines = Rendering(Observation(tuple(Record(f"o1.r{at}", text=text) for at, text in enumerate(texts, 1)))).text
    assert lines.splitlines()[1] == "[o1.r2] | (the same as o1.r1)" and "13.5" in lines
