"""The two worlds of Decision QA in plain Python, to be read beside the formulas, and to check the fast ones against.

Released semantics only: both start from the published state without resetting it. One decision at a time.
"""

from __future__ import annotations

from collections import defaultdict

from decisor.lab.dqa.building import BuildingData
from decisor.lab.dqa.locating import LocatingData
from decisor.lab.dqa.rows import PowerRow


def profit(data: LocatingData, country: str, place: str) -> float:
    """What ``country`` earns at home with its merchant at ``place``."""
    home = {row.country_name: row.home_node for row in data.countries}
    grown = {row.country_name: row.development for row in data.countries}
    node = {row.trade_node: row for row in data.nodes}
    down: dict[str, list[str]] = {name: [] for name in node}
    for edge_row in data.flows:
        down[edge_row.source].append(edge_row.dest)
    held_at: dict[str, list[PowerRow]] = {name: [] for name in node}
    for held_row in data.powers:
        held_at[held_row.trade_node].append(held_row)
    ingoing = {name: row.ingoing for name, row in node.items()}
    outgoing = {name: row.outgoing for name, row in node.items()}
    earned = 0.0
    for name in order(down):
        foreign = held = mine = 0.0
        votes: dict[int, float] = defaultdict(float)
        for row in held_at[name]:
            power = row.base_trading_power
            merchant = row.has_merchant or (row.country_name == country and name == place)
            if merchant:
                inland = max(50.0, grown[row.country_name]) if node[name].is_inland else 0.0
                power = 1.05 * (power + 2 + inland)
            held += power
            mine = power if row.country_name == country else mine
            if row.is_home:
                continue
            foreign += power
            if merchant:
                goal = home[row.country_name]
                steered = [e for e, dest in enumerate(down[name]) if dest == goal]
                steered += [e for e, dest in enumerate(down[name]) if not steered and reaches(down, dest, goal)]
                for edge in steered[:1]:
                    votes[edge] += power
        total = node[name].total_power + held
        value = node[name].local_value + ingoing[name]
        if total:
            outgoing[name] = value * (foreign / total)
        cast = 0.0
        for power in votes.values():
            cast += power
        for edge, dest in enumerate(down[name]):
            flow = outgoing[name] * (votes[edge] / cast) if votes else outgoing[name] / len(down[name])
            ingoing[dest] += 1.05 * flow
        if name == home[country]:
            earned = (node[name].local_value - outgoing[name] + ingoing[name]) * mine / total if total else 0.0
    return earned


def order(down: dict[str, list[str]]) -> list[str]:
    """Each node after all that flow into it."""
    waits = dict.fromkeys(down, 0)
    for edges in down.values():
        for dest in edges:
            waits[dest] += 1
    done = [name for name, count in waits.items() if not count]
    for name in done:
        for dest in down[name]:
            waits[dest] -= 1
            if not waits[dest]:
                done.append(dest)
    return done


def reaches(down: dict[str, list[str]], start: str, goal: str) -> bool:
    """Depth first."""
    return start == goal or any(reaches(down, dest, goal) for dest in down[start])


def price(data: BuildingData, goods: str, expanded: int) -> float:
    """What ``goods`` cost after building ``expanded`` has gained 5 levels."""
    level = {row.id: row.level for row in data.buildings}
    factor = {b: (own + 5) / own if b == expanded else 1.0 for b, own in level.items()}
    most_in = [row.max_demand * factor[row.building_id] for row in data.demand]
    most_out = [row.max_supply * factor[row.building_id] for row in data.supply]
    output = [row.current_output for row in data.supply]
    demand: dict[int, float] = defaultdict(float)
    supply: dict[int, float] = defaultdict(float)
    for amounts in ([row.max_demand for row in data.demand], most_in):
        for row, amount in zip(data.demand, amounts, strict=True):
            demand[row.goods_id] += amount
    for amounts in (output, most_out):
        for made, amount in zip(data.supply, amounts, strict=True):
            supply[made.goods_id] += amount
    for one in data.goods:
        demand[one.code] = one.pop_demand + demand[one.code]
    for _ in range(10):
        met: dict[int, float] = defaultdict(float)
        inputs: dict[int, int] = defaultdict(int)
        for row, most in zip(data.demand, most_in, strict=True):
            met[row.building_id] += min(most * supply[row.goods_id] / demand[row.goods_id], most) / most
            inputs[row.building_id] += 1
        supply = defaultdict(float)
        for at, made in enumerate(data.supply):
            if inputs[made.building_id]:
                output[at] = most_out[at] * (met[made.building_id] / inputs[made.building_id])
            supply[made.goods_id] += output[at]
    one = next(row for row in data.goods if row.goods_name == goods)
    wanted, made_now = demand[one.code], supply[one.code]
    most = max(wanted, made_now)
    return one.base_price * (1 + 0.75 * (wanted - made_now) / most) if most else one.base_price


def best_place(data: LocatingData, country: str) -> str:
    """The first node with the largest profit."""
    home = next(row.home_node for row in data.countries if row.country_name == country)
    places = [row.trade_node for row in data.nodes if row.trade_node != home]
    return max(places, key=lambda place: profit(data, country, place))


def best_building(data: BuildingData, goods: str) -> str:
    """The first building with the lowest price among those that supply the goods."""
    code = next(row.code for row in data.goods if row.goods_name == goods)
    makers = {row.building_id for row in data.supply if row.goods_id == code}
    options = [row.id for row in data.buildings if row.id in makers]
    return str(min(options, key=lambda building: price(data, goods, building)))
