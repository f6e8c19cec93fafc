"""Forms of SQL: for all candidates at once they give what they give for one."""

from pathlib import Path

import numpy as np
import pytest

from decision_shops import opened
from decisor.decision_models.client import OpenModel

CHANGES = [
    "DELETE FROM site WHERE name IN (SELECT name FROM pick)",
    "DELETE FROM site WHERE NOT EXISTS (SELECT 1 FROM pick c WHERE c.name = site.name)",
    "INSERT INTO site (name, rent, capacity) SELECT name || '2', rent / 2, capacity FROM pick JOIN site USING (name)",
    "INSERT INTO site VALUES ('x', 1, 1); DELETE FROM site WHERE name = (SELECT min(name) FROM pick)",
    "UPDATE site SET rent = rent * 2, capacity = rent WHERE name IN (SELECT name FROM pick) OR rent IS NULL",
    "UPDATE site SET capacity = NULL WHERE name IN (SELECT name FROM pick); "
    "UPDATE site SET rent = coalesce(capacity, 7)",
    "UPDATE lane SET cost = cost + (SELECT count(*) FROM pick c WHERE c.name = lane.site); "
    "DELETE FROM lane WHERE cost > 9",
    "UPDATE customer SET units = units * 1.5; UPDATE site SET rent = (SELECT sum(units) FROM customer) "
    "WHERE name IN (SELECT name FROM pick)",
    "UPDATE site AS s SET rent = s.rent * 2 WHERE s.name IN (SELECT name FROM pick)",
    "UPDATE site SET rent = site.rent + c.n FROM (SELECT name, length(name) AS n FROM pick) c WHERE c.name = site.name",
    "UPDATE site SET rent = NULL FROM pick WHERE pick.name = site.name",
    "UPDATE lane l SET cost = l.cost * 3 FROM pick c, site s WHERE s.name = c.name AND l.site = s.name",
    "UPDATE site SET capacity = 1 FROM lane WHERE lane.site = site.name AND site.name IN (SELECT name FROM pick)",
    "UPDATE site SET (rent, capacity) = (capacity, rent) WHERE name IN (SELECT name FROM pick)",
    "DELETE FROM lane USING pick c, site s WHERE c.name = lane.site AND s.name = c.name AND lane.cost > 5",
    "DELETE FROM site s WHERE EXISTS (SELECT 1 FROM pick c WHERE c.name = s.name)",
    "UPDATE lane SET cost = cost + (SELECT count(*) FROM pick c WHERE c.name = lane.site); UPDATE site SET rent = "
    "(WITH least AS (SELECT customer, min(cost) AS m FROM lane GROUP BY customer), all_of AS (SELECT sum(m) AS m FROM "
    "least) SELECT max(l.cost) + any_value(all_of.m) FROM lane l, all_of WHERE l.site = site.name)",
    "UPDATE lane SET cost = cost + (SELECT count(*) FROM pick c WHERE c.name = lane.site); UPDATE site SET rent = "
    "(SELECT sum(coalesce(x.m, 0) * c.units) FROM customer c JOIN (SELECT customer, site, avg(cost) AS m FROM lane "
    "GROUP BY customer, site) a ON a.customer = c.id LEFT JOIN (SELECT customer, min(cost) AS m FROM lane GROUP BY "
    "customer) x ON x.customer = c.id WHERE a.site = site.name)",
    "UPDATE site SET rent = (SELECT sum(q.c) FROM (SELECT cost AS c FROM lane WHERE lane.site = site.name) q) "
    "WHERE name IN (SELECT name FROM pick)",
    "UPDATE customer SET units = x.n FROM (SELECT customer, count(*) AS n FROM lane WHERE site IN (SELECT name FROM "
    "pick) GROUP BY customer) x WHERE x.customer = customer.id; UPDATE customer AS c SET units = c.units + d.u FROM "
    "(SELECT max(units) AS u FROM customer) d",
    "UPDATE site SET rent = x.m FROM (SELECT site AS name, min(cost) AS m FROM lane GROUP BY site) x JOIN pick "
    "USING (name) WHERE x.name = site.name",
    "WITH x AS (SELECT site AS name, min(cost) AS m FROM lane GROUP BY site) UPDATE site SET rent = x.m FROM x JOIN "
    "pick USING (name) WHERE x.name = site.name",
]
QUERIES = [
    "SELECT sum(rent) FROM site",
    "SELECT count(*) FROM site NATURAL JOIN pick",
    "SELECT coalesce(sum(s.rent), -1) FROM pick c LEFT JOIN site s ON s.name = c.name",
    "SELECT sum(r) FROM (SELECT rent AS r FROM site UNION ALL SELECT capacity FROM site)",
    "SELECT rent FROM site ORDER BY rent DESC, name LIMIT 1",
    "SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY rent, name) * rent AS n FROM site)",
    "WITH big AS (SELECT * FROM site WHERE rent > 30000) SELECT sum(b.rent) + (SELECT count(*) FROM big) FROM big b",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT sum(i * rent) FROM n, site",
    "SELECT sum(cost) FROM lane WHERE site NOT IN (SELECT name FROM site)",
    "SELECT sum(c.units * l.cost) FROM customer c JOIN lane l ON l.customer = c.id JOIN site s ON s.name = l.site",
    "SELECT count(DISTINCT site) FROM lane JOIN site ON site = name "
    "WHERE EXISTS (SELECT 1 FROM pick WHERE name <> site)",
    "SELECT sum(m) FROM (SELECT customer, min(cost) AS m FROM lane JOIN site ON name = site "
    "GROUP BY customer HAVING m > 3)",
    "SELECT quantile_cont(rent, 0.5) FROM site",
    "SELECT sum(a.rent * b.capacity) FROM site a, site b WHERE a.name < b.name",
    "SELECT sum(coalesce(m, 0)) FROM customer c JOIN lane l ON l.customer = c.id LEFT JOIN (SELECT name, "
    "max(rent) AS m FROM site GROUP BY name) s ON s.name = l.site",
    "SELECT NULL",
    "SELECT count(*) FROM site WHERE rent > 1e12",
]
MODEL = """
format = 3
decide = "two sites"
choice.pick.rows = "SELECT name FROM site"
choice.pick.take = 2
change = '''{change}'''
"""


def all_measures(change: str) -> str:
    measures = "".join(f"[measure.m{at}]\ngoal = 'min'\nsql = '''{query}'''\n" for at, query in enumerate(QUERIES))
    return MODEL.format(change=change) + measures


ONE_BY_ONE = [
    "UPDATE lane l SET cost = l.cost * 3 FROM pick c, site s WHERE s.name = c.name AND l.site = s.name",
    "UPDATE site SET capacity = 1 FROM lane WHERE lane.site = site.name AND site.name IN (SELECT name FROM pick)",
    "UPDATE site SET rent = (SELECT sum(q.c) FROM (SELECT cost AS c FROM lane WHERE lane.site = site.name) q) "
    "WHERE name IN (SELECT name FROM pick)",
]
"""Changes that are not rewritten for all candidates at once."""


def agree(model: OpenModel, change: str) -> None:
    places = [0, 7, 20]
    alone, together = model.outcomes(places, one_by_one=True), model.outcomes(places)
    assert together.batched == (change not in ONE_BY_ONE), together.reason
    for at, query in enumerate(QUERIES):
        np.testing.assert_allclose(together.values[:, at], alone.values[:, at], rtol=1e-9, err_msg=query)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
async def test_every_form_of_query_after_every_form_of_change(change: str, tmp_path: Path) -> None:
    async with opened(tmp_path, all_measures(change)) as model:
        agree(model, change)


APART = [
    "WITH lane AS (SELECT cost FROM lane) SELECT sum(cost) FROM lane",
    "SELECT count(*) FROM customer c JOIN (lane JOIN site ON site.name = lane.site) ON lane.customer = c.id",
    "SELECT sum(cost) + (WITH lane AS (SELECT 5 AS cost) SELECT sum(cost) FROM lane) FROM lane",
    "SELECT sum(n) FROM (PIVOT (SELECT site, cost FROM lane WHERE site IN (SELECT name FROM pick)) ON site "
    "USING sum(cost)) AS one(n)",
]
OWN_NAMES = [
    "UPDATE lane SET cost = cost * 2 WHERE site IN (SELECT name FROM pick)",
    "UPDATE lane SET cost = (WITH site AS (SELECT 5 AS rent) SELECT sum(s.rent) FROM (SELECT * FROM site) s) + "
    "(WITH site AS (SELECT 7 AS rent) SELECT sum(s.rent) FROM (SELECT * FROM site) s) "
    "WHERE site IN (SELECT name FROM pick)",
]


async def test_where_several_rows_match_an_update_each_candidate_has_what_duckdb_makes_of_it(tmp_path: Path) -> None:
    change = (
        "UPDATE site SET rent = l.cost FROM lane l WHERE l.site = site.name AND site.name IN (SELECT name FROM pick)"
    )
    async with opened(tmp_path, all_measures(change)) as model:
        alone, both = model.outcomes([0, 7], one_by_one=True), model.outcomes([0, 7])
    assert "More than one row returned" in both.execution
    np.testing.assert_allclose(both.values, alone.values, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("query", APART)
@pytest.mark.parametrize("change", OWN_NAMES)
async def test_a_name_that_means_two_things_gives_what_it_gives_alone(change: str, query: str, tmp_path: Path) -> None:
    text = MODEL.format(change=change) + f"[measure.m]\ngoal = 'min'\nsql = '''{query}'''\n"
    async with opened(tmp_path, text) as model:
        alone, both = model.outcomes([0, 7, 20], one_by_one=True), model.outcomes([0, 7, 20])
    np.testing.assert_allclose(both.values, alone.values, rtol=1e-9)
