"""model_first: amounts, corrections from documents, and functions, on real rows and real files."""

import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import pytest

import decisor
from decision_shops import database
from decisor.cli import run_command_line
from decisor.llms.scripted import ScriptedLLM
from decisor.session.result import Result
from decisor.session.user_tools import ToolSpecs
from decisor.trace.events import ActionStart, events_of
from decisor.types import Message

Reply = str | Callable[[str], str]
BAKE = """CREATE TABLE good AS SELECT * FROM (VALUES ('bread', 3.0, 0.5, 40.0), ('cake', 8.0, 2.0, 15.0),
    ('roll', 0.9, 0.1, 200.0)) t(name, profit, hours, most); CREATE TABLE oven AS SELECT 60.0 AS hours"""
HOW_MANY = """How many of each good do we bake so that profit is highest? The oven runs its hours.
At least twice as many rolls as cakes are baked."""
BAKE_FACTS = """decide = "how many of each good to bake"
how = [1]
[unknown.bake]
per = "SELECT name, profit, hours, most FROM good"
kind = "integer"
upper = "most"
unit = "piece"
[measure.profit]
goal = "max"
unit = "EUR"
[rule.oven]
sentence = 2
[rule.rolls]
sentence = 3
[input]
"good.profit" = { unit = "EUR/piece", raises = "profit" }
[parameter]
times = 2
"""
BAKE_MODEL = """[measure.profit]
sql = "SELECT sum(amount * profit) FROM bake"
[rule.oven]
rows = "SELECT o.hours, (SELECT sum(amount * hours) FROM bake) AS used FROM oven o"
must = "used <= hours"
[rule.rolls]
rows = '''SELECT (SELECT sum(amount) FROM bake WHERE name = 'roll') AS rolls,
    (SELECT sum(amount) FROM bake WHERE name = 'cake') AS cakes'''
must = "rolls >= $times * cakes"
"""
BAKE_SECOND = f"[parameter]\ntimes = 2\n{BAKE_MODEL}".replace(".profit]\n", '.profit]\ngoal = "max"\n')
BAKE_SECOND = BAKE_SECOND.replace("oven]\n", "oven]\nsentence = 2\n").replace("rolls]\n", "rolls]\nsentence = 3\n")
GOODS = 'queries = ["SELECT * FROM good"]'

LOTS = """CREATE TABLE lot AS SELECT * FROM (VALUES ('Oak', 'north', 1000.0, 50000.0),
    ('Elm', 'south', 1500.0, 40000.0), ('Ash', 'north', 2200.0, 30000.0)) t(name, region, rent, kwh);
CREATE TABLE permit AS SELECT * FROM (VALUES ('Oak', DATE '2027-10-31'), ('Elm', DATE '2028-01-31'),
    ('Ash', DATE '2029-01-31')) t(lot, ends)"""
LETTER = "City office, 2026-10-12. The permit of lot Oak is extended to 2027-12-31. Nothing else changes."
WHICH_LOT = """Which lot do we lease for 2027 so that rent and the grid's fee cost least? Its permit covers all of 2027.
The letters are in the folder."""
LOT_FACTS = """decide = "the lot to lease"
how = [1]
aside = [3]
[choice.pick]
rows = "SELECT name, region, rent, kwh FROM lot"
[measure.cost]
goal = "min"
unit = "EUR"
parts = ["rent", "grid"]
[rule.permit]
sentence = 2
[input]
"lot.rent" = { unit = "EUR", raises = "cost" }
"""
CORRECTION = """[[correction]]
table = "permit"
key = { lot = "Oak" }
column = "ends"
was = "2027-10-31"
is = "2027-12-31"
source = { document = "letter.txt", passage = "The permit of lot Oak is extended to 2027-12-31." }
"""
FUNCTION = """[function.grid]
call = "fee"
rows = "SELECT DISTINCT region, kwh FROM lot"
gives = { eur = "EUR/year" }
"""
LOT_MODEL = """[measure.cost]
part.rent = "SELECT rent FROM pick"
part.grid = "SELECT g.eur FROM pick JOIN grid g USING (region, kwh)"
[rule.permit]
rows = "SELECT p.lot, p.ends FROM permit p JOIN pick ON pick.name = p.lot"
must = "ends >= DATE '2027-12-31'"
because = "the permit of {lot} ends on {ends}"
"""
LOT_SECOND = LOT_MODEL.replace("cost]\n", 'cost]\ngoal = "min"\n').replace("permit]\n", "permit]\nsentence = 2\n")


def fee(region: str, kwh: float) -> float:
    """The grid's fee of a year, in EUR."""
    return {"north": 0.01, "south": 0.02}[region] * kwh + 100


def lots_by_hand(prompt: str) -> str:
    """Rent, and the fee that the function gave; the permit of Oak is too short unless the letter is adopted."""
    if "(none yet)" in prompt:
        return 'queries = ["SELECT * FROM lot JOIN permit ON lot = name"]'
    worked = {"Oak": (1000, 600), "Elm": (1500, 900), "Ash": (2200, 400)}
    names = re.findall(r"^\d+\. (\w+)$", prompt.rpartition("# Task")[2], re.M)
    broken = "[]" if "adopted = true" in prompt else "[2]"
    return "".join(
        f'[[example]]\nwork.rent = "{worked[name][0]}"\nwork.grid = "{worked[name][1]}"\n'
        f"breaks = {broken if name == 'Oak' else '[]'}\n"
        for name in names
    )


def ask_about_lots(folder: Path, found: Sequence[Reply], **options: object) -> Result:
    """Ask which lot, with a letter that corrects a cell and a function."""
    (folder / "letters").mkdir()
    (folder / "letters" / "letter.txt").write_text(LETTER)
    steps: dict[str, list[Reply]] = {"facts": [LOT_FACTS], "sources": [*found], "hand": [lots_by_hand]}
    steps |= {"model": [LOT_MODEL], "second": [LOT_SECOND]}
    tools = ToolSpecs((fee,), row_values="allow")
    return ask(folder, LOTS, WHICH_LOT, steps, docs=str(folder / "letters"), tools=tools, **options)


def ask(folder: Path, tables: str, question: str, steps: dict[str, list[Reply]], **options: object) -> Result:
    """Run model_first with the replies of each step, in order; the last one is repeated."""
    asked = dict.fromkeys(steps, 0)

    def reply(messages: Sequence[Message]) -> str:
        prompt = "\n".join(message.content for message in messages)
        facts = prompt.partition("# Facts")[2].partition("# Task")[0]
        step = "model" if re.search(r"goal *=", facts) else "second"
        for words, name in (
            ("facts of the question", "facts"),
            ("by hand what", "hand"),
            ("the tables lack", "sources"),
        ):
            step = name if words in prompt else step
        found = steps[step][min(asked[step], len(steps[step]) - 1)]
        asked[step] += 1
        return found(prompt) if callable(found) else found

    settings = {"trials": 0, **options.pop("settings", {})}  # type: ignore[dict-item]
    url, llm = database(folder, tables), ScriptedLLM(reply)
    return decisor.ask(question, db=url, llm=llm, technique="model_first", settings=settings, **options)  # type: ignore[arg-type]


def last_model(result: Result) -> dict[str, object]:
    actions = [one for one in events_of(result.trace, ActionStart) if one.tool == "decision_model"]
    return tomllib.loads(actions[-1].input.partition("\n")[2])


@pytest.mark.slow
def test_amounts_are_found_by_the_solver_and_the_plan_is_worked_out_by_hand(tmp_path: Path) -> None:
    pytest.importorskip("highspy")
    # By profit per hour: rolls 9, bread 6, cake 4. 200 rolls (20 h), 40 loaves (20 h), then 10 cakes (20 h).
    right = '[[example]]\nwork.profit = "200 * 0.9 + 40 * 3 + 10 * 8"\nbreaks = []'
    steps: dict[str, list[Reply]] = {"facts": [BAKE_FACTS], "model": [BAKE_MODEL], "second": [BAKE_SECOND]}
    result = ask(tmp_path, BAKE, HOW_MANY, steps | {"hand": [GOODS, right]})
    assert result.decision.stopped == "answered", result.decision.reasons
    assert result.ranking is not None and result.ranking.plan is not None
    assert {row.label: row.amount for row in result.ranking.plan.tables[0].rows} == {
        "bread": 40,
        "cake": 10,
        "roll": 200,
    }
    assert result.ranking.options[0].outcome == pytest.approx(380)


@pytest.mark.slow
def test_a_second_model_without_a_rule_has_another_plan_and_no_answer_is_given(tmp_path: Path) -> None:
    pytest.importorskip("highspy")
    right = '[[example]]\nwork.profit = "200 * 0.9 + 40 * 3 + 15 * 8"\nbreaks = []'
    loose = BAKE_SECOND.replace("used <= hours", "used <= 2 * hours")
    first = '[[example]]\nwork.profit = "200 * 0.9 + 40 * 3 + 10 * 8"\nbreaks = []'
    steps: dict[str, list[Reply]] = {"facts": [BAKE_FACTS], "model": [BAKE_MODEL], "second": [loose]}
    result = ask(tmp_path, BAKE, HOW_MANY, steps | {"hand": [GOODS, first, GOODS, right]})
    assert (result.answer, result.decision.stopped) == ("", "no_answer")
    assert "the plan of one of them breaks a rule of the first" in "\n".join(result.decision.reasons)


@pytest.mark.slow
@pytest.mark.parametrize("accept", [False, True])
def test_a_letter_corrects_a_cell_and_a_function_gives_a_table(accept: bool, tmp_path: Path) -> None:
    invented = CORRECTION.replace("is extended", "was prolonged")
    found = ['search = ["permit of lot"]', invented, CORRECTION + FUNCTION]
    result = ask_about_lots(tmp_path, found, settings={"accept": accept})
    assert result.decision.stopped == "answered", result.decision.reasons
    # Oak costs 1,000 + 600, Elm 1,500 + 900, Ash 2,200 + 400. The permit of Oak is long enough only by the letter.
    assert result.answer == ("Oak" if accept else "Elm")
    words = "\n".join((*result.decision.reasons, *result.decision.assumptions))
    expected = "Corrected by letter.txt: permit.ends of Oak is 2027-12-31"
    assert (expected if accept else "Read the other way, Oak wins with 1,600 EUR, and Elm has 2,400 EUR.") in words
    function = last_model(result)["function"]
    assert isinstance(function, dict)
    assert {row["region"]: row["eur"] for row in function["grid"]["values"]}["south"] == 900
    calls = [one for one in events_of(result.trace, ActionStart) if one.tool == "fee"]
    assert len(calls) == 3 and function["grid"]["at"]


@pytest.mark.slow
def test_verify_reads_the_passage_of_a_correction_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, letters = tmp_path / "run.jsonl", tmp_path / "letters"
    found = ['search = ["permit of lot"]', CORRECTION + FUNCTION]
    assert ask_about_lots(tmp_path, found, settings={"accept": True}, trace=trace).answer == "Oak"
    database_file = next(tmp_path.glob("*.duckdb"))

    def verify() -> tuple[int, str]:
        words = ["history", "verify", str(trace), "--db", str(database_file), "--docs", str(letters)]
        return run_command_line(words), capsys.readouterr().out

    def write_cell(date: str) -> None:
        with duckdb.connect(str(database_file)) as db:
            db.execute(f"UPDATE permit SET ends = DATE '{date}' WHERE lot = 'Oak'")

    code, out = verify()
    assert code == 0 and "3 cited records read again, 0 changes" in out
    # The same sentence in another file, with other words around it, still speaks for the correction.
    (letters / "letter.txt").rename(letters / "copy.txt")
    (letters / "copy.txt").write_text(f"Copy.\n\n{LETTER} Regards.")
    assert verify()[0] == 0
    (letters / "copy.txt").rename(letters / "letter.txt")
    # Another date: without the correction the permit of Oak is too short, and Elm costs 1,500 + 900.
    (letters / "letter.txt").write_text(LETTER.replace("2027-12-31", "2027-11-30"))
    code, out = verify()
    assert code == 1 and "Elm wins with cost 2,400 EUR" in out and "the permit of Oak ends on 2027-10-31" in out
    assert "is extended to 2027-12-31. -> The permit of lot Oak is extended to 2027-11-30." in out
    assert 'correction of permit.ends] letter.txt: "The permit of lot Oak is extended to 2027-12-31." -> not' in out
    # The letter is gone, and the data have been corrected since: the cell speaks for itself.
    (letters / "letter.txt").write_text("Nothing.")
    write_cell("2027-12-31")
    code, out = verify()
    assert code == 0 and "No document says any more" in out
    # The letter is back, and the cell holds what it does not speak of.
    (letters / "letter.txt").write_text(LETTER)
    write_cell("2027-06-30")
    code, out = verify()
    assert code == 4 and "the data say 2027-06-30, the correction was made on 2027-10-31" in out
    # The function was called for another row than that of today: what it gives for this one is not known.
    write_cell("2027-10-31")
    with duckdb.connect(str(database_file)) as db:
        db.execute("UPDATE lot SET kwh = kwh * 2 WHERE name = 'Elm'")
    code, out = verify()
    assert code == 4 and "Oak: cannot be said. It still has the smallest cost: 1,600 EUR. What functions gave" in out
    assert "[function.grid] region south, kwh 40,000 -> region south, kwh 80,000" in out
