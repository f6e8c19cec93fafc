"""The forms in which models write a plan, read as drafts with ids like Q1.1. Nothing is evaluated.

{"nodes": [{"id", "ask", "needs", "source"}], "final": id}      or {"simple": true}; the form that is asked for
{"nodes": [{"depth", "ask", "source"}]}                         the same held to a schema, which knows of no ids
[("Q: ...", "Q1.1: ..."), ("Q1.1: ...", "Q2.1: ... <A1.1>")]    the paper's pairs of parent and child
Q1.1: ...                                                       a line each
1. ...  /  2. ... #1                                            numbered, with references as in MuSiQue
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence

from decisor.errors import ParseError
from decisor.replies.json_reader import Reader, check_depth
from decisor.replies.lenient_json import read_one
from decisor.replies.plan_drafts import ANGLES, NUMBERED, Draft, Drafts, canonical, ids_of, read_id, tags_in
from decisor.types import Value

LABELLED = re.compile(r"\s*Q(?:uestion)?\s*(?P<id>\d{1,4}(?:\.\d{1,4})?)?\s*[:.)]\s*(?P<ask>.*)", re.I | re.S)
LINE = re.compile(
    r"^[ \t]*(?:[-*•][ \t]+)?\**(?P<q>Q[ \t]*)?(?P<id>\d{1,4}(?:\.\d{1,4})?)\**(?P<mark>[ \t]*[.:)\]]+\**)?[ \t]+"
    r"(?P<ask>\S.*)$",
    re.M | re.I,
)
AFTER = re.compile(r"[(\[](?:needs|parents|after)[: ]+(?P<ids>[^()\[\]]*)[)\]]\s*$", re.I)
PAIR = re.compile(
    r"\(\s*([\"'])(?P<parent>(?:\\.|(?!\1)[^\\])*)\1\s*,\s*([\"'])(?P<child>(?:\\.|(?!\3)[^\\])*)\3\s*\)", re.S
)
CURLY = str.maketrans("“”„‟‘’‚", '""""\'\'\'')
QUERY = ("ask", "query", "question", "text")
NEEDS = ("needs", "parents", "depends_on", "dependencies")
SOURCE = ("source", "tool")


def read_drafts(text: str, repairs: list[str], salvage: bool) -> Drafts:
    """
    Raises:
        ParseError: there is no plan in it (syntax, missing_field, shape, duplicate_id, truncated, limits).
    """
    text = text.translate(ANGLES)
    try:
        return of_json(read_one(text, repairs), repairs)
    except ParseError as error:
        drafts: Drafts | None = None
        if error.reason in ("syntax", "no_action", "truncated", "shape", "multiple_actions"):
            drafts = of_tuples(text, repairs, salvage) or of_lines(text, repairs, salvage)
        if drafts is None and salvage and error.reason != "limits":
            drafts = of_pieces(text, repairs)
        if drafts is None:
            raise
        return drafts


def of_json(value: Value, repairs: list[str]) -> Drafts:
    if isinstance(value, str) and (root := LABELLED.fullmatch(value)) and not root["id"]:
        return Drafts(simple=True)
    if isinstance(value, Mapping) and value.get("simple") is True and not value.get("nodes"):
        return Drafts(simple=True)
    nodes = value.get("nodes") if isinstance(value, Mapping) else value
    if nodes is None or nodes in ([], {}):
        raise ParseError("The plan has no nodes.", "missing_field")
    if isinstance(nodes, Mapping):
        repairs.append("map_form")
        nodes = [{"id": id, **part} if isinstance(part, Mapping) else part for id, part in nodes.items()]
    if not isinstance(nodes, list):
        raise ParseError("nodes is a list.", "shape")
    if all(isinstance(node, str) for node in nodes):
        return of_texts([str(node) for node in nodes], repairs)
    if all(isinstance(node, list) and len(node) == 2 and isinstance(node[0], str) for node in nodes):
        return of_pairs([(str(node[0]), str(node[1])) for node in nodes if isinstance(node, list)], repairs)
    nodes = with_ids(nodes)
    numbered = is_numbered(nodes)
    parts: dict[str, Draft] = {}
    for node in nodes:
        part = read_node(node, numbered, repairs)
        if parts.setdefault(part.id, part) != part:
            raise ParseError(f"Two parts are called {part.id}.", "duplicate_id")
        if parts[part.id] is not part:
            repairs.append("duplicate_node_same")
    more = value if isinstance(value, Mapping) else {}
    final, drop = (ids_of(more.get(name), numbered) for name in ("final", "drop"))
    return Drafts(tuple(parts.values()), final, drop, numbered=numbered)


def with_ids(nodes: Sequence[Value]) -> Sequence[Value]:
    """Nodes that say their depth get an id each: ``2.1`` is the first of depth 2.

    >>> with_ids([{"depth": "1", "ask": "a"}, {"depth": 1, "ask": "b"}])
    [{'id': '1.1', 'depth': '1', 'ask': 'a'}, {'id': '1.2', 'depth': 1, 'ask': 'b'}]
    """
    count: Counter[str] = Counter()
    named: list[Value] = []
    for node in nodes:
        if isinstance(node, Mapping) and "id" not in node and re.fullmatch(r"\d{1,2}", str(node.get("depth", ""))):
            depth = str(node["depth"])
            count[depth] += 1
            node = {"id": f"{depth}.{count[depth]}", **node}
        named.append(node)
    return named


def is_numbered(nodes: Sequence[Value]) -> bool:
    ids = [node.get("id") for node in nodes if isinstance(node, Mapping)]
    return bool(ids) and all(isinstance(id, int | str) and NUMBERED.fullmatch(str(id)) for id in ids)


def read_node(node: Value, numbered: bool, repairs: list[str]) -> Draft:
    if not isinstance(node, Mapping):
        raise ParseError("Each node is an object with id, query and parents.", "shape")
    query = next((node[name] for name in QUERY if node.get(name) not in (None, "")), None)
    if node.get("id") in (None, ""):
        raise ParseError("A node has no id.", "missing_field")
    id = read_id(node["id"], numbered, repairs)
    if query is None:
        raise ParseError(f"{id} does not say what it asks.", "missing_field")
    if not isinstance(query, str):
        raise ParseError(f"The query of {id} is a text.", "shape")
    if not query.strip():
        raise ParseError(f"The query of {id} is empty.", "missing_field")
    names = [name for name in NEEDS if name in node]
    listed_parents = node[names[0]] if names else ()
    if listed_parents is None:
        repairs.append("null_parents")
        listed_parents = ()
    if isinstance(listed_parents, str) or not isinstance(listed_parents, Sequence):
        raise ParseError(f"The parents of {id} are a list.", "shape")
    listed = [read_id(parent, numbered, repairs) for parent in listed_parents]
    if len(set(listed)) < len(listed):
        repairs.append("duplicate_parent")
    source = next((node[name] for name in SOURCE if node.get(name)), "")
    if not isinstance(source, str):
        raise ParseError(f"The source of {id} is the name of a tool.", "shape")
    asks = canonical(query, numbered)
    if set(tags_in(asks)) - set(listed):
        repairs.append("tag_parents")
    return Draft(id, asks, tuple(dict.fromkeys(listed)), source.strip())


def of_tuples(text: str, repairs: list[str], salvage: bool) -> Drafts | None:
    """The paper's form: a list of (parent, child), each the whole text of a node. None where it is not that."""
    start, end = text.find("["), text.rfind("]")
    if start < 0 or "(" not in text[start:]:
        return None
    check_depth(text)
    listed = text[start : end + 1]
    pairs = literal_pairs(listed) or literal_pairs(listed.translate(CURLY))
    if not pairs and salvage:
        pairs = [(match["parent"], match["child"]) for match in PAIR.finditer(text.translate(CURLY))]
    if not pairs or not all(isinstance(side, str) for pair in pairs for side in pair):
        return None
    return of_pairs(pairs, repairs)


def literal_pairs(text: str) -> list[tuple[str, str]]:
    """Read as a Python literal, which holds texts and brackets and runs nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    return [pair for pair in value if isinstance(pair, tuple) and len(pair) == 2] if isinstance(value, list) else []


def of_pairs(pairs: Sequence[tuple[str, str]], repairs: list[str]) -> Drafts:
    """Nodes from edges; ``Q: ...`` is the question itself, and no node."""
    repairs.append("tuple_form")
    asks: dict[str, str] = {}
    needs: dict[str, list[str]] = {}
    for pair in pairs:
        ids = []
        for side in pair:
            if not (match := LABELLED.fullmatch(side)):
                raise ParseError("Each text of a pair begins with its id, like Q1.1: ...", "shape")
            id = f"Q{match['id']}" if match["id"] and "." in match["id"] else f"Q{match['id']}.0" if match["id"] else ""
            ask = canonical(match["ask"], numbered=id.endswith(".0"))
            if id and asks.setdefault(id, ask) != ask:
                raise ParseError(f"Two parts are called {id}.", "duplicate_id")
            ids.append(id)
        parent, child = ids
        if child:
            needs.setdefault(child, []).extend([parent] if parent else [])
    if not asks:
        return Drafts(simple=True)
    drafts = tuple(Draft(id, ask, tuple(dict.fromkeys(needs.get(id, ())))) for id, ask in asks.items() if ask)
    return Drafts(drafts, numbered=all(id.endswith(".0") for id in asks))


def of_lines(text: str, repairs: list[str], salvage: bool = True) -> Drafts | None:
    """``Q1.1: ...`` or ``1. ...``, a line each. None where no line is one, or where prose comes before a list
    without any question and nothing is to be salvaged."""
    lines = [line for line in LINE.finditer(text) if line["q"] or line["mark"]]
    if (
        lines
        and not salvage
        and text[: lines[0].start()].strip()
        and not any(line["q"] or re.search(r"\?|<A\d|#\d", line["ask"]) for line in lines)
    ):
        return None
    if not lines:
        root = LABELLED.fullmatch(text.strip().strip("\"'`").strip())
        return Drafts(simple=True) if root and not root["id"] else None
    repairs.append("line_form")
    numbered = not any("." in line["id"] for line in lines)
    parts: dict[str, Draft] = {}
    for line in lines:
        if not numbered and "." not in line["id"]:
            continue
        ask: str = line["ask"].rstrip()
        needs: tuple[str, ...] = ()
        if after := AFTER.search(ask):
            ask, needs = ask[: after.start()], ids_of(re.split(r"[,; ]+", after["ids"]), numbered)
        id = f"Q{line['id']}" + (".0" if numbered else "")
        part = Draft(id, canonical(ask, numbered), needs)
        if parts.setdefault(id, part) != part:
            raise ParseError(f"Two parts are called {id}.", "duplicate_id")
    return Drafts(tuple(parts.values()), numbered=numbered)


def of_texts(texts: Sequence[str], repairs: list[str]) -> Drafts:
    """A list of texts: with ids in front, or numbered by their places."""
    as_lines = of_lines("\n".join(" ".join(text.split()) for text in texts), [])
    if as_lines and not as_lines.simple and len(as_lines.drafts) == len(texts):
        repairs.append("line_form")
        return as_lines
    repairs.append("list_form")
    drafts = tuple(Draft(f"Q{place}.0", canonical(text, numbered=True)) for place, text in enumerate(texts, 1))
    return Drafts(drafts, numbered=True)


def of_pieces(text: str, repairs: list[str]) -> Drafts | None:
    """The nodes of a JSON plan that is cut off, as far as they are whole."""
    nodes: list[Value] = []
    at = text.find("[")
    while at >= 0 and (at := text.find("{", at)) >= 0:
        reader = Reader(text, at)
        try:
            node = reader.value()
        except ParseError:
            break
        if "close_brackets" in reader.repairs:
            break
        nodes.append(node)
        at = reader.at
    if not nodes:
        return None
    repairs.append("salvaged")
    return of_json(nodes, repairs)
