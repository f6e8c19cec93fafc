"""Many ways to write a measure: for all candidates and draws at once they give what each gives alone."""

import numpy as np
import pytest

from decision_worlds import cold_stores, machine_on, model_text

HEAD = """format = 3
decide = "the cold store"
[choice.pick]
rows = "SELECT lot, owner_id FROM lot"
[input]
"pallets.pallets" = { spread = "12 % each" }
"tariff.eur_per_kwh" = { spread = "25 % by region where day > DATE '2026-03-01'" }
"way.km" = { spread = "5 % together" }
"""
LAST_TARIFF = "SELECT max(u.day) FROM tariff u WHERE u.region = l.region AND year(u.day) = 2026"
QUERIES = {
    "WITH and repeated subqueries": """WITH n AS (SELECT plant, sum(pallets) AS u FROM pallets GROUP BY plant),
        o AS (SELECT * FROM lot WHERE lot = (SELECT lot FROM pick)),
        t AS (SELECT region, arg_max(eur_per_kwh, day) AS e FROM tariff WHERE day <= DATE '2026-12-31' GROUP BY
        region)
        SELECT (SELECT sum(u) FROM n) * o.eur_per_pallet_month + o.kwh_per_place * t.e FROM o JOIN t USING
        (region)""",
    "correlated max in ON": f"""SELECT sum(n.pallets * (l.eur_per_pallet_month + 0.1 * coalesce(w.km, 0)) +
        t.eur_per_kwh)
        FROM pick p JOIN lot l ON l.lot = p.lot CROSS JOIN pallets n LEFT JOIN way w ON w.lot = l.lot AND
        w.plant = n.plant
        JOIN tariff t ON t.region = l.region AND t.day = ({LAST_TARIFF})""",
    "correlated by inequality": """SELECT sum(l.places * (SELECT sum(n.pallets) FROM pallets n
        WHERE n.pallets > l.places / 4)) FROM lot l JOIN pick USING (lot)""",
    "IN and NOT IN": """SELECT sum(n.pallets) FROM pallets n WHERE n.plant IN (SELECT plant FROM way JOIN pick
        USING (lot))
        AND n.month NOT IN (SELECT month FROM pallets GROUP BY month HAVING sum(pallets) > 1000)""",
    "EXISTS in EXISTS": """SELECT count(*) FROM plant p WHERE EXISTS (SELECT 1 FROM way w WHERE w.plant = p.plant
        AND EXISTS (SELECT 1 FROM pick c WHERE c.lot = w.lot))""",
    "a count of nothing is 0": """SELECT (SELECT count(*) FROM finding f JOIN pick USING (lot) WHERE severity =
        'major') + 5
        * (SELECT coalesce(sum(n.pallets), 0) FROM pallets n JOIN way w USING (plant) JOIN pick USING (lot)
        WHERE km > 150)""",
    "a count of nothing at the top": "SELECT count(*) FROM finding JOIN pick USING (lot) WHERE severity = 'major'",
    "coalesce of nothing": """SELECT coalesce(sum(n.pallets), 0) FROM pallets n JOIN way w USING (plant)
        JOIN pick USING (lot) WHERE km > 150""",
    "a count of nothing in a table": """SELECT a.n * 2 + 1 FROM
        (SELECT count(*) AS n FROM finding JOIN pick USING (lot) WHERE severity = 'major') a""",
    "a count of nothing in a WITH": """WITH a AS (SELECT count(*) AS n, sum(length(severity)) AS s
        FROM finding JOIN pick USING (lot) WHERE severity = 'major') SELECT sum(n + coalesce(s, 100)) FROM a""",
    "counts of nothing in UNION ALL": """SELECT count(*) + coalesce(sum(v), 0) FROM
        (SELECT count(*) AS v FROM finding JOIN pick USING (lot) WHERE severity = 'major' UNION ALL
         SELECT sum(km) FROM way JOIN pick USING (lot) WHERE km > 180)""",
    "a subquery beside a count of nothing": """SELECT count(*) + (SELECT places FROM lot JOIN pick USING (lot))
        FROM finding f JOIN pick USING (lot) WHERE severity = 'major'""",
    "greatest beside a sum of nothing": """SELECT greatest(sum(km), (SELECT places FROM lot JOIN pick USING (lot)))
        FROM way JOIN pick USING (lot) WHERE km > 180""",
    "a running sum": """SELECT max(run) FROM (SELECT sum(n.pallets * w.km) OVER (PARTITION BY n.plant ORDER BY
        n.month) AS run
        FROM pallets n JOIN way w USING (plant) JOIN pick USING (lot)) q""",
    "QUALIFY": """SELECT sum(eur_per_kwh) FROM (SELECT region, eur_per_kwh FROM tariff
        QUALIFY row_number() OVER (PARTITION BY region ORDER BY day DESC) = 1) t JOIN lot USING (region) JOIN
        pick USING (lot)""",
    "ORDER BY and LIMIT": """SELECT (SELECT n.pallets FROM pallets n JOIN way w USING (plant) JOIN pick c ON
        c.lot = w.lot
        ORDER BY n.pallets * w.km DESC, n.month LIMIT 1)""",
    "LIMIT with OFFSET": """SELECT sum(v) FROM (SELECT n.pallets AS v FROM pallets n JOIN way w USING (plant)
        JOIN pick c ON c.lot = w.lot ORDER BY n.pallets, n.month, n.plant LIMIT 3 OFFSET 2) q""",
    "LIMIT in a correlated subquery": """SELECT l.places * (SELECT t.eur_per_kwh FROM tariff t WHERE t.region =
        l.region
        ORDER BY t.day DESC LIMIT 1) FROM lot l JOIN pick USING (lot)""",
    "UNION ALL": """SELECT sum(v) FROM (SELECT sum(pallets) AS v FROM pallets UNION ALL
        SELECT fit_out_eur FROM lot JOIN pick USING (lot) UNION ALL SELECT 7.0)""",
    "DISTINCT": """SELECT count(DISTINCT w.plant) + (SELECT count(*) FROM (SELECT DISTINCT round(n.pallets / 50) AS r
        FROM pallets n)) FROM way w JOIN pick USING (lot)""",
    "LEFT JOIN to what is chosen": """SELECT sum(CASE WHEN c.lot IS NULL THEN 1 ELSE 100 END * l.eur_per_pallet_month)
        FROM lot l LEFT JOIN pick c ON c.lot = l.lot""",
    "GROUP BY ALL and HAVING": """SELECT sum(u) FROM (SELECT n.plant, sum(n.pallets * w.km) AS u FROM pallets n
        JOIN way w
        USING (plant) JOIN pick USING (lot) GROUP BY ALL HAVING sum(n.pallets) > (SELECT avg(x.pallets) * 8
        FROM pallets x))""",
    "a sum beside a subquery": """SELECT sum(n.pallets) * (SELECT eur_per_pallet_month FROM lot JOIN pick USING (lot))
        FROM pallets n""",
    "FILTER and arg_max": """SELECT arg_max(n.month, n.pallets)[6:7]::INT + sum(n.pallets) FILTER (n.plant = 'Bonn')
        FROM pallets n""",
    "correlated twice": """SELECT sum((SELECT sum(n.pallets) FROM pallets n WHERE n.plant = w.plant AND n.month =
        (SELECT max(m.month) FROM pallets m WHERE m.plant = n.plant)) * w.km) FROM way w JOIN pick USING (lot)""",
    "pairs in IN": """SELECT sum(n.pallets) FROM pallets n WHERE (n.plant, n.month) IN
        (SELECT x.plant, max(x.month) FROM pallets x GROUP BY x.plant)""",
    "no FROM": "SELECT (SELECT sum(pallets) FROM pallets) / (SELECT places FROM lot JOIN pick USING (lot))",
    "commas before a subquery": """SELECT sum(p.n * (SELECT w.km FROM way w, pick c WHERE w.lot = c.lot
        AND w.plant = p.plant)) FROM (SELECT plant, sum(pallets) AS n FROM pallets GROUP BY plant) p, (SELECT 1
        AS one) o""",
    "NOT EXISTS": """SELECT count(*) FROM pallets n WHERE n.pallets > 300 AND NOT EXISTS
        (SELECT 1 FROM way w WHERE w.lot = (SELECT lot FROM pick) AND w.plant = n.plant)""",
    "EXISTS by inequality": """SELECT count(*) FROM lot l WHERE EXISTS
        (SELECT 1 FROM pick c JOIN lot m ON m.lot = c.lot WHERE m.places < l.places)""",
    "a mean over an outer join": """SELECT avg(coalesce(f.n, 0)) FROM pallets p LEFT JOIN (SELECT c.lot, count(*) AS n
        FROM finding f JOIN pick c ON c.lot = f.lot GROUP BY c.lot) f ON p.pallets > 200""",
    "FULL JOIN": """SELECT sum(coalesce(a.pallets, 0)) FROM pallets a FULL JOIN way w ON w.plant = a.plant
        JOIN pick c ON c.lot = w.lot""",
    "LATERAL": "SELECT sum(q.s) FROM pick c, LATERAL (SELECT sum(w.km) AS s FROM way w WHERE w.lot = c.lot) q",
    "ALL": "SELECT sum(places) FROM lot WHERE places >= ALL (SELECT n.pallets * 3 FROM pallets n)",
    "amount": "SELECT sum(amount * places) FROM lot JOIN pick USING (lot)",
    "a series as long as a cell": """SELECT sum(n * places) + count(*) FROM lot JOIN pick USING (lot),
        range(1, (SELECT length(lot) FROM pick)) r(n)""",
    "a series without a name": """SELECT sum(generate_series) FROM generate_series(0, (SELECT count(*) FROM finding f
        JOIN pick USING (lot)))""",
    "the same alias inside": """SELECT sum(n.pallets * (SELECT max(n.km) FROM way n JOIN pick p USING (lot)))
        FROM pallets n""",
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_measure_for_all_worlds_at_once_is_what_each_world_gives_alone(name: str) -> None:
    text = f"{HEAD}[measure.x]\ngoal = 'min'\nsql = '''{QUERIES[name]}'''\n"
    with machine_on(text, cold_stores()) as (_, machine):
        machine.choice()
        places = [(at,) for at in range(0, 30, 7)]
        together = machine.outcomes(places, seeds=[0, 3]).parts["x"][""]
        alone = np.concatenate([machine.outcomes(places, seeds=[seed], single=True).parts["x"][""] for seed in (0, 3)])
        np.testing.assert_allclose(together, alone, rtol=1e-9)
        now = machine.outcomes(places)
        np.testing.assert_allclose(now.parts["x"][""], machine.outcomes(places, single=True).parts["x"][""], rtol=1e-9)


def test_parts_rules_and_named_tables_are_what_each_world_gives_alone() -> None:
    with machine_on(model_text("cold_store"), cold_stores()) as (model, machine):
        machine.choice()
        places = [(at,) for at in range(30)]
        together, alone = machine.outcomes(places, most=1), machine.outcomes(places, most=1, single=True)
        assert together.batched and set(together.parts["cost"]) == {"rent", "energy", "trucks", "fit_out", "spoiling"}
        for part, values in together.parts["cost"].items():
            np.testing.assert_allclose(values, alone.parts["cost"][part], rtol=1e-9)
        for name in model.tested:
            broken = [one.broken[name.name] for one in (together, alone)]
            assert broken[0].places == broken[1].places and broken[0].counts == broken[1].counts, name.name


def test_trials_of_correlated_subqueries_take_one_request() -> None:
    with machine_on(model_text("cold_store"), cold_stores()) as (_, machine):
        machine.choice()
        places = [(at,) for at in range(30)]
        trials = machine.outcomes(places, seeds=list(range(40)), most=0)
        assert trials.batched
        one = machine.outcomes(places, seeds=[17], most=0)
        for part, values in trials.parts["cost"].items():
            np.testing.assert_allclose(values[17 * 30 : 18 * 30], one.parts["cost"][part], rtol=1e-9)
