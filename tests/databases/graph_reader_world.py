"""A shop as a graph, in which most orders and all addresses are not for who asks, and ways to read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from decisor.tools.databases.graph_load import load
from decisor.tools.databases.graph_write import Edge, Node
from servers.neo4j_server import neo4j_database

GRAPHS = ("kglite", "neo4j")
ROWS = {"Order": "region = 'EU'"}
MASK = ("Customer.email", "Customer.phone", "KNOWS.letter")
PEOPLE, OWN, HIDDEN = 6, 12, 1009
FORBIDDEN = (HIDDEN, HIDDEN + OWN)


def emails() -> list[str]:
    return [
        f"{name}.secret{n}@private.example" for n, name in enumerate(("ann", "bea", "cyd", "dov", "eli", "fay"), 71)
    ]


def phones() -> list[int]:
    return [4915570000 + n * 131 for n in range(1, PEOPLE + 1)]


def letters() -> list[str]:
    return [f"dear-{n * 7919}-only-you" for n in range(1, PEOPLE + 1)]


def notes() -> list[str]:
    return [f"zebra-{n}-{n * 37 % 997}-quilt" for n in range(1, HIDDEN + 1)]


def totals() -> list[int]:
    return [8800000 + n for n in range(1, HIDDEN + 1)]


def secrets() -> list[str]:
    return [*emails(), *map(str, phones()), *letters(), *notes(), *map(str, totals())]


def nodes_and_edges() -> tuple[list[Node], list[Edge]]:
    """Customers, the city they live in, their orders; each order refers to the next, so that paths pass hidden ones."""
    people = [
        Node(
            ("Customer", "Vip") if n < 2 else "Customer",
            {"id": n + 1, "name": f"C{n + 1}", "email": email, "phone": phone},
        )
        for n, (email, phone) in enumerate(zip(emails(), phones(), strict=True))
    ]
    own = [Node("Order", {"id": n, "region": "EU", "note": f"open-{n}", "total": 10 * n, "product": f"P{n % 3}"})
           for n in range(1, OWN + 1)]  # fmt: skip
    hidden = [Node("Order", {"id": OWN + n, "region": "US", "note": note, "total": total, "product": f"P{n % 3}"})
              for n, (note, total) in enumerate(zip(notes(), totals(), strict=True), 1)]  # fmt: skip
    towns = [Node("City", {"id": n, "name": f"city{n}", "email": f"town{n}@open.example"}) for n in range(3)]
    nodes = [*people, *own, *hidden, *towns]
    first, town = PEOPLE, PEOPLE + OWN + HIDDEN
    edges = [Edge("PLACED", n % PEOPLE, first + n, {"on": f"2024-01-{1 + n % 28:02}"}) for n in range(OWN + HIDDEN)]
    edges += [Edge("NEXT", first + n, first + n + 1) for n in range(OWN + 8)]
    edges += [Edge("NEXT", first + OWN + 8, first)]
    edges += [Edge("LIVES_IN", n, town + n % 3) for n in range(PEOPLE)]
    edges += [Edge("KNOWS", n, (n + 1) % PEOPLE, {"letter": text}) for n, text in enumerate(letters())]
    return nodes, edges


@contextmanager
def graph_world(engine: str, folder: Path) -> Iterator[str]:
    """Gives the URL of the graph."""
    nodes, edges = nodes_and_edges()
    if engine == "kglite":
        load(f"kglite:///{folder}/shop.kgl", nodes, edges)
        yield f"kglite:///{folder}/shop.kgl"
        return
    with neo4j_database() as url:
        load(url, nodes, edges)
        yield url


ATTACKS = """MATCH (c:Customer) RETURN c.email
MATCH (c:Customer) RETURN c
MATCH (c) RETURN c LIMIT 50
MATCH (c:Customer {name: 'C1'}) RETURN c.email AS e, c.phone AS p
MATCH (c:Customer) RETURN c['email']
MATCH (c:Customer) WITH c, 'em' + 'ail' AS k RETURN c[k]
MATCH (c:Customer) UNWIND keys(c) AS k RETURN k, c[k]
MATCH (c:Customer) RETURN properties(c)
MATCH (c:Customer) RETURN properties(c).email
MATCH (c:Customer) RETURN c {.*}
MATCH (c:Customer) RETURN c {.name, .email}
MATCH (c:Customer) RETURN c {mail: c.email}
MATCH (c:Customer) RETURN [x IN collect(c) | x.email]
MATCH (c:Customer) WITH collect(c) AS all_of RETURN head(all_of).email
MATCH (c:Customer) WITH collect(c) AS l RETURN l[0].email, (l[1]).phone
MATCH (c:Customer) WITH collect(c) AS l UNWIND l AS x RETURN x.email, x.`email`
MATCH (by:Customer) RETURN by['email']
MATCH (end:Customer) RETURN end['email']
MATCH (c:Customer) WITH c AS in RETURN in['email']
MATCH (c:Customer) WHERE c.email STARTS WITH 'ann' RETURN c.name, 4915570131
MATCH (c:Customer {email: 'ann.secret71@x'}) RETURN c.name
MATCH (c:Customer {email: 'x' OR true}) RETURN c
MATCH (c:Customer) RETURN substring(c.email, 0, 40), toUpper(c.email), reverse(c.email), split(c.email, '@')
MATCH (c:Customer) RETURN reduce(s = '', x IN collect(c.email) | s + x)
MATCH (c:Customer) RETURN toInteger(c.phone) + 1 AS p, c.phone / 1, -c.phone
MATCH (c:Customer) RETURN max(c.email), min(c.phone), sum(c.phone), avg(c.phone)
MATCH (c:Customer) RETURN c.name ORDER BY c.email LIMIT 1
MATCH (c:Customer) RETURN CASE WHEN c.email > 'b' THEN c.email ELSE c.email END
MATCH (c:Customer) RETURN date(c.email)
MATCH (c:Customer) RETURN 1 / (c.phone - c.phone)
MATCH (c:Customer) RETURN point(c), duration(c)
MATCH (c:Customer) RETURN toString(c), c + 'x'
MATCH (c:Customer) WITH collect(c) AS l RETURN toString(l), toInteger(l[0])
MATCH (c:Customer) RETURN apoc.text.join(collect(c.email), ','), apoc.coll.sortNodes(collect(c), 'email')
MATCH (v:Vip) RETURN v.email, v
MATCH (v:Vip {email: 'x'})-[:KNOWS]->(c) RETURN c.email
MATCH (c:Customer)-[r:KNOWS]->() RETURN r, r.letter, type(r)
MATCH ()-[r]->() WHERE r.letter IS NOT NULL RETURN collect(r), collect(r.letter)
MATCH p = (:Customer)-[:KNOWS*1..2]->(:Customer) RETURN p, nodes(p), relationships(p) LIMIT 20
MATCH p = (:Customer)-[:KNOWS]->() RETURN [r IN relationships(p) | r.letter], [n IN nodes(p) | n.email]
MATCH (c:Customer)-[r:KNOWS]->() RETURN startNode(r).email, endNode(r)
MATCH (a:Customer)-[r:KNOWS {letter: 'dear'}]->(b) RETURN r
MATCH (o:Order) RETURN count(o)
MATCH (o:Order) RETURN o ORDER BY o.total DESC LIMIT 20
MATCH (o:Order {region: 'US'}) RETURN o.note LIMIT 5
MATCH (o) WHERE o.region = 'US' RETURN o.note LIMIT 5
MATCH (o:!Customer) RETURN o.note, o.total ORDER BY o.total DESC LIMIT 5
MATCH (o:%) RETURN count(o)
MATCH (o IS Order) RETURN max(o.total)
MATCH (o:Order|City) RETURN count(o), max(o.total)
MATCH (n) RETURN count(n), count(*)
MATCH ()-[r:PLACED]->() RETURN count(r), max(r.on)
MATCH (:Customer)-[:PLACED]->(o) RETURN o.note ORDER BY o.total DESC LIMIT 5
MATCH (c:Customer) RETURN c.name, COUNT { (c)-[:PLACED]->() } AS n
MATCH (c:Customer) RETURN c.name, COUNT { MATCH (c)-[:PLACED]->(o) WHERE o.total > 8800000 } AS n
MATCH (c:Customer) RETURN [(c)-[:PLACED]->(o) | o.note] LIMIT 3
MATCH (c:Customer) RETURN [(c)-[:PLACED]->(o) WHERE o.total > 100 | o.total] LIMIT 3
MATCH (c:Customer) RETURN [q = (c)-[:PLACED]->() | q] LIMIT 3
MATCH (c:Customer) WHERE (c)-[:PLACED]->(:Order {region: 'US'}) RETURN c.name, c.email
MATCH (c:Customer) WHERE exists((c)-[:PLACED]->(:Order {region: 'US'})) RETURN c.phone
MATCH (c:Customer) WHERE EXISTS { (c)-[:PLACED]->(o:Order) WHERE o.total > 8800000 } RETURN c.name, c.email
MATCH (c:Customer) RETURN COLLECT { MATCH (c)-[:PLACED]->(o) RETURN o.note } LIMIT 2
MATCH (c:Customer) CALL (c) { MATCH (c)-[:PLACED]->(o) RETURN max(o.total) AS m } RETURN c.name, m
CALL { MATCH (o:Order) RETURN o UNION MATCH (o:Order {region: 'US'}) RETURN o } RETURN max(o.total)
MATCH (o:Order) RETURN o.note AS n UNION ALL MATCH (c:Customer) RETURN c.email AS n
MATCH (o:Order)-[:NEXT*1..20]->(x) RETURN x.note, x.total ORDER BY x.total DESC LIMIT 5
MATCH p = (a:Order)-[:NEXT*10..15]->(b:Order) RETURN p, length(p) LIMIT 3
MATCH p = shortestPath((a:Order {id: 12})-[:NEXT*..20]->(b:Order {id: 1})) RETURN nodes(p)
MATCH (a:Order {id: 12}), (b:Order {id: 1}) RETURN shortestPath((a)-[:NEXT*..20]->(b))
MATCH (a:Order {id: 12})-[rs:NEXT*..20]->(b) RETURN [r IN rs | endNode(r).note], [r IN rs | endNode(r)]
MATCH (a:Order) ((x)-[:NEXT]->(y)){1,12} (b) RETURN [z IN y | z.note] LIMIT 3
MATCH (a:Order)-[:NEXT]->+(b) RETURN max(b.total)
MATCH (o:Order WHERE o.total > 8800000) RETURN o.note LIMIT 5
MATCH (c:Customer)-[r:PLACED WHERE endNode(r).total > 8800000]->(o) RETURN o LIMIT 5
MATCH (o:Order) WHERE o.id > 0 OR true OR o.region = 'US' RETURN max(o.total)
MATCH (o:Order) WHERE true) OR (true RETURN max(o.total)
MATCH (o:Order) WHERE o.id > 0 ) ELSE true END OR CASE WHEN true THEN (true RETURN max(o.total)
MATCH (o:Order) WHERE 1 / (o.total - 8800005) > -1 RETURN count(o)
MATCH (o:Order) WHERE o.total > 8800000 AND 1 / 0 > 1 RETURN count(o)
OPTIONAL MATCH (o:Order {region: 'US'}) RETURN o.note, o LIMIT 5
MATCH (c:Customer) OPTIONAL MATCH (c)-[:PLACED]->(o {region: 'US'}) RETURN c.name, collect(o.note)
MATCH (c:Customer), (o:Order) WHERE o.region <> 'EU' RETURN o LIMIT 3
MATCH (c:Customer) WITH c MATCH (c)-->(x) RETURN x ORDER BY x.total DESC LIMIT 5
MATCH (c:Customer)--(x)--(y) RETURN y.note, y.email LIMIT 50
MATCH (o:Order) WITH o SKIP 0 LIMIT COUNT { MATCH (q:Order) } RETURN count(o)
CALL db.labels() YIELD label RETURN label
CALL db.schema.nodeTypeProperties()
CALL db.index.fulltext.queryNodes('notes', 'zebra') YIELD node RETURN node
CALL apoc.meta.stats()
SHOW INDEXES
EXPLAIN MATCH (o:Order) RETURN o
PROFILE MATCH (o:Order {region: 'US'}) RETURN o
CYPHER runtime=interpreted MATCH (o:Order) RETURN max(o.total)
RETURN $decisor_1, $m, $decisor_tokens
UNWIND $decisor_tokens AS x RETURN x
MATCH (decisor_1:Order)-->() RETURN decisor_1
MATCH (o:`Order`) RETURN o.`note`, o.`total` ORDER BY o.`total` DESC LIMIT 3
MATCH (order:Order) WHERE order.total > 8800000 RETURN order.note
MATCH (o:Order) RETURN o.nosuch, o.notes
MATCH (o:Ordr) RETURN o.email
MATCH (c:Customer) WHERE c.emial = 'x' RETURN c
MATCH (c:Customer) WHERE c.email = 'ann.secret' RETURN c.email
MATCH (c:Customer) WHERE c.name CONTAINS 'zzz' RETURN c
find zebra
find ann
find 49155
describe Order
describe Customer
describe KNOWS""".splitlines()
