"""Actions and answers without labels, read as the fields that labels would have given.

Forms: one JSON object, a provider's tool calls, a tool call in tags, ``tool[input]``, a lone query, labels on one
line, "the answer is". Only a reply with exactly one reading is taken. ``match_tool`` finds the tool that a written
name means.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence

from decisor.errors import ParseError
from decisor.parsing.cleaning import INVISIBLE
from decisor.parsing.lenient_json import read_json_value
from decisor.types import Value

LANGUAGES = {"select": "sql", "match": "cypher", "optional": "cypher", "unwind": "cypher"}
START = re.compile(r"\s*(select|with|match|optional\s+match|unwind)\b\s", re.I)
TABLE = re.compile(r"\s*with\s+(?:recursive\s+)?\w+\s*(?:\([^)]*\)\s*)?as\s*\(", re.I)
ENGINES = ("sqlite", "postgresql", "postgres", "mysql", "mariadb", "duckdb", "tsql")


def find_query_tool(query: str, tools: Sequence[str]) -> str:
    """Return the tool for a query by its first word. Empty if the text is no query or no such tool exists.

    >>> (find_query_tool("SELECT 1", ["sql", "cypher"]), find_query_tool("MATCH (n) RETURN n", ["sql"]),
    ...     find_query_tool("Selection", ["sql"]))
    ('sql', '', '')
    """
    start = START.match(f"{query} ")
    if start is None:
        return ""
    word = start[1].split()[0].casefold()
    # WITH begins a query in SQL and in Cypher: only SQL writes ``WITH name AS (``.
    if word == "with":
        word = "select" if TABLE.match(query) else "match"
    # A Cypher query has a node in brackets; "Match the names" is prose.
    if word != "select" and "(" not in query:
        return ""
    return LANGUAGES[word] if LANGUAGES[word] in tools else ""


def find_lone_query(text: str, tools: Sequence[str]) -> tuple[str, str] | None:
    """Return tool and query of a text that is one query, or whose only fence contains one. None for any other text.

    >>> find_lone_query("I look:\\n```sql\\nSELECT 1\\n```", ["sql"]), find_lone_query("SELECT a FROM b", ["sql"])
    (('sql', 'SELECT 1'), ('sql', 'SELECT a FROM b'))
    >>> find_lone_query("```sql\\nSELECT 1\\n```\\nor\\n```sql\\nSELECT 2\\n```", ["sql"])
    >>> find_lone_query("Select the best one from the list.", ["sql"])
    """
    if "```" in text or "~~~" in text:
        fences = read_fences(text)
        if len(fences) != 1:
            return None
        language, inside = fences[0]
        language = "sql" if language in ENGINES else language
        tool = find_query_tool(inside, tools)
        return (tool, inside) if tool and language in ("", tool) else None
    word = next(iter(text.split(maxsplit=1)), "")
    # "Select the best one" is prose: a query begins in capitals or in small letters.
    tool = find_query_tool(text, tools) if word in (word.upper(), word.lower()) else ""
    return (tool, text.strip()) if tool and "\n\n" not in text.strip() else None


def read_fences(text: str) -> list[tuple[str, str]]:
    """Return the language and the content of each fence."""
    fences: list[tuple[str, str]] = []
    mark, language, lines = "", "", list[str]()
    for line in text.splitlines():
        bare = line.strip()
        if mark and bare == mark:
            fences.append((language, "\n".join(lines).strip()))
            mark = ""
        elif mark:
            lines.append(line)
        elif fence := re.fullmatch(r"(`{3,}|~{3,})\s*([\w+-]*)", bare):
            mark, language, lines = fence[1], fence[2].casefold(), []
    return fences


ALIASES = {
    "relational_db": "sql",
    "relational_database": "sql",
    "rdb": "sql",
    "sql_query": "sql",
    "graph_db": "cypher",
    "graph_database": "cypher",
    "gdb": "cypher",
    "cypher_query": "cypher",
    "self_thinking": "think",
    "self_think": "think",
}
FILLERS = re.compile(r"(?:^|_)(?:an?|the|my|us(?:e|ing)|call|run|tool|function|database|db|quer(?:y|ies))(?=_|$)")


def match_tool(name: str, tools: Sequence[str]) -> str:
    """Return the tool that a written name means.

    Case, spaces and well-known other names are accepted, misspellings are not.

    >>> match_tool("Relational DB", ["sql", "think"])
    'sql'
    >>> match_tool("the SQL database", ["sql", "think"])
    'sql'
    >>> match_tool("sq", ["sql", "think"])
    Traceback (most recent call last):
    decisor.errors.ParseError: There is no tool 'sq'; there is sql, think. Did you mean sql?
    """
    if name in tools:
        return name
    if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", name):
        raise ParseError("The name of the tool holds a control character.", "control")
    visible = name.translate(INVISIBLE)
    by_plain_name = {tool.casefold(): tool for tool in tools}
    if visible in tools:
        return visible
    plain = re.sub(r"[\s-]+", "_", visible.strip().strip("`*'\"[]").strip()).casefold()
    if plain in by_plain_name:
        return by_plain_name[plain]
    if ALIASES.get(plain) in by_plain_name:
        return by_plain_name[ALIASES[plain]]
    bare = FILLERS.sub("", plain).strip("_")
    if re.fullmatch(r"[a-z_]+", plain) and bare in by_plain_name:
        return by_plain_name[bare]
    # A misspelling is not guessed: a query sent to the wrong tool costs more than a complaint.
    near = difflib.get_close_matches(plain, by_plain_name, 1)
    hint = f" Did you mean {by_plain_name[near[0]]}?" if near else ""
    ascii_name = name[:60].encode("ascii", "backslashreplace").decode()
    raise ParseError(f"There is no tool {ascii_name!r}; there is {', '.join(tools)}.{hint}", "unknown_tool")


TOOL_KEYS = ("action", "tool", "tool_name", "name", "function")
INPUT_KEYS = ("action_input", "input", "tool_input", "arguments", "args", "parameters", "query")
THOUGHT_KEYS = ("thought", "thoughts", "reasoning")


def normalize_keys(value: Mapping[str, Value]) -> Mapping[str, Value]:
    """Convert keys to lower case with underscores. Raise ParseError if a key then has two different values.

    >>> normalize_keys({"Action Input": 1, "toolName": 2})
    {'action_input': 1, 'tool_name': 2}
    """
    plain: dict[str, Value] = {}
    for key, item in value.items():
        name = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]+", "_", key.strip()).casefold()
        if name in plain and plain[name] != item:
            raise ParseError(f"{name[:60]} comes twice, with different values.", "duplicate_key")
        plain[name] = item
    return plain


def pick_synonymous_key(value: Mapping[str, Value], keys: Sequence[str]) -> tuple[Value, str]:
    """Return the value under the first of several synonymous keys, and that key.

    None and an empty key if all are missing; raise ParseError if two of them differ.
    """
    there = [key for key in keys if key in value]
    if not there:
        return None, ""
    if any(value[key] != value[there[0]] for key in there):
        raise ParseError(f"{' and '.join(there)} mean the same and differ.", "duplicate_key")
    return value[there[0]], there[0]


TAGS = re.compile(
    r"</?(?:tool_call|tool_calls|function_call|tool_use|function)>|<\|?/?(?:tool_call|python_tag|action_start|action_end"
    r"|plugin|tool_calls_section_begin|tool_call_begin)\|>|\[/?TOOL_CALLS?\]",
    re.I,
)
CALL = re.compile(r"`?(?P<tool>\w+)[ \t]*(?:\[(?P<square>.+)\]|\((?P<round>.+)\)|:[ \t]*(?P<rest>.+))[ \t`]*", re.S)
ON_ONE_LINE = re.compile(r"(?<=[\s.!?,;])(?=(?:Action(?: input)?|Final answer|Because)\s*:)", re.I)
ANSWER_IS = re.compile(
    r"^(?:so|thus|therefore|hence|now)?[\s,]*the (?:final |best |correct )?answer is\s*:?\s*(\S.*)$", re.I | re.M
)
ANSWER_KEYS = ("final_answer", "answer", "decision")
PLAN_KEYS = ("plan", "new_plan")
NAMES = {"action": "action", "input": "action_input"}
OTHERS = {"current_step": "current", "re_plan": "replan", "replan": "replan", "because": "because", "why": "because"}


def read_unlabelled_fields(text: str, tools: Sequence[str]) -> dict[str, str]:
    """Read an action or answer that was written without labels, as the fields of a labelled reply.

    >>> read_unlabelled_fields('<tool_call>{"name": "sql", "arguments": {"query": "SELECT 1"}}</tool_call>',
    ...     ["sql"])
    {'action': 'sql', 'input': 'SELECT 1'}
    >>> read_unlabelled_fields("I look it up.\\nsql[SELECT 1]", ["sql"])
    {'action': 'sql', 'input': 'SELECT 1'}
    >>> read_unlabelled_fields("So the answer is elm [o1.r2].", ["sql"])
    {'answer': 'elm [o1.r2].'}
    """
    if query := find_lone_query(text, tools):
        return {"action": query[0], "input": query[1]}
    bare = TAGS.sub("", text)
    if "{" in bare and (fields := read_json_fields(bare)):
        return fields
    calls = [call for line in bare.splitlines() if (call := CALL.fullmatch(line.strip())) and call["tool"] in tools]
    # ``tool: text`` may be prose about the tool, so only brackets make a call here.
    if len(calls) == 1 and not calls[0]["rest"]:
        return {"action": calls[0]["tool"], "input": extract_call_input(calls[0])}
    answers = ANSWER_IS.findall(text)
    return {"answer": answers[0].strip()} if len(answers) == 1 else {}


def extract_call_input(call: re.Match[str]) -> str:
    return str(call["square"] or call["round"] or call["rest"]).strip()


def read_json_fields(text: str) -> dict[str, str]:
    """Read the fields of one JSON object; empty if no object has an action or an answer.

    Raises:
        ParseError: there are several objects, or the text is nothing but an object that cannot be read.
    """
    try:
        value = read_json_value(text)
    except ParseError as error:
        if error.reason == "multiple_actions" or text.lstrip("`~json \n").startswith("{"):
            raise
        return {}
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if not isinstance(value, Mapping):
        return {}
    value = normalize_keys(value)
    if not any(key in value for key in (*TOOL_KEYS, *ANSWER_KEYS)):
        return {}
    return {**read_fields_beside_action(value), **read_action_fields(value)}


def flatten_action(value: Mapping[str, Value]) -> Mapping[str, Value]:
    """Flatten an object: its action and action input become texts under the expected keys.

    >>> flatten_action({"Action": {"tool": "sql", "input": "SELECT 1"}, "thought": "look"})
    {'thought': 'look', 'action': 'sql', 'action_input': 'SELECT 1'}
    """
    value = normalize_keys(value)
    call = read_action_fields(value)
    others = {key: item for key, item in value.items() if key not in (*TOOL_KEYS, *INPUT_KEYS)}
    if "final_answer" not in others and "decision" in others:
        others["final_answer"] = others["decision"]
    return {**others, **{NAMES[name]: text for name, text in call.items()}}


def read_fields_beside_action(value: Mapping[str, Value]) -> dict[str, str]:
    """Read all fields of an object except the action."""
    fields: dict[str, str] = {}
    for keys, name in ((THOUGHT_KEYS, "thought"), (ANSWER_KEYS, "answer"), (PLAN_KEYS, "plan")):
        item, _ = pick_synonymous_key(value, keys)
        if item not in (None, "", []):
            if name == "plan" and isinstance(item, list):
                item = ", ".join(f"Step {number}: {format_json_text(step)}" for number, step in enumerate(item, 1))
            fields[name] = format_json_text(item)
    for key, name in OTHERS.items():
        if value.get(key) not in (None, ""):
            item = value[key]
            fields[name] = ("Y" if item else "N") if isinstance(item, bool) else format_json_text(item)
    return fields


def read_action_fields(value: Mapping[str, Value]) -> dict[str, str]:
    for outer in ("function", "action", "tool_call"):
        if isinstance(inner := value.get(outer), Mapping):
            value = normalize_keys(inner)
    name, _ = pick_synonymous_key({key: item for key, item in value.items() if isinstance(item, str)}, TOOL_KEYS)
    input, _ = pick_synonymous_key(value, INPUT_KEYS)
    fields = {"action": format_json_text(name)} if name else {}
    if input is not None and name and input != name:
        fields["input"] = extract_input_text(input)
    return fields


def extract_input_text(value: Value) -> str:
    """Return an input as text; a query that is the only argument is unwrapped.

    >>> (extract_input_text({"query": "SELECT 1"}), extract_input_text({"city": "Rome"}),
    ...     extract_input_text('{"sql": "SELECT 1"}'))
    ('SELECT 1', '{"city": "Rome"}', 'SELECT 1')
    """
    if isinstance(value, str) and value.strip().startswith("{"):
        try:
            # Not strict, because LLMs write line ends within texts.
            value = json.loads(value, strict=False)
        except (ValueError, RecursionError):
            return format_json_text(value)
    if isinstance(value, Mapping) and len(value) == 1:
        name, inside = next(iter(value.items()))
        if name.casefold() in QUERY_NAMES and isinstance(inside, str):
            return inside.strip()
    return format_json_text(value)


def format_json_text(value: Value) -> str:
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


QUERY_NAMES = ("query", "sql", "cypher", "statement", "input", "action_input", "expression", "text")
