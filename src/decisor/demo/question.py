"""The question of the demo, the replies that were recorded for it, and what is wrong in them."""

from __future__ import annotations

from decisor.types import Question

QUESTION = Question(
    "Which supplier should we drop?",
    rules=(
        "Drop exactly one supplier, so that the profit of the year becomes as large as possible. Profit is price minus "
        "unit cost, times quantity, over all purchases, minus refunds for goods that came back faulty. Damage in "
        "transport is the carrier's affair, and a change of mind is nobody's. Where a supplier is dropped, the "
        "cheapest other supplier of each product delivers in its place, without faults. No product may be left without "
        "a supplier."
    ),
    goal="The largest profit of the year.",
)
UNSUPPORTED = "4,200"
"""A figure that the recorded answer states and that no record holds."""
RETURNS = """\
SELECT s.name, count(*) AS purchases, count(r.purchase) AS returns,
       round(100.0 * count(r.purchase) / count(*), 1) AS percent,
       sum(r.reason = 'faulty') AS faulty, sum(r.reason = 'damaged in transport') AS damaged
FROM purchase AS p JOIN supplier AS s ON s.id = p.supplier LEFT JOIN product_return AS r ON r.purchase = p.id
GROUP BY s.name ORDER BY percent DESC"""
PROFITS = """\
WITH line AS (
  SELECT p.supplier, p.product, p.quantity * g.price AS sales, p.quantity * o.unit_cost AS cost, p.quantity,
         CASE WHEN r.reason = 'faulty' THEN r.refund ELSE 0 END AS refund
  FROM purchase AS p JOIN product AS g ON g.id = p.product
  JOIN offer AS o ON o.supplier = p.supplier AND o.product = p.product
  LEFT JOIN product_return AS r ON r.purchase = p.id),
other AS (
  SELECT a.supplier, a.product, min(b.unit_cost) AS unit_cost
  FROM offer AS a LEFT JOIN offer AS b ON b.product = a.product AND b.supplier <> a.supplier
  GROUP BY a.supplier, a.product),
today AS (SELECT sum(sales - cost - refund) AS profit FROM line)
SELECT s.name, round(t.profit, 2) AS profit_today,
       round(t.profit - sum(l.sales - l.cost - l.refund) + sum(CASE WHEN x.unit_cost IS NULL THEN 0
             ELSE l.sales - l.quantity * x.unit_cost END), 2) AS profit_without,
       count(DISTINCT CASE WHEN x.unit_cost IS NULL THEN l.product END) AS products_lost
FROM line AS l JOIN other AS x ON x.supplier = l.supplier AND x.product = l.product
JOIN supplier AS s ON s.id = l.supplier CROSS JOIN today AS t
GROUP BY s.name, t.profit ORDER BY profit_without DESC"""
ANSWER = f"""\
Re-plan: N
Current step: Step 2
Thought: Norrik is first, and the only one with one of its products, so it has to stay. The next is allowed.
Final answer: Tamsin & Co
Because: Without Tamsin & Co the year's profit grows from 133,310.03 to 143,627.33 EUR [o2.r2], 10,317.30 more, and no \
product is lost [o2.r2]. Without Norrik it would be 151,728.80 EUR, but 1 product would have no supplier [o2.r1]. \
Veltra has the most returns, 19.9 % [o1.r1], of which 68 are the carrier's; dropping it would cost us profit [o2.r5]. \
Fewer parcels will save another {UNSUPPORTED} EUR.
Runner-up: Arlo Works, 135,440.84 EUR [o2.r3]
Assumptions: the other suppliers can deliver as much as is bought"""
REPLIES = (
    f"""\
Plan: [Step 1: find the supplier whose goods come back most often, Step 2: see what its returns cost us, \
Step 3: check that every product keeps a supplier]
Current step: Step 1
Thought: A bad supplier shows in its returns. I count them by supplier and by reason.
Action: sql
Action input: {RETURNS}""",
    f"""\
Re-plan: Y, most of Veltra's returns are damage in transport, which the rules lay on the carrier: how often goods come \
back says nothing of the profit that is asked for
Plan: [Step 1: compute for each supplier the profit of the year without it, and how many products nobody else has, \
Step 2: of those that leave no product without a supplier take the largest profit]
Current step: Step 1
Thought: One query can compute this for all suppliers: take away what a supplier brings, and add what the cheapest \
other one would bring for the same purchases.
Action: sql
Action input: {PROFITS}""",
    ANSWER,
    ANSWER,
)
"""The last comes twice: the answer goes back with an objection, and the model keeps to it."""
