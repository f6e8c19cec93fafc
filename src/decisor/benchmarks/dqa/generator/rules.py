"""The rules and questions of generated worlds. They say exactly what the simulation does, so that a reader who follows
them to the letter finds the right answer every time."""

TRADE_RULES = """\
A trading node has a local_value (made there), an ingoing value (from upstream), an outgoing value, a total_power, \
and is inland or not.
An edge leads from its source (upstream) to its dest (downstream) and carries a flow. No chain of edges leads back to \
where it began.
A country has a development and one home_node. Where it is present at a node, it has a base_trading_power there.

Everything is computed anew after a merchant is placed, upstream nodes before downstream ones:
1. The trading power of a country at a node is its base_trading_power there. With its merchant at the node, it is \
1.05 * (base_trading_power + 2), or, if the node is inland, 1.05 * (base_trading_power + 2 + max(development / 3, 50)).
A merchant at a node where its country is not present changes nothing at all.
2. The total_power of a node is the sum of the trading powers of all countries present there.
3. The outgoing value of a node is (local_value + ingoing) * F / total_power. F is the sum of the trading powers there \
of the countries whose home node is another node. With no power at a node, its outgoing value is 0.
4. The outgoing value is divided evenly over the edges that leave the node. But where a country has its merchant at a \
node that is not its home, the whole outgoing value takes a single edge: the edge straight to the country's home node \
if there is one, else the first edge, in alphabetical order of dest, from which the home node can be reached. If the \
home node cannot be reached from there, the value is divided evenly.
5. The ingoing value of a node is 1.05 times the sum of the flows that arrive there.
6. The profit of a country is (local_value + ingoing) of its home node, times its own trading power there, \
divided by total_power there.
The merchant cannot be placed at the home node. No other country has a merchant. The data show the state without one."""

TRADE_QUESTION = """\
You rule the country {country}. You have one merchant, and your home node is {home}. \
At which trading node should the merchant be placed?"""

TRADE_GOAL = "The goal is the largest profit of {country} at {home}."

SUPPLY_RULES = """\
Goods have a name, a code, a base_price, a current_price and a pop_demand. Buildings have an id, a name and a level.
A supply row says how much of a goods a building makes at most (max_supply) and makes now (current_output). A demand \
row says how much of a goods a building uses at most (max_demand) and gets now (current_input).
When a building of level L gains 5 levels, its max_supply and its max_demand of every goods are \
multiplied by (L + 5) / L.

Everything is computed anew after the expansion:
1. The demand TD of a goods is its pop_demand plus the sum of max_demand over all its demand rows.
2. Its supply TS is at first the sum of max_supply over all its supply rows.
3. Then ten rounds. In each round, first for every demand row current_input = max_demand * TS / TD; then for every \
supply row current_output = max_supply * A, where A is the mean, over the demand rows of the same building, of \
min(current_input, max_demand) / max_demand (A is 1 for a building without demand rows); then TS of every goods is the \
sum of current_output over its supply rows.
4. The price of a goods is base_price * (1 + 0.75 * (TD - TS) / max(TD, TS)), or base_price where TD and TS are both 0.
The data show the state before any expansion."""

SUPPLY_QUESTION = "Which building id should we increase a level by 5 to maximally decrease the market price of {goods}?"
SUPPLY_GOAL = "The goal is the lowest market price of {goods}."
