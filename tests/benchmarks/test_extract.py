"""Worlds out of savegame text made for the test."""

import json
from pathlib import Path

import pytest

from decisor.errors import SetupError
from decisor.lab.dqa.savegames import extract_worlds

MAP = """
hill={ inland=yes outgoing={ name="bay" path={ 1 2 } } outgoing={ name="cape" } }
moor={ outgoing={ name="bay" } }
bay={ outgoing={ name="cape" } }
cape={ end=yes }
"""
TRADE = """EU4txt
date=1445.1.1
provinces={ -1={ trade="cape" } -2={ trade="hill" } -3={ trade="bay" } }
countries={
 AAA={ trade_port=1 development=120 } BBB={ trade_port=2 development=80 } CCC={ trade_port=3 development=20 }
}
trade={
 node={ definitions="hill" local_value=4 total=30 AAA={ val=8 } BBB={ val=12 } CCC={ val=10 } }
 node={ definitions="moor" local_value=3 total=25 AAA={ val=5 } BBB={ val=20 } }
 node={ definitions="bay" local_value=2 total=30 AAA={ val=10 } CCC={ val=20 } }
 node={ definitions="cape" local_value=5 total=50 AAA={ val=30 } BBB={ val=20 } }
}
"""
GOODS = "grain={ cost=20 } tools={ cost=40 } bread={ cost=30 }"
ECONOMY = """
meta_data={ game_date=1836.1.1 }
country_manager={ database={ 1={ definition="AAA" states={ 10 11 } } 2={ definition="BBB" states={ 12 } } } }
states={ database={ 10={ pop_needs={ 0=30 2=90 } } 11={ pop_needs={ 2=40 } } 12={ } } }
building_manager={ database={
 100={ building="farm" level=2 state=10 output_goods={ goods={ 0=60 } } input_goods={ goods={ 1=10 } } throughput=1.1 }
 101={ building="farm" level=8 state=11 output_goods={ goods={ 0=500 } } throughput=1 }
 102={ building="smithy" level=3 state=10 output_goods={ goods={ 1=12 } } input_goods={ goods={ 0=9 } } throughput=1 }
 103={ building="bakery" level=3 state=11
  output_goods={ goods={ 2=50 } } input_goods={ goods={ 0=40 1=3 } } throughput=1 }
 104={ building="bakery" level=9 state=10 output_goods={ goods={ 2=55 } } input_goods={ goods={ 0=40 } } throughput=1 }
} }
"""


def files(folder: Path, save: str, definitions: str) -> tuple[Path, Path]:
    (folder / "save.txt").write_text(save)
    (folder / "definitions.txt").write_text(definitions)
    return folder / "save.txt", folder / "definitions.txt"


def test_a_trade_save_becomes_a_locating_world(tmp_path: Path) -> None:
    save, given = files(tmp_path, TRADE, MAP)
    made = extract_worlds(save, tmp_path / "out", given)
    (entry,) = json.loads((made.folder / "questions/simulated_question.json").read_text())
    assert (entry["country"], entry["home"], entry["year"]) == ("AAA", "cape", "1445")
    assert entry["answer"] == "hill"
    sql = (made.folder / "queries/SQL_format/q1.sql").read_text()
    assert 'INSERT INTO flow(source, dest, flow) VALUES ("hill", "bay"' in sql
    assert (made.nodes, made.edges) == (7, 4 + 9)


def test_an_economy_save_becomes_a_building_world_for_each_country(tmp_path: Path) -> None:
    save, given = files(tmp_path, ECONOMY, GOODS)
    made = extract_worlds(save, tmp_path / "out", given)
    entries = json.loads((made.folder / "questions/simulated_questions.json").read_text())
    assert {entry["country"] for entry in entries} == {"AAA1836"}
    assert {entry["goods"]: entry["answer"] for entry in entries}["bread"] == 103
    sql = (made.folder / "queries/SQL_format/AAA1836.sql").read_text()
    assert "VALUES (0, 100, 66.0, " in sql  # throughput 1.1


@pytest.mark.parametrize(
    ("save", "given", "complaint"),
    [
        ("date=1.1.1", MAP, "neither a section trade"),
        (TRADE, "x={ }", "names none"),
        ("a={", MAP, "not Clausewitz text"),
        (TRADE, MAP.replace("end=yes", 'outgoing={ name="hill" }'), "form a ring"),
        (ECONOMY, "", "names none"),
    ],
)
def test_a_save_that_cannot_be_used_says_why(save: str, given: str, complaint: str, tmp_path: Path) -> None:
    paths = files(tmp_path, save, given)
    with pytest.raises(SetupError, match=complaint):
        extract_worlds(paths[0], tmp_path / "out", paths[1])
