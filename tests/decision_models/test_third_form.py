"""Files of the third form: what they say, what is refused."""

import asyncio
import re
from pathlib import Path

import numpy as np
import pytest

from decision_shops import CLOSE, SITES, opened
from decision_worlds import cold_stores, machine_on, milling, model_text
from decisor.decision_models.candidates import Candidates
from decisor.decision_models.file import parse_model
from decisor.decision_models.optimize import rank_or_solve
from decisor.decision_models.ranking import rank_model
from decisor.decision_models.tool import ModelTool
from decisor.errors import SetupError
from decisor.system.structured_files import FileFault
from decisor.system.wording import format_ranking
from decisor.types import Table

DOCS = Path(__file__).parents[2] / "docs" / "decision-models.md"


def example_of_docs() -> str:
    text = re.findall(r"```toml\n(format = 3\ndecide = \"the two.*?)```", DOCS.read_text(encoding="utf-8"), re.S)[0]
    return str(text).partition("[[example]]")[0]


async def outcomes_of(text: str, folder: Path) -> tuple[list[str], np.ndarray, np.ndarray, dict[str, float]]:
    folder.mkdir()
    async with opened(folder, text) as model:
        found = await asyncio.to_thread(model.outcomes)
        alone = await asyncio.to_thread(lambda: model.outcomes([0, 9, 20], one_by_one=True))
        np.testing.assert_allclose(found.values[[0, 9, 20]], alone.values, rtol=1e-12)
        assert (found.broken[[0, 9, 20]] == alone.broken).all() and found.batched
        parts = {part: float(values[0]) for (_, part), values in found.parts.items()}
        return list(model.candidates.names(range(21))), found.values, found.broken, parts


async def test_named_tables_and_parts_mean_what_one_query_means(tmp_path: Path) -> None:
    new, old = await outcomes_of(example_of_docs(), tmp_path / "new"), await outcomes_of(CLOSE, tmp_path / "old")
    assert new[0] == old[0] and (new[2] == old[2]).all()
    np.testing.assert_allclose(new[1], old[1], rtol=1e-12)
    assert set(new[3]) == {"rent", "freight"} and sum(new[3].values()) == pytest.approx(new[1][0, 0], rel=1e-12)


@pytest.mark.parametrize(
    "old", ['choice = "SELECT name FROM site"\ntake = 2', '[variable.a]\neach = "t"\nkind = "whole"']
)
def test_a_file_of_the_form_before_is_refused_with_what_is_written_instead(old: str) -> None:
    with pytest.raises(FileFault, match=r"line 1: .*older form.*choice\.NAME\.rows.*decision-models\.md"):
        parse_model(f'decide = "x"\n{old}\n[measure.cost]\ngoal = "min"\nsql = "SELECT 1"\n')


FAULTS = {
    "rule.a has exactly one of must, never, exists, absent, here: must, absent": (
        '[rule.a]\nrows = "site"\nmust = "rent > 1"\nabsent = "SELECT 1"\n'
    ),
    "rule.a has rows beside must or never, and only there": '[rule.a]\nmust = "rent > 1"\n',
    "rule.a has exactly one of must, never, exists, absent, here: none": '[rule.a]\ntext = "x"\n',
    "pick is the name of two tables": '[table]\npick = "SELECT 1 AS a"\n',
    "measure.b has sql and part": '[measure.b]\ngoal = "min"\nsql = "SELECT 1"\npart.x = "SELECT 2"\n',
    "names profit, which is no measure": '[input]\n"site.rent" = { raises = "profit" }\n',
    "is not in the form 10 %": '[input]\n"site.rent" = { spread = "10 % any" }\n',
    "choice.pick.take": '[choice.other]\nrows = "site"\ntake = "some"\n',
    "is to be": "open = 3\n",
}


@pytest.mark.parametrize("why", FAULTS)
def test_what_is_wrong_with_a_file_is_said_with_its_line(why: str) -> None:
    head = 'format = 3\ndecide = "x"\n'
    text = f'[choice.pick]\nrows = "site"\n[measure.cost]\ngoal = "min"\nsql = "SELECT 1"\n{FAULTS[why]}'
    if FAULTS[why].startswith("open"):
        head, text = f"{head}{FAULTS[why]}", text.replace(FAULTS[why], "")
    with pytest.raises(FileFault, match=re.escape(why.replace("choice.pick.take", "choice.other.take"))):
        parse_model(head + text)


async def test_a_named_table_may_not_have_the_name_of_a_table_of_the_data(tmp_path: Path) -> None:
    text = 'format = 3\ndecide = "x"\n[choice.site]\nrows = "SELECT name FROM lane"\n'
    with pytest.raises(SetupError, match="There is a table site in the data"):
        async with opened(tmp_path, f'{text}[measure.a]\ngoal = "min"\nsql = "SELECT count(*) FROM site"', SITES):
            pass


def test_a_candidate_has_at_most_one_row_of_each_group_and_labels_are_names() -> None:
    rows = tuple((person, desk, f"{person} at {desk}") for person in "ab" for desk in (1, 2))
    text = '[choice.sit]\nrows = "seat"\ntake = ["one per person", "at most one per desk"]\n'
    model = parse_model(f'format = 3\ndecide = "x"\n{text}[measure.a]\ngoal = "min"\nsql = "SELECT 1"')
    candidates = Candidates.of(Table(("person", "desk", "__label"), rows), model.choices[0].takes)
    assert candidates.names(range(len(candidates))) == ("a at 1, b at 2", "a at 2, b at 1")
    free = Candidates.of(
        Table(("person", "desk", "__label"), rows), (parse_model(text_of("at most one per desk"))).choices[0].takes
    )
    assert len(free) == 9 and free.name(0) == "nothing"


def text_of(take: str) -> str:
    return (
        f'format = 3\ndecide = "x"\n[choice.sit]\nrows = "seat"\ntake = "{take}"\n'
        '[measure.a]\ngoal = "min"\nsql = "SELECT 1"'
    )


def test_a_correction_is_written_if_the_cell_holds_what_was_corrected() -> None:
    text = model_text("cold_store")
    with machine_on(text, cold_stores()) as (_, machine):
        machine.choice()
        adopted = set(machine.outcomes([(at,) for at in range(30)]).broken["permit"].places)
    proposed = text.replace("adopted = true", "adopted = false")
    with machine_on(proposed, cold_stores()) as (model, machine):
        machine.choice()
        places = [(at,) for at in range(30)]
        data = set(machine.outcomes(places).broken["permit"].places)
        beside = set(machine.outcomes(places, scenario="correction_1").broken["permit"].places)
    assert model.scenarios[0].name == "correction_1" and "letters.txt" in model.scenarios[0].open
    assert data - adopted == {3} and beside == adopted
    stale = text.replace('was     = "2027-10-31"', 'was     = "2020-01-01"')
    why = "the data say 2027-10-31, the correction was made on 2020-01-01"
    with pytest.raises(SetupError, match=why), machine_on(stale, cold_stores()):
        pass


def test_a_soft_rule_has_its_price_where_candidates_are_computed() -> None:
    soft = 'must    = "lowest_c <= $coldest"\nsoft    = "100 * places"'
    text = model_text("cold_store").replace('must    = "lowest_c <= $coldest"', soft)
    text = text.replace('rows    = "SELECT lowest_c FROM', 'rows    = "SELECT lowest_c, places FROM')
    with machine_on(text, cold_stores()) as (_, machine):
        machine.choice()
        results = machine.outcomes([(at,) for at in range(30)])
        lots = machine.db.execute("SELECT lowest_c, places FROM lot ORDER BY rowid").fetchall()
    assert "cold" not in results.broken and results.batched
    expected = [100 * places * max(0, lowest + 20) for lowest, places in lots]
    assert results.parts["cost"]["rule cold"].tolist() == expected and max(expected) > 0


async def test_rules_say_both_ways_what_holds(tmp_path: Path) -> None:
    async with opened(tmp_path, example_of_docs()) as model:
        ranking = await asyncio.to_thread(lambda: rank_model(model, trials=20))
        tool = ModelTool(model)
        why = await tool.call(f"why {ranking.excluded[0].name}")
    assert "would hold" in why.note and ranking.trials == 20
    assert "ruled out by capacity" in format_ranking(ranking)


async def test_a_ranking_is_kept_when_its_trials_fail(tmp_path: Path) -> None:
    known = "41000, 38000, 52000, 33000, 29000, 31000, 27000"
    failing = f"SELECT sum(CASE WHEN rent IN ({known}) THEN rent ELSE CAST(name AS DOUBLE) END) FROM kept"
    text = example_of_docs().replace("SELECT sum(rent) FROM kept", failing)
    text += '"site.rent" = { spread = "5 % each" }\n'
    async with opened(tmp_path, text) as model:
        ranking = await asyncio.to_thread(lambda: rank_model(model, trials=20))
    assert len(ranking.options) == 3 and ranking.robustness is None and "No trial was finished" in ranking.stopped


async def test_a_plan_is_told_as_a_table_of_amounts(tmp_path: Path) -> None:
    pytest.importorskip("highspy")
    tables = []
    for name, (head, rows) in milling().items():
        kinds = head.replace("TEXT", "VARCHAR").replace("REAL", "DOUBLE")
        cells = ", ".join(str(row if len(row) > 1 else f"({row[0]})") for row in rows)
        tables.append(f"CREATE TABLE {name} ({kinds}); INSERT INTO {name} VALUES {cells}")
    async with opened(tmp_path, model_text("milling"), ";".join(tables)) as model:
        ranking = await asyncio.to_thread(lambda: rank_or_solve(model, trials=3))
    assert ranking.plan is not None and ranking.trials == 3
    made = {row.label: row.amount for row in ranking.plan.tables[0].rows}
    assert ranking.plan.tables[0].count == 24 and made["spelt, week 1"] == pytest.approx(6.1)
    assert sum(part.value for part in ranking.parts) == pytest.approx(ranking.options[0].outcome)
    text = format_ranking(ranking)
    for words in ("make: 23 of 24 rows not 0.", "  spelt, week 1: 6.1 t", "mill: 7 of 8 rows bind; one more at week 4"):
        assert words in text, text
    assert "+ 20 more" not in text and "cost = milling" in text
